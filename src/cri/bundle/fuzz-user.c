/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-user.c - an untrusted image's user, /etc/passwd and /etc/group, separated by null bytes */
#include <string.h>
#include <unit/fuzz.h>

#include "cri/bundle/user.h"

static char *take(const uint8_t **data, size_t *size) {
        size_t length = strnlen((const char *) *data, *size);
        char *text = nd_strndup((const char *) *data, length);

        *data += length + (length < *size);
        *size -= length + (length < *size);
        return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct cri_container_request request = {.user_name = (char *) "", .strict_groups = size % 2};
        nd_cleanup(cri_container_user_done) struct cri_container_user user = {};
        nd_autofree char *image = take(&data, &size), *passwd = take(&data, &size), *group = take(&data, &size);
        nd_autoerror struct nd_error *error =
                cri_user_resolve_in(&(struct cri_user_files) {.passwd = passwd, .group = group}, &request, image,
                                    &(struct cri_user_scope) {.ids = 65536}, &user);
        bool own = false;

        if (error) {
                fuzz_require(user.groups.count == 0);
                return 0;
        }
        fuzz_require(user.uid < 65536 && user.gid < 65536);
        fuzz_require(user.groups.count > 0 && user.groups.count <= USER_GROUPS_MOST);
        nd_vector_each (id, &user.groups) {
                fuzz_require(*id < 65536);
                own = own || *id == user.gid;
        }
        fuzz_require(own);
        return 0;
}
