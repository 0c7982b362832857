/* SPDX-License-Identifier: Apache-2.0 */
/* bridge.c - see bridge.h */
#include "cri/bundle/bridge.h"

#include <fcntl.h>
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
        KILL_S = 10,
        OUTPUT_CEILING = 4096,
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
        nd_autofree char *line = nullptr;
        const char *type;

        *ret = nullptr;
        nd_try(nd_mount_table_line(file, &line));
        type = strstr(line, " - "); /* ends the optional fields */
        if (!type)
                return nullptr;
        line[(size_t) (type - line) + 3 + strcspn(type + 3, " ")] = '\0';
        nd_vector_each (rule, &config->bridge_rules)
                if (!*ret && nd_streq(rule->filesystem, type + 3))
                        *ret = rule;
        return nullptr;
}

static struct nd_error *start(const struct cri_config *config, const struct cri_sandbox *sandbox, int userns, int file,
                              const char *place) {
        const struct cri_sandbox_request *pod = &sandbox->request;
        nd_autofree char *cgroup = cgroup_of(config, sandbox), *first = nd_format("%u", pod->uids.outside),
                         *ids = nd_format("%u", pod->uids.count), *place_of_cgroup = nullptr;
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
        if (cgroup) {
                place_of_cgroup = nd_format(ND_CGROUP_MOUNT "%s", cgroup);
                nd_try(nd_dir_make(AT_FDCWD, place_of_cgroup, 0755));
        }
        nd_try(nd_child_run(&(struct nd_child_plan) {.argv = argv,
                                                     .deadline_us = START_S * ND_SECOND_US,
                                                     .output_ceiling = OUTPUT_CEILING,
                                                     .descriptors = (const int[]) {file, userns},
                                                     .descriptor_count = 2,
                                                     .cgroup = place_of_cgroup},
                            &result));
        return nd_child_result_error(&result, "nodens-bridge");
}

struct nd_error *cri_bridge_open(const struct cri_config *config, const struct cri_sandbox *sandbox, int userns, int file,
                                 int *ret_tree) {
        nd_autofree char *directory = directory_of(config, sandbox), *own = nullptr, *place = nullptr;
        nd_autoclose int lock = -EBADF;
        struct stat st;

        if (fstat(file, &st) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "read the volume's attributes");
        nd_try(nd_dir_make(AT_FDCWD, directory, 0700));
        lock = open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (lock < 0 || flock(lock, LOCK_EX) < 0) /* another container of the pod */
                return nd_error_new(nd_error_code_of(errno), errno, "lock '%s'", directory);
        own = nd_format("%s/%llx-%llx", directory, (unsigned long long) st.st_dev, (unsigned long long) st.st_ino);
        place = nd_format("%s/volume", own);
        if (!is_mounted(place)) {
                nd_try(make_place(own, place, st.st_mode));
                nd_try(start(config, sandbox, userns, file, place));
        }
        return nd_mount_clone(AT_FDCWD, place, false, ret_tree);
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
