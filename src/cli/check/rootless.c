/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/check/rootless.h"

#include <pwd.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/text.h"
#include "cli/check/programs.h"
#include "sys/cgroup.h"
#include "sys/file.h"
#include "userns/delegation.h"
#include "userns/probe.h"
#include "userns/range.h"
#include "userns/subid.h"

#define PROFILE "/etc/apparmor.d/nodens-rootless"

enum {
        FILES_LEAST = 65536,
        NAMESPACES_LEAST = 1024,
};

/* Determines the owner of the node: the user who called sudo, or ours. Root itself cannot run a
 * rootless node. */
static struct nd_error *whom(uid_t *ret_uid, char **ret_name) {
        const char *sudo = getenv("SUDO_UID");
        struct passwd entry, *found = nullptr;
        char buffer[16 * 1024];
        uint32_t uid = getuid();

        if (uid == 0 && sudo && nd_text_parse_u32(sudo, &uid) < 0)
                uid = 0;
        if (uid == 0)
                return nd_error_new(ND_PRECONDITION, 0, "root cannot run a rootless node");
        if (getpwuid_r(uid, &entry, buffer, sizeof buffer, &found) != 0 || !found)
                return nd_error_new(ND_NOT_FOUND, 0, "no user with ID %u", uid);
        *ret_uid = uid;
        *ret_name = nd_strdup(entry.pw_name);
        return nullptr;
}

/* Whether the user has ranges; a user without any is not an error. */
static struct nd_error *find_ranges(const char *name, struct nd_subid_list *uids, struct nd_subid_list *gids, bool *ret) {
        nd_autoerror struct nd_error *error = nd_subid_list_of(name, ND_SUBUID, uids);

        if (!error)
                error = nd_subid_list_of(name, ND_SUBGID, gids);
        *ret = !error;
        return nd_error_code(error) == ND_NOT_FOUND ? nullptr : nd_take_ptr(error);
}

static char *describe_ids(const char *name, uint64_t count, uint64_t pods) {
        unsigned long long wide = count;

        if (pods > 0)
                return nd_format("%llu IDs for a node, enough for %llu pods with hostUsers: false", wide,
                                 (unsigned long long) pods);
        if (count >= ND_IDS_UNIT)
                return nd_format("%llu IDs for a node of %s, but no whole block of %d for pods with hostUsers: false", wide,
                                 name, ND_IDS_UNIT);
        if (count > 1)
                return nd_format("a node of %s has %llu IDs: containers cannot run as others, and files of images with other "
                                 "owners belong to root",
                                 name, wide);
        return nd_format("no subordinate IDs of user '%s': a node has one ID, and containers run as root of the node only",
                         name);
}

static void check_subids(struct cli_findings *findings, uid_t uid, const char *name) {
        nd_cleanup(nd_subid_list_done) struct nd_subid_list uids = {}, gids = {}, none = {};
        nd_cleanup(nd_userns_maps_done) struct nd_userns_maps uid_maps = {}, gid_maps = {};
        bool both;
        nd_autoerror struct nd_error *error = find_ranges(name, &uids, &gids, &both);
        uint64_t pods;

        if (error) {
                cli_findings_add(findings, FINDING_FAIL, "subordinate IDs", nd_strdup(nd_error_text(error)),
                                 nd_delegation_advice(name));
                return;
        }
        nd_delegation_maps(uid, both ? &uids : &none, &uid_maps);
        nd_delegation_maps(uid, both ? &gids : &none, &gid_maps);
        pods = nd_delegation_pods(&uid_maps, &gid_maps).count / ND_IDS_UNIT;
        cli_findings_add(findings, pods > 0 ? FINDING_OK : FINDING_WARN, "subordinate IDs",
                         describe_ids(name, nd_delegation_count(&uid_maps), pods),
                         pods > 0 ? nullptr : nd_delegation_advice(name));
}

static bool knob_is(const char *path, const char *value) {
        nd_autofree char *found = nullptr;
        nd_autoerror struct nd_error *absent = nd_file_read_kernel(path, 32, &found);

        if (absent)
                return false;
        found[strcspn(found, "\n")] = '\0';
        return nd_streq(found, value);
}

/* Ubuntu's sysctl (Debian's kernels do not have it): programs without a profile get user namespaces
 * without capabilities. Our own denial says nothing then, since nodens-rootless has a profile of
 * its own. Written from Ubuntu's documentation and tested only with a simulated sysctl. */
static bool check_apparmor(struct cli_findings *findings) {
        if (!knob_is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"))
                return false;
        if (access(PROFILE, R_OK) == 0)
                cli_findings_add(
                        findings, FINDING_NOTE, "unprivileged user namespaces",
                        nd_strdup("AppArmor restricts them, but " PROFILE
                                  " allows them to nodens-rootless (according to Ubuntu's documentation; not tested there)"),
                        nd_strdup("if it is denied nevertheless, as root: apparmor_parser --replace " PROFILE));
        else
                cli_findings_add(
                        findings, FINDING_FAIL, "unprivileged user namespaces",
                        nd_strdup("AppArmor denies them to programs without a profile, and " PROFILE " does not exist"),
                        nd_strdup("as root: apt install nodens-rootless && apparmor_parser --replace " PROFILE));
        return true;
}

static void check_unprivileged(struct cli_findings *findings, uid_t uid) {
        nd_autoerror struct nd_error *error = nd_probe_userns_unprivileged(geteuid() == 0 ? uid : (uid_t) -1);
        const char *advice =
                knob_is("/proc/sys/kernel/unprivileged_userns_clone", "0")
                        ? "as root: echo kernel.unprivileged_userns_clone=1 >/etc/sysctl.d/60-nodens.conf && sysctl --system"
                : knob_is("/proc/sys/user/max_user_namespaces", "0")
                        ? "as root: echo user.max_user_namespaces=15000 >/etc/sysctl.d/60-nodens.conf && sysctl --system"
                        : "ask the administrator which policy denies user namespaces (sysctl, AppArmor, seccomp of a container)";

        if (check_apparmor(findings))
                return;
        if (error)
                cli_findings_add(findings, FINDING_FAIL, "unprivileged user namespaces", nd_strdup(nd_error_text(error)),
                                 nd_strdup(advice));
        else
                cli_findings_add(findings, FINDING_OK, "unprivileged user namespaces", nd_strdup("created one"), nullptr);
}

static void check_tun(struct cli_findings *findings) {
        if (access("/dev/net/tun", R_OK | W_OK) == 0)
                cli_findings_add(findings, FINDING_OK, "/dev/net/tun", nd_strdup("can be opened"), nullptr);
        else
                cli_findings_add(findings, FINDING_FAIL, "/dev/net/tun", nd_format("cannot be opened: %s", strerror(errno)),
                                 nd_strdup("as root: modprobe tun; chmod 0666 /dev/net/tun (udev does this on Debian)"));
}

static void check_delegation(struct cli_findings *findings, const char *name, uid_t uid) {
        nd_autofree char *path =
                nd_format("/sys/fs/cgroup/user.slice/user-%u.slice/user@%u.service/cgroup.controllers", uid, uid);
        nd_autofree char *controllers = nullptr;
        nd_autoerror struct nd_error *error = nd_file_read_kernel(path, 4096, &controllers);
        bool complete;

        if (error) {
                cli_findings_add(
                        findings, FINDING_WARN, "user manager", nd_format("not running for %s", name),
                        nd_format("as root: loginctl enable-linger %s; without systemd: nodens-rootless up --foreground",
                                  name));
                return;
        }
        controllers[strcspn(controllers, "\n")] = '\0';
        complete = nd_cgroup_has(controllers, "cpu") && nd_cgroup_has(controllers, "memory") &&
                   nd_cgroup_has(controllers, "pids");
        cli_findings_add(
                findings, complete ? FINDING_OK : FINDING_WARN, "cgroup delegation",
                nd_format("controllers of the user manager: '%s'", controllers),
                complete
                        ? nullptr
                        : nd_strdup(
                                  "as root: mkdir -p /etc/systemd/system/user@.service.d && printf '[Service]\\nDelegate=cpu cpuset io memory pids\\n' "
                                  ">/etc/systemd/system/user@.service.d/delegate.conf && systemctl daemon-reload; then log in again"));
}

/* Without lingering the user manager, and the node with it, ends when the user logs out. */
static void check_linger(struct cli_findings *findings, const char *name) {
        nd_autofree char *path = nd_format("/var/lib/systemd/linger/%s", name);

        if (access("/run/systemd/system", F_OK) < 0)
                return;
        if (access(path, F_OK) == 0)
                cli_findings_add(findings, FINDING_OK, "lingering", nd_strdup("nodes stay when the user logs out"), nullptr);
        else
                cli_findings_add(findings, FINDING_WARN, "lingering", nd_format("nodes end when %s logs out", name),
                                 nd_format("as root: loginctl enable-linger %s", name));
}

/* The limit of open files: a node cannot raise the hard limit. */
static void check_files(struct cli_findings *findings, const char *name) {
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
                return;
        cli_findings_add(
                findings, limit.rlim_max < FILES_LEAST ? FINDING_WARN : FINDING_OK, "open files",
                nd_format("limit of %llu per process", (unsigned long long) limit.rlim_max),
                limit.rlim_max < FILES_LEAST
                        ? nd_format(
                                  "as root: echo '%s hard nofile 1048576' >/etc/security/limits.d/nodens.conf; then log in again",
                                  name)
                        : nullptr);
}

/* Overlays, sockets and subordinate IDs do not work on a network filesystem. */
static void check_home(struct cli_findings *findings) {
        static const char *const remote[] = {"nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "lustre", "afs", "fuse.sshfs"};
        const char *home = getenv("HOME");
        nd_autofree char *filesystem = nd_probe_filesystem(home ? home : "/");

        for (size_t i = 0; i < nd_count_of(remote); i++)
                if (nd_streq(filesystem, remote[i])) {
                        cli_findings_add(findings, FINDING_WARN, "home", nd_format("%s is on %s", home, filesystem),
                                         nd_strdup("nodens-rootless up --data DIRECTORY, with a directory on a local disk"));
                        return;
                }
}

static void check_namespaces(struct cli_findings *findings) {
        nd_autofree char *text = nullptr;
        nd_autoerror struct nd_error *absent = nd_file_read_kernel("/proc/sys/user/max_user_namespaces", 32, &text);
        uint32_t most;

        if (absent)
                return;
        text[strcspn(text, "\n")] = '\0';
        if (nd_text_parse_u32(text, &most) == 0 && most > 0 && most < NAMESPACES_LEAST)
                cli_findings_add(
                        findings, FINDING_WARN, "number of user namespaces", nd_format("limit of %u per user", most),
                        nd_strdup(
                                "as root: echo user.max_user_namespaces=15000 >/etc/sysctl.d/60-nodens.conf && sysctl --system"));
}

void cli_rootless_check(struct cli_findings *findings) {
        nd_autoerror struct nd_error *error = nullptr;
        nd_autofree char *name = nullptr;
        uid_t uid = 0;

        error = whom(&uid, &name);
        if (error) {
                cli_findings_add(findings, FINDING_NOTE, "user", nd_strdup(nd_error_text(error)),
                                 nd_strdup("run nodens check --rootless as the user of the node"));
                uid = 65534;
        } else {
                check_subids(findings, uid, name);
                check_delegation(findings, name, uid);
                check_linger(findings, name);
                check_files(findings, name);
                check_home(findings);
        }
        check_unprivileged(findings, uid);
        check_namespaces(findings);
        check_tun(findings);
        cli_programs_check_rootless(findings);
}
