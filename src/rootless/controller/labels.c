/* SPDX-License-Identifier: Apache-2.0 */
/* labels.c - see labels.h
 *
 * Theory of operation
 *   @pending holds the nodes to patch; one request at a time is sent, with @interval_us between
 *   them, and after a failure a pause that doubles. A patch of another node names the version that
 *   we saw: if its own controller has labelled it meanwhile, the API server refuses ours, and the
 *   watch brings the node again. */
#include "rootless/controller/labels.h"

#include "base/clock.h"
#include "base/log.h"

enum { REPLY_BYTES = 4 << 20 }; /* the Node */

static constexpr uint64_t interval_us = 100 * ND_MS_US;
static constexpr uint64_t pause_least_us = ND_SECOND_US;
static constexpr uint64_t pause_most_us = 60 * ND_SECOND_US;
static constexpr uint64_t forbidden_pause_us = 300 * ND_SECOND_US;
static constexpr uint64_t patch_timeout_us = 10 * ND_SECOND_US;

const char *rootless_labels_wanted(const struct rootless_node_info *node, const char *own, enum rootless_label_scope scope) {
        if (scope == LABEL_NONE)
                return nullptr;
        if (nd_streq(node->name, own))
                return node->label && nd_streq(node->label, "true") ? nullptr : "true";
        if (scope == LABEL_OWN || node->label)
                return nullptr;
        return node->runs_in_user_namespace ? "true" : "false";
}

static void arm(struct rootless_labels *l, uint64_t after_us) {
        (void) sd_event_source_set_time_relative(l->timer, after_us);
        (void) sd_event_source_set_enabled(l->timer, SD_EVENT_ONESHOT);
}

static void forget(struct rootless_labels *l, const char *name) {
        free(nd_map_remove(&l->pending, name));
}

static void log_failure(const struct rootless_labels *l, const struct nd_error *error) {
        nd_log(ND_LOG_WARNING, "cannot label a node with " CLUSTER_LABEL, nd_field("name", l->current),
               nd_field("error", nd_error_text(error)),
               nd_field("remedy", nd_error_errno(error) == 403
                                          ? "`nodens-rootless manifest` prints the rights that the controller needs"
                                          : "it is tried again"));
}

static void on_patched(const struct nd_api_answer *answer, void *userdata) {
        struct rootless_labels *l = userdata;
        nd_autofree char *name = nullptr;
        bool is_own = nd_streq(l->current, l->own), is_final;

        l->call = nullptr;
        is_final = !answer->error || answer->status == 404 || answer->status == 409 || (answer->status == 403 && !is_own);
        if (!answer->error)
                nd_log(ND_LOG_INFO, "labelled a node with " CLUSTER_LABEL, nd_field("name", l->current));
        else if (answer->status != 404 && answer->status != 409 && (is_own || l->forbidden_us == 0) &&
                 l->pause_us <= pause_least_us)
                log_failure(l, answer->error);
        if (!is_own && (!answer->error || answer->status == 403))
                l->forbidden_us = answer->error ? nd_clock_us() + forbidden_pause_us : 0;
        name = nd_take_ptr(l->current);
        if (is_final) {
                forget(l, name);
                l->pause_us = pause_least_us;
                arm(l, interval_us);
                return;
        }
        arm(l, l->pause_us);
        l->pause_us = l->pause_us * 2 < pause_most_us ? l->pause_us * 2 : pause_most_us;
}

static int on_timer([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t now, void *userdata) {
        struct rootless_labels *l = userdata;
        size_t at = 0;
        const struct nd_map_slot *slot = nd_map_next(&l->pending, &at);
        nd_autofree char *path = nullptr;

        if (l->call || !slot)
                return 0;
        l->current = nd_strdup(slot->key);
        path = nd_format("/api/v1/nodes/%s", l->current);
        l->call = nd_api_send(l->api, &(struct nd_api_request) {.method = "PATCH",
                                                                .path = path,
                                                                .body = slot->value,
                                                                .content_type = "application/merge-patch+json",
                                                                .timeout_us = patch_timeout_us,
                                                                .ceiling = REPLY_BYTES,
                                                                .done = on_patched,
                                                                .userdata = l});
        return 0;
}

static char *patch_of(const struct rootless_node_info *node, const char *value, bool is_own) {
        nd_autotext struct nd_text text = ND_TEXT(4096);
        struct nd_json_out out = {.text = &text};

        nd_json_open(&out, nullptr, '{');
        nd_json_open(&out, "metadata", '{');
        if (!is_own)
                nd_json_string(&out, "resourceVersion", node->version);
        nd_json_open(&out, "labels", '{');
        nd_json_string(&out, CLUSTER_LABEL, value);
        nd_json_close(&out, '}');
        nd_json_close(&out, '}');
        nd_json_close(&out, '}');
        return nd_text_steal(&text);
}

void rootless_labels_update(struct rootless_labels *l, const struct rootless_node_info *node) {
        const char *value = rootless_labels_wanted(node, l->own, l->scope);
        bool is_own = nd_streq(node->name, l->own);
        int enabled = SD_EVENT_OFF;

        if (!value || (!is_own && nd_clock_us() < l->forbidden_us)) {
                forget(l, node->name);
                return;
        }
        free(nd_map_put(&l->pending, node->name, patch_of(node, value, is_own)));
        if (!l->call && sd_event_source_get_enabled(l->timer, &enabled) >= 0 && enabled == SD_EVENT_OFF)
                arm(l, interval_us);
}

struct nd_error *rootless_labels_start(struct rootless_labels *l, struct nd_api *api, const char *own,
                                       enum rootless_label_scope scope) {
        int r;

        *l = (struct rootless_labels) {.api = api, .own = own, .scope = scope, .pause_us = pause_least_us};
        r = sd_event_add_time_relative(nd_api_loop(api), &l->timer, CLOCK_MONOTONIC, 0, ND_MS_US, on_timer, l);
        if (r >= 0)
                r = sd_event_source_set_enabled(l->timer, SD_EVENT_OFF);
        return r < 0 ? nd_error_new(ND_INTERNAL, -r, "start the timer for labels of nodes") : nullptr;
}

void rootless_labels_done(struct rootless_labels *l) {
        const struct nd_map_slot *slot;

        nd_api_cancel(nd_take_ptr(l->call));
        l->timer = sd_event_source_disable_unref(l->timer);
        for (size_t at = 0; (slot = nd_map_next(&l->pending, &at));)
                free(slot->value);
        nd_map_done(&l->pending);
        free(nd_take_ptr(l->current));
}
