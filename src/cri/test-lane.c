/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <string.h>

#include "cri/lane.h"

static char order[16];

static void note(void *userdata) {
        strcat(order, userdata);
}

static void a_free_lane_is_entered_at_once_and_others_wait_their_turn([[maybe_unused]] void **state) {
        struct lane lane = {};

        order[0] = '\0';
        lane_enter(&lane, note, (void *) "a");
        lane_enter(&lane, note, (void *) "b");
        lane_enter(&lane, note, (void *) "c");
        assert_string_equal(order, "a");
        lane_leave(&lane);
        assert_string_equal(order, "ab");
        lane_enter(&lane, note, (void *) "d");
        lane_leave(&lane);
        lane_leave(&lane);
        assert_string_equal(order, "abcd");
        lane_leave(&lane);
        lane_enter(&lane, note, (void *) "e");
        assert_string_equal(order, "abcde");
        lane_done(&lane);
}

static void a_turn_that_was_given_up_never_comes([[maybe_unused]] void **state) {
        struct lane lane = {};
        char b[] = "b", c[] = "c";

        order[0] = '\0';
        lane_enter(&lane, note, (void *) "a");
        lane_enter(&lane, note, b);
        lane_enter(&lane, note, c);
        assert_true(lane_give_up(&lane, b));
        assert_false(lane_give_up(&lane, b));
        lane_leave(&lane);
        assert_string_equal(order, "ac");
        assert_false(lane_give_up(&lane, c)); /* it runs already */
        lane_done(&lane);
}

struct owner {
        struct lane lane;
};

static void free_owner(void *userdata) {
        struct owner *owner = userdata;

        lane_done(&owner->lane);
        free(owner);
}

static void the_last_turn_may_end_the_object([[maybe_unused]] void **state) {
        struct owner *owner = nd_new(struct owner);

        lane_enter(&owner->lane, note, (void *) "");
        lane_enter(&owner->lane, free_owner, owner);
        lane_leave(&owner->lane);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_free_lane_is_entered_at_once_and_others_wait_their_turn),
                cmocka_unit_test(a_turn_that_was_given_up_never_comes),
                cmocka_unit_test(the_last_turn_may_end_the_object),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
