/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/version.h"

#include <string.h>

#include "base/text.h"

int nd_kube_version_parse(const char *text, struct nd_kube_version *ret) {
        uint64_t minor;

        if (nd_streq(text, "latest")) {
                *ret = ND_POLICY_LATEST;
                return 0;
        }
        if (!nd_has_prefix(text, "v1."))
                return -EINVAL;
        text += strlen("v1.");
        if (text[0] == '0' && text[1] != '\0')
                return -EINVAL;
        if (nd_text_parse_u64(text, INT64_MAX, &minor) < 0)
                return -EINVAL;
        *ret = (struct nd_kube_version) {.minor = minor};
        return 0;
}

char *nd_kube_version_text(struct nd_kube_version version) {
        return version.latest ? nd_strdup("latest") : nd_format("v1.%llu", (unsigned long long) version.minor);
}
