/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/core/paths.h"

#include <string.h>

#include "sys/file.h"

char *cri_path_of_pods(const struct cri_config *config) {
        return nd_format("%s/pods", config->state);
}

char *cri_path_of_sandbox(const struct cri_config *config, const char *sandbox_id) {
        return nd_format("%s/pods/%s", config->state, sandbox_id);
}

char *cri_path_of_container(const struct cri_config *config, const struct cri_container *container) {
        return nd_format("%s/pods/%s/containers/%s", config->state, container->sandbox->id, container->id);
}

char *cri_path_of_sandbox_run(const struct cri_config *config, const char *sandbox_id) {
        return nd_format("%s/pods/%s", config->run, sandbox_id);
}

char *cri_path_of_container_run(const struct cri_config *config, const char *container_id) {
        return nd_format("%s/containers/%s", config->run, container_id);
}

char *cri_path_of_oci_runtime(const struct cri_config *config, const char *handler) {
        if (nd_streq(handler, "") || nd_streq(handler, "crun"))
                return nd_format("%s/crun", config->run);
        return nd_format("%s/engine-%s", config->run, handler);
}

char *cri_path_of_netns(const struct cri_config *config, const char *sandbox_id) {
        return nd_format("%s/nodens-%s", config->netns, sandbox_id);
}

bool cri_path_is_id(const char *name) {
        return strlen(name) == POD_ID && strspn(name, "0123456789abcdef") == POD_ID;
}

struct nd_error *cri_path_make_of_pod(int dir_fd, const char *path, const struct cri_sandbox_request *pod) {
        nd_try(nd_dir_make(dir_fd, path, 0700));
        return pod->user_namespace ? nd_dir_give(dir_fd, path, 0, pod->gids.outside, 0710) : nullptr;
}
