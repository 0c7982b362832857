/* SPDX-License-Identifier: Apache-2.0 */
/* user.h - determines user and groups of a container's process, from the request, the image and the
 * image's /etc/passwd and /etc/group
 *
 *      user        the request's number or name; else the image's; else 0
 *      group       the request's; else, if the user came from the image, the image's; else the one
 *                  in /etc/passwd; else 0
 *      groups      the process's group, the requested ones and, unless the policy is Strict, those
 *                  in /etc/group that have the user as a member
 *
 * The two files are untrusted: their size is bounded, invalid lines are skipped, and nothing is
 * ever written to them. Numbers are as seen in the container, must be below 2^31, and must exist in
 * the pod's user namespace, or on the node. */
#pragma once

#include "cri/core/pod-table.h"

enum {
        USER_FILE_CEILING = 1 << 20, /* bytes of /etc/passwd or /etc/group */
        USER_GROUPS_MOST = 4096,
};

struct nd_own_userns;

/* The IDs that exist in the container. */
struct cri_user_scope {
        uint32_t ids; /* size of the pod's user namespace; 0 = the node's users */
        const struct nd_own_userns *node;
};

/* root_fd is the container's root directory. */
[[nodiscard]] struct nd_error *cri_user_resolve(int root_fd, const struct cri_container_request *request,
                                                const char *image_user, const struct cri_user_scope *scope,
                                                struct cri_container_user *ret);
void cri_container_user_done(struct cri_container_user *user);

/* The same with the files' contents, for tests; nullptr = the file is missing. The texts are
 * modified. */
struct cri_user_files {
        char *passwd;
        char *group;
};
[[nodiscard]] struct nd_error *cri_user_resolve_in(struct cri_user_files *files, const struct cri_container_request *request,
                                                   const char *image_user, const struct cri_user_scope *scope,
                                                   struct cri_container_user *ret);
