/* SPDX-License-Identifier: Apache-2.0 */
/* landlock.c - see landlock.h
 *
 * There is no rule for ports to connect to: registries, mirrors, token servers and proxies use any
 * port, and a redirect may name another one. */
#include "pull/jail/landlock.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
        READ = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR,
        WRITE = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_TRUNCATE | LANDLOCK_ACCESS_FS_MAKE_REG |
                LANDLOCK_ACCESS_FS_REMOVE_FILE,
};

/* All access rights, by the Landlock version that introduced them. */
static const struct {
        int abi;
        struct landlock_ruleset_attr adds;
} versions[] = {
        {1, {.handled_access_fs = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1}}, /* the first thirteen */
        {2, {.handled_access_fs = LANDLOCK_ACCESS_FS_REFER}},
        {3, {.handled_access_fs = LANDLOCK_ACCESS_FS_TRUNCATE}},
        {4, {.handled_access_net = LANDLOCK_ACCESS_NET_BIND_TCP}},
        {5, {.handled_access_fs = LANDLOCK_ACCESS_FS_IOCTL_DEV}},
        {6, {.scoped = LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | LANDLOCK_SCOPE_SIGNAL}},
};

static struct nd_error *allow(int ruleset, const char *path, uint64_t access) {
        nd_autoclose int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        const struct landlock_path_beneath_attr rule = {.allowed_access = access, .parent_fd = fd};

        if (fd < 0 || syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "allow '%s' in the Landlock ruleset", path);
        return nullptr;
}

struct nd_error *pull_landlock_fetcher(const char *const *writable, size_t count) {
        long abi = syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
        struct landlock_ruleset_attr attributes = {};
        nd_autoclose int ruleset = -EBADF;

        if (abi < 1)
                return nullptr; /* not built in, or not enabled */
        for (size_t i = 0; i < nd_count_of(versions) && versions[i].abi <= abi; i++) {
                attributes.handled_access_fs |= versions[i].adds.handled_access_fs;
                attributes.handled_access_net |= versions[i].adds.handled_access_net;
                attributes.scoped |= versions[i].adds.scoped;
        }
        ruleset = (int) syscall(SYS_landlock_create_ruleset, &attributes,
                                abi >= 6   ? sizeof attributes
                                : abi >= 4 ? offsetof(struct landlock_ruleset_attr, scoped)
                                           : offsetof(struct landlock_ruleset_attr, handled_access_net),
                                0);
        if (ruleset < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "create a Landlock ruleset");
        nd_try(allow(ruleset, "/", READ & attributes.handled_access_fs));
        for (size_t i = 0; i < count; i++)
                nd_try(allow(ruleset, writable[i], (READ | WRITE) & attributes.handled_access_fs));
        if (syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "enforce the Landlock ruleset");
        return nullptr;
}
