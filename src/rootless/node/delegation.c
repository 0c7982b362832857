/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/node/delegation.h"

#include <unistd.h>

#include "base/text.h"
#include "sys/cgroup.h"
#include "sys/file.h"

char *rootless_delegation_missing(const char *cgroup) {
        static const char *const needed[] = {"cpu", "memory", "pids"};
        nd_autofree char *path = nd_format(ND_CGROUP_MOUNT "%s/cgroup.controllers", cgroup), *controllers = nullptr;
        nd_autoerror struct nd_error *error = nd_file_read_kernel(path, 4096, &controllers);
        nd_autotext struct nd_text missing = ND_TEXT(64);

        for (size_t i = 0; i < nd_count_of(needed); i++)
                if (error || !nd_cgroup_has(controllers, needed[i]))
                        nd_text_addf(&missing, "%s%s", missing.length > 0 ? " " : "", needed[i]);
        return nd_strdup(nd_text_get(&missing));
}

struct nd_error *rootless_delegation_require(const char *cgroup) {
        nd_autofree char *missing = cgroup ? rootless_delegation_missing(cgroup) : nullptr;

        if (!missing)
                return nd_error_new(ND_PRECONDITION, 0,
                                    "no cgroup is delegated to the node, so pods would have no limits: start it in a unit or "
                                    "scope with Delegate=yes, e.g. systemd-run --user --scope -p Delegate=yes; or accept that "
                                    "with --no-cgroups");
        if (*missing)
                return nd_error_new(
                        ND_PRECONDITION, 0,
                        "controllers not delegated to the cgroup of the node: %s, so pods would have no limits; %s; "
                        "or accept that with --no-cgroups",
                        missing, DELEGATION_REMEDY);
        return nullptr;
}

struct nd_error *rootless_delegation_require_manager(void) {
        nd_autofree char *cgroup = nd_format("/user.slice/user-%u.slice/user@%u.service", geteuid(), geteuid()),
                         *path = nd_format(ND_CGROUP_MOUNT "%s", cgroup);

        return access(path, F_OK) == 0 ? rootless_delegation_require(cgroup) : nullptr;
}
