/* SPDX-License-Identifier: Apache-2.0 */
/* user.h - who a container's process is: from the request, the image and the image's own /etc/passwd and /etc/group
 *
 *      user        the request's number or name; else the image's; else 0
 *      group       the request's; else, when the user came from the image, the image's; else what /etc/passwd says; else 0
 *      groups      the process's group, those that were asked for and, unless the policy is Strict, those of /etc/group that name the user
 *
 * The two files are a stranger's: their size is bounded, what makes no sense in them is passed over, and nothing is ever written there. Numbers are the
 * container's view and must be below 2^31 and, in a user namespace, below its size. */
#pragma once

#include "cri/core/pod-table.h"

enum {
        USER_FILE_CEILING = 1 << 20, /* bytes of /etc/passwd or /etc/group */
        USER_GROUPS_MOST = 4096,
};

/* root_fd is the container's root directory; ids is how many the pod's user namespace has, 0 = the host's users. */
[[nodiscard]] struct nd_error *cri_user_resolve(int root_fd, const struct cri_container_request *request,
                                                const char *image_user, uint32_t ids, struct cri_container_user *ret);
void cri_container_user_done(struct cri_container_user *user);

/* The same with the files' contents, for tests; nullptr = there is no such file. Texts are taken apart in place. */
struct cri_user_files {
        char *passwd;
        char *group;
};
[[nodiscard]] struct nd_error *cri_user_resolve_in(struct cri_user_files *files, const struct cri_container_request *request,
                                                   const char *image_user, uint32_t ids, struct cri_container_user *ret);
