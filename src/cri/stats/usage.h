/* SPDX-License-Identifier: Apache-2.0 */
/* usage.h - resource usage of a cgroup, a directory tree and a network namespace
 *
 * Values are read on request and not cached here. The kernel's files are parsed as untrusted input:
 * a container that owns its cgroup can hide files, but cannot make us read out of bounds. */
#pragma once

#include <stdint.h>

#include "base/error.h"

/* Pressure stall information of some or of all tasks: percent times 100, and nanoseconds. */
struct cri_pressure {
        double average10, average60, average300;
        uint64_t total;
};

struct cri_pressures {
        bool known;
        struct cri_pressure some, full;
};

/* Selects the files to read. */
enum cri_usage_part {
        USAGE_CPU = 1 << 0,
        USAGE_MEMORY = 1 << 1, /* with swap */
        USAGE_PIDS = 1 << 2,
        USAGE_IO = 1 << 3,
        USAGE_OOM = 1 << 4,
        USAGE_PRESSURE = 1 << 5,
        USAGE_HUGE = 1 << 6, /* huge pages */
        USAGE_ALL = (1 << 7) - 1,
};

enum {
        /* block devices of one cgroup listed individually; the sums include all of them */
        USAGE_DEVICES = 8,
        USAGE_HUGE_SIZES = 4,
};

struct cri_device_usage {
        char name[32];             /* "/dev/vda"; "" if the kernel has no name for it */
        char major[12], minor[12]; /* decimal */
        uint64_t read_bytes, written_bytes;
};

struct cri_huge_usage {
        const char *size; /* "2MB" */
        uint64_t bytes;
};

struct cri_usage {
        uint64_t at; /* nanoseconds since 1970 */

        bool has_cpu;
        uint64_t cpu, cpu_user, cpu_system;             /* nanoseconds */
        uint64_t periods, throttled_periods, throttled; /* the last in nanoseconds */

        bool has_memory;
        uint64_t memory, memory_limit; /* UINT64_MAX = none */
        uint64_t memory_peak, memory_low;
        uint64_t working_set; /* without inactive page cache */
        uint64_t anonymous, file, mapped, kernel, active_file, inactive_file;
        uint64_t faults, major_faults;
        bool has_swap;
        uint64_t swap, swap_limit; /* UINT64_MAX = none */

        bool has_pids;
        uint64_t pids, pids_limit; /* UINT64_MAX = none */

        bool has_io;
        uint64_t read_bytes, written_bytes, reads, writes;
        size_t device_count;
        struct cri_device_usage devices[USAGE_DEVICES];

        size_t huge_count;
        struct cri_huge_usage huge[USAGE_HUGE_SIZES];

        bool has_oom;
        uint64_t oom_kills;
        uint64_t limit_hits; /* number of times the memory limit was hit */

        struct cri_pressures cpu_pressure, memory_pressure, io_pressure;
};

/* ND_NOT_FOUND if the cgroup is gone. A missing controller is not an error: its has_ field is
 * false. */
[[nodiscard]] struct nd_error *cri_usage_of_cgroup(const char *cgroup, unsigned parts, struct cri_usage *ret);

/* "8:0 rbytes=1 wbytes=2 rios=3 ...", one line per device; sets everything but the names, which the
 * text does not contain. */
void cri_usage_parse_devices(const char *text, struct cri_usage *ret);

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull ..." */
[[nodiscard]] bool cri_usage_parse_pressure(const char *text, struct cri_pressures *ret);

struct cri_tree_usage {
        uint64_t at; /* 0 = unknown */
        uint64_t bytes, inodes;
        bool partial; /* incomplete: it took too long, or directories were moved meanwhile */
        uint64_t filesystem_bytes, filesystem_inodes, free_inodes; /* of its filesystem */
};

/* Walks a tree of any depth, never out of it. Blocks until it is done or the time is over, in which
 * case the result is partial: call it in a worker. */
[[nodiscard]] struct nd_error *cri_usage_of_tree(int dir_fd, const char *path, uint64_t deadline_us,
                                                 struct cri_tree_usage *ret);

enum {
        USAGE_INTERFACES = 8, /* per pod, without loopback */
        USAGE_INTERFACE_NAME = 16,
};

struct cri_interface_usage {
        char name[USAGE_INTERFACE_NAME];
        uint64_t received, received_packets, received_errors, received_dropped;
        uint64_t sent, sent_packets, sent_errors, sent_dropped;
};

struct cri_network_usage {
        uint64_t at; /* 0 = unknown */
        size_t count;
        struct cri_interface_usage interfaces[USAGE_INTERFACES];
};

/* Parses the text of /proc/net/dev, without loopback. */
void cri_usage_parse_network(const char *text, struct cri_network_usage *ret);

struct cri_process_usage {
        uint64_t at; /* 0 = unknown */
        uint64_t processes, descriptors, sockets;
        uint64_t descriptors_limit; /* of the process read first; UINT64_MAX = none */
};

/* Reads every process of a cgroup and its descendants. Slow if there are many: call it in a worker.
 * Stops counting at limits far beyond any normal container. */
[[nodiscard]] struct nd_error *cri_usage_of_processes(const char *cgroup, struct cri_process_usage *ret);
