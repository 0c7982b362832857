/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include "cri/pod/oom.h"

static int64_t share(int64_t all, int64_t charged, int64_t first, int64_t second) {
        const int64_t others[] = {first, second};

        return cri_oom_share(all, charged, others, 2);
}

static void unattributed_kills_belong_to_the_container_whose_counter_is_gone([[maybe_unused]] void **state) {
        assert_int_equal(cri_oom_share(2, 0, nullptr, 0), 2);
        assert_int_equal(share(5, 2, 1, 0), 2);
        assert_int_equal(share(3, 2, 1, 0), 0);
        assert_int_equal(share(0, 0, 0, 0), 0);
        assert_int_equal(share(1, 4, 0, 0), 0); /* the pod's cgroup was recreated */
}

static void a_container_killed_at_the_same_moment_keeps_a_kill([[maybe_unused]] void **state) {
        int64_t first = share(5, 0, -1, -1), second = share(5, first, -1, 0), third = share(5, first + second, 0, 0);

        assert_int_equal(first, 3);
        assert_int_equal(second, 1);
        assert_int_equal(third, 1);
        assert_int_equal(share(1, 0, -1, -1), 1); /* one of them has it */
}

static void without_the_pods_counter_no_kill_is_attributed([[maybe_unused]] void **state) {
        assert_int_equal(share(-1, 0, -1, 0), 0);
}

/* The container's own counter, as read by the monitor. */
static bool killed(struct cri_sandbox *pod, int code, int64_t kills) {
        struct cri_container container = {.sandbox = pod};

        return cri_oom_killed(&container, &(struct cri_monitor_end) {.code = code, .oom_kills = kills});
}

static void the_containers_own_counter_comes_first([[maybe_unused]] void **state) {
        struct cri_sandbox pod = {.request = {.cgroup_parent = (char *) ""}};

        assert_true(killed(&pod, 137, 2));
        assert_int_equal(pod.oom_kills, 2);
        assert_false(killed(&pod, 137, 0)); /* killed by something else */
        assert_false(killed(&pod, 0, 1));   /* a child was killed, and the container went on */
        assert_int_equal(pod.oom_kills, 3);
        assert_true(killed(&pod, 1, 1)); /* a child was killed, and the container failed */
        assert_false(killed(&pod, 137, -1));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(unattributed_kills_belong_to_the_container_whose_counter_is_gone),
                cmocka_unit_test(a_container_killed_at_the_same_moment_keeps_a_kill),
                cmocka_unit_test(without_the_pods_counter_no_kill_is_attributed),
                cmocka_unit_test(the_containers_own_counter_comes_first),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
