/* SPDX-License-Identifier: Apache-2.0 */
/* test-container-stop.c - containers that exit, by themselves or because they are stopped; see
 * <unit/cri-node.h> */
#include <unit/expect.h>

#include <signal.h>

#include <unit/cri-node.h>
#include <unit/scratch.h>

#include "base/clock.h"

static void an_exit_is_reported_after_its_record_is_synced([[maybe_unused]] void **state) {
        struct cri_node fixture, *f = &fixture;
        struct cri_container_request request;
        uint64_t end = nd_clock_us() + 20 * ND_SECOND_US;

        cri_node_needs_oci_runtime();
        cri_node_make(f);
        cri_node_run_pod(f, true, NAMESPACE_CONTAINER);
        request = cri_node_request(f, ARGUMENTS("exit", "3"));
        expect_ok(cri_node_create(f, &request));
        assert_int_equal(cri_container_reported_state(f->container), CONTAINER_CREATED);
        expect_ok(cri_node_start(f, f->container));
        cri_node_wait_for_exit(f, f->container);
        /* the worker has just been started */
        assert_int_equal(cri_container_reported_state(f->container), CONTAINER_RUNNING);
        while (cri_container_reported_state(f->container) != CONTAINER_EXITED) {
                assert_true(nd_clock_us() < end);
                assert_true(sd_event_run(f->parts.loop, 100 * ND_MS_US) >= 0);
        }
        assert_int_equal(f->container->exit_code, 3);
        expect_ok(cri_node_stop(f, f->container, 0));

        request = cri_node_request(f, ARGUMENTS("sleep", "60"));
        expect_ok(cri_node_create(f, &request));
        expect_ok(cri_node_start(f, f->container));
        expect_ok(cri_node_stop(f, f->container, 0)); /* a stop waits for the sync too */
        assert_int_equal(cri_container_reported_state(f->container), CONTAINER_EXITED);
        cri_node_remove_pod(f);
        cri_node_done(f);
}

static void the_stop_signal_comes_first_and_sigkill_after_it([[maybe_unused]] void **state) {
        struct cri_node fixture, *f = &fixture;
        struct cri_container_request request;
        struct cri_container *container;
        uint64_t before;

        cri_node_needs_oci_runtime();
        cri_node_make(f);
        cri_node_run_pod(f, true, NAMESPACE_CONTAINER);
        request = cri_node_request(f, ARGUMENTS("trap", "9", "say", "ready", "sleep", "60"));
        expect_ok(cri_node_create(f, &request));
        container = f->container;
        expect_ok(cri_node_start(f, container));
        assert_int_equal(container->state, CONTAINER_RUNNING);
        assert_true(container->pid > 0);
        for (nd_autofree char *log = nullptr; !log || !strstr(log, "ready");
             free(log), log = scratch_read(f->root, "logs/0.log"))
                (void) usleep(1000);
        expect_ok(cri_node_stop(f, container, 30));
        assert_int_equal(container->exit_code, 9);
        expect_ok(cri_node_stop(f, container, 30)); /* it has exited already */
        expect_error(cri_node_start(f, container), ND_PRECONDITION, "has exited");
        expect_ok(cri_node_remove(f, container));

        /* pid 1 of its namespace: SIGTERM has no effect */
        request = cri_node_request(f, ARGUMENTS("sleep", "60"));
        expect_ok(cri_node_create(f, &request));
        container = f->container;
        expect_ok(cri_node_start(f, container));
        before = nd_clock_us();
        expect_ok(cri_node_stop(f, container, 1));
        assert_true(nd_clock_us() - before >= ND_SECOND_US * 9 / 10);
        assert_int_equal(container->exit_code, 137);
        assert_string_equal(container->reason, "Error");
        cri_node_remove_pod(f);
        cri_node_done(f);
}

static void operations_queued_for_a_removed_container_complete([[maybe_unused]] void **state) {
        struct cri_node fixture, *f = &fixture;
        struct cri_container_request request;
        struct cri_node_answer answers[5] = {};

        cri_node_needs_oci_runtime();
        cri_node_make(f);
        cri_node_run_pod(f, true, NAMESPACE_CONTAINER);
        request = cri_node_request(f, ARGUMENTS("sleep", "60"));
        expect_ok(cri_node_create(f, &request));
        expect_ok(cri_node_start(f, f->container));
        cri_container_stop(&f->parts, f->container, 3600, cri_node_on_answer, &answers[0], nullptr);
        for (int i = 0; i < 10; i++)
                assert_true(sd_event_run(f->parts.loop, ND_MS_US) >= 0);
        assert_false(answers[0].called); /* pid 1 ignores SIGTERM */
        cri_container_stop(&f->parts, f->container, 0, cri_node_on_answer, &answers[1],
                           nullptr); /* shortens the first one's hour */
        cri_container_remove(&f->parts, f->container, cri_node_on_answer, &answers[2], nullptr);
        cri_container_start(&f->parts, f->container, cri_node_on_answer, &answers[3], nullptr);
        cri_container_remove(&f->parts, f->container, cri_node_on_answer, &answers[4], nullptr);
        assert_false(answers[1].called || answers[2].called || answers[3].called || answers[4].called);
        cri_node_wait_for_answers(f, answers, nd_count_of(answers));
        assert_int_equal(answers[0].code, ND_OK);
        assert_int_equal(answers[1].code, ND_OK);
        assert_int_equal(answers[2].code, ND_OK);
        assert_int_equal(answers[3].code, ND_NOT_FOUND);
        assert_int_equal(answers[4].code, ND_OK);
        assert_int_equal(f->sandbox->containers.count, 0);
        cri_node_remove_pod(f);
        cri_node_done(f);
}

static void a_container_whose_monitor_hangs_can_be_removed([[maybe_unused]] void **state) {
        struct cri_node fixture, *f = &fixture;
        struct cri_container_request request;
        struct cri_container *container;
        pid_t monitor;

        cri_node_needs_oci_runtime();
        cri_node_make(f);
        cri_node_run_pod(f, true, NAMESPACE_CONTAINER);
        request = cri_node_request(f, ARGUMENTS("sleep", "1000"));
        expect_ok(cri_node_create(f, &request));
        container = f->container;
        expect_ok(cri_node_start(f, container));
        /* otherwise the lines below would stop an unrelated process */
        assert_string_not_equal(container->monitor_cgroup, "");
        monitor = cri_node_monitor(container);
        assert_true(monitor > 1);
        assert_int_equal(kill(monitor, SIGSTOP), 0);
        expect_ok(cri_node_stop(f, container, 0));
        assert_int_equal(container->state, CONTAINER_EXITED);
        assert_int_equal(container->exit_code, 137);
        expect_contains(container->message, "its monitor died");
        expect_ok(cri_node_remove(f, container));
        assert_int_equal(kill(monitor, 0), -1);
        cri_node_remove_pod(f);
        cri_node_done(f);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_exit_is_reported_after_its_record_is_synced),
                cmocka_unit_test(the_stop_signal_comes_first_and_sigkill_after_it),
                cmocka_unit_test(operations_queued_for_a_removed_container_complete),
                cmocka_unit_test(a_container_whose_monitor_hangs_can_be_removed),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
