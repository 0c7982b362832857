/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include "base/map.h"
#include "base/text.h"
#include "cri/stats/pod-metrics.h"

static const struct cri_pod_metric_sample *find(const struct cri_pod_metric_sample *samples, size_t count, const char *name,
                                                const char *first) {
        for (size_t i = 0; i < count; i++)
                if (nd_streq(samples[i].metric->name, name) && (!first || nd_streq(samples[i].more[0], first)))
                        return samples + i;
        return nullptr;
}

static void every_metric_is_described_once([[maybe_unused]] void **state) {
        struct nd_map names = {};
        const struct cri_pod_metric *metric;

        for (size_t i = 0; (metric = cri_pod_metrics_at(i)); i++) {
                assert_null(nd_map_put(&names, metric->name, (void *) metric));
                assert_true(nd_has_prefix(metric->name, "container_"));
                assert_true(*metric->help != '\0');
        }
        assert_int_equal(names.count, cri_pod_metrics_count());
        assert_true(names.count > 40);
        nd_map_done(&names);
}

static void container_samples_have_the_values_read([[maybe_unused]] void **state) {
        struct cri_container container = {.started_at = UINT64_C(5000000001),
                                          .request.resources = {.cpu_shares = 512, .memory_limit = -1}};
        struct cri_container_stats stats = {.usage = {.at = 1,
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
        struct cri_pod_metric_sample samples[METRIC_SAMPLES];
        size_t count = cri_pod_metrics_of_container(&container, &stats, METRICS_ALL, samples);

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
        /* it used none */
        assert_null(find(samples, count, "container_blkio_device_usage_total", nullptr));
        assert_null(find(samples, count, "container_oom_events_total", nullptr)); /* not known */
        assert_null(find(samples, count, "container_network_receive_bytes_total", nullptr));
}

static void pod_samples_are_those_of_its_interfaces([[maybe_unused]] void **state) {
        struct cri_sandbox_stats stats = {.network = {.at = 1, .count = USAGE_INTERFACES}};
        struct cri_pod_metric_sample samples[METRIC_SAMPLES];
        size_t count;

        for (size_t i = 0; i < USAGE_INTERFACES; i++) {
                stats.network.interfaces[i].name[0] = (char) ('a' + i);
                stats.network.interfaces[i].sent = i;
        }
        count = cri_pod_metrics_of_sandbox(&stats, METRICS_ALL, samples);
        assert_int_equal(count, 8 * USAGE_INTERFACES);
        assert_int_equal(find(samples, count, "container_network_transmit_bytes_total", "c")->value, 2);
}

/* A full node in one message: 2,000 containers of 1,000 pods, with labels of realistic length. */
static void core_metrics_of_a_full_node_fit_into_one_message([[maybe_unused]] void **state) {
        /* bytes: all labels of a sample, name and numbers */
        enum { CONTAINERS = 2000, PODS = 1000, LABELS = 400, REST = 40 };
        struct cri_container container = {};
        struct cri_container_stats stats = {
                .usage = {.at = 1, .has_cpu = true, .has_memory = true, .has_oom = true, .has_io = true, .has_pids = true},
                .layer = {.at = 1},
                .processes = {.at = 1}};
        struct cri_sandbox_stats pod = {.network = {.at = 1, .count = 2}};
        struct cri_pod_metric_sample samples[METRIC_SAMPLES];
        size_t core = cri_pod_metrics_of_container(&container, &stats, METRICS_CORE, samples), own;

        assert_non_null(find(samples, core, "container_cpu_usage_seconds_total", nullptr));
        assert_non_null(find(samples, core, "container_memory_working_set_bytes", nullptr));
        assert_null(find(samples, core, "container_memory_mapped_file", nullptr));
        own = cri_pod_metrics_of_sandbox(&pod, METRICS_CORE, samples);
        assert_int_equal(own, 4);
        assert_true((CONTAINERS * core + PODS * own) * (LABELS + REST) < 16 << 20);
        assert_true(cri_pod_metrics_of_container(&container, &stats, METRICS_ALL, samples) > 3 * core);
}

static void labels_of_a_pod_have_an_empty_container([[maybe_unused]] void **state) {
        struct cri_sandbox sandbox = {
                .request = {.name = (char *) "pod", .namespace = (char *) "space", .cgroup_parent = (char *) "/parent"}};
        struct cri_container container = {.cgroup = (char *) "/parent/x",
                                          .request = {.name = (char *) "main", .image_by_user = (char *) "image"}};
        const char *labels[METRIC_BASE];

        cri_pod_metrics_labels(&sandbox, nullptr, labels);
        assert_string_equal(labels[0], "");
        assert_string_equal(labels[1], "/parent");
        assert_string_equal(labels[4], "space");
        cri_pod_metrics_labels(&sandbox, &container, labels);
        assert_string_equal(labels[0], "main");
        assert_string_equal(labels[2], "image");
        assert_string_equal(labels[5], "pod");
}

static void devices_and_huge_pages_have_a_sample_each([[maybe_unused]] void **state) {
        struct cri_container container = {};
        struct cri_container_stats stats = {.usage = {.at = 1,
                                                      .has_memory = true,
                                                      .memory_low = 4096,
                                                      .huge_count = 1,
                                                      .huge = {{.size = "2MB", .bytes = 2 << 20}}},
                                            .processes = {.at = 1, .descriptors_limit = 1024}};
        struct cri_pod_metric_sample samples[METRIC_SAMPLES];
        const struct cri_pod_metric_sample *found;
        size_t count;

        cri_usage_parse_devices("8:0 rbytes=10 wbytes=20 rios=1 wios=2 dbytes=0 dios=0\n"
                                "what is this\n"
                                "259:1 rbytes=30 wbytes=40 rios=1 wios=2\n"
                                "7:0\n",
                                &stats.usage);
        assert_int_equal(stats.usage.device_count, 2);
        count = cri_pod_metrics_of_container(&container, &stats, METRICS_ALL, samples);
        found = find(samples, count, "container_blkio_device_usage_total", nullptr);
        assert_int_equal(found[0].value, 10);
        assert_string_equal(found[0].more[1], "8");
        assert_string_equal(found[0].more[3], "Read");
        assert_int_equal(found[1].value, 30);
        assert_string_equal(found[1].more[1], "259");
        assert_string_equal(found[1].more[2], "1");
        assert_int_equal(found[2].value, 20);
        assert_string_equal(found[2].more[3], "Write");
        found = find(samples, count, "container_hugetlb_usage_bytes", "2MB");
        assert_int_equal(found->value, 2 << 20);
        assert_int_equal(find(samples, count, "container_ulimits_soft", "max_open_files")->value, 1024);
        assert_int_equal(find(samples, count, "container_spec_memory_reservation_limit_bytes", nullptr)->value, 4096);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_metric_is_described_once),
                cmocka_unit_test(container_samples_have_the_values_read),
                cmocka_unit_test(pod_samples_are_those_of_its_interfaces),
                cmocka_unit_test(core_metrics_of_a_full_node_fit_into_one_message),
                cmocka_unit_test(labels_of_a_pod_have_an_empty_container),
                cmocka_unit_test(devices_and_huge_pages_have_a_sample_each),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
