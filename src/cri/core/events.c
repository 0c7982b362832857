/* SPDX-License-Identifier: Apache-2.0 */
/* events.c - see events.h
 *
 * Theory of operation
 *   An event is sent to a follower immediately if the follower is ready and its queue is empty.
 *   Otherwise the event is queued at the end and replaces an older queued event of the same object.
 *   The follower's owner calls cri_events_resume() when its output has drained.
 * Owns       followers and their queues.
 * Invariant  a follower's callbacks are never called after it was dismissed or has unfollowed. */
#include "cri/core/events.h"

#include <string.h>

#include "base/clock.h"

struct cri_event_follower {
        struct cri_events *events;
        struct cri_event_follower *next;
        const struct cri_event_follower_calls *calls;
        void *userdata;
        nd_vector(struct cri_event) waiting; /* oldest first */
        /* inside tell(): sending may flush output, which may call resume */
        bool telling;
};

struct cri_events {
        struct cri_event_follower *followers;
        size_t count;
};

static void event_done(struct cri_event *event) {
        free(event->uid);
        free(event->name);
        free(event->namespace);
}

static void follower_free(struct cri_event_follower *follower) {
        nd_vector_each (event, &follower->waiting)
                event_done(event);
        nd_vector_done(&follower->waiting);
        free(follower);
}

static void forget(struct cri_event_follower *follower) {
        struct cri_event_follower **at = &follower->events->followers;

        for (; *at != follower; at = &(*at)->next)
                ;
        *at = follower->next;
        follower->events->count--;
        follower_free(follower);
}

static void dismiss(struct cri_event_follower *follower) {
        const struct cri_event_follower_calls *calls = follower->calls;
        void *userdata = follower->userdata;

        forget(follower);
        calls->dismiss(userdata);
}

struct cri_events *cri_events_new(void) {
        return nd_new(struct cri_events);
}

void cri_events_free(struct cri_events *events) {
        if (!events)
                return;
        for (struct cri_event_follower *follower = events->followers, *next; follower; follower = next) {
                next = follower->next;
                dismiss(follower);
        }
        free(events);
}

struct nd_error *cri_events_follow(struct cri_events *events, const struct cri_event_follower_calls *calls, void *userdata,
                                   struct cri_event_follower **ret) {
        struct cri_event_follower *follower;

        if (events->count >= EVENTS_FOLLOWERS)
                return nd_error_new(ND_EXHAUSTED, 0, "too many clients follow the events (at most %d)", EVENTS_FOLLOWERS);
        follower = nd_new(struct cri_event_follower);
        *follower = (struct cri_event_follower) {
                .events = events, .next = events->followers, .calls = calls, .userdata = userdata};
        events->followers = follower;
        events->count++;
        *ret = follower;
        return nullptr;
}

void cri_events_unfollow(struct cri_event_follower *follower) {
        forget(follower);
}

/* ---- queue ---- */

static void drop_waiting(struct cri_event_follower *follower, size_t index) {
        event_done(&follower->waiting.items[index]);
        follower->waiting.count--;
        memmove(&follower->waiting.items[index], &follower->waiting.items[index + 1],
                (follower->waiting.count - index) * sizeof *follower->waiting.items);
}

static void put_aside(struct cri_event_follower *follower, const struct cri_event *event) {
        struct cri_event copy = *event;

        for (size_t i = 0; i < follower->waiting.count; i++)
                if (memcmp(follower->waiting.items[i].id, event->id, POD_ID) == 0) {
                        drop_waiting(follower, i);
                        break;
                }
        if (follower->waiting.count >= EVENTS_WAITING) {
                dismiss(follower);
                return;
        }
        copy.uid = nd_strdup(event->uid);
        copy.name = nd_strdup(event->name);
        copy.namespace = nd_strdup(event->namespace);
        nd_vector_push(&follower->waiting, copy);
}

static void tell(struct cri_event_follower *follower, const struct cri_event *event) {
        follower->telling = true;
        follower->calls->tell(event, follower->userdata);
        follower->telling = false;
}

void cri_events_resume(struct cri_event_follower *follower) {
        size_t told = 0;

        if (follower->telling)
                return;
        for (; told < follower->waiting.count && follower->calls->ready(follower->userdata); told++)
                tell(follower, &follower->waiting.items[told]);
        for (size_t i = 0; i < told; i++)
                event_done(&follower->waiting.items[i]);
        if (told == 0)
                return;
        follower->waiting.count -= told;
        memmove(follower->waiting.items, follower->waiting.items + told,
                follower->waiting.count * sizeof *follower->waiting.items);
        if (follower->waiting.count == 0)
                nd_vector_done(&follower->waiting);
}

/* ---- events ---- */

static void spread(struct cri_events *events, const struct cri_event *event) {
        for (struct cri_event_follower *follower = events->followers, *next; follower; follower = next) {
                next = follower->next;
                if (follower->waiting.count == 0 && !follower->telling && follower->calls->ready(follower->userdata))
                        tell(follower, event);
                else
                        put_aside(follower, event);
        }
}

static struct cri_event event_in(const struct cri_sandbox *sandbox, enum cri_event_kind kind) {
        struct cri_event event = {.kind = kind,
                                  .at = nd_clock_wall_ns(),
                                  .uid = sandbox->request.uid,
                                  .name = sandbox->request.name,
                                  .namespace = sandbox->request.namespace};

        memcpy(event.sandbox, sandbox->id, sizeof event.sandbox);
        memcpy(event.id, sandbox->id, sizeof event.id);
        return event;
}

void cri_events_of_container(struct cri_events *events, const struct cri_container *container, enum cri_event_kind kind) {
        struct cri_event event;

        if (!events || !events->followers || container->internal || !cri_sandbox_is_shown(container->sandbox))
                return;
        event = event_in(container->sandbox, kind);
        memcpy(event.id, container->id, sizeof event.id);
        spread(events, &event);
}

void cri_events_of_sandbox(struct cri_events *events, const struct cri_sandbox *sandbox, enum cri_event_kind kind) {
        struct cri_event event;

        if (!events || !events->followers || !cri_sandbox_is_shown(sandbox))
                return;
        event = event_in(sandbox, kind);
        spread(events, &event);
}
