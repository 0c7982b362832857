/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <stdio.h>
#include <string.h>

#include "cri/core/events.h"

/* A follower that can take a limited number of events. */
struct listener {
        struct cri_event_follower *follower;
        unsigned room, dismissed;
        nd_vector(struct cri_event) told;
};

static bool is_ready(void *userdata) {
        const struct listener *l = userdata;

        return l->room > 0;
}

static void on_event(const struct cri_event *event, void *userdata) {
        struct listener *l = userdata;

        assert_true(l->room > 0);
        l->room--;
        nd_vector_push(&l->told, *event); /* its strings are not read later */
}

static void on_dismissed(void *userdata) {
        struct listener *l = userdata;

        l->dismissed++;
        l->follower = nullptr;
}

static const struct cri_event_follower_calls calls = {.ready = is_ready, .tell = on_event, .dismiss = on_dismissed};

static struct cri_sandbox sandbox_of(const char *id) {
        struct cri_sandbox sandbox = {.state = SANDBOX_READY,
                                      .request = {.uid = (char *) "u", .name = (char *) "n", .namespace = (char *) "s"}};

        (void) strncpy(sandbox.id, id, POD_ID);
        return sandbox;
}

static struct cri_container container_of(struct cri_sandbox *sandbox, unsigned number) {
        struct cri_container container = {.sandbox = sandbox, .state = CONTAINER_RUNNING};

        (void) snprintf(container.id, sizeof container.id, "%064u", number);
        return container;
}

static void an_event_is_sent_at_once_to_all_ready_followers([[maybe_unused]] void **state) {
        struct listener a = {.room = 9}, b = {.room = 9};
        struct cri_events *events = cri_events_new();
        struct cri_sandbox sandbox = sandbox_of("pod");
        struct cri_container container = container_of(&sandbox, 1);

        expect_ok(cri_events_follow(events, &calls, &a, &a.follower));
        cri_events_of_sandbox(events, &sandbox, EVENT_CREATED);
        expect_ok(cri_events_follow(events, &calls, &b, &b.follower));
        cri_events_of_container(events, &container, EVENT_STARTED);
        assert_int_equal(a.told.count, 2);
        assert_int_equal(b.told.count, 1);
        assert_string_equal(a.told.items[0].id, "pod");
        assert_int_equal(a.told.items[0].kind, EVENT_CREATED);
        assert_string_equal(b.told.items[0].id, container.id);
        assert_string_equal(b.told.items[0].sandbox, "pod");
        assert_int_equal(b.told.items[0].kind, EVENT_STARTED);
        assert_true(b.told.items[0].at > 0);
        cri_events_unfollow(a.follower);
        cri_events_of_sandbox(events, &sandbox, EVENT_STOPPED);
        assert_int_equal(a.told.count, 2);
        assert_int_equal(b.told.count, 2);
        cri_events_free(events);
        assert_int_equal(a.dismissed, 0);
        assert_int_equal(b.dismissed, 1);
        nd_vector_done(&a.told);
        nd_vector_done(&b.told);
}

static void unlisted_objects_produce_no_events([[maybe_unused]] void **state) {
        struct listener a = {.room = 9};
        struct cri_events *events = cri_events_new();
        struct cri_sandbox sandbox = sandbox_of("pod"), unborn = sandbox_of("unborn");
        struct cri_container init = container_of(&sandbox, 1), early = container_of(&unborn, 2);

        init.internal = true;
        unborn.state = SANDBOX_NEW;
        expect_ok(cri_events_follow(events, &calls, &a, &a.follower));
        cri_events_of_container(events, &init, EVENT_STARTED);
        cri_events_of_container(events, &early, EVENT_STARTED);
        cri_events_of_sandbox(events, &unborn, EVENT_DELETED);
        cri_events_of_sandbox(nullptr, &sandbox, EVENT_DELETED);
        assert_int_equal(a.told.count, 0);
        cri_events_free(events);
        nd_vector_done(&a.told);
}

static void a_slow_follower_gets_the_newest_event_of_each_object([[maybe_unused]] void **state) {
        struct listener slow = {.room = 1}, fast = {.room = 99};
        struct cri_events *events = cri_events_new();
        struct cri_sandbox sandbox = sandbox_of("pod");
        struct cri_container one = container_of(&sandbox, 1), two = container_of(&sandbox, 2);

        expect_ok(cri_events_follow(events, &calls, &slow, &slow.follower));
        expect_ok(cri_events_follow(events, &calls, &fast, &fast.follower));
        cri_events_of_container(events, &one, EVENT_CREATED);
        cri_events_of_container(events, &one, EVENT_STARTED); /* queued */
        cri_events_of_container(events, &two, EVENT_CREATED);
        /* replaces it, behind the other object's */
        cri_events_of_container(events, &one, EVENT_STOPPED);
        cri_events_of_container(events, &one, EVENT_DELETED);
        assert_int_equal(fast.told.count, 5);
        assert_int_equal(slow.told.count, 1);
        slow.room = 1;
        cri_events_resume(slow.follower);
        assert_int_equal(slow.told.count, 2);
        assert_string_equal(slow.told.items[1].id, two.id);
        cri_events_of_container(events, &two, EVENT_STARTED); /* queued behind the waiting one */
        slow.room = 9;
        cri_events_resume(slow.follower);
        assert_int_equal(slow.told.count, 4);
        assert_string_equal(slow.told.items[2].id, one.id);
        assert_int_equal(slow.told.items[2].kind, EVENT_DELETED);
        assert_int_equal(slow.told.items[3].kind, EVENT_STARTED);
        cri_events_of_container(events, &two, EVENT_STOPPED);
        assert_int_equal(slow.told.count, 5);
        cri_events_free(events);
        nd_vector_done(&slow.told);
        nd_vector_done(&fast.told);
}

static void a_follower_that_never_reads_is_dismissed_and_others_continue([[maybe_unused]] void **state) {
        struct listener stuck = {}, fast = {.room = 2 * EVENTS_WAITING};
        struct cri_events *events = cri_events_new();
        struct cri_sandbox sandbox = sandbox_of("pod");

        expect_ok(cri_events_follow(events, &calls, &fast, &fast.follower));
        expect_ok(cri_events_follow(events, &calls, &stuck, &stuck.follower));
        for (unsigned i = 0; i <= EVENTS_WAITING; i++) {
                struct cri_container container = container_of(&sandbox, i);

                assert_int_equal(stuck.dismissed, 0);
                cri_events_of_container(events, &container, EVENT_CREATED);
        }
        assert_int_equal(stuck.dismissed, 1);
        assert_int_equal(stuck.told.count, 0);
        assert_int_equal(fast.told.count, EVENTS_WAITING + 1);
        cri_events_free(events);
        nd_vector_done(&fast.told);
}

static void the_number_of_followers_is_limited([[maybe_unused]] void **state) {
        struct listener all[EVENTS_FOLLOWERS] = {}, more = {};
        struct cri_events *events = cri_events_new();

        for (unsigned i = 0; i < EVENTS_FOLLOWERS; i++)
                expect_ok(cri_events_follow(events, &calls, &all[i], &all[i].follower));
        expect_error(cri_events_follow(events, &calls, &more, &more.follower), ND_EXHAUSTED, "too many clients follow");
        cri_events_unfollow(all[0].follower);
        expect_ok(cri_events_follow(events, &calls, &more, &more.follower));
        cri_events_free(events);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_event_is_sent_at_once_to_all_ready_followers),
                cmocka_unit_test(unlisted_objects_produce_no_events),
                cmocka_unit_test(a_slow_follower_gets_the_newest_event_of_each_object),
                cmocka_unit_test(a_follower_that_never_reads_is_dismissed_and_others_continue),
                cmocka_unit_test(the_number_of_followers_is_limited),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
