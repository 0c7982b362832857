/* SPDX-License-Identifier: Apache-2.0 */
/* events.c - see events.h
 *
 * Theory of operation
 *   An event goes to a follower at once, when it is ready and nothing waits for it. Otherwise it joins those that wait, at the end, and takes the place of
 *   the one that waits for the same object. Whoever moves the follower's bytes says when to go on.
 * Owns       followers and what waits for them.
 * Invariant  a follower's functions are not called any more once it was dismissed or has left. */
#include "cri/events.h"

#include <string.h>

#include "base/clock.h"

struct follower {
        struct events *events;
        struct follower *next;
        const struct follower_calls *calls;
        void *userdata;
        nd_vector(struct event) waiting; /* oldest first */
        bool telling;                    /* inside of tell(): what is told there may move bytes, and bytes may ask for more */
};

struct events {
        struct follower *followers;
        size_t count;
};

static void event_done(struct event *event) {
        free(event->uid);
        free(event->name);
        free(event->namespace);
}

static void follower_free(struct follower *follower) {
        nd_vector_each (event, &follower->waiting)
                event_done(event);
        nd_vector_done(&follower->waiting);
        free(follower);
}

static void forget(struct follower *follower) {
        struct follower **at = &follower->events->followers;

        for (; *at != follower; at = &(*at)->next)
                ;
        *at = follower->next;
        follower->events->count--;
        follower_free(follower);
}

static void dismiss(struct follower *follower) {
        const struct follower_calls *calls = follower->calls;
        void *userdata = follower->userdata;

        forget(follower);
        calls->dismiss(userdata);
}

struct events *events_new(void) {
        return nd_new(struct events);
}

void events_free(struct events *events) {
        if (!events)
                return;
        for (struct follower *follower = events->followers, *next; follower; follower = next) {
                next = follower->next;
                dismiss(follower);
        }
        free(events);
}

struct nd_error *events_follow(struct events *events, const struct follower_calls *calls, void *userdata,
                               struct follower **ret) {
        struct follower *follower;

        if (events->count >= EVENTS_FOLLOWERS)
                return nd_error_new(ND_EXHAUSTED, 0, "%d others follow the events already", EVENTS_FOLLOWERS);
        follower = nd_new(struct follower);
        *follower = (struct follower) {.events = events, .next = events->followers, .calls = calls, .userdata = userdata};
        events->followers = follower;
        events->count++;
        *ret = follower;
        return nullptr;
}

void events_unfollow(struct follower *follower) {
        forget(follower);
}

/* ---- those that wait ---- */

static void drop_waiting(struct follower *follower, size_t index) {
        event_done(&follower->waiting.items[index]);
        follower->waiting.count--;
        memmove(&follower->waiting.items[index], &follower->waiting.items[index + 1],
                (follower->waiting.count - index) * sizeof *follower->waiting.items);
}

static void put_aside(struct follower *follower, const struct event *event) {
        struct event copy = *event;

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

static void tell(struct follower *follower, const struct event *event) {
        follower->telling = true;
        follower->calls->tell(event, follower->userdata);
        follower->telling = false;
}

void events_resume(struct follower *follower) {
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

/* ---- what happens ---- */

static void spread(struct events *events, const struct event *event) {
        for (struct follower *follower = events->followers, *next; follower; follower = next) {
                next = follower->next;
                if (follower->waiting.count == 0 && !follower->telling && follower->calls->ready(follower->userdata))
                        tell(follower, event);
                else
                        put_aside(follower, event);
        }
}

static struct event event_in(const struct sandbox *sandbox, enum event_kind kind) {
        struct event event = {.kind = kind,
                              .at = nd_clock_wall_ns(),
                              .uid = sandbox->request.uid,
                              .name = sandbox->request.name,
                              .namespace = sandbox->request.namespace};

        memcpy(event.sandbox, sandbox->id, sizeof event.sandbox);
        memcpy(event.id, sandbox->id, sizeof event.id);
        return event;
}

void events_of_container(struct events *events, const struct container *container, enum event_kind kind) {
        struct event event;

        if (!events || !events->followers || container->internal || !sandbox_is_shown(container->sandbox))
                return;
        event = event_in(container->sandbox, kind);
        memcpy(event.id, container->id, sizeof event.id);
        spread(events, &event);
}

void events_of_sandbox(struct events *events, const struct sandbox *sandbox, enum event_kind kind) {
        struct event event;

        if (!events || !events->followers || !sandbox_is_shown(sandbox))
                return;
        event = event_in(sandbox, kind);
        spread(events, &event);
}
