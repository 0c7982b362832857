/* SPDX-License-Identifier: Apache-2.0 */
/* marks.c - see marks.h
 *
 * All guards write the same, and a node whose condition is right is not written again. The name of
 * an event follows from node, version and floor, so that a second guard cannot create it again. A
 * failed request is repeated by the next update. */
#include "guard/floor/marks.h"

#include <inttypes.h>
#include <time.h>

#include "base/assert.h"
#include "base/clock.h"

enum {
        AT_ONCE = 10,
        BODY_BYTES = 16 << 10,
        PATH_BYTES = 1024,
};

static constexpr uint64_t request_timeout_us = 5 * ND_SECOND_US;
#define REASON "KubeletBelowVersionFloor"

static void on_answer(const struct nd_api_answer *answer, void *userdata) {
        struct guard_marks *m = userdata;

        nd_assert(m->pending > 0);
        m->pending--;
        if (!answer->error)
                m->troubled = false;
        if (!answer->error || answer->status == 404 || answer->status == 409 || m->troubled)
                return;
        m->troubled = true;
        if (m->log)
                m->log("cannot mark a node that is below the version floor", answer->error, m->userdata);
}

static void send(struct guard_marks *m, const char *method, const char *path, const char *content_type, const char *body) {
        m->pending++;
        (void) nd_api_send(m->api, &(struct nd_api_request) {.method = method,
                                                             .path = path,
                                                             .body = body,
                                                             .content_type = content_type,
                                                             .timeout_us = request_timeout_us,
                                                             .ceiling = 4 << 20,
                                                             .done = on_answer,
                                                             .userdata = m});
}

static const char *message_of(const struct guard_marks *m, const struct guard_node *node, struct nd_arena *arena) {
        const struct guard_floor *floor = guard_store_floor(m->store);

        if (!floor || !guard_store_is_below(m->store, node))
                return "the kubelet meets the version floor";
        return nd_arena_format(arena, "kubelet version %s is below the minimum %s: upgrade it",
                               *node->version ? node->version : "(none)",
                               nd_floor_version_text(nd_floor_of_existing(&floor->floor), arena));
}

static void patch_condition(struct guard_marks *m, const char *name, bool below, const char *message) {
        nd_autotext struct nd_text path = ND_TEXT(PATH_BYTES), body = ND_TEXT(BODY_BYTES);
        struct nd_json_out out = {.text = &body};
        char now[ND_CLOCK_TEXT];

        (void) nd_clock_text(time(nullptr), now);
        nd_text_add(&path, "/api/v1/nodes/");
        nd_api_escape(&path, name);
        nd_text_add(&path, "/status");
        nd_json_open(&out, nullptr, '{');
        nd_json_open(&out, "status", '{');
        nd_json_open(&out, "conditions", '[');
        nd_json_open(&out, nullptr, '{');
        nd_json_string(&out, "type", GUARD_CONDITION_BELOW);
        nd_json_string(&out, "status", below ? "True" : "False");
        nd_json_string(&out, "reason", below ? REASON : "KubeletMeetsVersionFloor");
        nd_json_string(&out, "message", message);
        nd_json_string(&out, "lastTransitionTime", now);
        nd_json_string(&out, "lastHeartbeatTime", now);
        nd_json_close(&out, '}');
        nd_json_close(&out, ']');
        nd_json_close(&out, '}');
        nd_json_close(&out, '}');
        send(m, "PATCH", nd_text_get(&path), "application/strategic-merge-patch+json", nd_text_get(&body));
}

/* FNV-1a: the same for all guards, unlike the hash of a map. */
static uint64_t hash(const char *text) {
        uint64_t sum = 0xcbf29ce484222325;

        for (; *text; text++)
                sum = (sum ^ (unsigned char) *text) * 0x100000001b3;
        return sum;
}

static void write_event(const struct guard_marks *m, const char *name, const char *message, struct nd_json_out *out) {
        nd_autofree char *event = nd_format("%s.%016" PRIx64, name, hash(message));
        char now[ND_CLOCK_TEXT];

        (void) nd_clock_text(time(nullptr), now);
        nd_json_open(out, nullptr, '{');
        nd_json_open(out, "metadata", '{');
        nd_json_string(out, "name", event);
        nd_json_string(out, "namespace", "default");
        nd_json_close(out, '}');
        nd_json_open(out, "involvedObject", '{');
        nd_json_string(out, "apiVersion", "v1");
        nd_json_string(out, "kind", "Node");
        nd_json_string(out, "name", name);
        /* as kubelets write it, so that `kubectl describe` finds it */
        nd_json_string(out, "uid", name);
        nd_json_close(out, '}');
        nd_json_string(out, "type", "Warning");
        nd_json_string(out, "reason", REASON);
        nd_json_string(out, "message", message);
        nd_json_string(out, "firstTimestamp", now);
        nd_json_string(out, "lastTimestamp", now);
        nd_json_number(out, "count", 1);
        nd_json_open(out, "source", '{');
        nd_json_string(out, "component", "nodens-guard");
        nd_json_close(out, '}');
        nd_json_string(out, "reportingComponent", "nodens-guard");
        nd_json_string(out, "reportingInstance", m->identity);
        nd_json_close(out, '}');
}

static void mark(struct guard_marks *m, const char *name, const struct guard_node *node, bool below) {
        nd_autoarena struct nd_arena arena = {};
        const char *message = message_of(m, node, &arena);
        nd_autotext struct nd_text body = ND_TEXT(BODY_BYTES);
        struct nd_json_out out = {.text = &body};

        patch_condition(m, name, below, message);
        if (!below)
                return;
        write_event(m, name, message, &out);
        send(m, "POST", "/api/v1/namespaces/default/events", nullptr, nd_text_get(&body));
}

void guard_marks_update(struct guard_marks *m) {
        const struct nd_map_slot *slot;

        if (m->pending > 0)
                return; /* until the answers arrive, the store has the former conditions */
        for (size_t at = 0; m->pending < AT_ONCE && (slot = nd_map_next(&m->store->nodes.map, &at));) {
                const struct guard_node *node = slot->value;
                bool below = guard_store_is_below(m->store, node);

                if (below != node->is_marked)
                        mark(m, slot->key, node, below);
        }
}
