/* SPDX-License-Identifier: Apache-2.0 */
/* publisher.c - see publisher.h
 *
 * Theory of operation
 *   rootless_publisher_wake() arms @timer, so that many changes cause one request, and at most one
 *   every @interval_us. The request has the whole list, and the port controller changes only what
 *   differs: repeating it is harmless, and after a restart of either side nothing is closed that
 *   stays wanted. Nothing is sent until all lists of objects were read once, and an API server that
 *   is away changes no list: ports stay as they are.
 *   The list is repeated every @repeat_us, or @retry_us if a port could not be opened, so that
 *   changes on the host are seen: a port that became free, ip_unprivileged_port_start. */
#include "rootless/controller/publisher.h"

#include "base/clock.h"
#include "rootless/ports/api.h"

static constexpr uint64_t delay_us = 20 * ND_MS_US;
static constexpr uint64_t interval_us = 250 * ND_MS_US;
static constexpr uint64_t repeat_us = 60 * ND_SECOND_US;
static constexpr uint64_t retry_us = 10 * ND_SECOND_US;
static constexpr uint64_t pause_least_us = 100 * ND_MS_US;
static constexpr uint64_t pause_most_us = 2 * ND_SECOND_US;

/* A port of the request. */
struct sent {
        struct rootless_port_spec spec;
        struct rootless_object_id object;
        bool is_load_balancer;
};

struct rootless_publisher {
        struct rootless_publisher_settings settings;
        sd_event_source *timer;
        struct rootless_api_call *call;
        nd_vector(struct sent) sent;
        struct rootless_wanted result; /* only its problems */
        uint64_t sent_us, pause_us;
        bool is_changed; /* since the request */
        bool is_away;    /* the port controller */
};

static void arm(struct rootless_publisher *p, uint64_t after_us) {
        (void) sd_event_source_set_time_relative(p->timer, after_us);
        (void) sd_event_source_set_enabled(p->timer, SD_EVENT_ONESHOT);
}

static void clear_sent(struct rootless_publisher *p) {
        nd_vector_each (sent, &p->sent) {
                rootless_object_id_done(&sent->object);
        }
        nd_vector_done(&p->sent);
        rootless_wanted_done(&p->result);
}

/* ---- the reply ---- */

static struct sent *find_sent(struct rootless_publisher *p, const struct rootless_port_spec *spec) {
        nd_vector_each (sent, &p->sent) {
                if (rootless_port_equal(&sent->spec, spec))
                        return sent;
        }
        return nullptr;
}

static void read_failure(struct rootless_publisher *p, yyjson_val *port) {
        const char *text = yyjson_get_str(yyjson_obj_get(port, "error"));
        struct rootless_port_spec spec;
        nd_autoerror struct nd_error *error = nullptr;
        struct rootless_port_problem problem;
        struct sent *sent;

        if (!text)
                return;
        error = rootless_port_read_json(yyjson_obj_get(port, "spec"), &spec);
        sent = error ? nullptr : find_sent(p, &spec);
        if (!sent)
                return;
        problem = (struct rootless_port_problem) {.object = rootless_object_id_copy(&sent->object),
                                                  .text = nd_format("port %u is not published: %s", spec.parent_port, text)};
        nd_vector_push(&p->result.problems, problem);
}

static char *key_of(const struct rootless_object_id *object) {
        return nd_format("%s/%s", object->namespace, object->name);
}

/* Services with load balancer ports, all of which are published. */
static void list_balancers(const struct rootless_publisher *p, struct nd_map *ret) {
        nd_vector_each (sent, &p->sent) {
                nd_autofree char *key = key_of(&sent->object);

                if (sent->is_load_balancer)
                        (void) nd_map_put(ret, key, nullptr);
        }
        nd_vector_each (problem, &p->result.problems) {
                nd_autofree char *key = key_of(&problem->object);

                if (nd_streq(problem->object.kind, "Service"))
                        (void) nd_map_remove(ret, key);
        }
}

static void read_reply(struct rootless_publisher *p, yyjson_val *reply) {
        yyjson_arr_iter each = yyjson_arr_iter_with(yyjson_obj_get(reply, "ports"));
        uint64_t lowest = yyjson_get_uint(yyjson_obj_get(reply, "lowestPort"));
        nd_cleanup(nd_map_done) struct nd_map balancers = {};
        yyjson_val *port;
        size_t failed = p->result.problems.count;

        while ((port = yyjson_arr_iter_next(&each)))
                read_failure(p, port);
        failed = p->result.problems.count - failed;
        list_balancers(p, &balancers);
        if (lowest > 0 && lowest <= UINT16_MAX && lowest != p->settings.policy.lowest) {
                p->settings.policy.lowest = (uint16_t) lowest;
                p->is_changed = true;
        }
        p->settings.published(&p->result, p->sent.count - failed, &balancers, p->settings.userdata);
        arm(p, p->is_changed ? interval_us : failed > 0 ? retry_us : repeat_us);
}

static void on_reply(const struct nd_error *error, yyjson_val *reply, void *userdata) {
        struct rootless_publisher *p = userdata;

        p->call = nullptr;
        if (error) {
                if (!p->is_away)
                        p->settings.trouble(error, p->settings.userdata);
                p->is_away = true;
                arm(p, p->pause_us);
                p->pause_us = p->pause_us * 2 < pause_most_us ? p->pause_us * 2 : pause_most_us;
                return;
        }
        if (p->is_away)
                p->settings.trouble(nullptr, p->settings.userdata);
        p->is_away = false;
        p->pause_us = pause_least_us;
        read_reply(p, reply);
}

/* ---- the request ---- */

static char *format(const struct rootless_wanted *wanted) {
        nd_autotext struct nd_text text = ND_TEXT(API_BODY_BYTES);
        struct nd_json_out out = {.text = &text};

        nd_json_open(&out, nullptr, '{');
        nd_json_open(&out, "ports", '[');
        nd_vector_each (port, wanted) {
                nd_autofree char *object = rootless_object_text(port->object);

                nd_json_open(&out, nullptr, '{');
                rootless_port_write_json(&out, "spec", &port->spec);
                nd_json_string(&out, "object", object);
                nd_json_close(&out, '}');
        }
        nd_json_close(&out, ']');
        nd_json_close(&out, '}');
        return nd_text_steal(&text);
}

/* The objects may change before the reply. */
static void keep_sent(struct rootless_publisher *p, const struct rootless_wanted *wanted) {
        nd_vector_each (port, wanted) {
                struct sent sent = {.spec = port->spec,
                                    .object = rootless_object_id_copy(port->object),
                                    .is_load_balancer = port->is_load_balancer};

                nd_vector_push(&p->sent, sent);
        }
}

static int on_timer([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t now, void *userdata) {
        struct rootless_publisher *p = userdata;
        nd_autofree char *body = nullptr;

        p->is_changed = false;
        if (p->call || !rootless_store_is_synced(p->settings.store))
                return 0;
        clear_sent(p);
        p->sent_us = nd_clock_us();
        p->result = rootless_store_decide(p->settings.store, &p->settings.policy);
        keep_sent(p, &p->result);
        body = format(&p->result);
        nd_vector_done(&p->result); /* points into the objects */
        p->call = rootless_api_call_start(p->settings.loop, p->settings.node, "PUT", "/v1/owners/" CLUSTER_OWNER "/ports",
                                          body, on_reply, p);
        return 0;
}

void rootless_publisher_wake(struct rootless_publisher *p) {
        uint64_t since = nd_clock_us() - p->sent_us;

        if (p->is_changed && !p->call)
                return; /* the timer is armed */
        p->is_changed = true;
        if (!p->call && !p->is_away)
                arm(p, since + delay_us > interval_us ? delay_us : interval_us - since);
}

struct nd_error *rootless_publisher_new(const struct rootless_publisher_settings *settings, struct rootless_publisher **ret) {
        struct rootless_publisher *p = nd_new(struct rootless_publisher);
        int r;

        *p = (struct rootless_publisher) {.settings = *settings, .pause_us = pause_least_us};
        r = sd_event_add_time_relative(settings->loop, &p->timer, CLOCK_MONOTONIC, 0, ND_MS_US, on_timer, p);
        if (r < 0) {
                rootless_publisher_free(p);
                return nd_error_new(ND_INTERNAL, -r, "start the timer for published ports");
        }
        *ret = p;
        return nullptr;
}

void rootless_publisher_free(struct rootless_publisher *p) {
        if (!p)
                return;
        rootless_api_call_cancel(p->call);
        sd_event_source_disable_unref(p->timer);
        clear_sent(p);
        free(p);
}
