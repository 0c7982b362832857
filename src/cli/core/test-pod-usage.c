/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include "cli/core/pod-usage.h"

/* A sample of two pods with one container each, and their CPU time. */
struct world {
        Nodens__V1__PodEntry pods[2];
        Nodens__V1__PodEntry *pod_list[2];
        Nodens__V1__ContainerEntry containers[2];
        Nodens__V1__ContainerEntry *container_list[2];
        Nodens__V1__PodsAnswer pods_answer;
        Nodens__V1__Usage usages[4];
        Nodens__V1__ContainerUsage container_usages[2];
        Nodens__V1__ContainerUsage *container_usage_list[2];
        Nodens__V1__PodUsage pod_usages[2];
        Nodens__V1__PodUsage *pod_usage_list[2];
        Nodens__V1__UsageAnswer usage_answer;
        struct cli_usage_sample sample;
};

static void set_usage(Nodens__V1__Usage *usage, uint64_t at, uint64_t cpu) {
        nodens__v1__usage__init(usage);
        usage->at = at;
        usage->has_cpu = true;
        usage->cpu = cpu;
}

static void fill(struct world *w, uint64_t at, uint64_t first, uint64_t second) {
        static const char *const ids[] = {"p0", "p1"}, *const container_ids[] = {"c0", "c1"},
                                 *const names[] = {"zeta", "alpha"};
        const uint64_t cpu[] = {first, second};

        nodens__v1__pods_answer__init(&w->pods_answer);
        nodens__v1__usage_answer__init(&w->usage_answer);
        for (size_t i = 0; i < 2; i++) {
                nodens__v1__pod_entry__init(&w->pods[i]);
                nodens__v1__container_entry__init(&w->containers[i]);
                nodens__v1__container_usage__init(&w->container_usages[i]);
                nodens__v1__pod_usage__init(&w->pod_usages[i]);
                set_usage(&w->usages[i], at, cpu[i]);
                set_usage(&w->usages[2 + i], at, 2 * cpu[i]);
                w->containers[i].id = w->container_usages[i].id = (char *) container_ids[i];
                w->containers[i].name = (char *) "one";
                w->container_usages[i].usage = &w->usages[i];
                w->container_list[i] = &w->containers[i];
                w->container_usage_list[i] = &w->container_usages[i];
                w->pods[i].id = w->pod_usages[i].id = (char *) ids[i];
                w->pods[i].namespace_ = (char *) "default";
                w->pods[i].name = (char *) names[i];
                w->pods[i].containers = &w->container_list[i];
                w->pods[i].n_containers = w->pod_usages[i].n_containers = 1;
                w->pod_usages[i].usage = &w->usages[2 + i];
                w->pod_usages[i].containers = &w->container_usage_list[i];
                w->pod_list[i] = &w->pods[i];
                w->pod_usage_list[i] = &w->pod_usages[i];
        }
        w->pods_answer.pods = w->pod_list;
        w->usage_answer.pods = w->pod_usage_list;
        w->pods_answer.n_pods = w->usage_answer.n_pods = 2;
        w->sample = (struct cli_usage_sample) {.pods = &w->pods_answer.base, .usage = &w->usage_answer.base};
}

static void a_rate_is_the_use_between_two_samples([[maybe_unused]] void **state) {
        struct world before = {}, now = {};
        struct cli_usage_rows rows = {};

        fill(&before, 1000000000, 100, 500000000);
        fill(&now, 3000000000, 200000100, 2500000000);
        cli_usage_of_containers(&before.sample, &now.sample, &rows);
        assert_int_equal(rows.count, 2);
        assert_string_equal(rows.items[0].pod->name, "alpha"); /* by name */
        assert_true(rows.items[0].has_rate);
        assert_int_equal(rows.items[0].nano_cores, 1000000000);
        assert_int_equal(rows.items[1].nano_cores, 100000000);
        nd_vector_done(&rows);
        cli_usage_of_pods(&before.sample, &now.sample, &rows);
        assert_int_equal(rows.count, 2);
        assert_int_equal(rows.items[0].nano_cores, 2000000000);
        assert_null(rows.items[0].container);
        nd_vector_done(&rows);
}

static void rows_are_sorted_by_cpu_and_unknown_rates_come_last([[maybe_unused]] void **state) {
        struct world before = {}, now = {};
        struct cli_usage_rows rows = {};

        fill(&before, 1000000000, 0, 0);
        fill(&now, 2000000000, 500, 100);
        cli_usage_of_containers(&before.sample, &now.sample, &rows);
        cli_usage_sort_by_cpu(&rows);
        assert_string_equal(rows.items[0].pod->name, "zeta");
        rows.items[0].has_rate = false;
        cli_usage_sort_by_cpu(&rows);
        assert_string_equal(rows.items[1].pod->name, "zeta");
        nd_vector_done(&rows);
}

static void one_sample_or_a_reset_counter_gives_no_rate([[maybe_unused]] void **state) {
        struct world before = {}, now = {};
        struct cli_usage_sample none = {};
        struct cli_usage_rows rows = {};

        fill(&before, 1000000000, 1000, 0);
        fill(&now, 2000000000, 10, 100);
        cli_usage_of_containers(&none, &now.sample, &rows);
        assert_false(rows.items[0].has_rate || rows.items[1].has_rate);
        nd_vector_done(&rows);
        cli_usage_of_containers(&before.sample, &now.sample, &rows);
        assert_true(rows.items[0].has_rate);
        assert_false(rows.items[1].has_rate);
        nd_vector_done(&rows);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_rate_is_the_use_between_two_samples),
                cmocka_unit_test(rows_are_sorted_by_cpu_and_unknown_rates_come_last),
                cmocka_unit_test(one_sample_or_a_reset_counter_gives_no_rate),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
