/* SPDX-License-Identifier: Apache-2.0 */
/* daemon.c - see daemon.h
 *
 * One thread, one loop: watches of the API server fill @store and @rbac, the server hands reviews to reviews.c. Until every list was read
 * once nothing is admitted or refused on half a picture: /readyz says so, and reviews get a refusal that can be retried. So it is while
 * namespaces and constraints are not known to be current (api-watch.h): a label that says `enforce` may have come meanwhile.
 * Bindings are listed after roles, and again when a role comes to grant something (see rbac.h); until then the index may say yes and not no. */
#include "guard/daemon.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/random.h>
#include <systemd/sd-daemon.h>

#include "base/clock.h"
#include "base/log.h"
#include "net/api-objects.h"

enum {
        NODES_PER_PAGE = 25,    /* a node's status is long */
        OBJECTS_PER_PAGE = 100, /* pages are what takes memory while lists are read, of all kinds at once */
        METRICS_BYTES = 64 << 10,
};

#define NEWS_US (1 * ND_SECOND_US)
#define RELIST_US (10 * ND_SECOND_US)

static void look_for_news(struct guard_daemon *guard);

static struct guard_table *table_of(struct guard_daemon *guard, enum guard_kind kind) {
        switch (kind) {
        case GUARD_KIND_CONSTRAINT:
                return &guard->store.constraints;
        case GUARD_KIND_NAMESPACE:
                return &guard->store.namespaces;
        case GUARD_KIND_NODE:
                return &guard->store.nodes;
        case GUARD_KIND_RUNTIME_CLASS:
                return &guard->store.runtime_classes;
        case GUARD_KIND_ROLE:
                return &guard->rbac.roles[GUARD_SCOPE_NAMESPACE];
        case GUARD_KIND_CLUSTER_ROLE:
                return &guard->rbac.roles[GUARD_SCOPE_CLUSTER];
        case GUARD_KIND_BINDING:
                return &guard->rbac.bindings[GUARD_SCOPE_NAMESPACE];
        case GUARD_KIND_CLUSTER_BINDING:
                return &guard->rbac.bindings[GUARD_SCOPE_CLUSTER];
        case GUARD_KINDS:
                break;
        }
        abort();
}

static void on_begin(void *userdata) {
        struct guard_watch *w = userdata;

        guard_table_begin(table_of(w->guard, w->kind));
}

static void on_allocator(const char *what, const struct nd_error *error, [[maybe_unused]] void *userdata) {
        if (error)
                nd_log(ND_LOG_WARNING, what, nd_field("error", nd_error_text(error)));
        else
                nd_log(ND_LOG_INFO, what);
}

static void start_allocator(struct guard_daemon *guard) {
        if (guard->config.allocate)
                guard->allocator = guard_allocator_new(&(struct guard_allocator_settings) {.api = guard->api,
                                                                                           .store = &guard->store,
                                                                                           .namespace = guard->namespace,
                                                                                           .identity = guard->identity,
                                                                                           .log = on_allocator});
}

static void on_put(yyjson_val *object, void *userdata) {
        struct guard_watch *w = userdata;
        struct guard_daemon *guard = w->guard;

        w->complained = false;
        switch (w->kind) {
        case GUARD_KIND_CONSTRAINT:
                guard_store_put_constraint(&guard->store, object);
                break;
        case GUARD_KIND_NAMESPACE:
                guard_store_put_namespace(&guard->store, object);
                if (guard->allocator)
                        guard_allocator_wake(guard->allocator);
                break;
        case GUARD_KIND_NODE:
                guard_store_put_node(&guard->store, object);
                break;
        case GUARD_KIND_RUNTIME_CLASS:
                guard_store_put_runtime_class(&guard->store, object);
                break;
        case GUARD_KIND_ROLE:
        case GUARD_KIND_CLUSTER_ROLE:
                guard_rbac_put_role(&guard->rbac, w->kind == GUARD_KIND_ROLE ? GUARD_SCOPE_NAMESPACE : GUARD_SCOPE_CLUSTER,
                                    object);
                look_for_news(guard);
                break;
        case GUARD_KIND_BINDING:
        case GUARD_KIND_CLUSTER_BINDING:
                guard_rbac_put_binding(&guard->rbac,
                                       w->kind == GUARD_KIND_BINDING ? GUARD_SCOPE_NAMESPACE : GUARD_SCOPE_CLUSTER, object);
                break;
        case GUARD_KINDS:
                break;
        }
}

static void on_removed(yyjson_val *object, void *userdata) {
        struct guard_watch *w = userdata;
        struct guard_daemon *guard = w->guard;

        if (w->kind == GUARD_KIND_ROLE || w->kind == GUARD_KIND_CLUSTER_ROLE)
                guard_rbac_remove_role(&guard->rbac, w->kind == GUARD_KIND_ROLE ? GUARD_SCOPE_NAMESPACE : GUARD_SCOPE_CLUSTER,
                                       object);
        else if (w->kind == GUARD_KIND_BINDING || w->kind == GUARD_KIND_CLUSTER_BINDING)
                guard_rbac_remove_binding(&guard->rbac,
                                          w->kind == GUARD_KIND_BINDING ? GUARD_SCOPE_NAMESPACE : GUARD_SCOPE_CLUSTER, object);
        else
                guard_table_remove(table_of(guard, w->kind), nd_api_name(object));
}

/* Said once, until something comes again: it is tried for as long as it takes. */
static void on_trouble(const struct nd_error *error, void *userdata) {
        struct guard_watch *w = userdata;

        if (!w->complained)
                nd_log(ND_LOG_WARNING, "watch is interrupted", nd_field("path", w->path),
                       nd_field("error", nd_error_text(error)));
        w->complained = true;
}

static void on_complaint(const char *kind, const char *name, const struct nd_error *error, [[maybe_unused]] void *userdata) {
        nd_log(ND_LOG_WARNING, "an object is not usable and left out", nd_field("kind", kind), nd_field("name", name),
               nd_field("error", nd_error_text(error)));
}

static char *path_of(const struct guard_daemon *guard, enum guard_kind kind) {
        static const char *const paths[GUARD_KINDS] = {
                [GUARD_KIND_NAMESPACE] = "/api/v1/namespaces",
                [GUARD_KIND_NODE] = "/api/v1/nodes",
                [GUARD_KIND_RUNTIME_CLASS] = "/apis/node.k8s.io/v1/runtimeclasses",
                [GUARD_KIND_ROLE] = "/apis/rbac.authorization.k8s.io/v1/roles",
                [GUARD_KIND_CLUSTER_ROLE] = "/apis/rbac.authorization.k8s.io/v1/clusterroles",
                [GUARD_KIND_BINDING] = "/apis/rbac.authorization.k8s.io/v1/rolebindings",
                [GUARD_KIND_CLUSTER_BINDING] = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        };

        if (kind == GUARD_KIND_CONSTRAINT)
                return nd_format("/apis/%s/v1/securitycontextconstraints", guard->config.group);
        return nd_strdup(paths[kind]);
}

static void on_listed(void *userdata);

static bool is_of_bindings(enum guard_kind kind) {
        return kind == GUARD_KIND_BINDING || kind == GUARD_KIND_CLUSTER_BINDING;
}

static void start_watch(struct guard_daemon *guard, enum guard_kind kind) {
        struct guard_watch *w = &guard->watched[kind];

        *w = (struct guard_watch) {.guard = guard, .kind = kind, .path = path_of(guard, kind)};
        w->watch = nd_api_watch_new(
                guard->api, &(struct nd_api_watch_settings) {
                                    .path = w->path,
                                    .page = kind == GUARD_KIND_NODE ? NODES_PER_PAGE : OBJECTS_PER_PAGE,
                                    .stale_us = kind <= GUARD_KIND_NAMESPACE ? guard->config.stale_seconds * ND_SECOND_US : 0,
                                    .begin = on_begin,
                                    .put = on_put,
                                    .removed = on_removed,
                                    .listed = on_listed,
                                    .trouble = on_trouble,
                                    .userdata = w});
}

/* Bindings follow when roles are known: most of them are to roles that are of no interest here, and are not kept. */
static void start_watches(struct guard_daemon *guard, bool bindings) {
        for (enum guard_kind kind = 0; kind < GUARD_KINDS; kind++)
                if (is_of_bindings(kind) == bindings && !guard->watched[kind].watch)
                        start_watch(guard, kind);
        guard->news_listing = guard->rbac.role_generation;
}

static bool is_synced(const struct guard_daemon *guard, enum guard_kind kind) {
        return guard->watched[kind].watch && nd_api_watch_is_synced(guard->watched[kind].watch);
}

static bool is_listed(const struct guard_daemon *guard, enum guard_kind kind) {
        return is_synced(guard, kind) && !nd_api_watch_is_listing(guard->watched[kind].watch);
}

static int on_relist([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t now, void *userdata) {
        struct guard_daemon *guard = userdata;

        guard->relisted_us = nd_clock_us();
        guard->news_listing = guard->rbac.role_generation;
        for (enum guard_kind kind = GUARD_KIND_BINDING; kind <= GUARD_KIND_CLUSTER_BINDING; kind++)
                nd_api_watch_relist(guard->watched[kind].watch);
        return 0;
}

/* Roles that grant something have come: bindings to them were left out. Soon, so that many are served at once, but not all the time. */
static void look_for_news(struct guard_daemon *guard) {
        uint64_t since = nd_clock_us() - guard->relisted_us, wait;
        int enabled = SD_EVENT_OFF;

        if (guard->rbac.role_generation == guard->news_listing || !is_synced(guard, GUARD_KIND_BINDING) ||
            !is_synced(guard, GUARD_KIND_CLUSTER_BINDING))
                return;
        if (sd_event_source_get_enabled(guard->relister, &enabled) >= 0 && enabled != SD_EVENT_OFF)
                return;
        wait = since > RELIST_US ? NEWS_US : RELIST_US - since;
        (void) sd_event_source_set_time_relative(guard->relister, wait > NEWS_US ? wait : NEWS_US);
        (void) sd_event_source_set_enabled(guard->relister, SD_EVENT_ONESHOT);
}

static void on_listed(void *userdata) {
        struct guard_watch *w = userdata;

        guard_table_listed(table_of(w->guard, w->kind));
        w->complained = false;
        if (is_synced(w->guard, GUARD_KIND_ROLE) && is_synced(w->guard, GUARD_KIND_CLUSTER_ROLE))
                start_watches(w->guard, true);
        if (is_of_bindings(w->kind) && is_listed(w->guard, GUARD_KIND_BINDING) &&
            is_listed(w->guard, GUARD_KIND_CLUSTER_BINDING))
                w->guard->news_listed = w->guard->news_listing;
        look_for_news(w->guard);
        if (!w->guard->announced && guard_watches_are_ready(w->guard)) {
                w->guard->announced = true;
                nd_log(ND_LOG_INFO, "ready");
                (void) sd_notify(false, "READY=1");
                start_allocator(w->guard);
        }
}

bool guard_watches_are_ready(const struct guard_daemon *guard) {
        for (enum guard_kind kind = 0; kind < GUARD_KINDS; kind++)
                if (!is_synced(guard, kind))
                        return false;
        return guard_watches_are_current(guard);
}

bool guard_watches_are_current(const struct guard_daemon *guard) {
        return nd_api_watch_is_current(guard->watched[GUARD_KIND_NAMESPACE].watch) &&
               nd_api_watch_is_current(guard->watched[GUARD_KIND_CONSTRAINT].watch);
}

bool guard_watches_have_fresh_rbac(const struct guard_daemon *guard) {
        for (enum guard_kind kind = GUARD_KIND_ROLE; kind <= GUARD_KIND_CLUSTER_BINDING; kind++)
                if (!guard->watched[kind].watch || !nd_api_watch_is_fresh(guard->watched[kind].watch))
                        return false;
        return true;
}

bool guard_watches_have_whole_rbac(const struct guard_daemon *guard) {
        return guard->rbac.role_generation == guard->news_listed;
}

static void answer_plain(struct guard_exchange *exchange, unsigned status, const char *text) {
        guard_exchange_respond(exchange, status, "text/plain", text, strlen(text));
}

static void answer_metrics(const struct guard_daemon *guard, struct guard_exchange *exchange) {
        nd_autotext text = ND_TEXT(METRICS_BYTES);

        guard_metrics_print(&guard->metrics, &text);
        guard_metrics_value(&text, "nodens_guard_ready", "gauge", "Whether every list was read and reviews are answered.",
                            guard_watches_are_ready(guard));
        guard_metrics_value(&text, "nodens_guard_current", "gauge",
                            "Whether namespaces and constraints are known to be current.", guard_watches_are_current(guard));
        guard_metrics_value(&text, "nodens_guard_rbac_fresh", "gauge", "Whether the index of RBAC is relied upon.",
                            guard_watches_have_fresh_rbac(guard));
        guard_metrics_value(&text, "nodens_guard_leads", "gauge", "Whether this guard gives namespaces their ranges.",
                            guard->allocator && guard_allocator_leads(guard->allocator));
        guard_metrics_value(&text, "nodens_guard_access_reviews_total", "counter",
                            "Rights that the API server was asked about.", guard_access_reviews_sent(guard->rights));
        guard_metrics_value(&text, "nodens_guard_clients_refused_total", "counter",
                            "Requests that were refused for want of a client certificate.",
                            guard_server_refused(guard->server));
        guard_metrics_value(&text, "nodens_guard_constraints", "gauge", "Constraints that are in use.",
                            guard->store.constraints.map.count);
        guard_metrics_value(&text, "nodens_guard_namespaces", "gauge", "Namespaces that are known.",
                            guard->store.namespaces.map.count);
        guard_exchange_respond(exchange, 200, "text/plain; version=0.0.4", nd_text_get(&text), text.length);
}

/* The kubelet's probes have no certificate. They get one word, which says nothing about the cluster. */
static enum guard_right needed_right(const char *method, const char *path) {
        static const char *const probes[] = {"/healthz", "/livez", "/readyz"};
        bool reads = nd_streq(method, "GET") || nd_streq(method, "HEAD");

        for (size_t i = 0; reads && i < nd_count_of(probes); i++)
                if (nd_streq(path, probes[i]))
                        return GUARD_RIGHT_NONE;
        return reads && nd_streq(path, "/metrics") ? GUARD_RIGHT_METRICS : GUARD_RIGHT_REVIEW;
}

/* The path of a hook says its flow, and how strict the API server takes the namespace to be. */
static const struct route {
        const char *path;
        enum guard_flow flow;
        enum guard_mode mode; /* GUARD_MODE_OFF: it does not say */
} routes[] = {
        {"/mutate", GUARD_FLOW_MUTATE, GUARD_MODE_OFF},
        {"/mutate/enforce", GUARD_FLOW_MUTATE, GUARD_MODE_ENFORCE},
        {"/validate", GUARD_FLOW_VALIDATE, GUARD_MODE_OFF},
        {"/validate/warn", GUARD_FLOW_VALIDATE, GUARD_MODE_WARN},
        {"/validate/enforce", GUARD_FLOW_VALIDATE, GUARD_MODE_ENFORCE},
        {"/pod-security", GUARD_FLOW_POD_SECURITY, GUARD_MODE_OFF},
        {"/pod-security/enforce", GUARD_FLOW_POD_SECURITY, GUARD_MODE_ENFORCE},
};

static const struct route *route_of(const char *path) {
        for (size_t i = 0; i < nd_count_of(routes); i++)
                if (nd_streq(routes[i].path, path))
                        return &routes[i];
        return nullptr;
}

/* Said when it begins and when it ends. */
static void note_staleness(struct guard_daemon *guard) {
        bool stale = guard->announced && !guard_watches_are_current(guard);

        if (stale && !guard->stale)
                nd_log(ND_LOG_WARNING,
                       "the API server is not heard: reviews are refused until namespaces and constraints are known to be "
                       "current");
        else if (!stale && guard->stale)
                nd_log(ND_LOG_INFO, "namespaces and constraints are current again");
        guard->stale = stale;
}

static void on_review(struct guard_daemon *guard, struct guard_exchange *exchange, const struct route *route) {
        if (!guard_watches_are_ready(guard))
                answer_plain(exchange, 503, "not ready\n");
        else if (route->flow == GUARD_FLOW_POD_SECURITY)
                guard_podsecurity_webhook_handle(guard, exchange, route->mode == GUARD_MODE_ENFORCE);
        else
                guard_scc_webhook_handle(guard, exchange, route->flow == GUARD_FLOW_VALIDATE, route->mode);
}

static void on_request(struct guard_exchange *exchange, void *userdata) {
        const char *method = guard_exchange_method(exchange), *path = guard_exchange_path(exchange);
        const struct route *route = route_of(path);
        struct guard_daemon *guard = userdata;

        note_staleness(guard);
        if (nd_streq(path, "/healthz") || nd_streq(path, "/livez"))
                answer_plain(exchange, 200, "ok\n");
        else if (nd_streq(path, "/readyz"))
                answer_plain(exchange, guard_watches_are_ready(guard) ? 200 : 503,
                             guard_watches_are_ready(guard) ? "ok\n" : "not ready\n");
        else if (nd_streq(path, "/metrics"))
                answer_metrics(guard, exchange);
        else if (!route)
                answer_plain(exchange, 404, "not found\n");
        else if (!nd_streq(method, "POST"))
                answer_plain(exchange, 405, "an AdmissionReview is sent by POST\n");
        else
                on_review(guard, exchange, route);
}

static void on_answered(const char *path, uint64_t microseconds, void *userdata) {
        struct guard_daemon *guard = userdata;

        if (route_of(path))
                guard_metrics_time(&guard->metrics, microseconds);
}

static void warn_about_clients(const struct guard_daemon *guard) {
        if (!guard_config_authenticates(&guard->config))
                nd_log(ND_LOG_WARNING,
                       "clients are not authenticated (no clientCA): every peer that reaches the port can read the names and security "
                       "contexts of pods, ask who may use which constraint, and load the API server",
                       nd_field("address", guard->config.address));
}

static struct nd_error *start_server(struct guard_daemon *guard) {
        nd_cleanup(guard_certificate_texts_done) struct guard_certificate_texts texts = {};
        const struct guard_config *config = &guard->config;

        guard->certificate.certificate = config->certificate;
        guard->certificate.key = config->key;
        if (!config->client_ca)
                return nd_error_new(ND_INVALID, 0,
                                    "clientCA is not set: name the authority that signs the API servers' client certificates, "
                                    "or 'none' to answer every peer that reaches the port");
        guard->certificate.client_ca = guard_config_authenticates(config) ? config->client_ca : nullptr;
        nd_try(guard_certificate_read(&guard->certificate, &texts));
        nd_try(guard_server_new(
                guard->loop,
                &(struct guard_server_settings) {
                        .address = config->address,
                        .port = (uint16_t) config->port,
                        .files = guard_certificate_files(&texts),
                        .reviewers = {.items = config->client_names.items, .count = config->client_names.count},
                        .readers = {.items = config->metrics_names.items, .count = config->metrics_names.count},
                        .needs = needed_right,
                        .body_ceiling = GUARD_REVIEW_BYTES,
                        .connections = config->connections,
                        .handle = on_request,
                        .answered = on_answered,
                        .userdata = guard},
                &guard->server));
        warn_about_clients(guard);
        return guard_certificate_watch(&guard->certificate, guard->loop, guard->server);
}

/* Of the machine's or pod's name and a number that nobody else draws. */
static struct nd_error *name_guard(struct guard_daemon *guard) {
        char host[65] = "";
        uint64_t number;

        if (getrandom(&number, sizeof number, 0) != sizeof number)
                return nd_error_new(ND_INTERNAL, errno, "draw a random number");
        (void) gethostname(host, sizeof host - 1);
        guard->identity = nd_format("%s_%016" PRIx64, host, number);
        return nullptr;
}

static struct nd_error *start_client(struct guard_daemon *guard) {
        nd_cleanup(nd_kubeconfig_done) struct nd_kubeconfig cluster = {};

        nd_try(nd_kubeconfig_find(guard->config.kubeconfig, &cluster));
        nd_try(nd_api_new(guard->loop, &cluster, &guard->api));
        guard->rights = guard_access_reviews_new(guard->api, guard->config.group);
        guard->namespace = nd_strdup(guard->config.namespace                                         ? guard->config.namespace
                                     : cluster.token_file && cluster.namespace && *cluster.namespace ? cluster.namespace
                                                                                                     : "nodens-system");
        return name_guard(guard);
}

struct nd_error *guard_daemon_start(struct guard_daemon *guard) {
        int r = sd_event_default(&guard->loop);

        (void) signal(SIGPIPE, SIG_IGN); /* a client that is gone is an error of its connection alone */
        guard_store_init(&guard->store);
        guard->store.complain = on_complaint;
        guard->store.standards = &guard->config.standards;
        guard->store.default_mode = nd_streq(guard->config.default_mode, "off")    ? GUARD_MODE_OFF
                                    : nd_streq(guard->config.default_mode, "warn") ? GUARD_MODE_WARN
                                                                                   : GUARD_MODE_ENFORCE;
        guard_rbac_init(&guard->rbac, guard->config.group);
        if (r >= 0)
                r = sd_event_set_signal_exit(guard->loop, true);
        if (r >= 0)
                r = sd_event_set_watchdog(guard->loop, true);
        if (r < 0)
                return nd_error_new(ND_INTERNAL, -r, "event loop");
        nd_try(start_client(guard));
        r = sd_event_add_time_relative(guard->loop, &guard->relister, CLOCK_MONOTONIC, 0, 0, on_relist, guard);
        if (r >= 0)
                r = sd_event_source_set_enabled(guard->relister, SD_EVENT_OFF);
        if (r < 0)
                return nd_error_new(ND_INTERNAL, -r, "event loop");
        start_watches(guard, false);
        return start_server(guard);
}

void guard_daemon_done(struct guard_daemon *guard) {
        guard_certificate_done(&guard->certificate);
        sd_event_source_disable_unref(guard->relister);
        for (enum guard_kind kind = 0; kind < GUARD_KINDS; kind++) {
                nd_api_watch_free(nd_take_ptr(guard->watched[kind].watch));
                free(guard->watched[kind].path);
        }
        guard_allocator_free(nd_take_ptr(guard->allocator));
        if (guard->api)
                nd_api_stop(guard->api); /* reviews that wait for it end, with a refusal */
        guard_server_free(guard->server);
        free(guard->identity);
        free(guard->namespace);
        guard_access_reviews_free(guard->rights);
        nd_api_free(guard->api);
        guard_store_done(&guard->store);
        guard_rbac_done(&guard->rbac);
        sd_event_unref(guard->loop);
        guard_config_done(&guard->config);
}
