/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command/check.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/text.h"
#include "cli/check/findings.h"
#include "cli/check/programs.h"
#include "cli/check/rootless.h"
#include "cli/check/subids.h"
#include "cli/core/kubelet-config.h"
#include "sys/cgroup.h"
#include "sys/file.h"
#include "userns/manager.h"
#include "userns/probe.h"

const struct nd_option cli_check_options[] = {
        {.name = "json", .offset = offsetof(struct cli_check_settings, json), .help = "print JSON"},
        {.name = "rootless",
         .offset = offsetof(struct cli_check_settings, rootless),
         .help = "check the requirements of nodens-rootless for an ordinary user"},
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
         .help = "the kubelet's configuration (default /var/lib/kubelet/config.yaml, if it exists)"},
        {},
};

/* Adds the result of a probe: ok with a text, or its error with advice. */
static void add_probe(struct cli_findings *findings, enum cli_finding_level when_bad, const char *subject,
                      struct nd_error *error, char *good, const char *advice) {
        nd_autofree char *text = good;
        nd_autoerror struct nd_error *taken = error;

        if (nd_error_code(taken) == ND_DENIED && geteuid() != 0)
                cli_findings_add(findings, FINDING_NOTE, subject, nd_format("not checked: %s", nd_error_text(taken)),
                                 nd_strdup("run nodens check as root"));
        else if (taken)
                cli_findings_add(findings, when_bad, subject, nd_strdup(nd_error_text(taken)), nd_strdup(advice));
        else
                cli_findings_add(findings, FINDING_OK, subject, nd_take_ptr(text), nullptr);
}

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
        add_probe(findings, FINDING_FAIL, "user namespaces", nd_probe_userns(),
                  nd_strdup("made one with 65536 IDs of its own"),
                  "build or boot the kernel with user namespaces (CONFIG_USER_NS, user.max_user_namespaces > 0)");
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

/* Returns the directory itself or, if it does not exist, its nearest existing parent. */
static char *existing(const char *path) {
        char *copy = nd_strdup(path), *slash;

        while (access(copy, F_OK) < 0 && (slash = strrchr(copy, '/')) && slash != copy)
                *slash = '\0';
        if (access(copy, F_OK) < 0) {
                free(copy); /* it may be empty, without room for "/" */
                return nd_strdup("/");
        }
        return copy;
}

static void check_directory(struct cli_findings *findings, const char *path, bool layers) {
        nd_autofree char *directory = existing(path), *filesystem = nd_probe_filesystem(directory);
        nd_autofree char *subject = nd_format("volumes in %s", path), *layer_subject = nd_format("images in %s", path);
        nd_autofree char *where = nd_streq(directory, path)
                                          ? nd_strdup(filesystem)
                                          : nd_format("%s (as %s; it is not there yet)", filesystem, directory);

        add_probe(findings, FINDING_FAIL, subject, nd_probe_idmap(directory), nd_format("idmapped mounts work on %s", where),
                  "use a filesystem with idmapped mounts: ext4, xfs, btrfs, tmpfs, or others on newer kernels");
        if (layers)
                add_probe(findings, FINDING_FAIL, layer_subject, nd_probe_overlay(directory),
                          nd_format("overlay on an idmapped layer works on %s", where),
                          "load the overlay module (modprobe overlay); the layers must not be on an overlay themselves");
}

static void check_filesystems(struct cli_findings *findings) {
        check_directory(findings, "/var/lib/kubelet", false);
        check_directory(findings, "/var/lib/nodens", true);
        add_probe(findings, FINDING_FAIL, "secrets and tokens", nd_probe_idmap_tmpfs(),
                  nd_strdup("idmapped mounts work on tmpfs"), "upgrade to a kernel with idmapped tmpfs mounts (6.3)");
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
        struct cli_kubelet_config config;

        nd_try(cli_kubelet_config_read(settings->kubelet_config, &config));
        findings->group = "Kernel";
        check_kernel(findings);
        check_limits(findings, config.max_pods);
        check_cgroup(findings);
        findings->group = "Filesystems";
        check_filesystems(findings);
        findings->group = "IDs";
        check_ids(findings, &config);
        findings->group = "Engines";
        cli_programs_check(findings);
        if (settings->rootless) {
                findings->group = "Rootless";
                cli_rootless_check(findings);
        }
        return nullptr;
}

int cli_check_run(void *settings_pointer, [[maybe_unused]] int operand_count, [[maybe_unused]] char **operands) {
        const struct cli_check_settings *settings = settings_pointer;
        nd_cleanup(cli_findings_done) struct cli_findings findings = {};
        nd_autoerror struct nd_error *error = nullptr;

        if (settings->directory) {
                findings.group = "Directory";
                check_directory(&findings, settings->directory, true);
        } else {
                error = check_node(settings, &findings);
        }
        if (error) {
                fprintf(stderr, "nodens check: %s\n", nd_error_text(error));
                return 2;
        }
        return cli_findings_report(&findings, settings->json);
}
