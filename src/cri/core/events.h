/* SPDX-License-Identifier: Apache-2.0 */
/* events.h - what happens to pods and containers, for whoever follows it
 *
 * A follower that does not keep up never makes the daemon wait and never grows without bound: what it cannot take is remembered by object, the newest
 * event of each, and told when it takes something again, with the state of that moment. So it misses steps between, never where things stand.
 * One that falls behind by more than EVENTS_WAITING objects is dismissed: it must list everything anyway, and follow again. */
#pragma once

#include "cri/core/pod-table.h"

struct cri_events;
struct cri_event_follower;

enum {
        EVENTS_FOLLOWERS = 8, /* the kubelet is one */
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
        char id[POD_ID + 1]; /* of a container, or the sandbox's own */
        char sandbox[POD_ID + 1];
        enum cri_event_kind kind;
        uint64_t at;
        char *uid, *name, *namespace; /* of the pod, whose sandbox may be gone when this is told */
};

struct cri_event_follower_calls {
        bool (*ready)(void *userdata);                               /* whether it can take one more now */
        void (*tell)(const struct cri_event *event, void *userdata); /* only while it is ready */
        void (*dismiss)(void *userdata); /* it has fallen behind too far, or the daemon ends; it is forgotten already */
};

[[nodiscard]] struct cri_events *cri_events_new(void);
void cri_events_free(struct cri_events *events); /* nullptr is fine, as for whoever tells something to nobody */

[[nodiscard]] struct nd_error *cri_events_follow(struct cri_events *events, const struct cri_event_follower_calls *calls,
                                                 void *userdata, struct cri_event_follower **ret);
void cri_events_unfollow(struct cri_event_follower *follower);
void cri_events_resume(struct cri_event_follower *follower); /* it may be ready again */

/* To be said when it has happened and while the object is still in the pod table. What nobody is told of is nobody's event. */
void cri_events_of_container(struct cri_events *events, const struct cri_container *container, enum cri_event_kind kind);
void cri_events_of_sandbox(struct cri_events *events, const struct cri_sandbox *sandbox, enum cri_event_kind kind);
