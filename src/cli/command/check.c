/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command/check.h"

#include <string.h>
#include <sys/utsname.h>

#include "base/text.h"
#include "cli/check/filesystems.h"
#include "cli/check/findings.h"
#include "cli/check/kubelet.h"
#include "cli/check/programs.h"
#include "cli/check/rootless.h"
#include "cli/check/runtime.h"
#include "cli/check/subids.h"
#include "cli/core/client.h"
#include "cli/core/kubelet-config.h"
#include "cli/output/sanitize.h"
#include "sys/cgroup.h"
#include "sys/file.h"
#include "userns/manager.h"
#include "userns/probe.h"

const struct nd_option cli_check_options[] = {
        {.name = "json", .offset = offsetof(struct cli_check_settings, json), .help = "print JSON"},
        {.name = "rootless",
         .offset = offsetof(struct cli_check_settings, rootless),
         .help = "only check the requirements of nodens-rootless, for this user"},
        {.name = "dir",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct cli_check_settings, directory),
         .argument = "PATH",
         .values = ND_VALUES_DIRECTORY,
         .help = "only check whether this directory can be a volume of a pod with a user namespace"},
        {.name = "kubelet-config",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct cli_check_settings, kubelet_config),
         .argument = "FILE",
         .values = ND_VALUES_FILE,
         .help = "the kubelet's configuration (default: as the running kubelet's arguments say, or " KUBELET_CONFIG ")"},
        CLIENT_SOCKET_OPTION(cli_check_settings),
        {},
};

static void check_kernel(struct cli_findings *findings) {
        static const struct cli_version tested = {{6, 12}};
        struct utsname name;
        struct cli_version version;

        if (uname(&name) < 0 || !cli_version_find(name.release, &version)) {
                cli_findings_add(findings, FINDING_NOTE, "kernel", nd_strdup("unknown version"), nullptr);
                return;
        }
        if (cli_version_compare(&version, &tested) < 0)
                cli_findings_add(
                        findings, FINDING_WARN, "kernel", nd_format("%s; tested with 6.12 and later", name.release),
                        nd_strdup("see the probes below for what works; upgrade to a distribution with 6.12 (Debian 13)"));
        else
                cli_findings_add(findings, FINDING_OK, "kernel", nd_strdup(name.release), nullptr);
}

static struct nd_error *read_number(const char *path, uint64_t *ret) {
        nd_autofree char *text = nullptr;

        nd_try(nd_file_read_kernel(path, 64, &text));
        text[strcspn(text, "\n")] = '\0';
        if (nd_text_parse_u64(text, UINT64_MAX, ret) < 0)
                return nd_error_new(ND_INVALID, 0, "%s is '%s'", path, text);
        return nullptr;
}

/* Limits that pods use up: one namespace of each kind per pod, inotify instances for the kubelet
 * and workloads. */
static void check_limits(struct cli_findings *findings, uint32_t max_pods) {
        const struct {
                const char *sysctl;
                const char *path;
                uint64_t needed;
                enum cli_finding_level when_less;
        } limits[] = {
                {"user.max_user_namespaces", "/proc/sys/user/max_user_namespaces", max_pods, FINDING_FAIL},
                {"user.max_mnt_namespaces", "/proc/sys/user/max_mnt_namespaces", 2 * (uint64_t) max_pods, FINDING_FAIL},
                {"user.max_net_namespaces", "/proc/sys/user/max_net_namespaces", max_pods, FINDING_FAIL},
                {"fs.inotify.max_user_instances", "/proc/sys/fs/inotify/max_user_instances", 128, FINDING_WARN},
        };

        for (size_t i = 0; i < nd_count_of(limits); i++) {
                nd_autoerror struct nd_error *error = nullptr;
                uint64_t value = 0;

                error = read_number(limits[i].path, &value);
                if (error)
                        cli_findings_add(findings, FINDING_NOTE, limits[i].sysctl, nd_strdup(nd_error_text(error)), nullptr);
                else if (value < limits[i].needed)
                        cli_findings_add(findings, limits[i].when_less, limits[i].sysctl,
                                         nd_format("%llu, less than %llu", (unsigned long long) value,
                                                   (unsigned long long) limits[i].needed),
                                         nd_format("sysctl -w %s=%llu, and the same in /etc/sysctl.d", limits[i].sysctl,
                                                   (unsigned long long) limits[i].needed * 2));
                else
                        cli_findings_add(findings, FINDING_OK, limits[i].sysctl, nd_format("%llu", (unsigned long long) value),
                                         nullptr);
        }
}

static void check_cgroup(struct cli_findings *findings) {
        static const char *const needed[] = {"cpu", "memory", "pids"}, *const useful[] = {"cpuset", "io"};
        nd_cleanup(nd_cgroup_done) struct nd_cgroup cgroup = {};
        nd_autoerror struct nd_error *error = nd_cgroup_discover(&cgroup);
        nd_autotext struct nd_text missing = ND_TEXT(128);
        enum cli_finding_level level = FINDING_OK;

        if (error || cgroup.layout != ND_CGROUP_UNIFIED) {
                cli_findings_add(findings, FINDING_FAIL, "cgroups",
                                 error ? nd_strdup(nd_error_text(error))
                                 : cgroup.layout == ND_CGROUP_LEGACY
                                         ? nd_strdup("cgroup v1 or hybrid hierarchy at /sys/fs/cgroup")
                                         : nd_strdup("no cgroup filesystem at /sys/fs/cgroup"),
                                 nd_strdup("boot with systemd.unified_cgroup_hierarchy=1"));
                return;
        }
        for (size_t i = 0; i < nd_count_of(needed); i++)
                if (!nd_cgroup_has(cgroup.controllers, needed[i])) {
                        nd_text_addf(&missing, " %s", needed[i]);
                        level = FINDING_FAIL;
                }
        for (size_t i = 0; i < nd_count_of(useful); i++)
                if (!nd_cgroup_has(cgroup.controllers, useful[i])) {
                        nd_text_addf(&missing, " %s", useful[i]);
                        level = level == FINDING_OK ? FINDING_NOTE : level;
                }
        if (level == FINDING_OK)
                cli_findings_add(findings, FINDING_OK, "cgroups", nd_format("v2 with %s", cgroup.controllers), nullptr);
        else
                cli_findings_add(findings, level, "cgroups",
                                 nd_format("v2 with '%s'; missing:%s", cgroup.controllers, nd_text_get(&missing)),
                                 level == FINDING_FAIL
                                         ? nd_strdup("enable them in the kernel, and keep the v1 hierarchy from claiming them")
                                         : nd_strdup("pods run without these limits"));
}

static void check_ids(struct cli_findings *findings, const struct cli_kubelet_config *config) {
        nd_autoerror struct nd_error *error = nullptr;
        enum nd_range_source source;
        struct nd_userns_range range;
        uint32_t blocks;

        error = nd_range_of_node(config->ids_per_pod, &range, &source);
        if (!error)
                error = nd_range_check(range, config->ids_per_pod, config->max_pods);
        if (error) {
                cli_findings_add(
                        findings, FINDING_FAIL, "pod IDs", nd_strdup(nd_error_text(error)),
                        nd_format("assign user kubelet one range in /etc/subuid and the same in /etc/subgid: kubelet:%u:%llu",
                                  config->ids_per_pod, (unsigned long long) config->ids_per_pod * config->max_pods));
                return;
        }
        blocks = range.count / config->ids_per_pod - ((uint64_t) range.first + range.count == ND_ID_SPACE);
        cli_findings_add(findings, FINDING_OK, "pod IDs",
                         nd_format("%u blocks of %u IDs for %u pods, from %u (%s)", blocks, config->ids_per_pod,
                                   config->max_pods, range.first,
                                   source == ND_RANGE_SUBIDS ? "subordinate IDs of user kubelet" : "the default range"),
                         nullptr);
        if (source == ND_RANGE_NO_GETSUBIDS)
                cli_findings_add(findings, FINDING_WARN, "getsubids", nd_strdup("not installed, but user kubelet exists"),
                                 nd_strdup("apt install uidmap: the stock kubelet does not start without it"));
        cli_subids_check(findings, range);
}

static struct nd_error *check_node(const struct cli_check_settings *settings, struct cli_findings *findings) {
        nd_cleanup(cli_kubelet_done) struct cli_kubelet kubelet = {};

        nd_try(cli_kubelet_find(settings->kubelet_config, &kubelet));
        findings->group = "Kernel";
        check_kernel(findings);
        cli_findings_add_probe(findings, FINDING_FAIL, "user namespaces", nd_probe_userns(),
                               nd_strdup("made one with 65536 IDs of its own"),
                               "build or boot the kernel with user namespaces (CONFIG_USER_NS, user.max_user_namespaces > 0)");
        check_limits(findings, kubelet.config.max_pods);
        check_cgroup(findings);
        findings->group = "Filesystems";
        cli_filesystems_check(findings);
        findings->group = "IDs";
        check_ids(findings, &kubelet.config);
        findings->group = "Engines";
        cli_programs_check(findings);
        findings->group = FINDINGS_RUNTIME;
        cli_runtime_check(findings, settings->socket, &kubelet);
        return nullptr;
}

/* What is about root's node, its kubelet, IDs and runtime, does not concern a rootless one. */
static void check_rootless(struct cli_findings *findings) {
        findings->subject = "This host";
        findings->purpose = "rootless nodes";
        findings->group = "Kernel";
        check_kernel(findings);
        findings->group = "Rootless";
        cli_rootless_check(findings);
}

static struct nd_error *check_directory(const char *path, const char *socket, struct cli_findings *findings) {
        findings->subject = "This directory";
        findings->group = "Directory";
        return cli_filesystems_check_directory(findings, path, socket);
}

int cli_check_run(void *settings_pointer, [[maybe_unused]] int operand_count, [[maybe_unused]] char **operands) {
        const struct cli_check_settings *settings = settings_pointer;
        nd_cleanup(cli_findings_done) struct cli_findings findings = {};
        nd_autoerror struct nd_error *error = nullptr;

        if (settings->directory)
                error = check_directory(settings->directory, settings->socket, &findings);
        else if (settings->rootless)
                check_rootless(&findings);
        else
                error = check_node(settings, &findings);
        if (error) {
                (void) cli_sanitize_print_error("check", error);
                return 2;
        }
        return cli_findings_report(&findings, settings->json);
}
