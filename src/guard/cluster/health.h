/* SPDX-License-Identifier: Apache-2.0 */
/* health.h - whether the guard is ready, and if not, why: for /readyz, the log and `systemctl
 * status` */
#pragma once

#include <systemd/sd-event.h>

#include "guard/cluster/watches.h"

enum guard_problem {
        GUARD_PROBLEM_CREDENTIALS, /* the API server refuses them */
        GUARD_PROBLEM_CONTACT,     /* no response; does not count while lists are current */
        GUARD_PROBLEM_CERTIFICATE, /* the guard's own has expired: API servers do not accept it */
        GUARD_PROBLEMS,
};

struct guard_health {
        const struct guard_watches *watches;
        sd_event_source *timer;
        struct {
                char *text; /* nullptr: no problem */
                uint64_t logged_us;
        } problems[GUARD_PROBLEMS];
        bool said_ready;            /* what the log says */
        uint64_t reason_us;         /* when a reason was logged last, or since when there is none */
        uint64_t not_ready_us;      /* when the end of readiness was logged last; 0: never */
        char *status;               /* STATUS= as sent last */
        time_t certificate_expires; /* the guard's own; 0: unknown */
        bool stops;                 /* the process ends soon; reviews are still decided */
};

/* The object must not move. */
[[nodiscard]] struct nd_error *guard_health_start(struct guard_health *health, sd_event *loop,
                                                  const struct guard_watches *watches);
void guard_health_done(struct guard_health *health);

/* Text nullptr: the problem is over. at_once: log a new problem now, and not when it lasts. */
void guard_health_set(struct guard_health *health, enum guard_problem problem, const char *text, bool at_once);

/* The guard is not ready from now on, so that Services lead elsewhere. */
void guard_health_stop(struct guard_health *health);

bool guard_health_is_ready(const struct guard_health *health);
/* Logs a change between ready and not ready since the last call. Cheap without one. */
void guard_health_update(struct guard_health *health);
