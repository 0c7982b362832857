/* SPDX-License-Identifier: Apache-2.0 */
/* daemon.c - see daemon.h
 *
 * Theory of operation
 *   Parts are created bottom up: event loop, image store, the parts that use it, the pods of the
 *   previous daemon. The socket comes last, so that no request meets an incomplete daemon: it opens
 *   when the self-test has completed, because Status reports its results. Parts are freed in
 *   reverse order.
 *   SIGTERM and SIGINT end the loop. Everything that was acknowledged is on disk by then, and
 *   containers keep running. */
#include "cri/daemon.h"

#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "cri/bundle/apparmor.h"
#include "cri/bundle/build-mntns.h"
#include "cri/bundle/runtime-mntns.h"
#include "cri/core/events.h"
#include "cri/core/listener.h"
#include "cri/core/record.h"
#include "cri/core/remedy.h"
#include "cri/image/image-gc.h"
#include "cri/image/pull.h"
#include "cri/namespace/pins.h"
#include "cri/network/network.h"
#include "cri/oci-runtime/selftest.h"
#include "cri/pod/bridge-upgrade.h"
#include "cri/pod/cni-check.h"
#include "cri/pod/recovery.h"
#include "cri/pod/verify.h"
#include "cri/report.h"
#include "cri/rpc/methods.h"
#include "cri/stats/metrics-endpoint.h"
#include "cri/stats/stats.h"
#include "cri/stats/telemetry.h"
#include "cri/stream/server.h"
#include "oci/store.h"
#include "sys/file.h"
#include "sys/limits.h"
#include "sys/notify.h"

static const struct nd_grpc_method *const tables[] = {
        cri_rpc_runtime_methods, cri_rpc_sandbox_methods,  cri_rpc_container_methods, cri_rpc_exec_methods,
        cri_rpc_stats_methods,   cri_rpc_events_methods,   cri_rpc_image_methods,     cri_rpc_node_methods,
        cri_rpc_pods_methods,    cri_rpc_operator_methods, cri_rpc_info_methods,      nullptr,
};

void cri_daemon_done(struct cri_daemon *daemon) {
        struct cri_parts *parts = &daemon->parts;

        nd_grpc_server_free(daemon->server);
        cri_metrics_endpoint_free(daemon->scrape);
        cri_stream_server_free(parts->streams);
        cri_events_free(parts->events);
        cri_stats_free(parts->stats);
        cri_verify_free(parts->verify);
        cri_bridge_upgrade_free(daemon->bridge_upgrade);
        cri_cni_check_free(daemon->cni_checks);
        cri_selftest_free(parts->selftest);
        cri_pod_table_done(&parts->pods);
        cri_network_free(parts->network);
        cri_runtime_mntns_free(parts->runtime_mntns);
        cri_build_mntns_free(parts->build_mntns);
        cri_pins_free(parts->pins);
        cri_record_store_free(parts->records);
        cri_puller_free(parts->puller);
        cri_image_gc_free(parts->image_gc);
        nd_oci_store_free(parts->images);
        cri_report_free(parts->report);
        sd_event_unref(parts->loop);
        cri_telemetry_free(parts->telemetry);
        nd_error_free(nd_take_ptr(daemon->failure));
        nd_own_userns_done(&parts->users);
        cri_config_done(&parts->config);
}

static struct nd_error *start_loop(struct cri_parts *parts) {
        sigset_t signals;
        int r;

        (void) sigemptyset(&signals);
        (void) sigaddset(&signals, SIGTERM);
        (void) sigaddset(&signals, SIGINT);
        (void) sigprocmask(SIG_BLOCK, &signals, nullptr);
        (void) signal(SIGPIPE, SIG_IGN);
        r = sd_event_default(&parts->loop);
        if (r >= 0)
                r = sd_event_add_signal(parts->loop, nullptr, SIGTERM, nullptr, nullptr);
        if (r >= 0)
                r = sd_event_add_signal(parts->loop, nullptr, SIGINT, nullptr, nullptr);
        if (r >= 0)
                r = sd_event_set_watchdog(parts->loop, true);
        return r < 0 ? nd_error_new(ND_INTERNAL, -r, "create the event loop") : nullptr;
}

/* "RunPodSandbox" of "/runtime.v1.RuntimeService/RunPodSandbox". */
static const char *method_of(const struct nd_grpc_call *call) {
        const char *path = nd_grpc_call_path(call), *slash = strrchr(path, '/');

        return slash ? slash + 1 : path;
}

/* Requests for something that is gone are part of a kubelet's work, unless they need it to create
 * something: an image, a directory. */
static bool is_failure(const char *method, enum nd_error_code code) {
        static const char *const creating[] = {"PullImage", "RunPodSandbox", "CreateContainer", "StartContainer"};

        if (code != ND_NOT_FOUND)
                return code != ND_OK && code != ND_CANCELLED;
        for (size_t i = 0; i < nd_count_of(creating); i++)
                if (nd_streq(method, creating[i]))
                        return true;
        return false;
}

/* Requests are logged here, once: failures with reason and pod, successes at debug level. */
static void log_request(const struct nd_grpc_call *call, enum nd_error_code code, uint64_t duration_us) {
        nd_autofree char *duration = nd_format("%llu", (unsigned long long) duration_us);
        nd_autofree char *namespace = nd_strdup(nd_grpc_call_subject(call)); /* of NAMESPACE/NAME */
        const char *text = code == ND_OK ? "" : nd_grpc_call_status_text(call);
        bool failed = is_failure(method_of(call), code);
        char *slash = strchr(namespace, '/');
        const struct nd_log_field fields[] = {
                nd_field("rpc", method_of(call)),
                nd_field("code", nd_error_code_name(code)),
                nd_field("us", duration),
                nd_field("error", text),
                nd_field("remedy", cri_remedy_of(text)),
                /* without a pod, the end */
                nd_field(slash ? "pod" : nullptr, slash ? slash + 1 : nullptr),
                nd_field("namespace", namespace),
                {},
        };

        if (slash)
                *slash = '\0';
        nd_log_fields(failed ? ND_LOG_NOTICE : ND_LOG_DEBUG, failed ? "request failed" : "request", fields);
}

static void observe(const struct nd_grpc_call *call, uint64_t duration_us, void *userdata) {
        struct cri_parts *parts = userdata;
        enum nd_error_code code = nd_grpc_call_status(call);

        cri_telemetry_rpc(parts->telemetry, method_of(call), nd_grpc_method_find(tables, nd_grpc_call_path(call)),
                          !nd_streq(method_of(call), "GetContainerEvents"), code, duration_us);
        log_request(call, code, duration_us);
        cri_report_touch(parts->report);
}

static void report_problems(const struct nd_oci_store *images) {
        nd_vector_each (problem, nd_oci_store_problems(images)) {
                nd_log(ND_LOG_WARNING, *problem);
        }
}

/* Pins the images named in the configuration, also if they were pulled earlier. */
static struct nd_error *pin_configured(struct cri_parts *parts) {
        nd_vector_each (name, &parts->config.pinned) {
                const struct nd_image *image = nullptr;

                nd_try(nd_error_wrap(nd_oci_store_find(parts->images, *name, &image), "pinnedImages: '%s'", *name));
                if (image && !image->pinned)
                        nd_try(nd_oci_store_pin(parts->images, &image->id, true));
        }
        return nullptr;
}

static void format_metrics(struct nd_text *ret, void *userdata) {
        const struct cri_daemon *daemon = userdata;
        const struct cri_parts *parts = &daemon->parts;
        const struct cri_telemetry_view view = {.uptime_us = nd_clock_us() - daemon->began,
                                                .config = &parts->config,
                                                .pods = &parts->pods,
                                                .pulls = cri_puller_count(parts->puller),
                                                .selftest = parts->selftest};

        cri_telemetry_format(parts->telemetry, &view, ret);
}

static struct nd_error *serve(struct cri_daemon *daemon) {
        struct cri_parts *parts = &daemon->parts;
        nd_autoclose int fd = -EBADF;

        nd_try(cri_listener_unix(parts->config.socket, &fd));
        nd_try(nd_grpc_server_listen(daemon->server, nd_take_fd(fd)));
        daemon->scrape = cri_metrics_endpoint_new(&(struct cri_metrics_endpoint_settings) {
                .loop = parts->loop, .where = parts->config.metrics, .format = format_metrics, .userdata = daemon});
        return nullptr;
}

/* The self-test has completed, with or without failures: start to serve. */
static void on_tested(void *userdata) {
        struct cri_daemon *daemon = userdata;

        daemon->failure = serve(daemon);
        if (daemon->failure) {
                (void) sd_event_exit(daemon->parts.loop, EXIT_FAILURE);
                return;
        }
        cri_report_warn(&daemon->parts);
        cri_report_ready(daemon->parts.report, nd_clock_us() - daemon->began);
        cri_image_gc_wake(daemon->parts.image_gc); /* garbage of the previous daemon */
        cri_cni_check_begin(daemon->cni_checks);
        daemon->bridge_upgrade = cri_bridge_upgrade_new(&daemon->parts);
}

/* A service has its directories from systemd; a daemon that is started by hand on a new host does
 * not. Only the last part of a path is made: what is missing above may be a filesystem that is not
 * mounted yet. */
static struct nd_error *make_state_directory(const char *key, const char *path, mode_t mode) {
        nd_autoerror struct nd_error *error = nd_dir_make(AT_FDCWD, path, mode);

        if (nd_error_code(error) != ND_NOT_FOUND)
                return nd_take_ptr(error);
        return nd_error_new(ND_NOT_FOUND, 0, "%s; create the directory above it, or set '%s' in " CRI_CONFIG_PATH,
                            nd_error_text(error), key);
}

static struct nd_error *make_run_directories(const struct cri_config *config) {
        nd_autofree char *pods = nd_format("%s/pods", config->run), *containers = nd_format("%s/containers", config->run);

        nd_try(cri_listener_make_directory(config->run));
        nd_try(nd_dir_make(AT_FDCWD, config->run, 0711));
        nd_try(nd_dir_make(AT_FDCWD, pods, 0711));
        return nd_dir_make(AT_FDCWD, containers, 0711);
}

static struct nd_error *start_images(struct cri_parts *parts) {
        nd_try(make_state_directory("state", parts->config.state, 0711));
        nd_try(make_state_directory("images", parts->config.images, 0700));
        nd_try(nd_oci_store_open(parts->config.images, &parts->images));
        report_problems(parts->images);
        if (!parts->users.initial)
                nd_oci_store_count_shifted(parts->images, nullptr, 0);
        nd_try(pin_configured(parts));
        nd_try(cri_image_gc_new(parts->loop, parts->images, &parts->pods, &parts->image_gc));
        return cri_puller_new(parts->loop, &parts->config, parts->images, parts->image_gc, parts->telemetry, &parts->puller);
}

static struct nd_error *start_pods(struct cri_parts *parts) {
        nd_autofree char *layers = nullptr;

        nd_try(make_run_directories(&parts->config));
        if (parts->users.initial)
                cri_apparmor_load(&parts->config);
        nd_try(cri_record_store_open(&parts->config, &parts->records));
        nd_try(cri_pins_open(&parts->config, &parts->pins));
        layers = nd_format("%s/layers", nd_oci_store_root(parts->images));
        nd_try(cri_build_mntns_open(&parts->config, layers, &parts->build_mntns));
        nd_try(cri_runtime_mntns_open(parts->loop, &parts->config, &parts->runtime_mntns));
        parts->network = cri_network_new(parts->loop, &parts->config);
        nd_try(cri_verify_new(parts->loop, &parts->pods, parts->records, &parts->verify));
        parts->stats = cri_stats_new(parts->loop, &parts->config, &parts->pods);
        parts->events = cri_events_new();
        nd_try(cri_stream_server_new(parts->loop, &parts->config, &parts->pods, parts->pins, &parts->streams));
        return cri_recovery_run(parts);
}

struct nd_error *cri_daemon_start(struct cri_daemon *daemon) {
        struct cri_parts *parts = &daemon->parts;
        const struct nd_grpc_server_settings settings = {.tables = tables, .userdata = parts, .observe = observe};

        if (geteuid() != 0)
                return nd_error_new(ND_DENIED, 0, "nodens-cri must be root; use sudo, or 'systemctl start nodens-cri'");
        daemon->began = nd_clock_us();
        nd_try(nd_limits_raise()); /* there is a connection per container monitor */
        nd_try(nd_own_userns_read(&parts->users));
        parts->telemetry = cri_telemetry_new();
        nd_try(start_loop(parts));
        parts->report = cri_report_new(parts);
        nd_notify_status("opening the image store");
        nd_try(start_images(parts));
        nd_notify_status("taking over the pods of the previous daemon");
        nd_try(start_pods(parts));
        daemon->cni_checks = cri_cni_check_new(parts);
        nd_try(nd_grpc_server_new(parts->loop, &settings, &daemon->server));
        nd_notify_status("running the self-test");
        parts->selftest = cri_selftest_new(parts->loop, &parts->config, on_tested, daemon);
        return nullptr;
}
