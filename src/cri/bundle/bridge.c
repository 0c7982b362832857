/* SPDX-License-Identifier: Apache-2.0 */
/* bridge.c - see bridge.h */
#include "cri/bundle/bridge.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/strings.h"
#include "cri/core/config.h"
#include "cri/core/paths.h"
#include "sys/cgroup.h"
#include "sys/child.h"
#include "sys/dir.h"
#include "sys/file.h"
#include "sys/mount.h"

enum {
        START_S = 20,
        REPLACE_S = 60, /* longer than nodens-bridge waits for processes to stop and to start */
        PROCESSES_CEILING = 4096,
        KILL_S = 10,
        OUTPUT_CEILING = 4096,
        EVENTS_CEILING = 256,
        VOLUMES_MOST = 1024,
};

#define BRIDGE_CGROUP "nodens-bridge"

static char *directory_of(const struct cri_config *config, const struct cri_sandbox *sandbox) {
        nd_autofree char *run = cri_path_of_sandbox_run(config, sandbox->id);

        return nd_format("%s/bridges", run);
}

/* The cgroup for the processes, below the mount; nullptr if the pod has none. */
static char *cgroup_of(const struct cri_config *config, const struct cri_sandbox *sandbox) {
        const char *parent = sandbox->request.cgroup_parent;

        return config->without_cgroups || !*parent ? nullptr : nd_format("%s/" BRIDGE_CGROUP, parent);
}

/* Whether something is mounted there. Nothing below it is touched. */
static bool is_mounted(const char *place) {
        struct statx st;

        return statx(AT_FDCWD, place, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, 0, &st) == 0 &&
               st.stx_attributes & STATX_ATTR_MOUNT_ROOT;
}

/* Makes the mount point, of the volume's kind. */
static struct nd_error *make_place(const char *own, const char *place, mode_t mode) {
        nd_try(nd_dir_make(AT_FDCWD, own, 0700));
        return S_ISDIR(mode) ? nd_dir_make(AT_FDCWD, place, 0700) : nd_file_write(AT_FDCWD, place, "", 0, 0600);
}

/* The first rule for the filesystem that a file is on; nullptr = none. */
static struct nd_error *find_rule(const struct cri_config *config, int file, const struct cri_bridge_rule **ret) {
        nd_autofree char *type = nullptr;

        *ret = nullptr;
        nd_try(nd_mount_fs_type(file, &type));
        nd_vector_each (rule, &config->bridge_rules)
                if (!*ret && nd_streq(rule->filesystem, type))
                        *ret = rule;
        return nullptr;
}

/* Makes the cgroup of one bridge. nullptr if the pod has no cgroup. */
static struct nd_error *make_cgroup(const struct cri_config *config, const struct cri_sandbox *sandbox, const char *name,
                                    char **ret) {
        nd_autofree char *cgroup = cgroup_of(config, sandbox), *above = nullptr, *own = nullptr;

        if (!cgroup)
                return nullptr;
        above = nd_format(ND_CGROUP_MOUNT "%s", cgroup);
        own = nd_format("%s/%s", above, name);
        nd_try(nd_dir_make(AT_FDCWD, above, 0755));
        nd_try(nd_dir_make(AT_FDCWD, own, 0755));
        *ret = nd_take_ptr(own);
        return nullptr;
}

/* @name: of the bridge's directory. */
static struct nd_error *start(const struct cri_config *config, const struct cri_sandbox *sandbox, int userns, int file,
                              const char *name, const char *place) {
        const struct cri_sandbox_request *pod = &sandbox->request;
        nd_autofree char *first = nd_format("%u", pod->uids.outside), *ids = nd_format("%u", pod->uids.count),
                         *cgroup = nullptr;
        const char *argv[16] = {config->bridge_helper, "--descriptors", "--first-id", first, "--ids", ids};
        nd_cleanup(nd_child_result_done) struct nd_child_result result = {};
        const struct cri_bridge_rule *rule;
        size_t count = 6;

        nd_try(find_rule(config, file, &rule));
        if (rule && rule->as) {
                argv[count++] = "--as";
                argv[count++] = rule->as;
        }
        if (rule && rule->force_owner) {
                argv[count++] = "--force-owner";
                argv[count++] = rule->force_owner;
        }
        argv[count++] = place;
        nd_try(make_cgroup(config, sandbox, name, &cgroup));
        nd_try(nd_child_run(&(struct nd_child_plan) {.argv = argv,
                                                     .deadline_us = START_S * ND_SECOND_US,
                                                     .output_ceiling = OUTPUT_CEILING,
                                                     .descriptors = (const int[]) {file, userns},
                                                     .descriptor_count = 2,
                                                     .cgroup = cgroup},
                            &result));
        return nd_child_result_error(&result, "nodens-bridge");
}

static struct nd_error *remove_place(const char *own) {
        nd_autofree char *place = nd_format("%s/volume", own);

        nd_try(nd_mount_detach(place));
        if (nd_sys->unlinkat(AT_FDCWD, place, AT_REMOVEDIR) < 0 && errno == ENOTDIR)
                (void) nd_sys->unlinkat(AT_FDCWD, place, 0);
        if (nd_sys->unlinkat(AT_FDCWD, own, AT_REMOVEDIR) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "remove '%s'", own);
        return nullptr;
}

void cri_bridge_abort_all(const struct cri_config *config, const struct cri_sandbox *sandbox) {
        nd_autofree char *directory = directory_of(config, sandbox);
        nd_cleanup(nd_strings_done) struct nd_strings names = {};

        nd_ignore(nd_dir_list(AT_FDCWD, directory, VOLUMES_MOST, &names));
        nd_vector_each (name, &names) {
                nd_autofree char *place = nd_format("%s/%s/volume", directory, *name);

                (void) nd_sys->umount2(place, MNT_FORCE | MNT_DETACH | UMOUNT_NOFOLLOW);
        }
}

/* Counts the start, and leaves nothing mounted if it fails. */
static struct nd_error *start_counted(const struct cri_config *config, const struct cri_sandbox *sandbox, int userns, int file,
                                      const char *name, const char *own, const char *place, struct cri_bridge_counts *counts) {
        nd_autoerror struct nd_error *error = nullptr;

        if (counts)
                counts->tried++;
        error = start(config, sandbox, userns, file, name, place);
        if (error)
                nd_ignore(remove_place(own));
        else if (counts)
                counts->started++;
        return nd_take_ptr(error);
}

static enum cri_bridge_state state_of(const char *cgroup, const char *name) {
        nd_autofree char *path = cgroup ? nd_format(ND_CGROUP_MOUNT "%s/%s/cgroup.events", cgroup, name) : nullptr,
                         *text = nullptr;

        if (path)
                nd_ignore(nd_file_read_kernel(path, EVENTS_CEILING, &text));
        if (!text)
                return BRIDGE_UNKNOWN;
        return strstr(text, "populated 1") ? BRIDGE_SERVING : BRIDGE_DEAD;
}

/* One worker at a time changes the bridges of a pod. Returns 0 or -errno. */
static int open_locked(const char *directory, int *ret_fd) {
        *ret_fd = open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return *ret_fd < 0 || flock(*ret_fd, LOCK_EX) < 0 ? -errno : 0;
}

struct nd_error *cri_bridge_open(const struct cri_config *config, const struct cri_sandbox *sandbox, int userns, int file,
                                 struct cri_bridge_counts *counts, int *ret_tree) {
        nd_autofree char *directory = directory_of(config, sandbox), *cgroup = cgroup_of(config, sandbox), *name = nullptr,
                         *own = nullptr, *place = nullptr;
        nd_autoclose int lock = -EBADF;
        struct stat st;
        int r;

        if (fstat(file, &st) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "read the volume's attributes");
        nd_try(nd_dir_make(AT_FDCWD, directory, 0700));
        r = open_locked(directory, &lock);
        if (r < 0)
                return nd_error_new(nd_error_code_of(-r), -r, "lock '%s'", directory);
        name = nd_format("%llx-%llx", (unsigned long long) st.st_dev, (unsigned long long) st.st_ino);
        own = nd_format("%s/%s", directory, name);
        place = nd_format("%s/volume", own);
        /* containers that have it keep it, with errors */
        if (is_mounted(place) && state_of(cgroup, name) == BRIDGE_DEAD)
                nd_try(remove_place(own));
        if (!is_mounted(place)) {
                nd_try(make_place(own, place, st.st_mode));
                nd_try(start_counted(config, sandbox, userns, file, name, own, place, counts));
        }
        return nd_mount_clone(AT_FDCWD, place, false, ret_tree);
}

/* ---- upgrade ---- */

/* The processes of a bridge, as lines. */
static char *processes_of(const char *cgroup, const char *name) {
        nd_autofree char *path = nd_format(ND_CGROUP_MOUNT "%s/%s/cgroup.procs", cgroup, name);
        char *text = nullptr;

        nd_ignore(nd_file_read_kernel(path, PROCESSES_CEILING, &text));
        return text;
}

/* Whether a process runs the installed file. A file that was replaced still exists for it. */
static bool is_current(const char *helper, pid_t pid) {
        nd_autofree char *path = nd_format("/proc/%d/exe", pid);
        struct stat own, installed;

        return stat(path, &own) < 0 || stat(helper, &installed) < 0 ||
               (own.st_dev == installed.st_dev && own.st_ino == installed.st_ino);
}

/* One process of a list; advances. 0 = there is none left. */
static pid_t next_process(const char **list) {
        char *end;
        long pid = *list ? strtol(*list, &end, 10) : 0;

        if (pid <= 0)
                return 0;
        *list = end;
        return (pid_t) pid;
}

static bool has_process(const char *list, pid_t wanted) {
        for (pid_t pid; (pid = next_process(&list)) > 0;)
                if (pid == wanted)
                        return true;
        return false;
}

/* After a replacement that was killed: continues the processes, unless another one has begun to
 * replace them, which then does so. */
static void continue_all(const char *before, const char *cgroup, const char *name) {
        nd_autofree char *now = processes_of(cgroup, name);
        const char *list = now;
        pid_t pid;

        while ((pid = next_process(&list)) > 0)
                if (!has_process(before, pid))
                        return;
        for (list = before; (pid = next_process(&list)) > 0;)
                (void) kill(pid, SIGCONT);
}

static struct nd_error *replace(const struct cri_config *config, const char *cgroup, const char *name, const char *place) {
        nd_autofree char *processes = processes_of(cgroup, name), *number = nullptr, *own = nullptr;
        nd_cleanup(nd_child_result_done) struct nd_child_result result = {};
        const char *list = processes;
        pid_t pid = next_process(&list);
        struct nd_error *error;

        if (pid <= 0 || is_current(config->bridge_helper, pid))
                return nullptr;
        number = nd_format("%d", pid);
        own = nd_format(ND_CGROUP_MOUNT "%s/%s", cgroup, name);
        error = nd_child_run(&(struct nd_child_plan) {.argv = (const char *const[]) {config->bridge_helper, "--replace",
                                                                                     number, place, nullptr},
                                                      .deadline_us = REPLACE_S * ND_SECOND_US,
                                                      .output_ceiling = OUTPUT_CEILING,
                                                      .cgroup = own},
                             &result);
        error = error ?: nd_child_result_error(&result, "nodens-bridge");
        if (error)
                continue_all(processes, cgroup, name);
        return error;
}

struct nd_error *cri_bridge_upgrade(const struct cri_config *config, const struct cri_sandbox *sandbox) {
        nd_autofree char *directory = directory_of(config, sandbox), *cgroup = cgroup_of(config, sandbox);
        nd_cleanup(nd_strings_done) struct nd_strings names = {};
        nd_autoerror struct nd_error *first = nullptr;
        nd_autoclose int lock = -EBADF;

        if (!cgroup || open_locked(directory, &lock) != 0)
                return nullptr;
        nd_try(nd_dir_list(AT_FDCWD, directory, VOLUMES_MOST, &names));
        nd_vector_each (name, &names) {
                nd_autofree char *place = nd_format("%s/%s/volume", directory, *name);
                struct nd_error *error = replace(config, cgroup, *name, place);

                if (first)
                        nd_error_free(error);
                else
                        first = error;
        }
        return nd_take_ptr(first);
}

void cri_bridge_count(const struct cri_config *config, const struct cri_sandbox *sandbox,
                      size_t counts[static BRIDGE_STATES]) {
        nd_autofree char *directory = directory_of(config, sandbox), *cgroup = cgroup_of(config, sandbox);
        nd_cleanup(nd_strings_done) struct nd_strings names = {};

        nd_ignore(nd_dir_list(AT_FDCWD, directory, VOLUMES_MOST, &names));
        nd_vector_each (name, &names)
                counts[state_of(cgroup, *name)]++;
}

struct nd_error *cri_bridge_close_all(const struct cri_config *config, const struct cri_sandbox *sandbox) {
        nd_autofree char *directory = directory_of(config, sandbox), *cgroup = cgroup_of(config, sandbox);
        nd_cleanup(nd_strings_done) struct nd_strings names = {};

        if (access(directory, F_OK) < 0 && errno == ENOENT)
                return nullptr;
        nd_try(nd_dir_list(AT_FDCWD, directory, VOLUMES_MOST, &names));
        nd_vector_each (name, &names) {
                nd_autofree char *own = nd_format("%s/%s", directory, *name);

                nd_try(remove_place(own));
        }
        /* The processes exit by themselves, unless the volume's server does not respond. */
        if (cgroup)
                nd_try(nd_cgroup_clear(cgroup, KILL_S * ND_SECOND_US));
        if (nd_sys->unlinkat(AT_FDCWD, directory, AT_REMOVEDIR) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "remove '%s'", directory);
        return nullptr;
}
