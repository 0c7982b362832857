/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/cgroup.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/statfs.h>

#include "base/clock.h"
#include "base/text.h"
#include "sys/calls.h"
#include "sys/file.h"

#define MOUNT ND_CGROUP_MOUNT

enum {
        /* Maximum depth of cgroups to remove; the kernel allows more, but none of ours is
         * deeper. */
        DEPTH = 32,
        CHILDREN = 4096,  /* maximum children of one */
        QUICK_TURNS = 20, /* most processes exit within a millisecond or two */
};

static constexpr uint64_t quick_us = 1 * ND_MS_US;
static constexpr uint64_t slow_us = 20 * ND_MS_US;

void nd_cgroup_done(struct nd_cgroup *cgroup) {
        free(cgroup->own);
        free(cgroup->controllers);
        free(cgroup->delegated);
        *cgroup = (struct nd_cgroup) {};
}

char *nd_cgroup_path_of(const char *text) {
        for (const char *line = text; *line;) {
                size_t length = strcspn(line, "\n");

                if (length >= 4 && strncmp(line, "0::/", 4) == 0)
                        return nd_strndup(line + 3, length - 3);
                line += length + (line[length] == '\n');
        }
        return nullptr;
}

char *nd_cgroup_slice(const char *name) {
        nd_autotext struct nd_text path = ND_TEXT(PATH_MAX);
        const char *dot = strrchr(name, '.');

        if (!dot || dot == name || !nd_streq(dot, ".slice") || strchr(name, '/'))
                return nullptr;
        for (const char *dash = strchr(name, '-'); dash && !path.overflow; dash = strchr(dash + 1, '-'))
                nd_text_addf(&path, "/%.*s.slice", (int) (dash - name), name);
        nd_text_addf(&path, "/%s", name);
        return path.overflow ? nullptr : nd_text_steal(&path);
}

bool nd_cgroup_has(const char *controllers, const char *name) {
        size_t length = strlen(name);

        for (const char *word = controllers; word && *word;) {
                size_t n = strcspn(word, " \n");

                if (n == length && strncmp(word, name, n) == 0)
                        return true;
                word += n + strspn(word + n, " \n");
        }
        return false;
}

static struct nd_error *read_controllers(const char *cgroup, char **ret) {
        nd_autofree char *path = nd_format("%s%s/cgroup.controllers", MOUNT, nd_streq(cgroup, "/") ? "" : cgroup);
        char *text;

        nd_try(nd_file_read_kernel(path, 4096, &text));
        text[strcspn(text, "\n")] = '\0';
        *ret = text;
        return nullptr;
}

struct nd_error *nd_cgroup_discover(struct nd_cgroup *ret) {
        nd_cleanup(nd_cgroup_done) struct nd_cgroup cgroup = {};
        nd_autofree char *text = nullptr, *procs = nullptr;
        struct statfs fs;

        if (statfs(MOUNT, &fs) < 0 || (unsigned long) fs.f_type == SYSFS_MAGIC) {
                *ret = nd_take(cgroup, (struct nd_cgroup) {});
                return nullptr;
        }
        if ((unsigned long) fs.f_type != CGROUP2_SUPER_MAGIC) {
                cgroup.layout = ND_CGROUP_LEGACY;
                *ret = nd_take(cgroup, (struct nd_cgroup) {});
                return nullptr;
        }
        cgroup.layout = ND_CGROUP_UNIFIED;
        nd_try(nd_file_read_kernel("/proc/self/cgroup", 64 * 1024, &text));
        cgroup.own = nd_cgroup_path_of(text);
        if (!cgroup.own)
                return nd_error_new(ND_INTERNAL, 0, "/proc/self/cgroup has no line of cgroup v2");
        nd_try(read_controllers("/", &cgroup.controllers));

        /* A path above the root of our cgroup namespace or outside of the mount cannot be read:
         * then nothing is delegated to us. */
        nd_ignore(read_controllers(cgroup.own, &cgroup.delegated));
        procs = nd_format("%s%s/cgroup.procs", MOUNT, cgroup.own);
        cgroup.writable = cgroup.delegated && access(procs, W_OK) == 0;
        *ret = nd_take(cgroup, (struct nd_cgroup) {});
        return nullptr;
}

/* Parses a number of this many characters. */
static bool parse(const char *text, size_t length, uint64_t *ret) {
        char copy[24];

        if (length >= sizeof copy)
                return false;
        memcpy(copy, text, length);
        copy[length] = '\0';
        return nd_text_parse_u64(copy, UINT64_MAX, ret) == 0;
}

bool nd_cgroup_key(const char *text, const char *key, uint64_t *ret) {
        size_t wanted = strlen(key);

        for (const char *line = text; *line;) {
                size_t length = strcspn(line, "\n");

                if (length > wanted && line[wanted] == ' ' && strncmp(line, key, wanted) == 0)
                        return parse(line + wanted + 1, length - wanted - 1, ret);
                line += length + (line[length] == '\n');
        }
        return false;
}

bool nd_cgroup_sum(const char *text, const char *key, uint64_t *ret) {
        size_t wanted = strlen(key);
        uint64_t sum = 0, value;
        bool found = false;

        for (const char *word = text + strspn(text, " \n"); *word; word += strspn(word, " \n")) {
                size_t length = strcspn(word, " \n");

                if (length > wanted && word[wanted] == '=' && strncmp(word, key, wanted) == 0 &&
                    parse(word + wanted + 1, length - wanted - 1, &value)) {
                        sum += value;
                        found = true;
                }
                word += length;
        }
        if (found)
                *ret = sum;
        return found;
}

bool nd_cgroup_number(const char *text, uint64_t *ret) {
        size_t length = strcspn(text, "\n");

        if (length == 3 && strncmp(text, "max", 3) == 0) {
                *ret = UINT64_MAX;
                return true;
        }
        return parse(text, length, ret);
}

struct nd_error *nd_cgroup_open(const char *path, int *ret_fd) {
        nd_autofree char *whole = nd_format("%s%s", MOUNT, path);
        int fd = open(whole, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

        if (fd < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "open the cgroup '%s'", path);
        *ret_fd = fd;
        return nullptr;
}

bool nd_cgroup_read(int cgroup, const char *file, char text[static ND_CGROUP_FILE]) {
        nd_autoclose int fd = openat(cgroup, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        size_t length = 0;
        ssize_t n = 0;

        if (fd < 0)
                return false;
        while (length < ND_CGROUP_FILE - 1 && (n = read(fd, text + length, ND_CGROUP_FILE - 1 - length)) > 0)
                length += (size_t) n;
        text[length] = '\0';
        return n >= 0;
}

struct nd_error *nd_cgroup_make(int parent, const char *name) {
        if (nd_sys->mkdirat(parent, name, 0755) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "create cgroup '%s'", name);
        return nullptr;
}

/* Writes to a control file once; -errno. */
static int put(int cgroup, const char *file, const char *text) {
        nd_autoclose int fd = nd_sys->openat(cgroup, file, O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0);

        if (fd < 0 || nd_sys->write(fd, text, strlen(text)) < 0)
                return -errno;
        return 0;
}

struct nd_error *nd_cgroup_kill(int cgroup) {
        int r = put(cgroup, "cgroup.kill", "1");

        if (r < 0 && r != -ENOENT && r != -ENODEV)
                return nd_error_new(nd_error_code_of(-r), -r, "kill a cgroup");
        return nullptr;
}

void nd_cgroup_lift(int parent, const char *name, int target) {
        nd_autoclose int child = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        nd_autofree char *text = nullptr;
        char *state = nullptr;

        if (child < 0)
                return;
        text = nd_malloc(ND_CGROUP_FILE);
        if (!nd_cgroup_read(child, "cgroup.procs", text))
                return;
        for (char *pid = strtok_r(text, "\n", &state); pid; pid = strtok_r(nullptr, "\n", &state))
                (void) put(target, "cgroup.procs", pid);
}

static bool remove_below(int parent, const char *name, int depth) {
        nd_cleanup(nd_strings_done) struct nd_strings children = {};
        nd_autoclose int fd = -EBADF;

        if (nd_sys->unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT || errno == ENODEV)
                return true;
        if (depth == 0)
                return false;
        fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0)
                return errno == ENOENT;
        nd_ignore(nd_dir_list(fd, ".", CHILDREN, &children));
        nd_vector_each (child, &children)
                if (!remove_below(fd, *child, depth - 1))
                        return false;
        return nd_sys->unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT;
}

bool nd_cgroup_remove(int parent, const char *name) {
        return remove_below(parent, name, DEPTH);
}

static bool is_absent(const struct nd_error *error) {
        return nd_error_code(error) == ND_NOT_FOUND;
}

/* Kills the processes and removes the cgroup. A process forked during the kill is killed in the
 * next turn. Returns true if the cgroup no longer exists. */
static bool clear_once(int parent, const char *name) {
        nd_autoclose int child = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

        if (child < 0)
                return errno == ENOENT;
        nd_ignore(nd_cgroup_kill(child));
        return nd_cgroup_remove(parent, name);
}

struct nd_error *nd_cgroup_clear(const char *path, uint64_t deadline_us) {
        uint64_t end = nd_clock_us() + deadline_us;
        const char *slash = strrchr(path, '/');
        nd_autofree char *above = nullptr;
        nd_autoerror struct nd_error *error = nullptr;
        nd_autoclose int parent = -EBADF;

        if (!slash || slash[1] == '\0')
                return nd_error_new(ND_INTERNAL, EINVAL, "cannot clear cgroup '%s': not a path below the root", path);
        above = nd_strndup(path, (size_t) (slash - path));
        error = nd_cgroup_open(*above ? above : "/", &parent);
        if (error)
                return is_absent(error) ? nullptr : nd_take_ptr(error);
        for (unsigned turn = 0; !clear_once(parent, slash + 1); turn++) {
                if (nd_clock_us() >= end)
                        return nd_error_new(
                                ND_DEADLINE, ETIMEDOUT,
                                "processes in cgroup '%s' still run %llu s after SIGKILL: see the kernel stacks of "
                                "the processes in its cgroup.procs",
                                path, (unsigned long long) (deadline_us / ND_SECOND_US));
                (void) usleep(turn < QUICK_TURNS ? quick_us : slow_us);
        }
        return nullptr;
}
