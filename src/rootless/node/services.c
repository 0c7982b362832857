/* SPDX-License-Identifier: Apache-2.0 */
/* services.c - see services.h
 *
 * Theory of operation
 *   Each part is a process of this program, in a session of its own so that a terminal's signals and our death do not reach it. It is recorded,
 *   and watched by its pidfd, be it our child or one that an earlier launcher has left. When it ends while the node lives it is
 *   started again, at once if it lived for a while, else later.
 *   A part that was recorded and lives holds its lock; so there never are two of a kind, whoever starts them. */
#include "rootless/node/services.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "sys/calls.h"
#include "sys/file.h"

enum {
        SOONEST_US = 10 * 1000,
        SLOWEST_US = 5 * 1000000,
        STEADY_US = 500 * 1000,
        PARTS = 2,
};

struct part {
        const char *command;
        struct rootless_services *parts;
        pid_t pid;
        uint64_t started;
        int pidfd;
        sd_event_source *ended, *again;
        uint64_t since_us, delay_us;
};

struct rootless_services {
        sd_event *loop;
        const struct rootless_node *node;
        struct part all[PARTS];
};

static const char *const commands[PARTS] = {"forward", "api"};

/* ---- the record */

static void save(const struct rootless_services *parts) {
        nd_autotext text = ND_TEXT(4096);
        struct nd_json_out out = {.text = &text};
        nd_autoerror struct nd_error *error = nullptr;

        nd_json_open(&out, nullptr, '{');
        for (size_t i = 0; i < PARTS; i++) {
                nd_json_open(&out, parts->all[i].command, '{');
                nd_json_number(&out, "pid", (uint64_t) parts->all[i].pid);
                nd_json_number(&out, "started", parts->all[i].started);
                nd_json_close(&out, '}');
        }
        nd_json_close(&out, '}');
        error = nd_file_replace(parts->node->fd, "parts", text.bytes, text.length, 0600);
        if (error)
                nd_log(ND_LOG_WARNING, "who serves the node is not recorded", nd_field("error", nd_error_text(error)));
}

/* Takes up what lives of the record. */
static void load(struct rootless_services *parts) {
        nd_autofree char *text = nullptr;
        nd_autojson doc = nullptr;
        size_t length;
        nd_autoerror struct nd_error *error = nd_file_read(parts->node->fd, "parts", 4096, &text, &length);

        if (!error)
                error = nd_json_parse(text, length, 4096, &doc);
        for (size_t i = 0; !error && i < PARTS; i++) {
                yyjson_val *value = yyjson_obj_get(yyjson_doc_get_root(doc), parts->all[i].command);
                uint64_t pid = yyjson_get_uint(yyjson_obj_get(value, "pid")),
                         started = yyjson_get_uint(yyjson_obj_get(value, "started"));
                nd_autoerror struct nd_error *gone = nullptr;

                if (pid < 2 || pid > INT32_MAX)
                        continue;
                gone = rootless_process_open((pid_t) pid, started, &parts->all[i].pidfd);
                if (!gone) {
                        parts->all[i].pid = (pid_t) pid;
                        parts->all[i].started = started;
                }
        }
}

/* ---- one part */

[[noreturn]] static void become(const struct part *part, const char *name) {
        sigset_t none;
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);

        (void) sigemptyset(&none);
        (void) sigprocmask(SIG_SETMASK, &none, nullptr);
        (void) setsid();
        (void) dup2(null, STDIN_FILENO);
        (void) dup2(STDERR_FILENO, STDOUT_FILENO); /* not what a caller may wait for the end of */
        (void) close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
        (void) execl("/proc/self/exe", "nodens-rootless", part->command, "--name", name, (char *) nullptr);
        (void) fprintf(stderr, "nodens-rootless: execute itself: %s\n", strerror(errno));
        _exit(127);
}

static void start(struct part *part);

static int on_again([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t usec, void *userdata) {
        struct part *part = userdata;

        nd_log(ND_LOG_WARNING, "a part of the node ended and is started again", nd_field("node", part->parts->node->name),
               nd_field("part", part->command));
        start(part);
        return 0;
}

static int on_ended([[maybe_unused]] sd_event_source *source, [[maybe_unused]] int fd, [[maybe_unused]] uint32_t events,
                    void *userdata) {
        struct part *part = userdata;
        siginfo_t end = {};
        bool killed;

        (void) waitid(P_PIDFD, (id_t) part->pidfd, &end, WEXITED | WNOHANG); /* of one that is not our child it says nothing */
        killed = end.si_pid == 0 || end.si_code != CLD_EXITED;
        sd_event_source_disable_unref(part->ended);
        part->ended = nullptr;
        nd_close_fd(&part->pidfd);
        part->pid = 0;
        /* Waiting is for those that cannot start, not for those that somebody kills. */
        part->delay_us = killed || nd_clock_us() - part->since_us > STEADY_US ? SOONEST_US : part->delay_us * 2;
        if (part->delay_us > SLOWEST_US)
                part->delay_us = SLOWEST_US;
        sd_event_source_disable_unref(part->again);
        part->again = nullptr;
        (void) sd_event_add_time_relative(part->parts->loop, &part->again, CLOCK_MONOTONIC, part->delay_us, 1000, on_again,
                                          part);
        return 0;
}

static void watch(struct part *part) {
        part->since_us = nd_clock_us();
        (void) sd_event_add_io(part->parts->loop, &part->ended, part->pidfd, EPOLLIN, on_ended, part);
}

static void start(struct part *part) {
        struct clone_args arguments = {.flags = CLONE_PIDFD, .exit_signal = SIGCHLD, .pidfd = (uintptr_t) &part->pidfd};
        nd_autoerror struct nd_error *error = nullptr;

        part->pid = nd_sys->clone3(&arguments, sizeof arguments);
        if (part->pid == 0)
                become(part, part->parts->node->name);
        if (part->pid < 0) {
                nd_log(ND_LOG_ERROR, "a part of the node does not start", nd_field("part", part->command));
                part->pid = 0;
                (void) sd_event_add_time_relative(part->parts->loop, &part->again, CLOCK_MONOTONIC, SLOWEST_US, 0, on_again,
                                                  part);
                return;
        }
        error = rootless_process_start_time(part->pid, &part->started);
        if (error)
                part->started = 0; /* it has ended already; nobody will take it up */
        save(part->parts);
        watch(part);
}

struct nd_error *rootless_services_start(sd_event *loop, const struct rootless_node *node, struct rootless_services **ret) {
        struct rootless_services *parts = nd_new(struct rootless_services);

        *parts = (struct rootless_services) {.loop = sd_event_ref(loop), .node = node};
        for (size_t i = 0; i < PARTS; i++)
                parts->all[i] =
                        (struct part) {.command = commands[i], .parts = parts, .pidfd = -EBADF, .delay_us = SOONEST_US};
        load(parts);
        for (size_t i = 0; i < PARTS; i++) {
                if (parts->all[i].pidfd >= 0)
                        watch(&parts->all[i]);
                else
                        start(&parts->all[i]);
        }
        *ret = parts;
        return nullptr;
}

void rootless_services_end(struct rootless_services *parts) {
        siginfo_t end;

        if (!parts)
                return;
        for (size_t i = 0; i < PARTS; i++)
                if (parts->all[i].pidfd >= 0) {
                        (void) nd_sys->pidfd_send_signal(parts->all[i].pidfd, SIGKILL, 0);
                        (void) waitid(P_PIDFD, (id_t) parts->all[i].pidfd, &end, WEXITED);
                }
        rootless_services_free(parts);
}

void rootless_services_free(struct rootless_services *parts) {
        if (!parts)
                return;
        for (size_t i = 0; i < PARTS; i++) {
                sd_event_source_disable_unref(parts->all[i].ended);
                sd_event_source_disable_unref(parts->all[i].again);
                nd_close_fd(&parts->all[i].pidfd);
        }
        sd_event_unref(parts->loop);
        free(parts);
}
