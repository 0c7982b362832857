/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/cgroup.h"

#include <linux/magic.h>
#include <string.h>
#include <sys/statfs.h>

#include "base/text.h"
#include "sys/file.h"

#define MOUNT "/sys/fs/cgroup"

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

        /* A path above the root of our cgroup namespace or outside of what is mounted cannot be read: then nothing is ours. */
        nd_error_free(read_controllers(cgroup.own, &cgroup.delegated));
        procs = nd_format("%s%s/cgroup.procs", MOUNT, cgroup.own);
        cgroup.writable = cgroup.delegated && access(procs, W_OK) == 0;
        *ret = nd_take(cgroup, (struct nd_cgroup) {});
        return nullptr;
}
