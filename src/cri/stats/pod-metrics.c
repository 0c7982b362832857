/* SPDX-License-Identifier: Apache-2.0 */
/* pod-metrics.c - see pod-metrics.h
 *
 * One table maps each metric to a field of the statistics. The CRI carries integers only, so
 * seconds are truncated. */
#include "cri/stats/pod-metrics.h"
#include "base/clock.h"

#include <string.h>
#include <time.h>

const char *const cri_pod_metric_base_labels[METRIC_BASE] = {"container", "id", "image", "name", "namespace", "pod"};

enum {
        SECOND = 1000000000,
};

/* The struct that a row reads. */
enum source {
        FROM_USAGE,     /* struct cri_usage */
        FROM_LAYER,     /* struct cri_tree_usage */
        FROM_INTERFACE, /* struct cri_interface_usage, one sample each */
        FROM_RESOURCES, /* struct cri_resource_request; 0 = not set */
        FROM_PROCESSES, /* struct cri_process_usage */
        FROM_DEVICE,    /* struct cri_device_usage, one sample each */
        FROM_HUGE,      /* struct cri_huge_usage, one sample each */
        FROM_CLOCK,     /* current time */
        FROM_START,     /* start time of the container */
};

struct row {
        struct cri_pod_metric metric;
        enum source source;
        size_t guard; /* offset of a bool beside the value that must be true; only for FROM_USAGE */
        size_t value; /* offset of a uint64_t (int64_t in resources) */
        uint64_t divisor;
        const char *more[METRIC_MORE];
        bool core; /* included in METRICS_CORE */
};

#define USAGE(guarded, field, by)                                                                                             \
        .source = FROM_USAGE, .guard = offsetof(struct cri_usage, guarded), .value = offsetof(struct cri_usage, field),       \
        .divisor = (by)
#define LAYER(field) .source = FROM_LAYER, .value = offsetof(struct cri_tree_usage, field), .divisor = 1
#define INTERFACE(field) .source = FROM_INTERFACE, .value = offsetof(struct cri_interface_usage, field), .divisor = 1
#define RESOURCES(field) .source = FROM_RESOURCES, .value = offsetof(struct cri_resource_request, field), .divisor = 1
#define PROCESSES(field) .source = FROM_PROCESSES, .value = offsetof(struct cri_process_usage, field), .divisor = 1
#define DEVICE(field) .source = FROM_DEVICE, .value = offsetof(struct cri_device_usage, field), .divisor = 1
#define COUNTER(text, words) .metric = {.name = (text), .help = (words), .counter = true}
#define COUNTER_BY(text, words, ...) .metric = {.name = (text), .help = (words), .counter = true, .more = {__VA_ARGS__}}
#define GAUGE(text, words) .metric = {.name = (text), .help = (words)}
#define CORE .core = true
#define GAUGE_BY(text, words, ...) .metric = {.name = (text), .help = (words), .more = {__VA_ARGS__}}

/* Rows of one metric are adjacent. One metric of the CRI's list is missing:
 * container_hugetlb_max_usage_bytes, which cgroup v2 does not provide. */
static const struct row rows[] = {
        {COUNTER("container_cpu_usage_seconds_total", "Processor time used, in seconds"), USAGE(has_cpu, cpu, SECOND), CORE},
        {COUNTER("container_cpu_user_seconds_total", "Processor time used in user mode, in seconds"),
         USAGE(has_cpu, cpu_user, SECOND)},
        {COUNTER("container_cpu_system_seconds_total", "Processor time used in the kernel, in seconds"),
         USAGE(has_cpu, cpu_system, SECOND)},
        {COUNTER("container_cpu_cfs_periods_total", "Periods in which the quota was enforced"), USAGE(has_cpu, periods, 1),
         CORE},
        {COUNTER("container_cpu_cfs_throttled_periods_total", "Periods in which the quota was used up"),
         USAGE(has_cpu, throttled_periods, 1), CORE},
        {COUNTER("container_cpu_cfs_throttled_seconds_total", "Time spent waiting for the next period, in seconds"),
         USAGE(has_cpu, throttled, SECOND)},

        {GAUGE("container_memory_usage_bytes", "Memory in use, page cache included"), USAGE(has_memory, memory, 1), CORE},
        {GAUGE("container_memory_working_set_bytes", "Memory in use without inactive page cache"),
         USAGE(has_memory, working_set, 1), CORE},
        {GAUGE("container_memory_rss", "Anonymous memory"), USAGE(has_memory, anonymous, 1), CORE},
        {GAUGE("container_memory_cache", "Page cache"), USAGE(has_memory, file, 1)},
        {GAUGE("container_memory_mapped_file", "Page cache that is mapped"), USAGE(has_memory, mapped, 1)},
        {GAUGE("container_memory_kernel_usage", "Memory that the kernel uses on behalf of the container"),
         USAGE(has_memory, kernel, 1)},
        {GAUGE("container_memory_total_active_file_bytes", "Page cache used recently"), USAGE(has_memory, active_file, 1)},
        {GAUGE("container_memory_total_inactive_file_bytes", "Page cache not used recently"),
         USAGE(has_memory, inactive_file, 1)},
        {GAUGE("container_memory_swap", "Memory swapped out"), USAGE(has_memory, swap, 1)},
        {GAUGE("container_memory_max_usage_bytes", "Peak memory use"), USAGE(has_oom, memory_peak, 1)},
        {COUNTER_BY("container_memory_failures_total", "Page faults", "failure_type", "scope"), USAGE(has_memory, faults, 1),
         .more = {"pgfault", "container"}},
        {COUNTER_BY("container_memory_failures_total", "Page faults", "failure_type", "scope"),
         USAGE(has_memory, major_faults, 1), .more = {"pgmajfault", "container"}},
        {COUNTER("container_oom_events_total", "Processes killed by the OOM killer"), USAGE(has_oom, oom_kills, 1), CORE},
        {COUNTER("container_memory_failcnt", "Number of times the memory limit was hit"), USAGE(has_oom, limit_hits, 1)},

        {GAUGE_BY("container_fs_usage_bytes", "Bytes written to the container's own layer", "device"), LAYER(bytes), CORE},
        {GAUGE_BY("container_fs_limit_bytes", "Size of the filesystem of that layer", "device"), LAYER(filesystem_bytes)},
        {GAUGE_BY("container_fs_inodes_total", "Inodes of that filesystem", "device"), LAYER(filesystem_inodes)},
        {GAUGE_BY("container_fs_inodes_free", "Free inodes of that filesystem", "device"), LAYER(free_inodes)},
        {COUNTER_BY("container_fs_reads_bytes_total", "Bytes read from block devices", "device"),
         USAGE(has_io, read_bytes, 1)},
        {COUNTER_BY("container_fs_reads_total", "Reads from block devices", "device"), USAGE(has_io, reads, 1)},
        {COUNTER_BY("container_fs_writes_bytes_total", "Bytes written to block devices", "device"),
         USAGE(has_io, written_bytes, 1)},
        {COUNTER_BY("container_fs_writes_total", "Writes to block devices", "device"), USAGE(has_io, writes, 1)},

        {COUNTER_BY("container_blkio_device_usage_total", "Bytes read from and written to each block device", "device",
                    "major", "minor", "operation"),
         DEVICE(read_bytes), .more = {[3] = "Read"}},
        {COUNTER_BY("container_blkio_device_usage_total", "Bytes read from and written to each block device", "device",
                    "major", "minor", "operation"),
         DEVICE(written_bytes), .more = {[3] = "Write"}},
        {GAUGE_BY("container_hugetlb_usage_bytes", "Huge pages in use", "pagesize"), .source = FROM_HUGE,
         .value = offsetof(struct cri_huge_usage, bytes), .divisor = 1},

        {COUNTER_BY("container_network_receive_bytes_total", "Bytes received", "interface"), INTERFACE(received), CORE},
        {COUNTER_BY("container_network_receive_packets_total", "Packets received", "interface"), INTERFACE(received_packets)},
        {COUNTER_BY("container_network_receive_packets_dropped_total", "Received packets that were dropped", "interface"),
         INTERFACE(received_dropped)},
        {COUNTER_BY("container_network_receive_errors_total", "Errors while receiving", "interface"),
         INTERFACE(received_errors)},
        {COUNTER_BY("container_network_transmit_bytes_total", "Bytes sent", "interface"), INTERFACE(sent), CORE},
        {COUNTER_BY("container_network_transmit_packets_total", "Packets sent", "interface"), INTERFACE(sent_packets)},
        {COUNTER_BY("container_network_transmit_packets_dropped_total", "Packets that were dropped instead of sent",
                    "interface"),
         INTERFACE(sent_dropped)},
        {COUNTER_BY("container_network_transmit_errors_total", "Errors while sending", "interface"), INTERFACE(sent_errors)},

        {GAUGE("container_processes", "Processes"), PROCESSES(processes)},
        {GAUGE("container_file_descriptors", "Open descriptors of all processes"), PROCESSES(descriptors)},
        {GAUGE("container_sockets", "Open sockets of all processes"), PROCESSES(sockets)},
        {GAUGE_BY("container_ulimits_soft", "Soft limits of the container's first process", "ulimit"),
         PROCESSES(descriptors_limit), .more = {"max_open_files"}},
        {GAUGE("container_threads", "Threads and processes"), USAGE(has_pids, pids, 1)},
        {GAUGE("container_threads_max", "Maximum number of threads and processes; 0 = no limit"),
         USAGE(has_pids, pids_limit, 1)},
        {GAUGE("container_last_seen", "When this was read, in seconds since 1970"), .source = FROM_CLOCK, .divisor = SECOND},
        {GAUGE("container_start_time_seconds", "When the container was started, in seconds since 1970"), .source = FROM_START,
         .divisor = SECOND, CORE},
        {GAUGE("container_spec_cpu_period", "Period of the processor quota, in microseconds"), RESOURCES(cpu_period), CORE},
        {GAUGE("container_spec_cpu_quota", "Processor quota in each period, in microseconds"), RESOURCES(cpu_quota), CORE},
        {GAUGE("container_spec_cpu_shares", "Share of the processor"), RESOURCES(cpu_shares)},
        {GAUGE("container_spec_memory_limit_bytes", "Memory limit"), RESOURCES(memory_limit), CORE},
        {GAUGE("container_spec_memory_reservation_limit_bytes", "Memory protected from reclaim"),
         USAGE(has_memory, memory_low, 1)},
        {GAUGE("container_spec_memory_swap_limit_bytes", "Limit of memory and swap"), RESOURCES(memory_swap_limit)},

        {COUNTER("container_pressure_cpu_waiting_seconds_total", "Time in which some task waited for a processor"),
         USAGE(cpu_pressure.known, cpu_pressure.some.total, SECOND)},
        {COUNTER("container_pressure_cpu_stalled_seconds_total", "Time in which all tasks waited for a processor"),
         USAGE(cpu_pressure.known, cpu_pressure.full.total, SECOND)},
        {COUNTER("container_pressure_memory_waiting_seconds_total", "Time in which some task waited for memory"),
         USAGE(memory_pressure.known, memory_pressure.some.total, SECOND)},
        {COUNTER("container_pressure_memory_stalled_seconds_total", "Time in which all tasks waited for memory"),
         USAGE(memory_pressure.known, memory_pressure.full.total, SECOND)},
        {COUNTER("container_pressure_io_waiting_seconds_total", "Time in which some task waited for a device"),
         USAGE(io_pressure.known, io_pressure.some.total, SECOND)},
        {COUNTER("container_pressure_io_stalled_seconds_total", "Time in which all tasks waited for a device"),
         USAGE(io_pressure.known, io_pressure.full.total, SECOND)},
};

const struct cri_pod_metric *cri_pod_metrics_at(size_t number) {
        const char *last = "";

        for (size_t i = 0; i < nd_count_of(rows); i++) {
                if (nd_streq(rows[i].metric.name, last))
                        continue; /* one metric with several rows */
                if (number-- == 0)
                        return &rows[i].metric;
                last = rows[i].metric.name;
        }
        return nullptr;
}

size_t cri_pod_metrics_count(void) {
        size_t count = 0;

        while (cri_pod_metrics_at(count))
                count++;
        return count;
}

void cri_pod_metrics_labels(const struct cri_sandbox *sandbox, const struct cri_container *container,
                            const char *ret[static METRIC_BASE]) {
        ret[0] = container ? container->request.name : "";
        ret[1] = container ? container->cgroup : sandbox->request.cgroup_parent;
        ret[2] = container ? container->request.image_by_user : "";
        ret[3] = container ? container->id : sandbox->id;
        ret[4] = sandbox->request.namespace;
        ret[5] = sandbox->request.name;
}

static uint64_t field(const void *base, size_t offset) {
        uint64_t value;

        memcpy(&value, (const char *) base + offset, sizeof value);
        return value;
}

/* False if there is no value. */
static bool value_of(const struct row *row, const struct cri_container *container, const struct cri_container_stats *stats,
                     uint64_t *ret) {
        switch (row->source) {
        case FROM_USAGE:
                if (stats->usage.at == 0 || !*((const bool *) &stats->usage + row->guard))
                        return false;
                *ret = field(&stats->usage, row->value);
                if (*ret == UINT64_MAX)
                        *ret = 0; /* no limit */
                break;
        case FROM_LAYER:
                if (stats->layer.at == 0)
                        return false;
                *ret = field(&stats->layer, row->value);
                break;
        case FROM_RESOURCES:
                *ret = field(&container->request.resources, row->value);
                if ((int64_t) *ret < 0)
                        *ret = 0; /* no limit */
                break;
        case FROM_PROCESSES:
                if (stats->processes.at == 0)
                        return false;
                *ret = field(&stats->processes, row->value);
                if (*ret == UINT64_MAX)
                        *ret = 0; /* no limit */
                break;
        case FROM_CLOCK:
                *ret = nd_clock_wall_ns();
                break;
        case FROM_START:
                *ret = container->started_at;
                break;
        case FROM_INTERFACE:
        case FROM_DEVICE:
        case FROM_HUGE:
                return false; /* sources with several samples */
        }
        *ret /= row->divisor;
        return true;
}

static struct cri_pod_metric_sample sample(const struct row *row, uint64_t value) {
        struct cri_pod_metric_sample s = {.metric = &row->metric, .value = value};

        for (size_t i = 0; i < METRIC_MORE; i++)
                s.more[i] = row->metric.more[i] && !row->more[i] ? "" : row->more[i];
        return s;
}

static size_t add_devices(const struct row *row, const struct cri_usage *usage, struct cri_pod_metric_sample *ret) {
        for (size_t i = 0; i < usage->device_count; i++) {
                const struct cri_device_usage *device = usage->devices + i;

                ret[i] = sample(row, field(device, row->value));
                ret[i].more[0] = device->name;
                ret[i].more[1] = device->major;
                ret[i].more[2] = device->minor;
        }
        return usage->device_count;
}

static size_t add_huge(const struct row *row, const struct cri_usage *usage, struct cri_pod_metric_sample *ret) {
        for (size_t i = 0; i < usage->huge_count; i++) {
                ret[i] = sample(row, usage->huge[i].bytes);
                ret[i].more[0] = usage->huge[i].size;
        }
        return usage->huge_count;
}

static_assert(nd_count_of(rows) + 2 * USAGE_DEVICES + USAGE_HUGE_SIZES <= METRIC_SAMPLES);

static bool is_told(const struct row *row, enum cri_pod_metric_detail detail) {
        return row->core || detail == METRICS_ALL;
}

size_t cri_pod_metrics_of_container(const struct cri_container *container, const struct cri_container_stats *stats,
                                    enum cri_pod_metric_detail detail,
                                    struct cri_pod_metric_sample ret[static METRIC_SAMPLES]) {
        size_t count = 0;
        uint64_t value = 0;

        for (const struct row *row = rows; row < rows + nd_count_of(rows); row++) {
                if (!is_told(row, detail))
                        continue;
                if (row->source == FROM_DEVICE)
                        count += add_devices(row, &stats->usage, ret + count);
                else if (row->source == FROM_HUGE)
                        count += add_huge(row, &stats->usage, ret + count);
                else if (value_of(row, container, stats, &value))
                        ret[count++] = sample(row, value);
        }
        return count;
}

size_t cri_pod_metrics_of_sandbox(const struct cri_sandbox_stats *stats, enum cri_pod_metric_detail detail,
                                  struct cri_pod_metric_sample ret[static METRIC_SAMPLES]) {
        size_t count = 0;

        for (size_t i = 0; i < stats->network.count; i++) {
                const struct cri_interface_usage *interface = stats->network.interfaces + i;

                for (size_t k = 0; k < nd_count_of(rows) && count < METRIC_SAMPLES; k++) {
                        if (rows[k].source != FROM_INTERFACE || !is_told(rows + k, detail))
                                continue;
                        ret[count] = sample(rows + k, field(interface, rows[k].value));
                        ret[count++].more[0] = interface->name;
                }
        }
        return count;
}
