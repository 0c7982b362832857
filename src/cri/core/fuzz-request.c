/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-request.c - a decoded request can be freed, has no null pointer where request.h promises
 * a string, and valid ID maps */
#include <stdint.h>
#include <string.h>

#include "cri/core/request-decode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_map(const struct nd_userns_map *map) {
        if (map->inside != 0 || map->outside == 0 || map->count == 0 || (uint64_t) map->outside + map->count > UINT32_MAX)
                abort();
}

static void check_sandbox(const struct cri_sandbox_request *r) {
        if (!*r->name || !*r->uid || !*r->namespace || !r->hostname || !r->log_directory || !r->cgroup_parent ||
            !r->runtime_handler)
                abort();
        if (r->user_namespace) {
                check_map(&r->uids);
                check_map(&r->gids);
        }
        nd_vector_each (port, &r->ports) {
                if (port->host == 0 || port->container == 0 || !port->address)
                        abort();
        }
}

static void check_container(const struct cri_container_request *r) {
        if (!*r->name || !*r->image || !r->image_by_user || !r->working_directory || !r->log_path || !r->pid_target ||
            !r->user_name || !r->seccomp.localhost || !r->apparmor.localhost || !r->resources.cpuset_cpus ||
            !r->resources.cpuset_mems || r->log_path[0] == '/' || r->stop_signal < 0 || r->stop_signal > 64)
                abort();
        nd_vector_each (mount, &r->mounts) {
                if (mount->container_path[0] != '/' || (mount->host_path[0] != '/' && !*mount->image) || !mount->image_subpath)
                        abort();
                if (mount->idmapped)
                        check_map(&mount->uids);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_cleanup(cri_container_request_done) struct cri_container_request container = {};
        nd_cleanup(cri_sandbox_request_done) struct cri_sandbox_request sandbox = {};
        nd_cleanup(cri_resource_request_done) struct cri_resource_request resources = {};
        nd_autofree char *id = nullptr;
        const char *bytes = (const char *) data;
        struct nd_error *error;

        if (size == 0)
                return 0;
        switch (data[0] % 3) {
        case 0:
                error = cri_request_decode_sandbox(bytes + 1, size - 1, &sandbox);
                if (!error)
                        check_sandbox(&sandbox);
                break;
        case 1:
                error = cri_request_decode_container(bytes + 1, size - 1, &id, &container);
                if (!error)
                        check_container(&container);
                break;
        default:
                error = cri_request_decode_update(bytes + 1, size - 1, &id, &resources);
        }
        nd_error_free(error);
        return 0;
}
