/* SPDX-License-Identifier: Apache-2.0 */
#include "userns/probe.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "sys/child.h"
#include "sys/file.h"
#include "sys/mount.h"
#include "sys/userns.h"
#include "sys/worker.h"
#include "userns/range.h"

enum {
        PROBE_FIRST = 0x7fff0000, /* a block far from any in use */
};

static constexpr uint64_t deadline_us = ND_PROBE_S * ND_SECOND_US;
/* For one run of an engine; the probe needs two. */
static constexpr uint64_t engine_deadline_us = 10 * ND_SECOND_US;

struct nd_error *nd_probe_map(struct nd_userns_map *ret) {
        nd_cleanup(nd_userns_extents_done) struct nd_userns_extents own = {};

        nd_try(nd_userns_extents_own(&own));
        if (nd_userns_extents_hold(&own, PROBE_FIRST, ND_IDS_UNIT)) {
                *ret = (struct nd_userns_map) {.outside = PROBE_FIRST, .count = ND_IDS_UNIT};
                return nullptr;
        }
        nd_vector_each (extent, &own) {
                if (extent->count > 1) {
                        uint64_t count = extent->count < ND_IDS_UNIT ? extent->count : ND_IDS_UNIT;

                        *ret = (struct nd_userns_map) {.outside = (uint32_t) (extent->first + extent->count - count),
                                                       .count = (uint32_t) count};
                        return nullptr;
                }
        }
        return nd_error_new(ND_PRECONDITION, 0, "no subordinate IDs are mapped into this user namespace");
}

static struct nd_error *probe_namespace(struct nd_userns_map *ret_map, int *ret_fd) {
        struct nd_userns_plan plan = {.uids = ret_map, .uid_count = 1, .gids = ret_map, .gid_count = 1};

        nd_try(nd_probe_map(ret_map));
        return nd_userns_make(&plan, ret_fd);
}

static struct nd_error *userns_work([[maybe_unused]] void *argument, [[maybe_unused]] int *ret_fd) {
        nd_autoclose int fd = -EBADF;
        struct nd_userns_map map;

        return probe_namespace(&map, &fd);
}

struct nd_error *nd_probe_userns(void) {
        return nd_worker_run("user namespace probe", userns_work, nullptr, deadline_us, nullptr);
}

static struct nd_error *unprivileged_work(void *argument, [[maybe_unused]] int *ret_fd) {
        uid_t uid = *(const uid_t *) argument;
        nd_autoclose int fd = -EBADF;
        struct nd_userns_map uids, gids;

        if (uid != (uid_t) -1 && (syscall(SYS_setgroups, 0, nullptr) < 0 || syscall(SYS_setresgid, uid, uid, uid) < 0 ||
                                  syscall(SYS_setresuid, uid, uid, uid) < 0))
                return nd_error_new(ND_DENIED, errno, "switch to user %u", uid);
        /* The writer of the map is no longer root; it may open the child's files only if the child
         * is dumpable. */
        uids = (struct nd_userns_map) {.outside = geteuid(), .count = 1};
        gids = (struct nd_userns_map) {.outside = getegid(), .count = 1};
        return nd_userns_make(
                &(struct nd_userns_plan) {
                        .uids = &uids, .uid_count = 1, .gids = &gids, .gid_count = 1, .deny_setgroups = true},
                &fd);
}

struct nd_error *nd_probe_userns_unprivileged(uid_t uid) {
        return nd_worker_run("unprivileged user namespace probe", unprivileged_work, &uid, deadline_us, nullptr);
}

/* Idmaps a detached tree and compares the owner of its root before and after. */
static struct nd_error *idmap_and_look(int tree) {
        nd_autoclose int userns = -EBADF;
        struct nd_userns_map map;
        struct stat before, after;
        uid_t expected;

        nd_try(probe_namespace(&map, &userns));
        if (fstat(tree, &before) < 0)
                return nd_error_new(ND_INTERNAL, errno, "stat the directory");
        nd_try(nd_mount_idmap(tree, userns, false));
        if (fstat(tree, &after) < 0)
                return nd_error_new(ND_INTERNAL, errno, "stat the idmapped directory");
        expected = before.st_uid < map.count ? map.outside + before.st_uid : 65534;
        if (after.st_uid != expected)
                return nd_error_new(ND_INTERNAL, 0, "the idmapped directory is owned by %u instead of %u", after.st_uid,
                                    expected);
        return nullptr;
}

/* A child that waits for a dead server cannot even be killed. It must not keep our standard output
 * open: the reader of a pipe would wait for its end. */
static void leave_streams(void) {
        nd_autoclose int null = open("/dev/null", O_RDWR | O_CLOEXEC);

        for (int fd = STDIN_FILENO; null >= 0 && fd <= STDERR_FILENO; fd++)
                (void) dup2(null, fd);
}

static struct nd_error *open_path(const char *path, int *ret_fd) {
        int fd;

        leave_streams();
        fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "open directory '%s'", path);
        *ret_fd = fd;
        return nullptr;
}

static struct nd_error *idmap_work(void *argument, [[maybe_unused]] int *ret_fd) {
        nd_autoclose int directory = -EBADF, tree = -EBADF;

        nd_try(open_path(argument, &directory));
        nd_try(nd_mount_clone(directory, "", false, &tree));
        return idmap_and_look(tree);
}

struct nd_error *nd_probe_idmap(const char *path) {
        return nd_worker_run("idmapped mount probe", idmap_work, (void *) path, deadline_us, nullptr);
}

static struct nd_error *tmpfs_work([[maybe_unused]] void *argument, [[maybe_unused]] int *ret_fd) {
        nd_autoclose int tree = -EBADF;

        nd_try(nd_mount_fs_make("tmpfs", nullptr, 0, 0, &tree));
        return idmap_and_look(tree);
}

struct nd_error *nd_probe_idmap_tmpfs(void) {
        return nd_worker_run("idmapped tmpfs probe", tmpfs_work, nullptr, deadline_us, nullptr);
}

/* A tmpfs over /tmp of a private mount namespace, for mount points and the upper directory. */
static struct nd_error *make_workshop(const char *const *directories) {
        nd_autoclose int tree = -EBADF;

        nd_try(nd_mount_namespace_private());
        nd_try(nd_mount_fs_make("tmpfs", nullptr, 0, 0, &tree));
        nd_try(nd_mount_attach(tree, AT_FDCWD, "/tmp"));
        for (; *directories; directories++)
                nd_try(nd_dir_make(AT_FDCWD, *directories, 0700));
        return nullptr;
}

static struct nd_error *overlay_work(void *argument, [[maybe_unused]] int *ret_fd) {
        static const struct nd_mount_fs_option options[] = {{"lowerdir+", "/tmp/lower"},
                                                            {"upperdir", "/tmp/upper"},
                                                            {"workdir", "/tmp/work"},
                                                            {"userxattr", nullptr},
                                                            {"volatile", nullptr}};
        nd_autoclose int directory = -EBADF, lower = -EBADF, overlay = -EBADF;
        struct statfs fs;

        nd_try(open_path(argument, &directory));
        nd_try(nd_mount_clone(directory, "", false, &lower));
        nd_try(make_workshop((const char *const[]) {"/tmp/lower", "/tmp/upper", "/tmp/work", nullptr}));
        nd_try(idmap_and_look(lower));
        nd_try(nd_mount_attach(lower, AT_FDCWD, "/tmp/lower"));
        nd_try(nd_mount_fs_make("overlay", options, nd_count_of(options), 0, &overlay));
        if (fstatfs(overlay, &fs) < 0 || (unsigned long) fs.f_type != OVERLAYFS_SUPER_MAGIC)
                return nd_error_new(ND_INTERNAL, errno, "the new mount is not an overlay");
        return nullptr;
}

struct nd_error *nd_probe_overlay(const char *path) {
        return nd_worker_run("overlay probe", overlay_work, (void *) path, deadline_us, nullptr);
}

static struct nd_error *directory_work(void *argument, [[maybe_unused]] int *ret_fd) {
        nd_autoclose int directory = -EBADF;
        struct stat st;

        nd_try(open_path(argument, &directory));
        if (fstat(directory, &st) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "stat directory '%s'", (const char *) argument);
        return nullptr;
}

struct nd_error *nd_probe_directory(const char *path) {
        return nd_worker_run("directory probe", directory_work, (void *) path, deadline_us, nullptr);
}

/* The name is returned as the text of an "error": a worker can return no other text. */
static struct nd_error *filesystem_work(void *argument, [[maybe_unused]] int *ret_fd) {
        nd_autoclose int directory = -EBADF;
        nd_autofree char *type = nullptr;

        nd_try(open_path(argument, &directory));
        nd_try(nd_mount_fs_type(directory, &type));
        return nd_error_new(ND_ABORTED, 0, "%s", type);
}

char *nd_probe_filesystem(const char *path) {
        nd_autoerror struct nd_error *answer =
                nd_worker_run("filesystem probe", filesystem_work, (void *) path, deadline_us, nullptr);

        return nd_strdup(nd_error_code(answer) == ND_ABORTED ? nd_error_text(answer) : "?");
}

/* ---- engines ---- */

struct engine_probe {
        const char *program;
        const char *const *environment;
        bool runc;
};

/* The program does not exist: an engine creates devices before it notices. */
static const char engine_spec[] =
        "{\"ociVersion\":\"1.0.2\",\"process\":{\"user\":{\"uid\":0,\"gid\":0},\"args\":[\"/nothing\"],\"env\":[\"PATH=/\"],\"cwd\":\"/\"},"
        "\"root\":{\"path\":\"rootfs\"},\"mounts\":[{\"destination\":\"/proc\",\"type\":\"proc\",\"source\":\"proc\"}],"
        "\"linux\":{\"namespaces\":[{\"type\":\"mount\"},{\"type\":\"pid\"},{\"type\":\"ipc\"},{\"type\":\"uts\"}]}}\n";

static struct nd_error *run_on(const struct engine_probe *probe, const char *bundle) {
        nd_autofree char *id = nd_format("nodens-probe-%d-%s", (int) getpid(), strrchr(bundle, '/') + 1);
        const char *const crun[] = {probe->program, "--root", "/tmp/engine", "--cgroup-manager", "disabled", "run", "--bundle",
                                    bundle,         id,       nullptr};
        const char *const runc[] = {probe->program, "--root", "/tmp/engine", "run", "--bundle", bundle, id, nullptr};
        nd_cleanup(nd_child_result_done) struct nd_child_result result = {};

        return nd_child_run(&(struct nd_child_plan) {.argv = probe->runc ? runc : crun,
                                                     .environment = probe->environment,
                                                     .deadline_us = engine_deadline_us,
                                                     .output_ceiling = 4096,
                                                     .dies_with_us = true},
                            &result);
}

/* An engine creates both, and replaces the second if it exists. */
static bool has_devices(const char *directory) {
        nd_autofree char *null = nd_format("%s/null", directory), *ptmx = nd_format("%s/ptmx", directory);
        struct stat st;

        return lstat(null, &st) == 0 || lstat(ptmx, &st) == 0;
}

/* A root filesystem with a directory at /dev shows that the engine gets that far; then one with a
 * link. */
static struct nd_error *engine_work(void *argument, [[maybe_unused]] int *ret_fd) {
        const struct engine_probe *probe = argument;

        nd_try(make_workshop((const char *const[]) {"/tmp/engine", "/tmp/outside", "/tmp/plain", "/tmp/plain/rootfs",
                                                    "/tmp/plain/rootfs/dev", "/tmp/linked", "/tmp/linked/rootfs", nullptr}));
        nd_try(nd_file_write(AT_FDCWD, "/tmp/plain/config.json", engine_spec, sizeof engine_spec - 1, 0600));
        nd_try(nd_file_write(AT_FDCWD, "/tmp/linked/config.json", engine_spec, sizeof engine_spec - 1, 0600));
        if (nd_sys->symlinkat("/tmp/outside", AT_FDCWD, "/tmp/linked/rootfs/dev") < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "create the symbolic link '/dev'");
        nd_try(run_on(probe, "/tmp/plain"));
        if (!has_devices("/tmp/plain/rootfs/dev"))
                return nd_error_new(ND_UNKNOWN, 0, "%s made no devices for a container", probe->program);
        nd_try(run_on(probe, "/tmp/linked"));
        if (has_devices("/tmp/outside"))
                return nd_error_new(ND_PRECONDITION, 0, "follows a link at /dev of an image to the host (CVE-2026-47766)");
        return nullptr;
}

struct nd_error *nd_probe_engine_dev(const char *program, bool runc, const char *const *environment) {
        struct engine_probe probe = {.program = program, .environment = environment, .runc = runc};

        return nd_worker_run("engine probe", engine_work, &probe, 3 * engine_deadline_us, nullptr);
}
