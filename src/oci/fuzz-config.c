/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes: an error, or a config within its limits whose user is a number below 2^31, a name, or
 * an error. */
#include <string.h>

#include <unit/fuzz.h>

#include "base/text.h"
#include "oci/config.h"
#include "oci/manifest.h"

static void is_clean(const char *text, size_t ceiling) {
        fuzz_require(text && strlen(text) <= ceiling && nd_text_utf8_valid(text, strlen(text)));
}

static void user_is_safe(const char *text) {
        nd_cleanup(nd_oci_user_done) struct nd_oci_user user = {};
        nd_autoerror struct nd_error *error = nd_oci_user_parse(text, &user);

        if (error)
                return;
        fuzz_require(user.uid <= INT32_MAX && user.gid <= INT32_MAX);
        fuzz_require(!(user.has_uid && user.user));
        fuzz_require(!(user.has_gid && user.group));
        fuzz_require(!user.user || !strpbrk(user.user, "\n\r:/"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_cleanup(nd_oci_config_done) struct nd_oci_config config = {};
        nd_autoerror struct nd_error *error = nd_oci_config_parse((const char *) data, size, &config);
        nd_autofree char *text = fuzz_text(data, size < ND_CONFIG_USER ? size : ND_CONFIG_USER);

        user_is_safe(text);
        if (error)
                return 0;
        fuzz_require(config.diff_ids.count <= ND_MANIFEST_LAYERS);
        is_clean(config.user, ND_CONFIG_USER);
        is_clean(config.working_directory, ND_CONFIG_PATH);
        user_is_safe(config.user);
        nd_vector_each (entry, &config.environment) {
                is_clean(*entry, ND_CONFIG_STRING);
                fuzz_require(strchr(*entry, '=') > *entry);
        }
        nd_vector_each (entry, &config.command) {
                is_clean(*entry, ND_CONFIG_STRING);
        }
        nd_vector_each (label, &config.labels) {
                is_clean(label->key, ND_CONFIG_CEILING);
        }
        return 0;
}
