/* SPDX-License-Identifier: Apache-2.0 */
/* monitor.c - see monitor.h
 *
 * Theory of operation
 *   One connection per monitor. A monitor that we start gets the other end of a socket pair and
 *   daemonizes at once. It is then not our child and is handled like the monitors of an earlier
 *   daemon: it is alive as long as the connection is open.
 *   A message only means that the record has changed; so does end of file. If the record has no
 *   exit status after end of file, the monitor was killed.
 *   A monitor kills the OCI runtime at the deadline of `create`. If no message arrives within a
 *   grace period after that, the monitor itself hangs (a log on a dead disk, a SIGSTOP) and the
 *   creation fails; the caller kills the cgroup that contains both.
 *   cri_monitor_connect() connects before it reads the record, so that a change in between arrives
 *   as a message.
 * Owns       the connection; neither the monitor nor its files. */
#include "cri/oci-runtime/monitor.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "base/vector.h"
#include "cri/oci-runtime/oci-runtime.h"
#include "net/monitor-wire.h"
#include "sys/cgroup.h"
#include "sys/child.h"
#include "sys/file.h"

#define MONITORS "monitors"

enum {
        ERROR_TEXT = 4096, /* of the stderr of a monitor that failed to start */
};

/* Until a monitor has daemonized, which normally takes a millisecond. */
static constexpr uint64_t start_timeout_us = 30 * ND_SECOND_US;
static constexpr uint64_t reopen_timeout_us = 10 * ND_SECOND_US; /* until the log is reopened */
static constexpr uint64_t usual_grace_us = 15 * ND_SECOND_US;    /* after create's deadline */

struct waiter {
        cri_monitor_callback callback;
        void *userdata;
};

struct cri_monitor {
        sd_event *loop; /* borrowed */
        char *directory;
        const struct cri_monitor_events *events;
        void *userdata;
        int fd; /* -EBADF once disconnected */
        sd_event_source *source;
        sd_event_source *limit;           /* until the container is created */
        struct nd_child *starter;         /* until the monitor has daemonized */
        bool created;                     /* reported by an event or found in the record */
        bool hung_up;                     /* disconnected before the starter exited */
        nd_vector(struct waiter) waiting; /* for replies to reopen requests, in order */
        sd_event_source *patience;
};

static void hang_up(struct cri_monitor *m) {
        m->limit = sd_event_source_disable_unref(m->limit);
        m->source = sd_event_source_disable_unref(m->source);
        nd_close_fd(&m->fd);
}

void cri_monitor_free(struct cri_monitor *m) {
        if (!m)
                return;
        hang_up(m);
        sd_event_source_disable_unref(m->patience);
        nd_child_cancel(m->starter);
        nd_vector_each (waiter, &m->waiting) {
                waiter->callback(nd_error_new(ND_PRECONDITION, 0, "the container has exited and its log is closed"),
                                 waiter->userdata);
        }
        nd_vector_done(&m->waiting);
        free(m->directory);
        free(m);
}

static void monitor_done(struct cri_monitor **m) {
        cri_monitor_free(*m);
}

/* ---- the record ---- */

static struct nd_error *read_record(const char *directory, struct nd_monitor_record *ret) {
        nd_autofree char *path = nd_format("%s/exit", directory), *bytes = nullptr;
        size_t length;

        nd_try(nd_file_read(AT_FDCWD, path, ND_MONITOR_RECORD, &bytes, &length));
        if (!nd_monitor_record_read(bytes, length, ret))
                return nd_error_new(ND_DATA_LOSS, 0, "invalid monitor record '%s'", path);
        return nullptr;
}

static struct cri_monitor_end end_of(const struct nd_monitor_record *record) {
        return (struct cri_monitor_end) {
                .code = record->code, .at = record->at, .oom_kills = record->oom_kills, .lost = record->lost};
}

/* ---- reopening ---- */

/* Completes the oldest reopen request; nullptr = success. */
static void answer_first(struct cri_monitor *m, struct nd_error *error) {
        struct waiter first = m->waiting.items[0];

        m->waiting.count--;
        memmove(m->waiting.items, m->waiting.items + 1, m->waiting.count * sizeof *m->waiting.items);
        if (m->waiting.count == 0)
                m->patience = sd_event_source_disable_unref(m->patience);
        first.callback(error, first.userdata);
}

static int on_impatience([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t usec, void *userdata) {
        struct cri_monitor *m = userdata;
        nd_vector(struct waiter) waiting = {};
        bool gone = m->fd < 0;

        /* A callback may free the monitor. */
        memcpy(&waiting, &m->waiting, sizeof waiting);
        memset(&m->waiting, 0, sizeof m->waiting);
        m->patience = sd_event_source_disable_unref(m->patience);
        nd_vector_each (waiter, &waiting)
                waiter->callback(
                        gone ? nd_error_new(ND_PRECONDITION, 0, "the container has exited and its log is closed")
                             : nd_error_new(ND_DEADLINE, ETIMEDOUT, "timed out waiting for the monitor to reopen the log"),
                        waiter->userdata);
        nd_vector_done(&waiting);
        return 0;
}

/* Fails all pending reopen requests from the loop, after the given time. */
static void disappoint(struct cri_monitor *m, uint64_t after_us) {
        m->patience = sd_event_source_disable_unref(m->patience);
        if (m->waiting.count > 0)
                (void) sd_event_add_time_relative(m->loop, &m->patience, CLOCK_MONOTONIC, after_us, ND_MS_US, on_impatience,
                                                  m);
}

void cri_monitor_reopen_log(struct cri_monitor *m, cri_monitor_callback callback, void *userdata) {
        char bytes[ND_MONITOR_MESSAGE];
        size_t length = nd_monitor_message_write(&(struct nd_monitor_message) {.letter = ND_MONITOR_REOPEN}, bytes);
        bool sent = m->fd >= 0 && send(m->fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;

        nd_vector_push(&m->waiting, ((struct waiter) {.callback = callback, .userdata = userdata}));
        disappoint(m, sent ? reopen_timeout_us : 0);
}

static void take_reopened(struct cri_monitor *m, const struct nd_monitor_message *message) {
        if (m->waiting.count == 0)
                return;
        if (message->error_number == 0)
                answer_first(m, nullptr);
        else
                answer_first(m,
                             nd_error_new(nd_error_code_of(message->error_number), message->error_number, "reopen the log"));
}

/* ---- messages from the monitor ---- */

static void give_failed(struct cri_monitor *m, struct nd_error *error) {
        hang_up(m);
        disappoint(m, 0);
        m->events->failed(error, m->userdata);
}

static void give_exited(struct cri_monitor *m, const struct nd_monitor_record *record) {
        struct cri_monitor_end end = end_of(record);

        hang_up(m);
        disappoint(m, 0);
        m->events->exited(&end, m->userdata);
}

static int on_limit([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t usec, void *userdata) {
        give_failed(userdata, nd_error_new(ND_DEADLINE, ETIMEDOUT,
                                           "timed out waiting for the monitor to report that the container was created"));
        return 0;
}

/* The monitor was killed, or failed before it wrote its record. */
static void give_lost(struct cri_monitor *m) {
        if (!m->created) {
                give_failed(m,
                            nd_error_new(ND_INTERNAL, 0, "the container's monitor was killed while it created the container"));
                return;
        }
        hang_up(m);
        disappoint(m, 0);
        m->events->lost(m->userdata);
}

/* The connection is closed, or the monitor is about to exit: the record decides. */
static void take_end(struct cri_monitor *m) {
        nd_autoerror struct nd_error *error = nullptr;
        struct nd_monitor_record record = {};

        if (m->starter) {
                m->hung_up = true;
                hang_up(m);
                return;
        }
        error = read_record(m->directory, &record);
        if (!error && record.phase == ND_MONITOR_EXITED)
                give_exited(m, &record);
        else
                give_lost(m);
}

static void take_created(struct cri_monitor *m, const struct nd_monitor_message *message) {
        struct nd_error *error;
        struct nd_monitor_record record;

        if (m->created)
                return;
        error = read_record(m->directory, &record);
        if (!error && record.pid == 0)
                error = nd_error_new(ND_DATA_LOSS, 0, "the monitor reported a container without a pid in its record");
        if (error) {
                give_failed(m, error);
                return;
        }
        if (message->length > 0) {
                nd_autofree char *words = nd_strndup(message->words, message->length);

                nd_log(ND_LOG_NOTICE, "OCI runtime created a container with warnings", nd_field("words", words));
        }
        m->created = true;
        m->limit = sd_event_source_disable_unref(m->limit);
        m->events->created(record.pid, record.birth, m->userdata);
}

static void take_failed(struct cri_monitor *m, const struct nd_monitor_message *message) {
        nd_autofree char *words = nd_strndup(message->words, message->length);
        enum nd_error_code code = message->error_number == 0 ? ND_INTERNAL : nd_error_code_of(message->error_number);

        give_failed(m, nd_error_wrap(nd_error_received(code, message->error_number, words), "create the container"));
}

/* A callback may free the monitor: do not touch it afterwards. */
static void take_message(struct cri_monitor *m, const struct nd_monitor_message *message) {
        switch (message->letter) {
        case ND_MONITOR_IS_CREATED:
                take_created(m, message);
                break;
        case ND_MONITOR_IS_FAILED:
                take_failed(m, message);
                break;
        case ND_MONITOR_IS_EXITED:
                take_end(m);
                break;
        case ND_MONITOR_REOPENED:
                take_reopened(m, message);
                break;
        case ND_MONITOR_REOPEN:
        case ND_MONITOR_RESIZE:
        case ND_MONITOR_ATTACH:
        case ND_MONITOR_ATTACHED:
        case ND_MONITOR_DROPPED:
                break; /* sent by us, or sent on attach connections only */
        }
}

/* Reads one message per iteration: a callback may free the monitor. */
static int on_message([[maybe_unused]] sd_event_source *source, int fd, [[maybe_unused]] uint32_t events, void *userdata) {
        struct cri_monitor *m = userdata;
        struct nd_monitor_message message;
        char bytes[ND_MONITOR_MESSAGE];
        ssize_t n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return 0;
        if (n <= 0)
                take_end(m);
        else if (nd_monitor_message_read(bytes, (size_t) n, &message))
                take_message(m, &message);
        return 0;
}

/* ---- start ---- */

static void on_started(struct nd_child_result *result, void *userdata) {
        struct cri_monitor *m = userdata;
        struct nd_error *error = nd_child_result_error(result, "nodens-mon");

        m->starter = nullptr;
        if (error)
                give_failed(m, error);
        else if (m->hung_up)
                take_end(m);
}

struct words {
        const char **items;
        size_t count;
        size_t capacity;
};

static void add_option(struct words *argv, const char *name, const char *value) {
        if (*value == '\0')
                return;
        nd_vector_push(argv, name);
        nd_vector_push(argv, value);
}

struct numbers {
        char uid[16], gid[16], deadline[16];
};

static void build_argv(const struct cri_monitor_plan *plan, struct numbers *numbers, struct words *ret) {
        (void) snprintf(numbers->uid, sizeof numbers->uid, "%u", plan->uid);
        (void) snprintf(numbers->gid, sizeof numbers->gid, "%u", plan->gid);
        (void) snprintf(numbers->deadline, sizeof numbers->deadline, "%u", (unsigned) (plan->deadline_us / ND_MS_US));
        nd_vector_push(ret, plan->program);
        add_option(ret, "--id", plan->id);
        add_option(ret, "--directory", plan->directory);
        add_option(ret, "--log-directory", plan->log_directory);
        add_option(ret, "--log-path", plan->log_path);
        add_option(ret, "--uid", numbers->uid);
        add_option(ret, "--gid", numbers->gid);
        add_option(ret, "--deadline-ms", numbers->deadline);
        if (plan->terminal)
                nd_vector_push(ret, "--terminal");
        if (plan->stdin_open)
                nd_vector_push(ret, "--stdin");
        if (plan->stdin_once)
                nd_vector_push(ret, "--stdin-once");
        if (plan->mount_namespace > 0)
                nd_vector_push(ret, "--mount-namespace");
        nd_vector_push(ret, "--");
        for (const char *const *word = plan->create; *word; word++)
                nd_vector_push(ret, *word);
        nd_vector_push(ret, nullptr);
}

/* The path with the mount point; nullptr if there is no cgroup. */
static struct nd_error *make_home(const char *cgroup, char **ret) {
        nd_autofree char *path = nullptr, *above = nullptr;

        if (*cgroup == '\0')
                return nullptr;
        path = nd_format(ND_CGROUP_MOUNT "%s", cgroup);
        above = nd_strndup(path, (size_t) (strrchr(path, '/') - path));
        nd_try(nd_dir_make(AT_FDCWD, above, 0755));
        nd_try(nd_dir_make(AT_FDCWD, path, 0755));
        *ret = nd_take_ptr(path);
        return nullptr;
}

static struct nd_error *launch(struct cri_monitor *m, const struct cri_monitor_plan *plan, int theirs) {
        const int descriptors[] = {theirs, plan->mount_namespace};
        nd_autofree char *home = nullptr;
        struct words argv = {};
        struct numbers numbers;
        struct nd_error *error;

        nd_try(make_home(plan->cgroup, &home));
        build_argv(plan, &numbers, &argv);
        error = nd_child_start(m->loop,
                               &(struct nd_child_plan) {.argv = argv.items,
                                                        .environment = cri_oci_runtime_environment(),
                                                        .cgroup = home,
                                                        .deadline_us = start_timeout_us,
                                                        .output_ceiling = ERROR_TEXT,
                                                        .descriptors = descriptors,
                                                        .descriptor_count = plan->mount_namespace > 0 ? 2 : 1},
                               on_started, m, &m->starter);
        nd_vector_done(&argv);
        return error;
}

static struct cri_monitor *monitor_new(sd_event *loop, const char *directory, const struct cri_monitor_events *events,
                                       void *userdata) {
        struct cri_monitor *m = nd_new(struct cri_monitor);

        *m = (struct cri_monitor) {
                .loop = loop, .directory = nd_strdup(directory), .events = events, .userdata = userdata, .fd = -EBADF};
        return m;
}

static struct nd_error *listen_to(struct cri_monitor *m) {
        int r = sd_event_add_io(m->loop, &m->source, m->fd, EPOLLIN, on_message, m);

        return r < 0 ? nd_error_new(ND_INTERNAL, -r, "watch the connection to a monitor") : nullptr;
}

static struct nd_error *limit_creation(struct cri_monitor *m, const struct cri_monitor_plan *plan) {
        uint64_t grace_us = plan->grace_us ?: usual_grace_us;
        int r;

        if (plan->deadline_us == 0)
                return nullptr;
        r = sd_event_add_time_relative(m->loop, &m->limit, CLOCK_MONOTONIC, plan->deadline_us + grace_us, ND_SECOND_US,
                                       on_limit, m);
        return r < 0 ? nd_error_new(ND_INTERNAL, -r, "create the timer of a monitor") : nullptr;
}

struct nd_error *cri_monitor_start(sd_event *loop, const struct cri_monitor_plan *plan,
                                   const struct cri_monitor_events *events, void *userdata, struct cri_monitor **ret) {
        nd_cleanup(monitor_done) struct cri_monitor *m = monitor_new(loop, plan->directory, events, userdata);
        nd_autoclose int theirs = -EBADF;
        int pair[2];

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "create a socket pair");
        m->fd = pair[0];
        theirs = pair[1];
        nd_try(listen_to(m));
        nd_try(limit_creation(m, plan));
        nd_try(launch(m, plan, theirs));
        *ret = nd_take_ptr(m);
        return nullptr;
}

/* ---- reconnect ---- */

struct nd_error *cri_monitor_dial(const char *directory, int *ret_fd) {
        nd_autoclose int directory_fd = -EBADF, fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        struct sockaddr_un address = {.sun_family = AF_UNIX};

        *ret_fd = -EBADF;
        nd_try(nd_dir_open(AT_FDCWD, directory, &directory_fd));
        if (fd < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "create a socket");
        (void) snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/control", directory_fd);
        if (connect(fd, (struct sockaddr *) &address, sizeof address) == 0)
                *ret_fd = nd_take_fd(fd);
        else if (errno != ECONNREFUSED && errno != ENOENT)
                return nd_error_new(nd_error_code_of(errno), errno, "connect to '%s/control'", directory);
        return nullptr;
}

static enum cri_monitor_phase phase_of(enum nd_monitor_phase phase) {
        switch (phase) {
        case ND_MONITOR_CREATED:
                return MONITOR_CREATED;
        case ND_MONITOR_FAILED:
                return MONITOR_FAILED;
        case ND_MONITOR_EXITED:
                return MONITOR_EXITED;
        case ND_MONITOR_CREATING:
                break;
        }
        return MONITOR_CREATING;
}

struct nd_error *cri_monitor_connect(sd_event *loop, const char *directory, const struct cri_monitor_events *events,
                                     void *userdata, struct cri_monitor_state *ret_state, struct cri_monitor **ret) {
        nd_cleanup(monitor_done) struct cri_monitor *m = monitor_new(loop, directory, events, userdata);
        struct nd_monitor_record record;
        bool over;

        nd_try(cri_monitor_dial(directory, &m->fd));
        nd_try(read_record(directory, &record));
        over = record.phase == ND_MONITOR_EXITED || record.phase == ND_MONITOR_FAILED || m->fd < 0;
        m->created = record.phase == ND_MONITOR_CREATED;
        if (!over)
                nd_try(listen_to(m));
        *ret_state = (struct cri_monitor_state) {
                .phase = phase_of(record.phase), .pid = record.pid, .birth = record.birth, .end = end_of(&record)};
        *ret = over ? nullptr : nd_take_ptr(m);
        return nullptr;
}

struct nd_error *cri_monitor_home(const char *id, char **ret) {
        nd_cleanup(nd_cgroup_done) struct nd_cgroup cgroup = {};

        nd_try(nd_cgroup_discover(&cgroup));
        if (cgroup.layout == ND_CGROUP_UNIFIED && cgroup.writable)
                *ret = nd_format("%s/" MONITORS "/mon-%s", nd_streq(cgroup.own, "/") ? "" : cgroup.own, id);
        else
                *ret = nd_strdup("");
        return nullptr;
}
