/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/webhook/routes.h"

#include <string.h>

#include "guard/webhook/floor-webhook.h"
#include "guard/webhook/podsecurity-webhook.h"
#include "guard/webhook/scc-webhook.h"

enum {
        METRICS_BYTES = 64 << 10,
};

void guard_routes_respond_plain(struct guard_exchange *exchange, unsigned status, const char *text) {
        guard_exchange_respond(exchange, status, "text/plain", text, strlen(text));
}

bool guard_routes_answer_probe(struct guard_health *health, struct guard_exchange *exchange) {
        const char *path = guard_exchange_path(exchange);
        bool ready = guard_health_is_ready(health);

        if (nd_streq(path, "/healthz") || nd_streq(path, "/livez"))
                guard_routes_respond_plain(exchange, 200, "ok\n");
        else if (nd_streq(path, "/readyz"))
                guard_routes_respond_plain(exchange, ready ? 200 : 503, ready ? "ok\n" : "not ready\n");
        else
                return false;
        return true;
}

static void respond_metrics(const struct guard_routes *r, struct guard_exchange *exchange) {
        const struct guard_webhook *webhook = r->webhook;
        const struct guard_allocator *allocator = webhook->watches->allocator;
        struct guard_label_sync_counts labels = guard_label_sync_count(r->label_sync);
        nd_autotext struct nd_text text = ND_TEXT(METRICS_BYTES);

        guard_metrics_print(webhook->metrics, &text);
        guard_metrics_value(
                &text, "nodens_guard_ready", "gauge",
                "Whether every list is current, the API server accepts the credentials, and the certificate is valid.",
                guard_health_is_ready(r->health));
        guard_metrics_value(&text, "nodens_guard_api_unauthorized_total", "counter",
                            "Responses of the API server that refuse the guard's credentials (HTTP 401).",
                            r->credentials->unauthorized);
        guard_metrics_value(&text, "nodens_guard_credentials_expiry_timestamp_seconds", "gauge",
                            "When the token or client certificate for the API server expires; 0 if unknown.",
                            (uint64_t) nd_api_credentials_expire(r->credentials));
        guard_metrics_value(&text, "nodens_guard_certificate_expiry_timestamp_seconds", "gauge",
                            "When the guard's own certificate expires.", (uint64_t) r->health->certificate_expires);
        guard_metrics_value(&text, "nodens_guard_current", "gauge",
                            "Whether namespaces and constraints are known to be current.",
                            guard_watches_are_current(webhook->watches));
        guard_metrics_value(&text, "nodens_guard_rbac_fresh", "gauge",
                            "Whether the RBAC index is up to date and used for decisions.",
                            guard_watches_have_fresh_rbac(webhook->watches));
        guard_metrics_value(&text, "nodens_guard_leads", "gauge",
                            "Whether this guard is the leader that allocates ID ranges to namespaces.",
                            allocator && guard_allocator_leads(allocator));
        guard_metrics_value(&text, "nodens_guard_access_reviews_total", "counter",
                            "SubjectAccessReviews sent to the API server.",
                            guard_access_reviews_sent(webhook->access_reviews));
        guard_metrics_value(&text, "nodens_guard_clients_refused_total", "counter",
                            "Requests refused because the client certificate is missing or not accepted.",
                            guard_server_refused(r->server));
        guard_metrics_value(&text, "nodens_guard_nodes_below_floor", "gauge",
                            "Nodes whose kubelet is below the version floor.", guard_store_count_below(webhook->store));
        guard_metrics_value(&text, "nodens_guard_floor_settled", "gauge",
                            "Whether there is a version floor that all guards act on.",
                            guard_store_has_settled_floor(webhook->store));
        guard_metrics_value(&text, "nodens_guard_relaxations_off", "gauge",
                            "Relaxations that the version floor does not cover.",
                            (uint64_t) __builtin_popcount(guard_watches_gates_off(webhook->watches)));
        guard_metrics_value(&text, "nodens_guard_label_sync_namespaces_synced", "gauge",
                            "Namespaces that opted in and have the labels of pod security that follow from their constraints.",
                            labels.synced);
        guard_metrics_value(&text, "nodens_guard_label_sync_namespaces_pending", "gauge",
                            "Namespaces that opted in and do not have these labels; in a dry run they stay so.",
                            labels.pending);
        guard_metrics_value(&text, "nodens_guard_label_sync_namespaces_foreign", "gauge",
                            "Namespaces that opted in and have another level in a label of another writer.", labels.foreign);
        guard_metrics_value(&text, "nodens_guard_label_sync_labels_written_total", "counter",
                            "Labels of pod security that this guard wrote.", labels.written);
        guard_metrics_value(&text, "nodens_guard_constraints", "gauge", "Constraints in use.",
                            webhook->store->constraints.map.count);
        guard_metrics_value(&text, "nodens_guard_namespaces", "gauge", "Namespaces in the store.",
                            webhook->store->namespaces.map.count);
        guard_exchange_respond(exchange, 200, "text/plain; version=0.0.4", nd_text_get(&text), text.length);
}

/* The kubelet's probes have no certificate. Their responses are a single word and reveal nothing
 * about the cluster. */
enum guard_right guard_routes_needed_right(const char *method, const char *path) {
        static const char *const probes[] = {"/healthz", "/livez", "/readyz"};
        bool reads = nd_streq(method, "GET") || nd_streq(method, "HEAD");

        for (size_t i = 0; reads && i < nd_count_of(probes); i++)
                if (nd_streq(path, probes[i]))
                        return GUARD_RIGHT_NONE;
        return reads && nd_streq(path, "/metrics") ? GUARD_RIGHT_METRICS : GUARD_RIGHT_REVIEW;
}

/* The path of a hook selects its flow, and carries the mode that the API server assumes for the
 * namespace. */
static const struct route {
        const char *path;
        enum guard_flow flow;
        enum guard_mode mode; /* GUARD_MODE_OFF: the path carries none */
} routes[] = {
        {"/mutate", GUARD_FLOW_MUTATE, GUARD_MODE_OFF},
        {"/mutate/enforce", GUARD_FLOW_MUTATE, GUARD_MODE_ENFORCE},
        {"/validate", GUARD_FLOW_VALIDATE, GUARD_MODE_OFF},
        {"/validate/warn", GUARD_FLOW_VALIDATE, GUARD_MODE_WARN},
        {"/validate/enforce", GUARD_FLOW_VALIDATE, GUARD_MODE_ENFORCE},
        {"/pod-security", GUARD_FLOW_POD_SECURITY, GUARD_MODE_OFF},
        {"/pod-security/enforce", GUARD_FLOW_POD_SECURITY, GUARD_MODE_ENFORCE},
        {"/validate/floor", GUARD_FLOW_FLOOR, GUARD_MODE_OFF},
};

static const struct route *route_of(const char *path) {
        for (size_t i = 0; i < nd_count_of(routes); i++)
                if (nd_streq(routes[i].path, path))
                        return &routes[i];
        return nullptr;
}

static void on_review(const struct guard_webhook *webhook, struct guard_exchange *exchange, const struct route *route) {
        if (!guard_watches_are_ready(webhook->watches))
                guard_routes_respond_plain(exchange, 503, "not ready\n");
        else if (route->flow == GUARD_FLOW_POD_SECURITY)
                guard_podsecurity_webhook_handle(webhook, exchange, route->mode == GUARD_MODE_ENFORCE);
        else if (route->flow == GUARD_FLOW_FLOOR)
                guard_floor_webhook_handle(webhook, exchange);
        else
                guard_scc_webhook_handle(webhook, exchange, route->flow == GUARD_FLOW_VALIDATE, route->mode);
}

void guard_routes_handle(struct guard_exchange *exchange, void *userdata) {
        const char *method = guard_exchange_method(exchange), *path = guard_exchange_path(exchange);
        const struct route *route = route_of(path);
        struct guard_routes *r = userdata;

        guard_health_update(r->health);
        if (guard_routes_answer_probe(r->health, exchange))
                return;
        if (nd_streq(path, "/metrics"))
                respond_metrics(r, exchange);
        else if (!route)
                guard_routes_respond_plain(exchange, 404, "not found\n");
        else if (!nd_streq(method, "POST"))
                guard_routes_respond_plain(exchange, 405, "method not allowed: send an AdmissionReview by POST\n");
        else
                on_review(r->webhook, exchange, route);
}

void guard_routes_answered(const char *path, uint64_t microseconds, void *userdata) {
        const struct guard_routes *r = userdata;

        if (route_of(path))
                guard_metrics_time(r->webhook->metrics, microseconds);
}
