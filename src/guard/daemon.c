/* SPDX-License-Identifier: Apache-2.0 */
/* daemon.c - see daemon.h
 *
 * Theory of operation
 *   One thread, one loop: watches of the API server fill @store and @rbac, the server hands reviews
 *   to the webhooks by their routes. Reviews are only decided once every list was read and while
 *   namespaces and constraints are current: until then /readyz fails, and reviews are denied with a
 *   response that can be retried. @health has the reason.
 *   On SIGTERM /readyz fails and reviews are still decided, until @drain ends the loop. */
#include "guard/daemon.h"

#include <inttypes.h>
#include <signal.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/log.h"
#include "guard/server/issue.h"
#include "sys/notify.h"

static constexpr unsigned placeholder_days = 30;

static void on_event(const char *what, const struct nd_error *error, [[maybe_unused]] void *userdata) {
        if (error)
                nd_log(ND_LOG_WARNING, what, nd_field("error", nd_error_text(error)));
        else
                nd_log(ND_LOG_INFO, what);
}

static void start_allocator(struct guard_daemon *guard) {
        if (guard->config.allocate)
                guard->watches.allocator =
                        guard_allocator_new(&(struct guard_allocator_settings) {.api = guard->api,
                                                                                .store = &guard->store,
                                                                                .namespace = guard->namespace,
                                                                                .identity = guard->identity,
                                                                                .log = on_event});
}

/* A replica without contact stops to decide when its data are stale; others wait longer than
 * that. */
static void start_floor_control(struct guard_daemon *guard) {
        bool authorizes = guard->role == GUARD_ROLE_AUTHORIZER;

        guard->floor =
                guard_floor_control_new(&(struct guard_floor_control_settings) {.api = guard->api,
                                                                                .store = &guard->store,
                                                                                .namespace = guard->namespace,
                                                                                .identity = guard->identity,
                                                                                .number = guard->number,
                                                                                .role = authorizes ? "authorizer" : "guard",
                                                                                .lifetime_s = guard->config.stale_seconds + 20,
                                                                                .only_reports = authorizes,
                                                                                .log = on_event});
}

static void start_label_sync(struct guard_daemon *guard) {
        if (guard->role != GUARD_ROLE_AUTHORIZER && guard_config_computes_labels(&guard->config))
                guard->routes.label_sync = guard->label_sync = guard_label_sync_new(
                        &(struct guard_label_sync_settings) {.api = guard->api,
                                                             .watches = &guard->watches,
                                                             .namespace = guard->namespace,
                                                             .writes = guard_config_writes_labels(&guard->config),
                                                             .log = on_event});
}

/* All lists were read. */
static void on_ready(void *userdata) {
        struct guard_daemon *guard = userdata;

        guard_health_update(&guard->health);
        start_allocator(guard);
        start_floor_control(guard);
        start_label_sync(guard);
}

static void on_nodes(void *userdata) {
        struct guard_daemon *guard = userdata;

        if (guard->floor)
                guard_floor_control_wake(guard->floor);
}

static void on_complaint(const char *kind, const char *name, const struct nd_error *error, [[maybe_unused]] void *userdata) {
        nd_log(ND_LOG_WARNING, "ignoring an invalid object", nd_field("kind", kind), nd_field("name", name),
               nd_field("error", nd_error_text(error)));
}

static void warn_about_clients(const struct guard_daemon *guard) {
        if (!guard_config_authenticates(&guard->config))
                nd_log(ND_LOG_WARNING,
                       "clients are not authenticated (no clientCA): every peer that reaches the port can read the names and security "
                       "contexts of pods, query who may use which constraint, and load the API server",
                       nd_field("address", guard->config.address));
}

/* ---- certificates ---- */

/* Why the guard has no certificate of its own or no authority of clients yet; nullptr: it has. */
static const char *missing(const struct guard_daemon *guard) {
        if ((!guard_config_makes_certificate(&guard->config) || guard->has_certificate) &&
            (!guard_config_reads_client_ca(&guard->config) || guard->has_client_ca))
                return nullptr;
        return guard->secret_problem ? guard->secret_problem : "certificates have not been read from the API server yet";
}

static void on_certificate(const char *problem, time_t expires, void *userdata) {
        struct guard_daemon *guard = userdata;

        guard->health.certificate_expires = expires;
        guard_health_set(&guard->health, GUARD_PROBLEM_CERTIFICATE, problem ? problem : missing(guard), true);
}

static void on_secret(const struct guard_server_files *files, void *userdata) {
        struct guard_daemon *guard = userdata;

        guard->has_certificate |= files->certificate != nullptr;
        guard->has_client_ca |= files->client_ca != nullptr;
        guard_certificate_give(&guard->certificate, files);
}

static void on_secret_problem(const char *problem, void *userdata) {
        struct guard_daemon *guard = userdata;
        bool is_new = problem && (!guard->secret_problem || !nd_streq(guard->secret_problem, problem));

        if (is_new && !missing(guard)) /* otherwise it is the reason for not being ready */
                nd_log(ND_LOG_WARNING, problem);
        if (problem)
                nd_strset(&guard->secret_problem, problem);
        else
                free(nd_take_ptr(guard->secret_problem));
        if (missing(guard))
                guard_health_set(&guard->health, GUARD_PROBLEM_CERTIFICATE, missing(guard), true);
}

/* Until the Secret was read the port is open for probes, with a certificate that API servers do not
 * accept, and with an authority that signs no client. */
static struct nd_error *give_placeholders(struct guard_daemon *guard) {
        nd_cleanup(nd_strings_done) struct nd_strings names = {};
        nd_cleanup(guard_issued_done) struct guard_issued authority = {}, server = {};

        nd_strings_add(&names, "nodens-guard");
        nd_try(guard_issue_authority(placeholder_days, &authority));
        nd_try(guard_issue_server(&authority, &names, placeholder_days, &server));
        if (guard_config_makes_certificate(&guard->config))
                guard_certificate_give(&guard->certificate,
                                       &(struct guard_server_files) {.certificate = server.certificate, .key = server.key});
        if (guard_config_reads_client_ca(&guard->config))
                guard_certificate_give(&guard->certificate, &(struct guard_server_files) {.client_ca = authority.certificate});
        return nullptr;
}

static void start_secret(struct guard_daemon *guard) {
        bool makes = guard_config_makes_certificate(&guard->config), reads = guard_config_reads_client_ca(&guard->config);

        if (makes || reads)
                guard->secret =
                        guard_secret_new(&(struct guard_secret_settings) {.api = guard->api,
                                                                          .namespace = guard->namespace,
                                                                          .service = guard->config.service,
                                                                          .makes_certificate = makes,
                                                                          .reads_client_ca = reads,
                                                                          .overlap_seconds = guard->config.overlap_seconds,
                                                                          .take = on_secret,
                                                                          .report = on_secret_problem,
                                                                          .userdata = guard});
}

/* ---- start ---- */

static void set_routes(struct guard_daemon *guard, struct guard_server_settings *settings) {
        bool authorizes = guard->role == GUARD_ROLE_AUTHORIZER;

        settings->body_ceiling = authorizes ? (size_t) GUARD_ACCESS_REQUEST_BYTES : (size_t) GUARD_REVIEW_BYTES;
        settings->handle = authorizes ? guard_authorizer_routes_handle : guard_routes_handle;
        settings->answered = authorizes ? guard_authorizer_routes_answered : guard_routes_answered;
        settings->userdata = authorizes ? (void *) &guard->authorizer : (void *) &guard->routes;
}

static struct nd_error *start_server(struct guard_daemon *guard) {
        nd_cleanup(guard_certificate_texts_done) struct guard_certificate_texts texts = {};
        struct guard_server_settings settings;
        const struct guard_config *config = &guard->config;

        guard->certificate = (struct guard_certificate) {
                .certificate = guard_config_makes_certificate(config) ? "Secret " GUARD_SECRET : config->certificate,
                .key = config->key,
                .report = on_certificate,
                .userdata = guard};
        if (!config->client_ca)
                return nd_error_new(ND_INVALID, 0,
                                    "clientCA is not set: set it to the CA that signs the API servers' client certificates, "
                                    "or to 'none' to accept requests from every peer that reaches the port");
        guard->certificate.client_ca = guard_config_authenticates(config) ? config->client_ca : nullptr;
        nd_try(give_placeholders(guard));
        nd_try(guard_certificate_read(&guard->certificate, &texts));
        settings = (struct guard_server_settings) {
                .address = config->address,
                .port = (uint16_t) config->port,
                .files = guard_certificate_files(&texts),
                .reviewers = {.items = config->client_names.items, .count = config->client_names.count},
                .readers = {.items = config->metrics_names.items, .count = config->metrics_names.count},
                .needs = guard_routes_needed_right,
                .connections = config->connections};
        set_routes(guard, &settings);
        nd_try(guard_server_new(guard->loop, &settings, &guard->server));
        guard->routes.server = guard->authorizer.server = guard->server;
        warn_about_clients(guard);
        return guard_certificate_watch(&guard->certificate, guard->loop, guard->server);
}

/* The identity is the name of the host or pod and a random number. */
static struct nd_error *name_guard(struct guard_daemon *guard) {
        char host[65] = "";

        if (getrandom(&guard->number, sizeof guard->number, 0) != sizeof guard->number)
                return nd_error_new(ND_INTERNAL, errno, "get random bytes for the guard's identity");
        (void) gethostname(host, sizeof host - 1);
        guard->identity = nd_format("%s_%016" PRIx64, host, guard->number);
        return nullptr;
}

static struct nd_error *start_client(struct guard_daemon *guard) {
        const struct nd_kubeconfig *cluster = &guard->credentials.config;

        nd_try(guard_health_start(&guard->health, guard->loop, &guard->watches));
        nd_try(nd_error_wrap(guard_credentials_start(&guard->credentials, guard->config.kubeconfig, guard->loop,
                                                     &guard->health, &guard->api),
                             "%s",
                             guard->config.kubeconfig
                                     ? "credentials for the API server (CREDENTIALS in nodens-guard(8) says how to "
                                       "make them)"
                                     : "no kubeconfig in '" GUARD_DIRECTORY
                                       "' (CREDENTIALS in nodens-guard(8) says how to make one)"));
        guard->access_reviews = guard_access_reviews_new(guard->api, guard->config.group);
        guard->namespace = nd_strdup(guard->config.namespace ? guard->config.namespace
                                     : cluster->token_file && cluster->namespace && *cluster->namespace ? cluster->namespace
                                                                                                        : "nodens-system");
        return name_guard(guard);
}

static struct nd_error *start_watches(struct guard_daemon *guard) {
        guard->webhook = (struct guard_webhook) {.config = &guard->config,
                                                 .api = guard->api,
                                                 .store = &guard->store,
                                                 .rbac = &guard->rbac,
                                                 .access_reviews = guard->access_reviews,
                                                 .watches = &guard->watches,
                                                 .metrics = &guard->metrics};
        guard->routes = (struct guard_routes) {
                .webhook = &guard->webhook, .health = &guard->health, .credentials = &guard->credentials};
        guard->authorizer = (struct guard_authorizer_routes) {.store = &guard->store,
                                                              .watches = &guard->watches,
                                                              .health = &guard->health,
                                                              .credentials = &guard->credentials,
                                                              .metrics = &guard->metrics};
        return guard_watches_start(&guard->watches,
                                   &(struct guard_watches_settings) {.kinds = guard->role == GUARD_ROLE_AUTHORIZER
                                                                                      ? GUARD_KINDS_OF_AUTHORIZER
                                                                                      : GUARD_KINDS_ALL,
                                                                     .nodes_changed = on_nodes,
                                                                     .loop = guard->loop,
                                                                     .api = guard->api,
                                                                     .store = &guard->store,
                                                                     .rbac = &guard->rbac,
                                                                     .group = guard->config.group,
                                                                     .stale_us = guard->config.stale_seconds * ND_SECOND_US,
                                                                     .ready = on_ready,
                                                                     .userdata = guard});
}

/* The first signal ends the server when its clients have moved away, the second at once. */
static int on_signal([[maybe_unused]] sd_event_source *source, [[maybe_unused]] const struct signalfd_siginfo *info,
                     void *userdata) {
        struct guard_daemon *guard = userdata;
        nd_autoerror struct nd_error *error = nullptr;

        if (guard->server && !guard_drain_is_on(&guard->drain)) {
                nd_notify_stopping();
                guard_health_stop(&guard->health);
                nd_log(ND_LOG_INFO, "stopping: not ready any more; reviews are answered until clients have moved away");
                error = guard_drain_start(&guard->drain, guard->loop, guard->server, guard->config.drain_seconds);
                if (!error)
                        return 0;
        }
        return sd_event_exit(guard->loop, 0);
}

static int handle_signals(struct guard_daemon *guard) {
        static const int signals[] = {SIGTERM, SIGINT};
        int r = 0;

        for (size_t i = 0; r >= 0 && i < nd_count_of(signals); i++)
                r = sd_event_add_signal(guard->loop, nullptr, signals[i] | SD_EVENT_SIGNAL_PROCMASK, on_signal, guard);
        return r;
}

struct nd_error *guard_daemon_start(struct guard_daemon *guard) {
        int r = sd_event_default(&guard->loop);

        /* a closed connection is an error of that connection only */
        (void) signal(SIGPIPE, SIG_IGN);
        guard_store_init(&guard->store);
        guard->store.complain = on_complaint;
        guard->store.standards = &guard->config.standards;
        guard->store.default_mode = nd_streq(guard->config.default_mode, "off")    ? GUARD_MODE_OFF
                                    : nd_streq(guard->config.default_mode, "warn") ? GUARD_MODE_WARN
                                                                                   : GUARD_MODE_ENFORCE;
        guard_rbac_init(&guard->rbac, guard->config.group);
        if (r >= 0)
                r = handle_signals(guard);
        if (r >= 0)
                r = sd_event_set_watchdog(guard->loop, true);
        if (r < 0)
                return nd_error_new(ND_INTERNAL, -r, "run the event loop");
        nd_try(start_client(guard));
        nd_try(start_watches(guard));
        nd_try(start_server(guard));
        start_secret(guard);
        /* An API server that is away must not hold up the boot of its own host: STATUS= and /readyz
         * say whether reviews are decided. */
        nd_notify_ready(guard->role == GUARD_ROLE_AUTHORIZER
                                ? "reading nodes and the version floor from the API server"
                                : "reading namespaces, constraints and RBAC objects from the API server");
        return nullptr;
}

void guard_daemon_done(struct guard_daemon *guard) {
        guard_secret_free(nd_take_ptr(guard->secret));
        free(nd_take_ptr(guard->secret_problem));
        guard_certificate_done(&guard->certificate);
        guard_health_done(&guard->health);
        guard_watches_done(&guard->watches);
        if (guard->api)
                nd_api_stop(guard->api); /* ends reviews that wait for it, with a denial */
        guard_allocator_free(nd_take_ptr(guard->watches.allocator));
        guard_floor_control_free(nd_take_ptr(guard->floor));
        guard->routes.label_sync = nullptr;
        guard_label_sync_free(nd_take_ptr(guard->label_sync));
        guard_drain_done(&guard->drain);
        guard_server_free(guard->server);
        free(guard->identity);
        free(guard->namespace);
        guard_access_reviews_free(guard->access_reviews);
        nd_api_free(guard->api);
        nd_api_credentials_done(&guard->credentials);
        guard_store_done(&guard->store);
        guard_rbac_done(&guard->rbac);
        sd_event_unref(guard->loop);
        guard_config_done(&guard->config);
}
