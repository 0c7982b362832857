/* SPDX-License-Identifier: Apache-2.0 */
/* ingress.c - see ingress.h
 *
 * Compares all Services after each change and patches one at a time. The patch replaces the list of
 * addresses, so it names the version that we saw: the API server refuses it if another controller
 * has changed the status meanwhile. */
#include "rootless/controller/ingress.h"

#include "base/clock.h"
#include "base/log.h"

enum { REPLY_BYTES = 4 << 20 }; /* the Service */

static constexpr uint64_t interval_us = 100 * ND_MS_US;
static constexpr uint64_t pause_least_us = ND_SECOND_US;
static constexpr uint64_t pause_most_us = 60 * ND_SECOND_US;
static constexpr uint64_t patch_timeout_us = 10 * ND_SECOND_US;

static void write_addresses(struct nd_json_out *out, const struct rootless_service *service, const char *address,
                            bool is_published) {
        nd_json_open(out, "ingress", '[');
        for (size_t i = 0; i < service->ingress_count; i++)
                if (!nd_streq(service->ingress_ip[i], address))
                        nd_json_raw(out, nullptr, service->ingress[i]);
        if (is_published) {
                nd_json_open(out, nullptr, '{');
                nd_json_string(out, "ip", address);
                nd_json_string(out, "ipMode", "Proxy");
                nd_json_close(out, '}');
        }
        nd_json_close(out, ']');
}

char *rootless_ingress_patch(const struct rootless_service *service, const char *address, bool is_published) {
        nd_autotext struct nd_text text = ND_TEXT(256 * 1024);
        struct nd_json_out out = {.text = &text};
        bool is_listed = false;

        for (size_t i = 0; i < service->ingress_count; i++)
                is_listed |= nd_streq(service->ingress_ip[i], address);
        if (is_listed == is_published || (is_published && service->ingress_count == CLUSTER_INGRESS))
                return nullptr;
        nd_json_open(&out, nullptr, '{');
        nd_json_open(&out, "metadata", '{');
        nd_json_string(&out, "resourceVersion", service->version);
        nd_json_close(&out, '}');
        nd_json_open(&out, "status", '{');
        nd_json_open(&out, "loadBalancer", '{');
        write_addresses(&out, service, address, is_published);
        nd_json_close(&out, '}');
        nd_json_close(&out, '}');
        nd_json_close(&out, '}');
        return nd_text_steal(&text);
}

static void arm(struct rootless_ingress *i, uint64_t after_us) {
        (void) sd_event_source_set_time_relative(i->timer, after_us);
        (void) sd_event_source_set_enabled(i->timer, SD_EVENT_ONESHOT);
}

static void on_patched(const struct nd_api_answer *answer, void *userdata) {
        struct rootless_ingress *i = userdata;
        /* the watch brings it again */
        bool is_stale = answer->status == 404 || answer->status == 409;

        i->call = nullptr;
        if (answer->error && !is_stale && i->pause_us <= pause_least_us)
                nd_log(ND_LOG_WARNING, "cannot change the status of a Service", nd_field("service", i->current),
                       nd_field("error", nd_error_text(answer->error)),
                       nd_field("remedy", answer->status == 403 ? "`nodens-rootless manifest --ingress` prints the rights "
                                                                  "that the controller needs"
                                                                : "it is tried again"));
        free(nd_take_ptr(i->current));
        if (!answer->error || is_stale) {
                i->pause_us = pause_least_us;
                arm(i, is_stale ? pause_least_us : interval_us);
                return;
        }
        arm(i, i->pause_us);
        i->pause_us = i->pause_us * 2 < pause_most_us ? i->pause_us * 2 : pause_most_us;
}

static void send_patch(struct rootless_ingress *i, const char *key, const struct rootless_service *service, const char *body) {
        nd_autofree char *path =
                nd_format("/api/v1/namespaces/%s/services/%s/status", service->id.namespace, service->id.name);

        i->current = nd_strdup(key);
        i->call = nd_api_send(i->api, &(struct nd_api_request) {.method = "PATCH",
                                                                .path = path,
                                                                .body = body,
                                                                .content_type = "application/merge-patch+json",
                                                                .timeout_us = patch_timeout_us,
                                                                .ceiling = REPLY_BYTES,
                                                                .done = on_patched,
                                                                .userdata = i});
}

static int on_timer([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t now, void *userdata) {
        struct rootless_ingress *i = userdata;
        const struct nd_map_slot *slot;

        for (size_t at = 0; !i->call && (slot = nd_map_next(&i->store->kinds[KIND_SERVICE].table.map, &at));) {
                const struct rootless_service *service = slot->value;
                nd_autofree char *body =
                        service->is_of_other_class
                                ? nullptr
                                : rootless_ingress_patch(service, i->address, nd_map_has(&i->published, slot->key));

                if (body)
                        send_patch(i, slot->key, service, body);
        }
        return 0;
}

void rootless_ingress_update(struct rootless_ingress *i) {
        int enabled = SD_EVENT_OFF;

        if (i->address && !i->call && sd_event_source_get_enabled(i->timer, &enabled) >= 0 && enabled == SD_EVENT_OFF)
                arm(i, interval_us);
}

void rootless_ingress_set(struct rootless_ingress *i, struct nd_map *published) {
        nd_map_done(&i->published);
        i->published = nd_take(*published, (struct nd_map) {});
        rootless_ingress_update(i);
}

struct nd_error *rootless_ingress_start(struct rootless_ingress *i, struct nd_api *api, const char *address,
                                        const struct rootless_store *store) {
        int r;

        *i = (struct rootless_ingress) {.api = api, .address = address, .store = store, .pause_us = pause_least_us};
        r = sd_event_add_time_relative(nd_api_loop(api), &i->timer, CLOCK_MONOTONIC, 0, ND_MS_US, on_timer, i);
        if (r >= 0)
                r = sd_event_source_set_enabled(i->timer, SD_EVENT_OFF);
        return r < 0 ? nd_error_new(ND_INTERNAL, -r, "start the timer for the status of Services") : nullptr;
}

void rootless_ingress_done(struct rootless_ingress *i) {
        nd_api_cancel(nd_take_ptr(i->call));
        i->timer = sd_event_source_disable_unref(i->timer);
        nd_map_done(&i->published);
        free(nd_take_ptr(i->current));
}
