/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/node/inside.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "rootless/node/delegation.h"
#include "sys/cgroup.h"
#include "sys/file.h"
#include "sys/mount.h"
#include "sys/own-userns.h"
#include "sys/program.h"

enum {
        STATUS_BYTES = 64 * 1024,
        MOUNTS_BYTES = 1024 * 1024,
        PROCESSES_BYTES = 1024 * 1024,
        HIDING_BYTES = 128, /* of a path in an error */
        CAPABILITY_SETGID = 6,
        CAPABILITY_SETUID = 7,
        CAPABILITY_SETFCAP = 31,
};

#define TUN "/dev/net/tun"

/* ---- what the container permits ---- */

static struct nd_error *check_capabilities(const char *status) {
        static const struct {
                const char *name;
                unsigned number;
        } needed[] = {{"SETGID", CAPABILITY_SETGID}, {"SETUID", CAPABILITY_SETUID}, {"SETFCAP", CAPABILITY_SETFCAP}};
        const char *line = strstr(status, "\nCapEff:");
        unsigned long long held = line ? strtoull(line + strlen("\nCapEff:"), nullptr, 16) : 0;

        for (size_t i = 0; i < nd_count_of(needed); i++)
                if (!(held & (1ULL << needed[i].number)))
                        return nd_error_new(ND_PRECONDITION, 0,
                                            "the container has no CAP_%s, with which the IDs of the node are mapped; add it "
                                            "(podman run --cap-add %s; in a pod securityContext.capabilities.add: [%s])",
                                            needed[i].name, needed[i].name, needed[i].name);
        return nullptr;
}

/* Finds a mount below /proc, the fifth word of a line of mountinfo. The kernel refuses a second
 * proc while the visible one is covered in part; directories that are always empty do not count. */
static bool find_cover(const char *mounts, char ret[static HIDING_BYTES]) {
        static const char binfmt[] = "/proc/sys/fs/binfmt_misc";

        for (const char *line = mounts; *line; line += strcspn(line, "\n"), line += *line == '\n') {
                const char *word = line;

                for (int i = 0; i < 4 && *word && *word != '\n'; i++) {
                        word += strcspn(word, " \n");
                        word += *word == ' ';
                }
                if (strncmp(word, "/proc/", strlen("/proc/")) == 0 && strncmp(word, binfmt, strlen(binfmt)) != 0) {
                        (void) snprintf(ret, HIDING_BYTES, "%.*s", (int) strcspn(word, " \n"), word);
                        return true;
                }
        }
        return false;
}

struct nd_error *rootless_inside_check(const struct rootless_inside_facts *facts) {
        char cover[HIDING_BYTES];

        if (facts->initial)
                return nd_error_new(ND_PRECONDITION, 0,
                                    "--inside is for user namespaces of containers and pods, and this is the host's; start "
                                    "the node without it as an ordinary user, or the pod with hostUsers: false");
        if (facts->uid != 0)
                return nd_error_new(ND_PRECONDITION, 0,
                                    "user %u of the container cannot map its IDs; run 'up --inside' as root of the container "
                                    "(podman run --user 0; in a pod runAsUser: 0)",
                                    facts->uid);
        nd_try(check_capabilities(facts->status));
        if (find_cover(facts->mounts, cover))
                return nd_error_new(ND_PRECONDITION, 0,
                                    "'%s' of the container is masked, so the kernel does not give the node a /proc; start "
                                    "the container with the whole of it (podman run --security-opt unmask=ALL; in a pod "
                                    "securityContext.procMount: Unmasked)",
                                    cover);
        return nullptr;
}

struct nd_error *rootless_inside_require(void) {
        nd_cleanup(nd_own_userns_done) struct nd_own_userns own = {};
        nd_autofree char *status = nullptr, *mounts = nullptr;

        nd_try(nd_own_userns_read(&own));
        nd_try(nd_file_read_kernel("/proc/self/status", STATUS_BYTES, &status));
        nd_try(nd_file_read_kernel("/proc/self/mountinfo", MOUNTS_BYTES, &mounts));
        return rootless_inside_check(&(struct rootless_inside_facts) {
                .initial = own.initial, .uid = geteuid(), .status = status, .mounts = mounts});
}

static struct nd_error *map_to_itself(const char *kind, struct nd_userns_maps *ret) {
        nd_try(nd_userns_maps_own(kind, ret));
        nd_vector_each (map, ret) {
                map->outside = map->inside;
        }
        return nullptr;
}

struct nd_error *rootless_inside_maps(struct nd_userns_maps *ret_uids, struct nd_userns_maps *ret_gids) {
        nd_try(map_to_itself("uid", ret_uids));
        return map_to_itself("gid", ret_gids);
}

/* ---- network ---- */

static bool can_open_tun(void) {
        nd_autoclose int fd = nd_sys->openat(AT_FDCWD, TUN, O_RDWR | O_CLOEXEC, 0);

        return fd >= 0;
}

static bool installed(enum rootless_net_driver driver) {
        const char *path = getenv("PATH"); /* NOLINT(concurrency-mt-unsafe): one thread */
        nd_autofree char *found = nd_program_find(path ? path : "/usr/bin:/bin", rootless_net_driver_name(driver));

        return found != nullptr;
}

struct nd_error *rootless_inside_choose_network(struct rootless_config *config) {
        bool tun = can_open_tun();
        const char *reason =
                tun ? "neither pasta nor slirp4netns is installed in the container" : "the container has no usable " TUN;

        if (config->net_given)
                return nullptr;
        if (tun && installed(NET_DRIVER_PASTA))
                return nullptr;
        if (tun && installed(NET_DRIVER_SLIRP)) {
                config->net = NET_DRIVER_SLIRP;
                return nullptr;
        }
        if (config->join)
                return nd_error_new(ND_PRECONDITION, 0,
                                    "%s, so pods could have no network; start the container with --device " TUN
                                    " and with the package passt in its image, or accept pods with hostNetwork only by "
                                    "--net host",
                                    reason);
        nd_log(ND_LOG_WARNING, "the node shares the network of the container", nd_field("reason", reason),
               nd_field("remedy", "start the container with --device " TUN " and with the package passt in its image"));
        config->net = NET_DRIVER_HOST;
        return nullptr;
}

/* ---- cgroup ---- */

/* Moves all processes of the container's root cgroup to a leaf: the kernel enables controllers only
 * for the children of a cgroup without processes. New ones make init fail. */
static bool empty_root(void) {
        nd_autofree char *processes = nullptr;
        nd_autoerror struct nd_error *error = nd_dir_make(AT_FDCWD, ND_CGROUP_MOUNT "/container", 0755);
        nd_autoclose int fd = -EBADF;

        if (!error)
                error = nd_file_read_kernel(ND_CGROUP_MOUNT "/cgroup.procs", PROCESSES_BYTES, &processes);
        if (error)
                return false;
        fd = nd_sys->openat(AT_FDCWD, ND_CGROUP_MOUNT "/container/cgroup.procs", O_WRONLY | O_CLOEXEC, 0);
        for (char *rest = processes, *line; fd >= 0 && (line = strsep(&rest, "\n"));)
                if (*line && nd_sys->write(fd, line, strlen(line)) < 0 && errno != ESRCH)
                        return false;
        return fd >= 0;
}

char *rootless_inside_cgroup(void) {
        nd_cleanup(nd_cgroup_done) struct nd_cgroup cgroup = {};
        nd_autoerror struct nd_error *error = nd_cgroup_discover(&cgroup);
        nd_autofree char *self = nd_format("%d", (int) getpid());
        nd_autoclose int fd = -EBADF;

        if (error || cgroup.layout != ND_CGROUP_UNIFIED || !cgroup.writable || !nd_streq(cgroup.own, "/") ||
            access(ND_CGROUP_MOUNT, W_OK) < 0 || !empty_root())
                return nullptr;
        /* Back to the root: the node's cgroup namespace begins where its first process is. */
        fd = nd_sys->openat(AT_FDCWD, ND_CGROUP_MOUNT "/cgroup.procs", O_WRONLY | O_CLOEXEC, 0);
        return fd >= 0 && nd_sys->write(fd, self, strlen(self)) > 0 ? nd_strdup("/") : nullptr;
}

struct nd_error *rootless_inside_require_cgroup(const char *cgroup) {
        nd_autofree char *missing = cgroup ? rootless_delegation_missing(cgroup) : nullptr;

        if (cgroup && !*missing)
                return nullptr;
        return nd_error_new(ND_PRECONDITION, 0,
                            "%s%s, so pods would have no limits; start the container with a cgroup that it can write (podman "
                            "run --security-opt unmask=/sys/fs/cgroup or unmask=ALL, with cgroup v2 and a delegated cgroup of "
                            "the user; in a pod a runtime handler of nodens-cri with writableCgroups), or accept that with "
                            "--no-cgroups",
                            cgroup ? "controllers missing in the container's cgroup: " : "the container's cgroup is read-only",
                            cgroup ? missing : "");
}

/* ---- data ---- */

struct nd_error *rootless_inside_check_data(const char *path) {
        nd_autoclose int fd = -EBADF;

        nd_try(nd_dir_open(AT_FDCWD, path, &fd));
        if (nd_streq(nd_mount_fs_name(fd), "overlay"))
                return nd_error_new(ND_PRECONDITION, 0,
                                    "data directory '%s' is on the container's overlay, on which containers cannot have their "
                                    "layers; mount a volume there (podman run --volume nodens:%s; in a pod an emptyDir)",
                                    path, path);
        return nullptr;
}
