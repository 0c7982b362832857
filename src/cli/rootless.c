/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/rootless.h"

#include <pwd.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "cli/engines.h"
#include "sys/cgroup.h"
#include "sys/file.h"
#include "sys/subid.h"
#include "userns/delegation.h"
#include "userns/probe.h"
#include "userns/range.h"

/* Whom the node would belong to: whoever called sudo, or we. Root itself is nobody's rootless user. */
static struct nd_error *whom(uid_t *ret_uid, char **ret_name) {
        const char *sudo = getenv("SUDO_UID");
        struct passwd entry, *found = nullptr;
        char buffer[16 * 1024];
        uint32_t uid = getuid();

        if (uid == 0 && sudo && nd_parse_u32(sudo, &uid) < 0)
                uid = 0;
        if (uid == 0)
                return nd_error_new(ND_PRECONDITION, 0, "root asks; nothing is rootless about root");
        if (getpwuid_r(uid, &entry, buffer, sizeof buffer, &found) != 0 || !found)
                return nd_error_new(ND_NOT_FOUND, 0, "no user has the ID %u", uid);
        *ret_uid = uid;
        *ret_name = nd_strdup(entry.pw_name);
        return nullptr;
}

/* Blocks for nested pods: whole, aligned, within one extent, and above the first block. */
static uint64_t nested_blocks(const nd_extents *extents) {
        uint64_t blocks = 0;

        nd_vector_each (extent, extents) {
                uint64_t first = (extent->first + ND_IDS_UNIT - 1) / ND_IDS_UNIT,
                         end = (extent->first + extent->count) / ND_IDS_UNIT;

                first = first > 0 ? first : 1;
                blocks += end > first ? end - first : 0;
        }
        return blocks;
}

static void check_subids(struct findings *findings, uid_t uid, const char *name) {
        nd_cleanup(nd_subids_done) nd_subids uids = {}, gids = {};
        nd_cleanup(nd_id_maps_done) nd_id_maps uid_maps = {}, gid_maps = {};
        nd_cleanup(nd_extents_done) nd_extents extents = {};
        nd_autoerror struct nd_error *error = nd_subids_of(name, ND_SUBUID, &uids);
        uint64_t blocks;

        if (!error)
                error = nd_subids_of(name, ND_SUBGID, &gids);
        if (error) {
                findings_add(findings, FINDING_FAIL, "subordinate IDs", nd_strdup(nd_error_text(error)),
                             nd_format("as root: usermod --add-subuids 524288-1572863 --add-subgids 524288-1572863 %s", name));
                return;
        }
        nd_delegation_maps(uid, &uids, &uid_maps);
        nd_delegation_maps(uid, &gids, &gid_maps);
        nd_extents_of_maps(&uid_maps, &gid_maps, &extents);
        blocks = nested_blocks(&extents);
        if (blocks == 0)
                findings_add(
                        findings, FINDING_WARN, "subordinate IDs",
                        nd_format(
                                "a node of %s would have IDs, but no whole block of %d for a pod with its own user namespace",
                                name, ND_IDS_UNIT),
                        nd_format("as root: usermod --add-subuids 524288-1572863 --add-subgids 524288-1572863 %s", name));
        else
                findings_add(findings, FINDING_OK, "subordinate IDs",
                             nd_format("room for %llu pods with user namespaces of their own", (unsigned long long) blocks),
                             nullptr);
}

static void check_unprivileged(struct findings *findings, uid_t uid) {
        static const struct {
                const char *path;
                char bad;
                const char *advice;
        } knobs[] = {
                {"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", '1',
                 "AppArmor withholds them: load a profile with 'userns,' for nodens-rootless, or as root: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"},
                {"/proc/sys/kernel/unprivileged_userns_clone", '0', "as root: sysctl -w kernel.unprivileged_userns_clone=1"},
        };
        nd_autoerror struct nd_error *error = nd_probe_userns_unprivileged(geteuid() == 0 ? uid : (uid_t) -1);
        const char *advice =
                "ask the administrator which policy withholds user namespaces (sysctl, AppArmor, seccomp of a container)";

        for (size_t i = 0; i < nd_count_of(knobs); i++) {
                nd_autofree char *value = nullptr;
                nd_autoerror struct nd_error *absent = nd_file_read_kernel(knobs[i].path, 16, &value);

                if (!absent && value[0] == knobs[i].bad)
                        advice = knobs[i].advice;
        }
        if (error)
                findings_add(findings, FINDING_FAIL, "unprivileged user namespaces", nd_strdup(nd_error_text(error)),
                             nd_strdup(advice));
        else
                findings_add(findings, FINDING_OK, "unprivileged user namespaces", nd_strdup("made one"), nullptr);
}

static void check_tun(struct findings *findings) {
        if (access("/dev/net/tun", R_OK | W_OK) == 0)
                findings_add(findings, FINDING_OK, "/dev/net/tun", nd_strdup("may be opened"), nullptr);
        else
                findings_add(findings, FINDING_FAIL, "/dev/net/tun", nd_format("cannot be opened: %s", strerror(errno)),
                             nd_strdup("as root: modprobe tun; chmod 0666 /dev/net/tun (udev does this on Debian)"));
}

static void check_delegation(struct findings *findings, const char *name, uid_t uid) {
        nd_autofree char *path =
                nd_format("/sys/fs/cgroup/user.slice/user-%u.slice/user@%u.service/cgroup.controllers", uid, uid);
        nd_autofree char *controllers = nullptr;
        nd_autoerror struct nd_error *error = nd_file_read_kernel(path, 4096, &controllers);
        bool complete;

        if (error) {
                findings_add(
                        findings, FINDING_WARN, "user manager", nd_format("none runs for %s", name),
                        nd_format("loginctl enable-linger %s, then log in again; or 'nodens-rootless up --foreground' later",
                                  name));
                return;
        }
        controllers[strcspn(controllers, "\n")] = '\0';
        complete = nd_cgroup_has(controllers, "cpu") && nd_cgroup_has(controllers, "memory") &&
                   nd_cgroup_has(controllers, "pids");
        findings_add(
                findings, complete ? FINDING_OK : FINDING_WARN, "cgroup delegation",
                nd_format("the user manager has '%s'", controllers),
                complete
                        ? nullptr
                        : nd_strdup(
                                  "as root, in /etc/systemd/system/user@.service.d/delegate.conf: [Service] Delegate=cpu cpuset io memory pids"));
}

void rootless_check(struct findings *findings) {
        nd_autoerror struct nd_error *error = nullptr;
        nd_autofree char *name = nullptr;
        uid_t uid = 0;

        error = whom(&uid, &name);
        if (error) {
                findings_add(findings, FINDING_NOTE, "user", nd_strdup(nd_error_text(error)),
                             nd_strdup("run nodens check --rootless as the user who shall run the node"));
                uid = 65534;
        } else {
                check_subids(findings, uid, name);
                check_delegation(findings, name, uid);
        }
        check_unprivileged(findings, uid);
        check_tun(findings);
        engines_check_rootless(findings);
}
