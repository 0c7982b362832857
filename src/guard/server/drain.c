/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/server/drain.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"

static constexpr uint64_t look_interval_us = 50 * ND_MS_US;

static void end(const struct guard_drain *drain) {
        char left[24];

        (void) snprintf(left, sizeof left, "%zu", guard_server_connections(drain->server));
        if (guard_server_connections(drain->server) > 0)
                nd_log(ND_LOG_WARNING, "stopping: connections did not end in time", nd_field("connections", left));
        else
                nd_log(ND_LOG_INFO, "stopped: every review in progress was answered");
        (void) sd_event_exit(drain->loop, 0);
}

static int on_look(sd_event_source *source, [[maybe_unused]] uint64_t now, void *userdata) {
        const struct guard_drain *drain = userdata;
        uint64_t now_us = nd_clock_us();

        if (now_us >= drain->closes_us)
                guard_server_close_idle(drain->server);
        if (now_us >= drain->ends_us || (now_us >= drain->closes_us && guard_server_connections(drain->server) == 0)) {
                end(drain);
                return 0;
        }
        (void) sd_event_source_set_time_relative(source, look_interval_us);
        (void) sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        return 0;
}

struct nd_error *guard_drain_start(struct guard_drain *drain, sd_event *loop, struct guard_server *server,
                                   unsigned accept_seconds) {
        uint64_t now_us = nd_clock_us();
        int r = sd_event_add_time_relative(loop, &drain->timer, CLOCK_MONOTONIC, 0, 1, on_look, drain);

        if (r < 0)
                return nd_error_new(ND_INTERNAL, -r, "start the timer of the server's end");
        drain->loop = loop;
        drain->server = server;
        drain->closes_us = now_us + accept_seconds * ND_SECOND_US;
        drain->ends_us = drain->closes_us + GUARD_DRAIN_FINISH * ND_SECOND_US;
        guard_server_announce_end(server);
        return nullptr;
}

bool guard_drain_is_on(const struct guard_drain *drain) {
        return drain->timer;
}

void guard_drain_done(struct guard_drain *drain) {
        drain->timer = sd_event_source_disable_unref(drain->timer);
}
