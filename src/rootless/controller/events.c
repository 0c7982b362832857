/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/controller/events.h"

#include "base/clock.h"
#include "base/log.h"

static constexpr uint64_t send_timeout_us = 10 * ND_SECOND_US;

char *rootless_events_format(const struct rootless_object_id *object, const char *reason, const char *text,
                             const char *node_name, time_t now) {
        nd_autotext struct nd_text body = ND_TEXT(16 * 1024), message = ND_TEXT(EVENTS_TEXT);
        struct nd_json_out out = {.text = &body};
        char when[ND_CLOCK_TEXT];

        (void) nd_clock_text(now, when);
        nd_text_add_printable(&message, text, strlen(text));
        nd_json_open(&out, nullptr, '{');
        nd_json_string(&out, "apiVersion", "v1");
        nd_json_string(&out, "kind", "Event");
        nd_json_open(&out, "metadata", '{');
        nd_json_string(&out, "generateName", "nodens-rootless-");
        nd_json_string(&out, "namespace", object->namespace);
        nd_json_close(&out, '}');
        nd_json_open(&out, "involvedObject", '{');
        nd_json_string(&out, "apiVersion", "v1");
        nd_json_string(&out, "kind", object->kind);
        nd_json_string(&out, "namespace", object->namespace);
        nd_json_string(&out, "name", object->name);
        nd_json_string(&out, "uid", object->uid);
        nd_json_close(&out, '}');
        nd_json_string(&out, "type", "Warning");
        nd_json_string(&out, "reason", reason);
        nd_json_string(&out, "message", nd_text_get(&message));
        nd_json_string(&out, "firstTimestamp", when);
        nd_json_string(&out, "lastTimestamp", when);
        nd_json_number(&out, "count", 1);
        nd_json_open(&out, "source", '{');
        nd_json_string(&out, "component", "nodens-rootless");
        nd_json_string(&out, "host", node_name);
        nd_json_close(&out, '}');
        nd_json_close(&out, '}');
        return nd_text_steal(&body);
}

static void on_sent(const struct nd_api_answer *answer, void *userdata) {
        struct rootless_events *e = userdata;

        if (answer->error && !e->has_failed)
                nd_log(ND_LOG_WARNING, "cannot create an Event", nd_field("error", nd_error_text(answer->error)),
                       nd_field("remedy", answer->status == 403
                                                  ? "`nodens-rootless manifest` prints the rights that the controller needs"
                                                  : "the log has what it says"));
        e->has_failed = answer->error != nullptr;
}

void rootless_events_warn(struct rootless_events *e, const struct rootless_object_id *object, const char *reason,
                          const char *text) {
        nd_autofree char *path = nd_format("/api/v1/namespaces/%s/events", object->namespace), *body = nullptr;

        if (!rootless_rate_allows(&e->rate, nd_clock_us()))
                return;
        body = rootless_events_format(object, reason, text, e->node_name, time(nullptr));
        (void) nd_api_send(e->api, &(struct nd_api_request) {.method = "POST",
                                                             .path = path,
                                                             .body = body,
                                                             .timeout_us = send_timeout_us,
                                                             .done = on_sent,
                                                             .userdata = e});
}
