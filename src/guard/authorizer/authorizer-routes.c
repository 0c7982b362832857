/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/authorizer/authorizer-routes.h"

#include "guard/authorizer/authorizer.h"

enum {
        METRICS_BYTES = 64 << 10,
        ANSWER_BYTES = 64 << 10,
};

#define PATH "/authorize"

static void respond_metrics(const struct guard_authorizer_routes *r, struct guard_exchange *exchange) {
        nd_autotext struct nd_text text = ND_TEXT(METRICS_BYTES);

        guard_metrics_print(r->metrics, &text);
        guard_metrics_value(
                &text, "nodens_guard_ready", "gauge",
                "Whether nodes and floor are current, the API server accepts the credentials, and the certificate is valid.",
                guard_health_is_ready(r->health));
        guard_metrics_value(&text, "nodens_guard_credentials_expiry_timestamp_seconds", "gauge",
                            "When the token or client certificate for the API server expires; 0 if unknown.",
                            (uint64_t) nd_api_credentials_expire(r->credentials));
        guard_metrics_value(&text, "nodens_guard_certificate_expiry_timestamp_seconds", "gauge",
                            "When the authorizer's own certificate expires.", (uint64_t) r->health->certificate_expires);
        guard_metrics_value(&text, "nodens_guard_clients_refused_total", "counter",
                            "Requests refused because the client certificate is missing or not accepted.",
                            guard_server_refused(r->server));
        guard_metrics_value(&text, "nodens_guard_nodes_below_floor", "gauge",
                            "Nodes whose kubelet is below the version floor.", guard_store_count_below(r->store));
        guard_exchange_respond(exchange, 200, "text/plain; version=0.0.4", nd_text_get(&text), text.length);
}

static void on_review(const struct guard_authorizer_routes *r, struct guard_exchange *exchange) {
        nd_autoarena struct nd_arena arena = {};
        nd_autotext struct nd_text text = ND_TEXT(ANSWER_BYTES);
        nd_autoerror struct nd_error *error = nullptr;
        struct guard_access_request request;
        const char *bytes, *denial;
        size_t length;

        bytes = guard_exchange_body(exchange, &length);
        error = guard_access_request_decode(bytes, length, &arena, &request);
        if (error) {
                r->metrics->unreadable++;
                guard_routes_respond_plain(exchange, 400, nd_error_text(error));
                return;
        }
        denial = guard_authorizer_decide(r->store, guard_watches_are_ready(r->watches), &request, &arena);
        guard_metrics_review(r->metrics, GUARD_FLOW_AUTHORIZE, !denial);
        guard_access_request_answer(denial, &text);
        guard_exchange_respond(exchange, 200, "application/json", nd_text_get(&text), text.length);
}

void guard_authorizer_routes_handle(struct guard_exchange *exchange, void *userdata) {
        const char *method = guard_exchange_method(exchange), *path = guard_exchange_path(exchange);
        struct guard_authorizer_routes *r = userdata;

        guard_health_update(r->health);
        if (guard_routes_answer_probe(r->health, exchange))
                return;
        if (nd_streq(path, "/metrics"))
                respond_metrics(r, exchange);
        else if (!nd_streq(path, PATH))
                guard_routes_respond_plain(exchange, 404, "not found\n");
        else if (!nd_streq(method, "POST"))
                guard_routes_respond_plain(exchange, 405, "method not allowed: send a SubjectAccessReview by POST\n");
        else
                on_review(r, exchange);
}

void guard_authorizer_routes_answered(const char *path, uint64_t microseconds, void *userdata) {
        const struct guard_authorizer_routes *r = userdata;

        if (nd_streq(path, PATH))
                guard_metrics_time(r->metrics, microseconds);
}
