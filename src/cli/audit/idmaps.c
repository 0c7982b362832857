/* SPDX-License-Identifier: Apache-2.0 */
/* idmaps.c - see audit.h
 *
 * The kernel's own answer, which does not depend on the kubelet or the runtime: a process belongs
 * to the pod in the path of its cgroup, and /proc/PID/uid_map is its mapping. */
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/audit/audit.h"
#include "sys/dir.h"
#include "sys/file.h"
#include "sys/userns.h"

enum {
        UID_LENGTH = 64,
        CGROUP_BYTES = 16 << 10,
        MAP_BYTES = 16 << 10,
};

static bool is_uid(char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || c == '-' || c == '_';
}

/* cgroupfs: .../pod1234-56/CONTAINER; systemd: ...-pod1234_56.slice/... A container may create
 * groups below its own, so the first match counts. */
char *cli_audit_pod_of_cgroup(const char *cgroup) {
        for (const char *at = cgroup; (at = strstr(at, "pod")); at += strlen("pod")) {
                const char *uid = at + strlen("pod");
                size_t length = 0;
                char *copy;

                while (is_uid(uid[length]))
                        length++;
                if (at == cgroup || (at[-1] != '/' && at[-1] != '-') || length < 8 || length > UID_LENGTH)
                        continue;
                if (uid[length] != '/' && uid[length] != '.' && uid[length] != '\n' && uid[length] != '\0')
                        continue;
                copy = nd_strndup(uid, length);
                for (char *c = strchr(copy, '_'); c; c = strchr(c, '_'))
                        *c = '-';
                return copy;
        }
        return nullptr;
}

bool cli_audit_is_host_map(const char *uid_map) {
        nd_cleanup(nd_userns_maps_done) struct nd_userns_maps maps = {};
        nd_autoerror struct nd_error *error = nd_userns_maps_parse(uid_map, &maps);

        nd_vector_each (map, &maps) {
                if (map->inside == 0)
                        return !error && map->outside == 0;
        }
        return false;
}

/* Monitors and OCI runtimes may be in a pod's cgroup; they have the node's mount namespace. */
static bool is_of_node(const char *process) {
        nd_autofree char *path = nd_format("/proc/%s/ns/mnt", process);
        struct stat its, own;

        return stat(path, &its) < 0 || stat("/proc/self/ns/mnt", &own) < 0 || its.st_ino == own.st_ino;
}

/* A process may end while it is read. */
static void look_at(const char *process, struct nd_map *found) {
        nd_autofree char *cgroup_path = nd_format("/proc/%s/cgroup", process);
        nd_autofree char *map_path = nd_format("/proc/%s/uid_map", process);
        nd_autofree char *cgroup = nullptr, *map = nullptr, *uid = nullptr;
        nd_autoerror struct nd_error *error = nd_file_read_kernel(cgroup_path, CGROUP_BYTES, &cgroup);

        if (error)
                return;
        uid = cli_audit_pod_of_cgroup(cgroup);
        if (!uid || is_of_node(process))
                return;
        error = nd_file_read_kernel(map_path, MAP_BYTES, &map);
        if (!error && cli_audit_is_host_map(map))
                (void) nd_map_put(found, uid, found);
}

struct nd_error *cli_audit_read_maps(struct nd_map *ret) {
        nd_cleanup(nd_dir_close) DIR *proc = opendir("/proc");
        struct dirent *entry;
        struct stat st;

        /* without the right to look, every process would seem to be fine */
        if (stat("/proc/1/ns/mnt", &st) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "read '/proc/1/ns/mnt': --node needs root");
        if (!proc)
                return nd_error_new(nd_error_code_of(errno), errno, "open '/proc'");
        while ((entry = readdir(proc)))
                if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9')
                        look_at(entry->d_name, ret);
        return nullptr;
}
