/* SPDX-License-Identifier: Apache-2.0 */
/* drain.h - the end of a server without a failed request
 *
 *      @accept_seconds              new connections are accepted, as the Service may still lead
 *                                   here; responses end their connections
 *      GUARD_DRAIN_FINISH at most   requests in progress are served, idle connections are closed
 *
 * Then, or when no connection is left after the first part, the event loop ends with status 0. */
#pragma once

#include "guard/server/server.h"

enum {
        GUARD_DRAIN_FINISH = 10, /* seconds; longer than the API server's timeout of a review */
};

struct guard_drain {
        sd_event *loop;
        struct guard_server *server;
        sd_event_source *timer; /* nullptr: the server does not end */
        uint64_t closes_us, ends_us;
};

/* The object must not move. */
[[nodiscard]] struct nd_error *guard_drain_start(struct guard_drain *drain, sd_event *loop, struct guard_server *server,
                                                 unsigned accept_seconds);
/* Whether the server ends. */
bool guard_drain_is_on(const struct guard_drain *drain);
void guard_drain_done(struct guard_drain *drain);
