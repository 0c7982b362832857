/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <string.h>

#include "cri/core/op-queue.h"

static char order[16];

static void note(void *userdata) {
        strcat(order, userdata);
}

static void a_free_queue_is_entered_at_once_and_others_wait([[maybe_unused]] void **state) {
        struct cri_op_queue op_queue = {};

        order[0] = '\0';
        cri_op_queue_enter(&op_queue, note, (void *) "a");
        cri_op_queue_enter(&op_queue, note, (void *) "b");
        cri_op_queue_enter(&op_queue, note, (void *) "c");
        assert_string_equal(order, "a");
        cri_op_queue_leave(&op_queue);
        assert_string_equal(order, "ab");
        cri_op_queue_enter(&op_queue, note, (void *) "d");
        cri_op_queue_leave(&op_queue);
        cri_op_queue_leave(&op_queue);
        assert_string_equal(order, "abcd");
        cri_op_queue_leave(&op_queue);
        cri_op_queue_enter(&op_queue, note, (void *) "e");
        assert_string_equal(order, "abcde");
        cri_op_queue_done(&op_queue);
}

struct owner {
        struct cri_op_queue op_queue;
};

static void free_owner(void *userdata) {
        struct owner *owner = userdata;

        cri_op_queue_done(&owner->op_queue);
        free(owner);
}

static void the_last_turn_may_end_the_object([[maybe_unused]] void **state) {
        struct owner *owner = nd_new(struct owner);

        cri_op_queue_enter(&owner->op_queue, note, (void *) "");
        cri_op_queue_enter(&owner->op_queue, free_owner, owner);
        cri_op_queue_leave(&owner->op_queue);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_free_queue_is_entered_at_once_and_others_wait),
                cmocka_unit_test(the_last_turn_may_end_the_object),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
