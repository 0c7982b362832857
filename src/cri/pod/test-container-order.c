/* SPDX-License-Identifier: Apache-2.0 */
/* test-container-order.c - operations, exits and failures in unusual order; see
 * <unit/cri-node.h> */
#include <unit/expect.h>

#include <signal.h>

#include <unit/cri-node.h>
#include <unit/scratch.h>

#include "base/clock.h"

static void set_up(struct cri_node *f) {
        cri_node_make(f);
        cri_node_run_pod(f, true, NAMESPACE_CONTAINER);
}

static void tear_down(struct cri_node *f) {
        cri_node_remove_pod(f);
        cri_node_done(f);
}

static void create_sleeper(struct cri_node *f) {
        struct cri_container_request request = cri_node_request(f, ARGUMENTS("sleep", "1000"));

        expect_ok(cri_node_create(f, &request));
}

/* Waits until the test's OCI runtime has created a file named "now". */
static void wait_for_oci_runtime(struct cri_node *f) {
        uint64_t end = nd_clock_us() + 20 * ND_SECOND_US;

        while (!scratch_has(f->root, "now")) {
                assert_true(nd_clock_us() < end);
                assert_true(sd_event_run(f->parts.loop, 10 * ND_MS_US) >= 0);
        }
}

static void kill_monitor(const struct cri_container *container) {
        pid_t monitor;

        assert_string_not_equal(container->monitor_cgroup, "");
        monitor = cri_node_monitor(container);
        assert_true(monitor > 1);
        assert_int_equal(kill(monitor, SIGKILL), 0);
}

static void expect_nothing_left(const struct cri_node *f) {
        nd_autofree char *containers = nd_format("state/pods/%s/containers", f->sandbox->id);

        assert_int_equal(f->sandbox->containers.count, 0);
        assert_true(!scratch_has(f->root, containers) || scratch_entries(f->root, containers) == 0);
        assert_int_equal(scratch_entries(f->root, "run/containers"), 0);
}

/* ---- monitors that die ---- */

static void a_monitor_that_dies_during_the_creation_undoes_it([[maybe_unused]] void **state) {
        struct cri_node fixture, *f = &fixture;
        struct cri_container_request request;

        cri_node_needs_oci_runtime();
        set_up(f);
        cri_node_use_oci_runtime(f, "create", ": > \"${0%/*}/now\"; sleep 3600");
        request = cri_node_request(f, ARGUMENTS("sleep", "1000"));
        cri_container_create(&f->parts, f->sandbox, &request, "bytes", 5, cri_node_on_container, f, nullptr);
        wait_for_oci_runtime(f);
        kill_monitor(f->sandbox->containers.items[0]);
        expect_error(cri_node_wait(f), ND_INTERNAL, "the container's monitor was killed");
        assert_null(f->container);
        expect_nothing_left(f);
        tear_down(f);
}

static void a_monitor_that_dies_before_the_start_ends_its_container([[maybe_unused]] void **state) {
        struct cri_node fixture, *f = &fixture;

        cri_node_needs_oci_runtime();
        set_up(f);
        create_sleeper(f);
        kill_monitor(f->container);
        cri_node_wait_for_exit(f, f->container);
        expect_error(cri_node_start(f, f->container), ND_PRECONDITION, "its monitor died");
        assert_int_equal(f->container->exit_code, 137);
        assert_string_equal(f->container->reason, "Error");
        expect_ok(cri_node_stop(f, f->container, 10));
        expect_ok(cri_node_remove(f, f->container));
        expect_nothing_left(f);
        tear_down(f);
}

/* The start is requested when the monitor is dead already but the daemon has not noticed yet. */
static void a_start_that_meets_the_death_of_the_monitor_fails([[maybe_unused]] void **state) {
        struct cri_node fixture, *f = &fixture;
        struct cri_node_answer answers[3] = {};

        cri_node_needs_oci_runtime();
        set_up(f);
        create_sleeper(f);
        kill_monitor(f->container);
        (void) usleep(50000);
        cri_container_start(&f->parts, f->container, cri_node_on_answer, &answers[0], nullptr);
        cri_container_stop(&f->parts, f->container, 3600, cri_node_on_answer, &answers[1], nullptr);
        cri_container_remove(&f->parts, f->container, cri_node_on_answer, &answers[2], nullptr);
        cri_node_wait_for_answers(f, answers, nd_count_of(answers));
        assert_int_equal(answers[1].code, ND_OK);
        assert_int_equal(answers[2].code, ND_OK);
        expect_nothing_left(f);
        tear_down(f);
}

static void a_monitor_that_dies_during_the_start_is_a_start_error([[maybe_unused]] void **state) {
        struct cri_node fixture, *f = &fixture;

        cri_node_needs_oci_runtime();
        set_up(f);
        create_sleeper(f);
        cri_node_use_oci_runtime(f, "start", ": > \"${0%/*}/now\"; sleep 1; echo broken >&2; exit 94");
        cri_container_start(&f->parts, f->container, cri_node_on_container, f, nullptr);
        wait_for_oci_runtime(f);
        kill_monitor(f->container);
        expect_error(cri_node_wait(f), ND_INTERNAL, "crun ended with code 94: broken");
        assert_int_equal(f->container->state, CONTAINER_EXITED);
        assert_int_equal(f->container->exit_code, 128);
        assert_string_equal(f->container->reason, "StartError");
        expect_ok(cri_node_remove(f, f->container));
        expect_nothing_left(f);
        tear_down(f);
}

static void a_monitor_that_dies_while_its_container_is_stopped_ends_the_stop([[maybe_unused]] void **state) {
        struct cri_node fixture, *f = &fixture;

        cri_node_needs_oci_runtime();
        set_up(f);
        create_sleeper(f);
        expect_ok(cri_node_start(f, f->container));
        cri_container_stop(&f->parts, f->container, 3600, cri_node_on_container, f, nullptr);
        for (int i = 0; i < 5; i++)
                assert_true(sd_event_run(f->parts.loop, ND_MS_US) >= 0);
        kill_monitor(f->container);
        expect_ok(cri_node_wait(f));
        assert_int_equal(f->container->exit_code, 137);
        expect_contains(f->container->message, "its monitor died");
        tear_down(f);
}

/* ---- queued operations ---- */

static void queued_operations_run_in_order([[maybe_unused]] void **state) {
        struct cri_node fixture, *f = &fixture;
        struct cri_node_answer answers[6] = {};
        struct cri_resource_request resources = {
                .cpuset_cpus = nd_strdup(""), .cpuset_mems = nd_strdup(""), .cpu_shares = 512};
        struct cri_resource_request late = {.cpuset_cpus = nd_strdup(""), .cpuset_mems = nd_strdup(""), .cpu_shares = 512};

        cri_node_needs_oci_runtime();
        set_up(f);
        create_sleeper(f);
        cri_node_use_oci_runtime(f, "update", "exit 0"); /* not every node has the controllers */
        cri_container_start(&f->parts, f->container, cri_node_on_answer, &answers[0], nullptr);
        cri_container_update(&f->parts, f->container, &resources, cri_node_on_answer, &answers[1], nullptr);
        cri_container_stop(&f->parts, f->container, 0, cri_node_on_answer, &answers[2], nullptr);
        cri_container_start(&f->parts, f->container, cri_node_on_answer, &answers[3], nullptr);
        cri_container_remove(&f->parts, f->container, cri_node_on_answer, &answers[4], nullptr);
        cri_container_update(&f->parts, f->container, &late, cri_node_on_answer, &answers[5], nullptr);
        cri_node_wait_for_answers(f, answers, nd_count_of(answers));
        assert_int_equal(answers[0].code, ND_OK);
        assert_int_equal(answers[1].code, ND_OK);
        assert_int_equal(answers[2].code, ND_OK);
        assert_int_equal(answers[3].code, ND_PRECONDITION);
        assert_int_equal(answers[4].code, ND_OK);
        assert_int_equal(answers[5].code, ND_NOT_FOUND);
        expect_nothing_left(f);
        tear_down(f);
}

static void a_stop_during_the_start_waits_for_it_and_ends_the_container([[maybe_unused]] void **state) {
        struct cri_node fixture, *f = &fixture;
        struct cri_node_answer answers[3] = {};

        cri_node_needs_oci_runtime();
        set_up(f);
        create_sleeper(f);
        cri_node_use_oci_runtime(f, "start", ": > \"${0%/*}/now\"; sleep 1");
        cri_container_start(&f->parts, f->container, cri_node_on_answer, &answers[0], nullptr);
        wait_for_oci_runtime(f);
        cri_container_stop(&f->parts, f->container, 0, cri_node_on_answer, &answers[1], nullptr);
        for (int i = 0; i < 5; i++)
                assert_true(sd_event_run(f->parts.loop, ND_MS_US) >= 0);
        assert_false(answers[1].called);
        cri_node_wait_for_answers(f, answers, 2);
        assert_int_equal(answers[0].code, ND_OK);
        assert_int_equal(answers[1].code, ND_OK);
        assert_int_equal(f->container->state, CONTAINER_EXITED);
        assert_int_equal(f->container->exit_code, 137);
        cri_container_remove(&f->parts, f->container, cri_node_on_answer, &answers[2], nullptr);
        cri_node_wait_for_answers(f, answers, 3);
        expect_nothing_left(f);
        tear_down(f);
}

static void an_abandoned_stop_runs_to_completion([[maybe_unused]] void **state) {
        struct cri_node fixture, *f = &fixture;
        struct cri_container_operation *operation = nullptr;

        cri_node_needs_oci_runtime();
        set_up(f);
        create_sleeper(f);
        expect_ok(cri_node_start(f, f->container));
        cri_container_stop(&f->parts, f->container, 1, cri_node_on_container, f, &operation);
        cri_container_abandon(operation);
        cri_node_wait_for_exit(f, f->container);
        assert_false(f->called);
        expect_ok(cri_node_stop(f, f->container, 0));
        tear_down(f);
}

/* ---- after the exit ---- */

static void stop_and_remove_wait_for_the_cleanup([[maybe_unused]] void **state) {
        struct cri_node fixture, *f = &fixture;
        struct cri_container_request request;

        cri_node_needs_oci_runtime();
        set_up(f);
        cri_node_use_oci_runtime(f, "delete", "sleep 1");
        create_sleeper(f);
        expect_ok(cri_node_start(f, f->container));
        expect_ok(cri_node_stop(f, f->container, 0));
        assert_false(f->container->made & CONTAINER_MADE_ENGINE);
        expect_ok(cri_node_remove(f, f->container));

        request = cri_node_request(f, ARGUMENTS("exit", "0"));
        expect_ok(cri_node_create(f, &request));
        expect_ok(cri_node_start(f, f->container));
        cri_node_wait_for_exit(f, f->container);
        assert_true(f->container->made & CONTAINER_MADE_ENGINE); /* crun delete is running */
        expect_ok(cri_node_remove(f, f->container));
        expect_nothing_left(f);
        tear_down(f);
}

/* ---- OCI runtimes that fail ---- */

static void a_removal_that_fails_can_be_repeated([[maybe_unused]] void **state) {
        struct cri_node fixture, *f = &fixture;

        cri_node_needs_oci_runtime();
        set_up(f);
        create_sleeper(f);
        expect_ok(cri_node_start(f, f->container));
        cri_node_use_oci_runtime(f, "delete", "echo broken >&2; exit 94");
        expect_error(cri_node_remove(f, f->container), ND_INTERNAL, "broken");
        assert_non_null(f->container);
        assert_int_equal(f->container->state, CONTAINER_EXITED);
        expect_error(cri_node_remove(f, f->container), ND_INTERNAL, "broken");
        cri_node_use_oci_runtime(f, "delete", "true");
        expect_ok(cri_node_remove(f, f->container));
        expect_nothing_left(f);
        tear_down(f);
}

static void a_creation_that_cannot_be_undone_reports_the_first_error([[maybe_unused]] void **state) {
        struct cri_node fixture, *f = &fixture;
        struct cri_container_request request;

        cri_node_needs_oci_runtime();
        set_up(f);
        cri_node_use_oci_runtime(f, "delete", "echo broken >&2; exit 94");
        request = cri_node_request(f, ARGUMENTS("say", "x"));
        free(request.command.items[0]);
        request.command.items[0] = nd_strdup("/no/such/program");
        expect_error(cri_node_create(f, &request), ND_INTERNAL, "/no/such/program");
        assert_null(f->container);
        assert_int_equal(f->sandbox->containers.count, 1);
        assert_int_equal(f->sandbox->containers.items[0]->state, CONTAINER_NEW);
        cri_node_use_oci_runtime(f, "delete", "true");
        expect_ok(cri_node_remove(f, f->sandbox->containers.items[0]));
        expect_nothing_left(f);
        tear_down(f);
}

static void a_pod_whose_init_does_not_start_is_undone([[maybe_unused]] void **state) {
        struct cri_node fixture, *f = &fixture;

        cri_node_needs_oci_runtime();
        if (system("command -v catatonit >/dev/null") != 0)
                skip_because("catatonit is not installed");
        cri_node_make(f);
        cri_node_use_oci_runtime(f, "start", "echo broken >&2; exit 94");
        expect_error(cri_node_try_pod(f, true, NAMESPACE_POD), ND_INTERNAL, "crun ended with code 94: broken");
        assert_null(f->sandbox);
        assert_int_equal(f->parts.pods.containers.count, 0);
        assert_int_equal(scratch_entries(f->root, "run/containers"), 0);
        cri_node_use_oci_runtime(f, "start", "true");
        cri_node_run_pod(f, true, NAMESPACE_POD);
        assert_int_equal(f->sandbox->init->state, CONTAINER_RUNNING);
        tear_down(f);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_monitor_that_dies_during_the_creation_undoes_it),
                cmocka_unit_test(a_monitor_that_dies_before_the_start_ends_its_container),
                cmocka_unit_test(a_start_that_meets_the_death_of_the_monitor_fails),
                cmocka_unit_test(a_monitor_that_dies_during_the_start_is_a_start_error),
                cmocka_unit_test(a_monitor_that_dies_while_its_container_is_stopped_ends_the_stop),
                cmocka_unit_test(queued_operations_run_in_order),
                cmocka_unit_test(a_stop_during_the_start_waits_for_it_and_ends_the_container),
                cmocka_unit_test(an_abandoned_stop_runs_to_completion),
                cmocka_unit_test(stop_and_remove_wait_for_the_cleanup),
                cmocka_unit_test(a_removal_that_fails_can_be_repeated),
                cmocka_unit_test(a_creation_that_cannot_be_undone_reports_the_first_error),
                cmocka_unit_test(a_pod_whose_init_does_not_start_is_undone),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
