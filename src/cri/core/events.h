/* SPDX-License-Identifier: Apache-2.0 */
/* events.h - sends the events of pods and containers to followers
 *
 * A follower that does not keep up never blocks the daemon, and its memory use is bounded:
 * events that it cannot take are queued, only the newest of each object, and sent when it is
 * ready again, with the object's state at that time. So it may miss intermediate steps but never
 * the current state. A follower with more than EVENTS_WAITING objects queued is dismissed: it
 * has to list everything anyway, and then follow again. */
#pragma once

#include "cri/core/pod-table.h"

struct cri_events;
struct cri_event_follower;

enum {
        EVENTS_FOLLOWERS = 8, /* the kubelet is one of them */
        EVENTS_WAITING = 4096,
};

/* The CRI's numbers. */
enum cri_event_kind {
        EVENT_CREATED = 0,
        EVENT_STARTED = 1,
        EVENT_STOPPED = 2,
        EVENT_DELETED = 3,
};

struct cri_event {
        char id[POD_ID + 1]; /* the container's, or the sandbox's own */
        char sandbox[POD_ID + 1];
        enum cri_event_kind kind;
        uint64_t at;
        /* of the pod; its sandbox may be gone by the time the event is sent */
        char *uid, *name, *namespace;
};

struct cri_event_follower_calls {
        /* whether it can take one more event now */
        bool (*ready)(void *userdata);
        /* sends one event; called only while ready */
        void (*tell)(const struct cri_event *event, void *userdata);
        /* it fell too far behind, or the daemon exits; it is already removed */
        void (*dismiss)(void *userdata);
};

[[nodiscard]] struct cri_events *cri_events_new(void);
/* events may be nullptr here and in cri_events_of_*(). */
void cri_events_free(struct cri_events *events);

[[nodiscard]] struct nd_error *cri_events_follow(struct cri_events *events, const struct cri_event_follower_calls *calls,
                                                 void *userdata, struct cri_event_follower **ret);
void cri_events_unfollow(struct cri_event_follower *follower);
void cri_events_resume(struct cri_event_follower *follower); /* call when it may be ready again */

/* Call after the change and while the object is still in the pod table. Objects that are not
 * listed produce no events. */
void cri_events_of_container(struct cri_events *events, const struct cri_container *container, enum cri_event_kind kind);
void cri_events_of_sandbox(struct cri_events *events, const struct cri_sandbox *sandbox, enum cri_event_kind kind);
