/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include "base/map.h"
#include "base/text.h"
#include "cri/metrics.h"

static const struct metric_sample *find(const struct metric_sample *samples, size_t count, const char *name,
                                        const char *first) {
        for (size_t i = 0; i < count; i++)
                if (nd_streq(samples[i].metric->name, name) && (!first || nd_streq(samples[i].more[0], first)))
                        return samples + i;
        return nullptr;
}

static void every_metric_is_described_once([[maybe_unused]] void **state) {
        struct nd_map names = {};
        const struct metric *metric;

        for (size_t i = 0; (metric = metrics_at(i)); i++) {
                assert_null(nd_map_put(&names, metric->name, (void *) metric));
                assert_true(nd_has_prefix(metric->name, "container_"));
                assert_true(*metric->help != '\0');
        }
        assert_int_equal(names.count, metrics_count());
        assert_true(names.count > 40);
        nd_map_done(&names);
}

static void a_containers_samples_are_what_was_read([[maybe_unused]] void **state) {
        struct container container = {.started_at = UINT64_C(5000000001),
                                      .request.resources = {.cpu_shares = 512, .memory_limit = -1}};
        struct container_stats stats = {.usage = {.at = 1,
                                                  .has_cpu = true,
                                                  .cpu = UINT64_C(7999999999),
                                                  .has_memory = true,
                                                  .memory = 100,
                                                  .faults = 3,
                                                  .major_faults = 4,
                                                  .has_pids = true,
                                                  .pids = 2,
                                                  .pids_limit = UINT64_MAX},
                                        .layer = {.at = 1, .bytes = 77},
                                        .processes = {.at = 1, .processes = 2, .descriptors = 9, .sockets = 1}};
        struct metric_sample samples[METRIC_SAMPLES];
        size_t count = metrics_of_container(&container, &stats, samples);

        assert_int_equal(find(samples, count, "container_cpu_usage_seconds_total", nullptr)->value, 7);
        assert_int_equal(find(samples, count, "container_memory_usage_bytes", nullptr)->value, 100);
        assert_int_equal(find(samples, count, "container_memory_failures_total", "pgfault")->value, 3);
        assert_int_equal(find(samples, count, "container_memory_failures_total", "pgmajfault")->value, 4);
        assert_int_equal(find(samples, count, "container_threads_max", nullptr)->value, 0);
        assert_int_equal(find(samples, count, "container_fs_usage_bytes", nullptr)->value, 77);
        assert_string_equal(find(samples, count, "container_fs_usage_bytes", nullptr)->more[0], "");
        assert_int_equal(find(samples, count, "container_start_time_seconds", nullptr)->value, 5);
        assert_int_equal(find(samples, count, "container_spec_cpu_shares", nullptr)->value, 512);
        assert_int_equal(find(samples, count, "container_spec_memory_limit_bytes", nullptr)->value, 0);
        assert_int_equal(find(samples, count, "container_sockets", nullptr)->value, 1);
        assert_null(find(samples, count, "container_oom_events_total", nullptr)); /* nobody could look */
        assert_null(find(samples, count, "container_network_receive_bytes_total", nullptr));
}

static void a_pods_samples_are_its_interfaces([[maybe_unused]] void **state) {
        struct sandbox_stats stats = {.network = {.at = 1, .count = USAGE_INTERFACES}};
        struct metric_sample samples[METRIC_SAMPLES];
        size_t count;

        for (size_t i = 0; i < USAGE_INTERFACES; i++) {
                stats.network.interfaces[i].name[0] = (char) ('a' + i);
                stats.network.interfaces[i].sent = i;
        }
        count = metrics_of_sandbox(&stats, samples);
        assert_int_equal(count, 8 * USAGE_INTERFACES);
        assert_int_equal(find(samples, count, "container_network_transmit_bytes_total", "c")->value, 2);
}

static void a_pods_own_labels_name_no_container([[maybe_unused]] void **state) {
        struct sandbox sandbox = {
                .request = {.name = (char *) "pod", .namespace = (char *) "space", .cgroup_parent = (char *) "/parent"}};
        struct container container = {.cgroup = (char *) "/parent/x",
                                      .request = {.name = (char *) "main", .image_by_user = (char *) "image"}};
        const char *labels[METRIC_BASE];

        metrics_labels(&sandbox, nullptr, labels);
        assert_string_equal(labels[0], "");
        assert_string_equal(labels[1], "/parent");
        assert_string_equal(labels[4], "space");
        metrics_labels(&sandbox, &container, labels);
        assert_string_equal(labels[0], "main");
        assert_string_equal(labels[2], "image");
        assert_string_equal(labels[5], "pod");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_metric_is_described_once),
                cmocka_unit_test(a_containers_samples_are_what_was_read),
                cmocka_unit_test(a_pods_samples_are_its_interfaces),
                cmocka_unit_test(a_pods_own_labels_name_no_container),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
