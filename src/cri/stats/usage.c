/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/stats/usage.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/vector.h"
#include "sys/calls.h"
#include "sys/cgroup.h"

enum {
        MICROSECOND = 1000,
        PROCESSES = 65536, /* maximum read per container */
        LINKS = 65536,     /* maximum descriptors read per container */
        CGROUPS = 4096,    /* maximum cgroups per container, nested ones included */
};

/* ---- cgroups ---- */

static uint64_t key(const char *text, const char *name) {
        uint64_t value = 0;

        return nd_cgroup_key(text, name, &value) ? value : 0;
}

static bool number(int cgroup, const char *file, char *text, uint64_t *ret) {
        return nd_cgroup_read(cgroup, file, text) && nd_cgroup_number(text, ret);
}

static void read_cpu(int cgroup, char *text, struct cri_usage *u) {
        uint64_t microseconds;

        if (!nd_cgroup_read(cgroup, "cpu.stat", text) || !nd_cgroup_key(text, "usage_usec", &microseconds))
                return;
        u->has_cpu = true;
        u->cpu = microseconds * MICROSECOND;
        u->cpu_user = key(text, "user_usec") * MICROSECOND;
        u->cpu_system = key(text, "system_usec") * MICROSECOND;
        u->periods = key(text, "nr_periods");
        u->throttled_periods = key(text, "nr_throttled");
        u->throttled = key(text, "throttled_usec") * MICROSECOND;
}

static void read_memory(int cgroup, char *text, struct cri_usage *u) {
        if (!number(cgroup, "memory.current", text, &u->memory))
                return;
        u->has_memory = true;
        if (!number(cgroup, "memory.max", text, &u->memory_limit))
                u->memory_limit = UINT64_MAX;
        if (nd_cgroup_read(cgroup, "memory.stat", text)) {
                u->anonymous = key(text, "anon");
                u->file = key(text, "file");
                u->mapped = key(text, "file_mapped");
                u->kernel = key(text, "kernel");
                u->active_file = key(text, "active_file");
                u->inactive_file = key(text, "inactive_file");
                u->faults = key(text, "pgfault");
                u->major_faults = key(text, "pgmajfault");
        }
        (void) !number(cgroup, "memory.low", text, &u->memory_low);
        u->working_set = u->memory > u->inactive_file ? u->memory - u->inactive_file : 0;
        u->has_swap = number(cgroup, "memory.swap.current", text, &u->swap);
        if (u->has_swap && !number(cgroup, "memory.swap.max", text, &u->swap_limit))
                u->swap_limit = UINT64_MAX;
}

/* Reads decimal digits up to a delimiter; false if there are none or too many. */
static bool take_digits(const char **at, char delimiter, char *ret, size_t size) {
        size_t length = strspn(*at, "0123456789");

        if (length == 0 || length >= size || (*at)[length] != delimiter)
                return false;
        memcpy(ret, *at, length);
        ret[length] = '\0';
        *at += length + 1;
        return true;
}

void cri_usage_parse_devices(const char *text, struct cri_usage *ret) {
        char line[512];

        ret->device_count = 0;
        for (const char *next = text; *next && ret->device_count < USAGE_DEVICES;) {
                struct cri_device_usage *device = ret->devices + ret->device_count;
                size_t length = strcspn(next, "\n");
                const char *at = line;

                *device = (struct cri_device_usage) {};
                if (length < sizeof line) {
                        memcpy(line, next, length);
                        line[length] = '\0';
                        if (take_digits(&at, ':', device->major, sizeof device->major) &&
                            take_digits(&at, ' ', device->minor, sizeof device->minor) &&
                            nd_cgroup_sum(at, "rbytes", &device->read_bytes) &&
                            nd_cgroup_sum(at, "wbytes", &device->written_bytes))
                                ret->device_count++;
                }
                next += length + (next[length] == '\n');
        }
}

/* Sets the device's name from the kernel's symbolic link for its numbers. */
static void name_device(struct cri_device_usage *device) {
        nd_autofree char *path = nd_format("/sys/dev/block/%s:%s", device->major, device->minor);
        char target[256];
        ssize_t n = readlink(path, target, sizeof target - 1);
        const char *slash;

        if (n <= 0)
                return;
        target[n] = '\0';
        slash = strrchr(target, '/');
        if (slash && strlen(slash) + strlen("/dev") < sizeof device->name)
                (void) snprintf(device->name, sizeof device->name, "/dev%.*s", (int) sizeof device->name - 5, slash);
}

/* The sizes of all architectures; a missing file costs one open(). */
static void read_huge(int cgroup, char *text, struct cri_usage *u) {
        static const struct {
                const char *size, *file;
        } sizes[USAGE_HUGE_SIZES] = {{"64KB", "hugetlb.64KB.current"},
                                     {"2MB", "hugetlb.2MB.current"},
                                     {"32MB", "hugetlb.32MB.current"},
                                     {"1GB", "hugetlb.1GB.current"}};

        for (size_t i = 0; i < nd_count_of(sizes); i++) {
                struct cri_huge_usage *huge = u->huge + u->huge_count;

                huge->size = sizes[i].size;
                u->huge_count += number(cgroup, sizes[i].file, text, &huge->bytes);
        }
}

static void read_io(int cgroup, char *text, struct cri_usage *u) {
        if (!nd_cgroup_read(cgroup, "io.stat", text))
                return;
        u->has_io = true; /* an empty file means no I/O */
        (void) !nd_cgroup_sum(text, "rbytes", &u->read_bytes);
        (void) !nd_cgroup_sum(text, "wbytes", &u->written_bytes);
        (void) !nd_cgroup_sum(text, "rios", &u->reads);
        (void) !nd_cgroup_sum(text, "wios", &u->writes);
        cri_usage_parse_devices(text, u);
        for (size_t i = 0; i < u->device_count; i++)
                name_device(u->devices + i);
}

static void read_pressure(int cgroup, const char *file, char *text, struct cri_pressures *ret) {
        if (nd_cgroup_read(cgroup, file, text))
                (void) !cri_usage_parse_pressure(text, ret);
}

struct nd_error *cri_usage_of_cgroup(const char *cgroup, unsigned parts, struct cri_usage *ret) {
        struct cri_usage u = {.at = nd_clock_wall_ns()};
        char text[ND_CGROUP_FILE];
        nd_autoclose int fd = -EBADF;

        nd_try(nd_cgroup_open(cgroup, &fd));
        if (parts & USAGE_CPU)
                read_cpu(fd, text, &u);
        if (parts & USAGE_MEMORY)
                read_memory(fd, text, &u);
        if (parts & USAGE_PIDS) {
                u.has_pids = number(fd, "pids.current", text, &u.pids);
                if (!number(fd, "pids.max", text, &u.pids_limit))
                        u.pids_limit = UINT64_MAX;
        }
        if (parts & USAGE_IO)
                read_io(fd, text, &u);
        if (parts & USAGE_OOM) {
                u.has_oom = nd_cgroup_read(fd, "memory.events", text) && nd_cgroup_key(text, "oom_kill", &u.oom_kills) &&
                            nd_cgroup_key(text, "max", &u.limit_hits);
                (void) !number(fd, "memory.peak", text, &u.memory_peak);
        }
        if (parts & USAGE_HUGE)
                read_huge(fd, text, &u);
        if (parts & USAGE_PRESSURE) {
                read_pressure(fd, "cpu.pressure", text, &u.cpu_pressure);
                read_pressure(fd, "memory.pressure", text, &u.memory_pressure);
                read_pressure(fd, "io.pressure", text, &u.io_pressure);
        }
        *ret = u;
        return nullptr;
}

/* "0.00" to "100.00"; strtod() accepts more than the kernel writes. */
static bool parse_percent(const char *text, size_t length, double *ret) {
        uint64_t whole, hundredths;
        char copy[8];
        char *point;

        if (length >= sizeof copy)
                return false;
        memcpy(copy, text, length);
        copy[length] = '\0';
        point = strchr(copy, '.');
        if (!point || strlen(point + 1) != 2)
                return false;
        *point = '\0';
        if (nd_text_parse_u64(copy, 100, &whole) < 0 || nd_text_parse_u64(point + 1, 99, &hundredths) < 0)
                return false;
        *ret = (double) whole + (double) hundredths / 100.0;
        return true;
}

static bool parse_pressure_line(const char *line, size_t length, struct cri_pressure *ret) {
        const struct {
                const char *name;
                double *value;
        } averages[] = {{" avg10=", &ret->average10}, {" avg60=", &ret->average60}, {" avg300=", &ret->average300}};
        nd_autofree char *copy = nd_strndup(line, length);
        const char *at;
        char digits[24];

        for (size_t i = 0; i < nd_count_of(averages); i++) {
                at = strstr(copy, averages[i].name);
                if (!at)
                        return false;
                at += strlen(averages[i].name);
                if (!parse_percent(at, strcspn(at, " "), averages[i].value))
                        return false;
        }
        at = strstr(copy, " total=");
        if (!at || strcspn(at + 7, " ") >= sizeof digits)
                return false;
        (void) snprintf(digits, sizeof digits, "%.*s", (int) strcspn(at + 7, " "), at + 7);
        if (nd_text_parse_u64(digits, UINT64_MAX / MICROSECOND, &ret->total) < 0)
                return false;
        ret->total *= MICROSECOND;
        return true;
}

bool cri_usage_parse_pressure(const char *text, struct cri_pressures *ret) {
        struct cri_pressures p = {};
        size_t length;

        if (!nd_has_prefix(text, "some "))
                return false;
        length = strcspn(text, "\n");
        if (!parse_pressure_line(text, length, &p.some))
                return false;
        text += length + (text[length] == '\n');
        if (nd_has_prefix(text, "full ") && !parse_pressure_line(text, strcspn(text, "\n"), &p.full))
                return false; /* the root's cpu.pressure has no "full" line */
        p.known = true;
        *ret = p;
        return true;
}

/* ---- networks ---- */

/* Parses the numbers after the name; false unless there are 16. */
static bool parse_interface(const char *text, size_t length, struct cri_interface_usage *interface) {
        uint64_t values[16];
        size_t found = 0;

        for (const char *at = text, *end = text + length; found < nd_count_of(values); found++) {
                char digits[24];
                size_t n;

                at += strspn(at, " \t");
                if (at >= end)
                        return false;
                n = strcspn(at, " \t\n");
                if (n == 0 || n >= sizeof digits)
                        return false;
                memcpy(digits, at, n);
                digits[n] = '\0';
                if (nd_text_parse_u64(digits, UINT64_MAX, values + found) < 0)
                        return false;
                at += n;
        }
        interface->received = values[0];
        interface->received_packets = values[1];
        interface->received_errors = values[2];
        interface->received_dropped = values[3];
        interface->sent = values[8];
        interface->sent_packets = values[9];
        interface->sent_errors = values[10];
        interface->sent_dropped = values[11];
        return true;
}

void cri_usage_parse_network(const char *text, struct cri_network_usage *ret) {
        *ret = (struct cri_network_usage) {.at = nd_clock_wall_ns()};
        for (const char *line = text; *line && ret->count < USAGE_INTERFACES;) {
                struct cri_interface_usage *interface = ret->interfaces + ret->count;
                size_t length = strcspn(line, "\n"), blank = strspn(line, " "), name;

                name = strcspn(line + blank, ":\n");
                if (line[blank + name] == ':' && name > 0 && name < USAGE_INTERFACE_NAME &&
                    !(name == 2 && strncmp(line + blank, "lo", 2) == 0) &&
                    parse_interface(line + blank + name + 1, length - blank - name - 1, interface)) {
                        memcpy(interface->name, line + blank, name);
                        interface->name[name] = '\0';
                        ret->count++;
                }
                line += length + (line[length] == '\n');
        }
}

/* ---- processes ---- */

static void close_directory(DIR **directory) {
        if (*directory)
                (void) closedir(*directory);
}

static uint64_t limit_of(const char *pid, size_t length) {
        nd_autofree char *text = nd_strndup(pid, length);
        struct rlimit limit = {};
        uint32_t number = 0;

        if (nd_text_parse_u32(text, &number) < 0 || prlimit((pid_t) number, RLIMIT_NOFILE, nullptr, &limit) < 0)
                return 0;
        return limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
}

/* The links of its descriptors show which of them are sockets. */
static void look_into_process(const char *pid, size_t length, struct cri_process_usage *u) {
        nd_autofree char *path = nd_format("/proc/%.*s/fd", (int) length, pid);
        nd_cleanup(close_directory) DIR *directory = opendir(path);
        const struct dirent *entry;

        if (u->processes++ == 0)
                u->descriptors_limit = limit_of(pid, length);
        while (directory && u->descriptors < LINKS && (entry = readdir(directory))) {
                char target[16];
                ssize_t n;

                if (entry->d_name[0] == '.')
                        continue;
                u->descriptors++;
                n = readlinkat(dirfd(directory), entry->d_name, target, sizeof target);
                if (n > 7 && strncmp(target, "socket:", 7) == 0)
                        u->sockets++;
        }
}

/* The list of processes may be longer than other files; the part beyond the limit is not read. */
static void look_into_cgroup(int cgroup, struct cri_process_usage *u) {
        char text[ND_CGROUP_FILE];

        if (!nd_cgroup_read(cgroup, "cgroup.procs", text))
                return;
        for (const char *line = text; *line && u->processes < PROCESSES;) {
                size_t length = strcspn(line, "\n");

                if (line[length] == '\n')
                        look_into_process(line, length, u);
                line += length + (line[length] == '\n');
        }
}

struct cgroup_levels {
        DIR **items;
        size_t count;
        size_t capacity;
};

static void levels_done(struct cgroup_levels *levels) {
        nd_vector_each (level, levels)
                (void) closedir(*level);
        nd_vector_done(levels);
}

/* nullptr for a cgroup that vanishes meanwhile, which is not an error. */
static DIR *open_level(int dir_fd, const char *name) {
        int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        DIR *level = fd >= 0 ? fdopendir(fd) : nullptr;

        if (!level && fd >= 0)
                (void) close(fd);
        return level;
}

struct nd_error *cri_usage_of_processes(const char *cgroup, struct cri_process_usage *ret) {
        struct cri_process_usage u = {.at = nd_clock_wall_ns()};
        nd_cleanup(levels_done) struct cgroup_levels levels = {};
        nd_autoclose int fd = -EBADF;
        size_t cgroups = 1;
        DIR *next;

        nd_try(nd_cgroup_open(cgroup, &fd));
        look_into_cgroup(fd, &u);
        next = open_level(fd, ".");
        if (next)
                nd_vector_push(&levels, next);
        while (levels.count > 0) {
                DIR *level = levels.items[levels.count - 1];
                const struct dirent *entry = readdir(level);

                if (!entry) {
                        (void) closedir(levels.items[--levels.count]);
                } else if (entry->d_type == DT_DIR && entry->d_name[0] != '.' && cgroups++ < CGROUPS) {
                        next = open_level(dirfd(level), entry->d_name);
                        if (next) {
                                nd_vector_push(&levels, next);
                                look_into_cgroup(dirfd(next), &u);
                        }
                }
        }
        *ret = u;
        return nullptr;
}
