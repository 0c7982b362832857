/* SPDX-License-Identifier: Apache-2.0 */
/* floor-control.c - see floor-control.h
 *
 * Theory of operation
 *   Every guard reports the floor that it acts on (replicas.h). While it is not settled, each
 *   computes what it waits for, and patches the status with the version of the object that it saw:
 *   of several guards one writes, and the others see the result. No leader is needed, since the
 *   result does not depend on the writer. Nodes are marked in the same rounds (marks.h).
 * Invariant  the status becomes the spec only when all live replicas act on the object's
 *            generation. */
#include "guard/floor/floor-control.h"

#include <inttypes.h>

#include "base/clock.h"
#include "guard/floor/marks.h"
#include "guard/floor/settle.h"

enum {
        PATCH_BYTES = 64 << 10,
};

static constexpr uint64_t tick_us = 2 * ND_SECOND_US;
static constexpr uint64_t wake_us = 20 * ND_MS_US;
static constexpr uint64_t request_timeout_us = 5 * ND_SECOND_US;
#define PATH "/apis/security.nodens.io/v1/nodeversionfloors/" ND_FLOOR_NAME "/status"

struct guard_floor_control {
        struct guard_floor_control_settings settings;
        struct guard_replicas *replicas;
        struct guard_marks marks;
        sd_event_source *timer, *wake_timer;
        bool writing, troubled;
};

static void on_written(const struct nd_api_answer *answer, void *userdata) {
        struct guard_floor_control *c = userdata;

        c->writing = false;
        if (!answer->error || answer->status == 409 || answer->status == 404) {
                c->troubled = false; /* another guard was faster: the watch reports what it wrote */
                return;
        }
        if (!c->troubled && c->settings.log)
                c->settings.log("cannot write the status of the version floor", answer->error, c->settings.userdata);
        c->troubled = true;
}

static const char *what_it_waits_for(struct guard_floor_control *c, const struct nd_floor *floor, struct nd_arena *arena) {
        const char *missing;

        if (nd_floor_is_settled(floor))
                return nullptr;
        missing = guard_replicas_missing(c->replicas);
        if (missing)
                return nd_arena_format(arena, "%.200s does not act on it yet", missing);
        return guard_settle_obstacle(c->settings.store, floor, arena);
}

static void settle(struct guard_floor_control *c, const struct nd_floor *floor) {
        nd_autotext struct nd_text body = ND_TEXT(PATCH_BYTES);
        nd_autoarena struct nd_arena arena = {};
        const char *waits = what_it_waits_for(c, floor, &arena);

        if (c->writing || guard_settle_is_done(floor, waits))
                return;
        guard_settle_patch(floor, waits, &arena, &body);
        c->writing = true;
        (void) nd_api_send(c->settings.api, &(struct nd_api_request) {.method = "PATCH",
                                                                      .path = PATH,
                                                                      .body = nd_text_get(&body),
                                                                      .content_type = "application/merge-patch+json",
                                                                      .timeout_us = request_timeout_us,
                                                                      .done = on_written,
                                                                      .userdata = c});
}

static void work(struct guard_floor_control *c) {
        const struct guard_floor *floor = guard_store_floor(c->settings.store);
        nd_autofree char *object = floor && !floor->is_broken
                                           ? nd_format("%s/%" PRId64, floor->floor.uid, floor->floor.generation)
                                           : nd_strdup("");

        guard_replicas_act_on(c->replicas, object);
        if (c->settings.only_reports)
                return;
        guard_replicas_observe(c->replicas, *object && !nd_floor_is_settled(&floor->floor));
        if (*object)
                settle(c, &floor->floor);
        guard_marks_update(&c->marks);
}

static void on_replicas(void *userdata) {
        guard_floor_control_wake(userdata);
}

static void on_log(const char *what, const struct nd_error *error, void *userdata) {
        const struct guard_floor_control *c = userdata;

        if (c->settings.log)
                c->settings.log(what, error, c->settings.userdata);
}

static int on_tick(sd_event_source *source, [[maybe_unused]] uint64_t now, void *userdata) {
        (void) sd_event_source_set_time_relative(source, tick_us);
        (void) sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        work(userdata);
        return 0;
}

static int on_wake([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t now, void *userdata) {
        work(userdata);
        return 0;
}

/* With a short delay, so that many changes share one round. */
void guard_floor_control_wake(struct guard_floor_control *c) {
        int enabled = SD_EVENT_OFF;

        if (sd_event_source_get_enabled(c->wake_timer, &enabled) > 0 && enabled != SD_EVENT_OFF)
                return;
        (void) sd_event_source_set_time_relative(c->wake_timer, wake_us);
        (void) sd_event_source_set_enabled(c->wake_timer, SD_EVENT_ONESHOT);
}

struct guard_floor_control *guard_floor_control_new(const struct guard_floor_control_settings *settings) {
        struct guard_floor_control *c = nd_new(struct guard_floor_control);
        sd_event *loop = nd_api_loop(settings->api);

        c->settings = *settings;
        c->marks = (struct guard_marks) {
                .api = settings->api, .store = settings->store, .identity = settings->identity, .log = on_log, .userdata = c};
        c->replicas = guard_replicas_new(&(struct guard_replicas_settings) {.api = settings->api,
                                                                            .namespace = settings->namespace,
                                                                            .identity = settings->identity,
                                                                            .number = settings->number,
                                                                            .role = settings->role,
                                                                            .lifetime_s = settings->lifetime_s,
                                                                            .changed = on_replicas,
                                                                            .log = on_log,
                                                                            .userdata = c});
        if (sd_event_add_time_relative(loop, &c->timer, CLOCK_MONOTONIC, 0, 0, on_tick, c) < 0 ||
            sd_event_add_time_relative(loop, &c->wake_timer, CLOCK_MONOTONIC, 0, ND_MS_US, on_wake, c) < 0)
                abort(); /* out of memory, as everywhere */
        return c;
}

void guard_floor_control_free(struct guard_floor_control *c) {
        if (!c)
                return;
        sd_event_source_disable_unref(c->timer);
        sd_event_source_disable_unref(c->wake_timer);
        guard_replicas_free(c->replicas);
        free(c);
}
