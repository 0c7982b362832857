/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <string.h>

#include "cri/lane.h"

static char order[16];

static void note(void *userdata) {
        strcat(order, userdata);
}

static void a_free_lane_is_entered_at_once_and_others_wait_their_turn([[maybe_unused]] void **state) {
        struct lane op_queue = {};

        order[0] = '\0';
        lane_enter(&op_queue, note, (void *) "a");
        lane_enter(&op_queue, note, (void *) "b");
        lane_enter(&op_queue, note, (void *) "c");
        assert_string_equal(order, "a");
        lane_leave(&op_queue);
        assert_string_equal(order, "ab");
        lane_enter(&op_queue, note, (void *) "d");
        lane_leave(&op_queue);
        lane_leave(&op_queue);
        assert_string_equal(order, "abcd");
        lane_leave(&op_queue);
        lane_enter(&op_queue, note, (void *) "e");
        assert_string_equal(order, "abcde");
        lane_done(&op_queue);
}

static void a_turn_that_was_given_up_never_comes([[maybe_unused]] void **state) {
        struct lane op_queue = {};
        char b[] = "b", c[] = "c";

        order[0] = '\0';
        lane_enter(&op_queue, note, (void *) "a");
        lane_enter(&op_queue, note, b);
        lane_enter(&op_queue, note, c);
        assert_true(lane_give_up(&op_queue, b));
        assert_false(lane_give_up(&op_queue, b));
        lane_leave(&op_queue);
        assert_string_equal(order, "ac");
        assert_false(lane_give_up(&op_queue, c)); /* it runs already */
        lane_done(&op_queue);
}

struct owner {
        struct lane op_queue;
};

static void free_owner(void *userdata) {
        struct owner *owner = userdata;

        lane_done(&owner->op_queue);
        free(owner);
}

static void the_last_turn_may_end_the_object([[maybe_unused]] void **state) {
        struct owner *owner = nd_new(struct owner);

        lane_enter(&owner->op_queue, note, (void *) "");
        lane_enter(&owner->op_queue, free_owner, owner);
        lane_leave(&owner->op_queue);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_free_lane_is_entered_at_once_and_others_wait_their_turn),
                cmocka_unit_test(a_turn_that_was_given_up_never_comes),
                cmocka_unit_test(the_last_turn_may_end_the_object),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
