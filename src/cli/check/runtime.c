/* SPDX-License-Identifier: Apache-2.0 */
/* runtime.c - see runtime.h
 *
 * Theory of operation
 *   One call to nodens-cri returns its conditions, the results of its self-test and its settings.
 *   What does not need the daemon is checked without it, too, with the settings of its
 *   configuration: a daemon that does not start is often not the only problem.
 *   If nodens-cri is not installed, that is a note and nothing else is checked: the host may be
 *   checked before the installation. It is a FAIL if the kubelet uses nodens-cri's socket. */
#include "cli/check/runtime.h"

#include <nodens.pb-c.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/check/certificates.h"
#include "cli/check/cni.h"
#include "cli/check/programs.h"
#include "cli/check/runtime-settings.h"
#include "cli/core/client.h"
#include "cli/output/format.h"
#include "net/protobuf.h"
#include "sys/file.h"

enum {
        PROFILE_CEILING = 1 << 20,
        TEXT_CEILING = 16 << 10,
};

#define START "systemctl start nodens-cri; if it does not start, journalctl -u nodens-cri has the reason"
#define RESTART "systemctl restart nodens-cri, which does not affect running pods"

static constexpr uint64_t daemon_timeout_us = 5 * ND_SECOND_US;

struct runtime {
        struct cli_findings *findings;
        const struct cli_kubelet *kubelet;
        bool named; /* the caller named the socket: a daemon is expected there */
        struct cli_runtime_settings settings;
        const Nodens__V1__InfoAnswer *info; /* nullptr = no answer */
        ProtobufCMessage *answer;
};

static void runtime_done(struct runtime *r) {
        cli_runtime_settings_done(&r->settings);
        nd_protobuf_free(r->answer);
}

/* ---- nodens-cri ---- */

static const char *path_of(const char *endpoint) {
        static const char scheme[] = "unix://";

        return nd_has_prefix(endpoint, scheme) ? endpoint + strlen(scheme) : endpoint;
}

/* By the file, too: /var/run is a link to /run. */
static bool is_socket(const char *endpoint, const char *socket) {
        struct stat a, b;

        endpoint = path_of(endpoint);
        return nd_streq(endpoint, socket) || (stat(endpoint, &a) == 0 && stat(socket, &b) == 0 && S_ISSOCK(a.st_mode) &&
                                              a.st_dev == b.st_dev && a.st_ino == b.st_ino);
}

static bool is_installed(void) {
        nd_autofree char *program = cli_program_find("nodens-cri");

        return program;
}

static struct nd_error *ask(struct runtime *r) {
        Nodens__V1__InfoRequest request = NODENS__V1__INFO_REQUEST__INIT;

        nd_try(cli_client_call_within(r->settings.socket, "/nodens.v1.Node/Info", &request.base,
                                      &nodens__v1__info_answer__descriptor, daemon_timeout_us, &r->answer));
        r->info = (const Nodens__V1__InfoAnswer *) r->answer;
        cli_runtime_settings_take(r->info, &r->settings);
        return nullptr;
}

static char *describe_no_answer(const char *socket, const struct nd_error *error) {
        switch (nd_error_errno(error)) {
        case ENOENT:
                return nd_format("not running: no socket %s", socket);
        case ECONNREFUSED:
                return nd_format("not running: no program listens on %s", socket);
        case EAGAIN:
                return nd_format("accepts no connection on %s", socket);
        default:
                break;
        }
        if (nd_error_code(error) == ND_DEADLINE)
                return nd_format("no answer within %llu seconds on %s",
                                 (unsigned long long) (daemon_timeout_us / ND_SECOND_US), socket);
        if (nd_error_code(error) == ND_UNIMPLEMENTED)
                return nd_format("the program on %s is an older nodens-cri, or another runtime", socket);
        return nd_strdup(nd_error_text(error));
}

/* Returns false if the other checks would only repeat that root is needed. */
static bool add_no_answer(struct runtime *r, const struct nd_error *error) {
        int number = nd_error_errno(error);
        bool hangs = number == EAGAIN || nd_error_code(error) == ND_DEADLINE;

        if (number == EACCES && geteuid() != 0) {
                cli_findings_add(r->findings, FINDING_NOTE, "nodens-cri",
                                 nd_format("not checked: only root may connect to %s", r->settings.socket),
                                 nd_strdup("run nodens check as root"));
                return false;
        }
        cli_findings_add(r->findings, FINDING_FAIL, "nodens-cri", describe_no_answer(r->settings.socket, error),
                         nd_strdup(hangs ? "journalctl -u nodens-cri may have the reason; " RESTART
                                   : nd_error_code(error) == ND_UNIMPLEMENTED ? "after an upgrade: " RESTART
                                                                              : START));
        return true;
}

static bool add_not_installed(struct runtime *r) {
        bool wanted = is_socket(r->kubelet->config.endpoint, r->settings.socket);

        r->findings->subject = wanted ? nullptr : "This host";
        cli_findings_add(r->findings, wanted ? FINDING_FAIL : FINDING_NOTE, "nodens-cri",
                         wanted ? nd_format("not installed, but the kubelet uses %s", r->settings.socket)
                                : nd_strdup("not installed: no runtime was checked"),
                         nd_strdup("apt install ./nodens-cri_*.deb, then run nodens check again"));
        return false;
}

static bool check_daemon(struct runtime *r) {
        nd_autoerror struct nd_error *error = ask(r);
        char pods[FORMAT_COUNT], containers[FORMAT_COUNT];

        if (nd_error_errno(error) == ENOENT && !r->named && !is_installed())
                return add_not_installed(r);
        if (error)
                return add_no_answer(r, error);
        cli_findings_add(r->findings, FINDING_OK, "nodens-cri",
                         nd_format("%s answers at %s: %s, %s", r->info->runtime_version, r->settings.socket,
                                   cli_format_count(r->info->pods, "pod", pods),
                                   cli_format_count(r->info->containers, "container", containers)),
                         nullptr);
        return true;
}

/* Without one of these no pod runs, or none with a user namespace. */
static bool is_needed(const char *feature) {
        return nd_streq(feature, "engine") || nd_streq(feature, "userNamespaces");
}

static enum cli_finding_level add_problems(const Nodens__V1__HandlerEntry *handler, struct nd_text *text) {
        enum cli_finding_level level = FINDING_OK;

        for (size_t i = 0; i < handler->n_features; i++) {
                const Nodens__V1__FeatureEntry *feature = handler->features[i];

                if (*feature->problem == '\0')
                        continue;
                nd_text_addf(text, "%s%s%s%s: %s", text->length > 0 ? "; " : "", handler->name, *handler->name ? " " : "",
                             feature->name, feature->problem);
                if (*handler->name == '\0' && is_needed(feature->name))
                        level = FINDING_FAIL;
                else if (level == FINDING_OK)
                        level = FINDING_WARN;
        }
        return level;
}

/* The default handler is listed a second time, by its name. */
static void check_selftest(struct runtime *r) {
        nd_autotext struct nd_text problems = ND_TEXT(TEXT_CEILING), works = ND_TEXT(TEXT_CEILING);
        enum cli_finding_level worst = FINDING_OK;

        for (size_t i = 0; i < r->info->n_handlers; i++) {
                const Nodens__V1__HandlerEntry *handler = r->info->handlers[i];
                enum cli_finding_level level = nd_streq(handler->name, "crun") ? FINDING_OK : add_problems(handler, &problems);

                if (level > worst)
                        worst = level;
                for (size_t f = 0; i == 0 && f < handler->n_features; f++)
                        nd_text_addf(&works, "%s%s", works.length > 0 ? ", " : "", handler->features[f]->name);
        }
        if (worst == FINDING_OK)
                cli_findings_add(r->findings, FINDING_OK, "self-test", nd_format("passed: %s", nd_text_get(&works)), nullptr);
        else
                cli_findings_add(
                        r->findings, worst, "self-test", nd_strdup(nd_text_get(&problems)),
                        nd_strdup("fix what the findings above name, then " RESTART ": it tests again when it starts"));
}

/* ---- network and files ---- */

/* Returns nullptr if the network is ready. The daemon knows better than we do, if it answers. */
static const char *network_problem(const struct runtime *r, const struct nd_error *error) {
        if (!r->info)
                return error ? nd_error_text(error) : nullptr;
        for (size_t i = 0; i < r->info->n_conditions; i++)
                if (nd_streq(r->info->conditions[i]->name, "NetworkReady") && !r->info->conditions[i]->met)
                        return r->info->conditions[i]->message;
        return nullptr;
}

static void check_network(struct runtime *r) {
        nd_autofree char *text = nullptr;
        nd_autoerror struct nd_error *error = cli_cni_find(r->settings.cni_config, r->settings.cni_plugins, &text);
        const char *problem = network_problem(r, error);

        if (problem)
                cli_findings_add(
                        r->findings, FINDING_FAIL, "CNI configuration", nd_strdup(problem),
                        nd_strdup(
                                "install a network: its DaemonSet writes the configuration and its plugins; docs/kubelet.md has an "
                                "example without one"));
        else
                cli_findings_add(r->findings, FINDING_OK, "CNI configuration",
                                 text ? nd_take_ptr(text) : nd_strdup("nodens-cri reports a ready network"), nullptr);
}

static struct nd_error *read_profile(const char *path) {
        nd_autofree char *text = nullptr;
        nd_autojson yyjson_doc *doc = nullptr;

        nd_try(nd_file_read_kernel(path, PROFILE_CEILING, &text));
        return nd_error_wrap(nd_json_parse(text, strlen(text), PROFILE_CEILING, &doc), "'%s'", path);
}

static void check_seccomp(struct runtime *r) {
        nd_autoerror struct nd_error *error = read_profile(r->settings.seccomp_profile);

        if (error)
                cli_findings_add(
                        r->findings, FINDING_WARN, "seccomp profile",
                        nd_format("%s: pods with the profile RuntimeDefault do not start", nd_error_text(error)),
                        nd_strdup("apt install golang-github-containers-common, or set seccompProfile in " RUNTIME_CONFIG
                                  " to a profile"));
        else
                cli_findings_add(r->findings, FINDING_OK, "seccomp profile", nd_strdup(r->settings.seccomp_profile), nullptr);
}

static void check_certificates(struct runtime *r) {
        const char *directory = r->settings.certificates;
        size_t registries = 0;
        nd_autoerror struct nd_error *error = cli_certificates_check(directory, &registries);

        if (error)
                cli_findings_add(r->findings, FINDING_WARN, "registry certificates",
                                 nd_format("%s: pulls from this registry fail", nd_error_text(error)),
                                 nd_strdup("install the file, or correct its name"));
        else if (registries == 0)
                cli_findings_add(r->findings, FINDING_OK, "registry certificates",
                                 nd_format("none of their own in %s", directory), nullptr);
        else
                cli_findings_add(r->findings, FINDING_OK, "registry certificates",
                                 nd_format("%zu registries in %s, all files can be read", registries, directory), nullptr);
}

/* ---- the kubelet ---- */

/* A kubelet that has a configuration but does not run starts no pods. */
static bool check_kubelet(struct runtime *r) {
        const struct cli_kubelet *kubelet = r->kubelet;

        if (kubelet->denied)
                cli_findings_add(r->findings, FINDING_NOTE, "kubelet",
                                 nd_format("not checked: only root may read %s", kubelet->path),
                                 nd_strdup("run nodens check as root"));
        else if (kubelet->problem)
                cli_findings_add(r->findings, FINDING_FAIL, "kubelet", nd_strdup(kubelet->problem),
                                 nd_strdup("correct it and restart the kubelet"));
        else if (!kubelet->config.found && kubelet->pid == 0)
                cli_findings_add(
                        r->findings, FINDING_NOTE, "kubelet", nd_format("none: no configuration %s", kubelet->path),
                        nd_format("set up a kubelet with containerRuntimeEndpoint: unix://%s, or name its configuration with "
                                  "--kubelet-config",
                                  r->settings.socket));
        else if (kubelet->pid == 0)
                cli_findings_add(
                        r->findings, FINDING_WARN, "kubelet", nd_format("not running, with configuration %s", kubelet->path),
                        nd_strdup("systemctl start kubelet; if it does not start, journalctl -u kubelet has the reason"));
        else
                cli_findings_add(r->findings, FINDING_OK, "kubelet",
                                 nd_format("process %d with %s %s", (int) kubelet->pid,
                                           kubelet->config.found ? "configuration" : "no configuration", kubelet->path),
                                 nullptr);
        return !kubelet->denied && !kubelet->problem && (kubelet->config.found || kubelet->pid > 0);
}

static void check_endpoint(struct runtime *r) {
        const char *endpoint = r->kubelet->config.endpoint;

        if (is_socket(endpoint, r->settings.socket))
                cli_findings_add(r->findings, FINDING_OK, "kubelet endpoint", nd_strdup(endpoint), nullptr);
        else
                cli_findings_add(r->findings, FINDING_FAIL, "kubelet endpoint",
                                 *endpoint
                                         ? nd_format("the kubelet uses %s, not nodens-cri", endpoint)
                                         : nd_strdup("not set: the kubelet uses " KUBELET_ENDPOINT_DEFAULT ", not nodens-cri"),
                                 nd_format("drain the node, set containerRuntimeEndpoint: unix://%s in %s, remove "
                                           "--container-runtime-endpoint from its arguments, systemctl restart kubelet",
                                           r->settings.socket, r->kubelet->path));
}

/* Kubelets from 1.31 ask the runtime, unless a feature gate prevents it. */
static void check_driver(struct runtime *r) {
        const struct cli_kubelet_config *config = &r->kubelet->config;
        const char *theirs = *config->cgroup_driver ? config->cgroup_driver : "cgroupfs", *ours = r->settings.cgroup_driver;

        if (nd_streq(theirs, ours))
                cli_findings_add(r->findings, FINDING_OK, "cgroup driver", nd_format("%s in both configurations", ours),
                                 nullptr);
        else if (!*config->cgroup_driver && !config->ignores_runtime)
                cli_findings_add(r->findings, FINDING_OK, "cgroup driver",
                                 nd_format("%s; not set for the kubelet, which asks nodens-cri", ours), nullptr);
        else
                cli_findings_add(
                        r->findings, config->ignores_runtime ? FINDING_FAIL : FINDING_WARN, "cgroup driver",
                        config->ignores_runtime
                                ? nd_format("kubelet %s, nodens-cri %s: pods get wrong cgroups", theirs, ours)
                                : nd_format("kubelet %s, nodens-cri %s: kubelets before 1.31 get it wrong, later ones "
                                            "use nodens-cri's",
                                            theirs, ours),
                        nd_format("set cgroupDriver: %s in %s and restart the kubelet", ours, r->kubelet->path));
}

void cli_runtime_check(struct cli_findings *findings, const char *socket, const struct cli_kubelet *kubelet) {
        nd_cleanup(runtime_done) struct runtime r = {.findings = findings, .kubelet = kubelet, .named = socket};
        nd_autoerror struct nd_error *error = cli_runtime_settings_read(RUNTIME_CONFIG, &r.settings);

        if (error && (geteuid() == 0 || nd_error_code(error) != ND_DENIED))
                cli_findings_add(findings, FINDING_FAIL, "configuration", nd_strdup(nd_error_text(error)),
                                 nd_strdup("correct it, then " RESTART));
        if (socket)
                nd_strset(&r.settings.socket, path_of(socket));
        if (!check_daemon(&r))
                return;
        if (r.info)
                check_selftest(&r);
        check_network(&r);
        check_seccomp(&r);
        check_certificates(&r);
        if (check_kubelet(&r)) {
                check_endpoint(&r);
                check_driver(&r);
        }
}
