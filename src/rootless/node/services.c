/* SPDX-License-Identifier: Apache-2.0 */
/* services.c - see services.h
 *
 * Theory of operation
 *   Each service is a process of this program, in a session of its own so that it gets no signals
 *   from a terminal and survives us. It is recorded and watched by its pidfd, whether it is our
 *   child or was left by an earlier launcher. A service that exits while the node lives is
 *   restarted: at once if it ran for a while, else with a delay.
 *   A recorded service that lives holds its lock, so there are never two of a kind. */
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
#include "sys/child.h"
#include "sys/file.h"
#include "sys/process.h"

static constexpr uint64_t restart_delay_min_us = 10 * ND_MS_US;
static constexpr uint64_t restart_delay_max_us = 5 * ND_SECOND_US;
static constexpr uint64_t stable_uptime_us = 500 * ND_MS_US; /* reset the backoff after this */

struct service {
        struct rootless_service_plan what;
        struct rootless_services *services;
        pid_t pid;
        uint64_t started;
        int pidfd;
        sd_event_source *ended, *restart;
        uint64_t since_us, delay_us;
};

struct rootless_services {
        sd_event *loop;
        const struct rootless_node *node;
        struct service all[SERVICES_CEILING];
        size_t count;
};

/* Its name in the record and the log. */
static const char *name_of(const struct service *service) {
        return service->what.operand ? service->what.operand : service->what.command;
}

/* ---- the record ---- */

static void save(const struct rootless_services *services) {
        nd_autotext struct nd_text text = ND_TEXT(4096);
        struct nd_json_out out = {.text = &text};
        nd_autoerror struct nd_error *error = nullptr;

        nd_json_open(&out, nullptr, '{');
        for (size_t i = 0; i < services->count; i++) {
                nd_json_open(&out, name_of(&services->all[i]), '{');
                nd_json_number(&out, "pid", (uint64_t) services->all[i].pid);
                nd_json_number(&out, "started", services->all[i].started);
                nd_json_close(&out, '}');
        }
        nd_json_close(&out, '}');
        error = nd_file_replace(services->node->fd, "parts", text.bytes, text.length, 0600);
        if (error)
                nd_log(ND_LOG_WARNING, "cannot record the node's services", nd_field("error", nd_error_text(error)));
}

/* Adopts the recorded services that still run. */
static void load(struct rootless_services *services) {
        nd_autofree char *text = nullptr;
        nd_autojson yyjson_doc *doc = nullptr;
        size_t length;
        nd_autoerror struct nd_error *error = nd_file_read(services->node->fd, "parts", 4096, &text, &length);

        if (!error)
                error = nd_json_parse(text, length, 4096, &doc);
        for (size_t i = 0; !error && i < services->count; i++) {
                yyjson_val *value = yyjson_obj_get(yyjson_doc_get_root(doc), name_of(&services->all[i]));
                uint64_t pid = yyjson_get_uint(yyjson_obj_get(value, "pid")),
                         started = yyjson_get_uint(yyjson_obj_get(value, "started"));
                nd_autoerror struct nd_error *gone = nullptr;

                if (pid < 2 || pid > INT32_MAX)
                        continue;
                gone = rootless_process_open((pid_t) pid, started, &services->all[i].pidfd);
                if (!gone) {
                        services->all[i].pid = (pid_t) pid;
                        services->all[i].started = started;
                }
        }
}

/* ---- one service ---- */

[[noreturn]] static void exec_service(const struct service *service, const char *name) {
        sigset_t none;
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);

        (void) sigemptyset(&none);
        (void) sigprocmask(SIG_SETMASK, &none, nullptr);
        (void) setsid();
        (void) dup2(null, STDIN_FILENO);
        /* a caller may wait for EOF on its standard output */
        (void) dup2(STDERR_FILENO, STDOUT_FILENO);
        (void) close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
        (void) execl("/proc/self/exe", "nodens-rootless", service->what.command, "--name", name, service->what.operand,
                     (char *) nullptr);
        (void) fprintf(stderr, "nodens-rootless: execute itself: %s\n", strerror(errno));
        _exit(127);
}

static void start(struct service *service);

static int on_restart([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t usec, void *userdata) {
        struct service *service = userdata;

        nd_log(ND_LOG_WARNING, "a service of the node exited; restarting it", nd_field("node", service->services->node->name),
               nd_field("part", name_of(service)));
        start(service);
        return 0;
}

static int on_ended([[maybe_unused]] sd_event_source *source, [[maybe_unused]] int fd, [[maybe_unused]] uint32_t events,
                    void *userdata) {
        struct service *service = userdata;
        siginfo_t end = {};
        bool killed;

        /* does nothing if it is not our child */
        (void) waitid(P_PIDFD, (id_t) service->pidfd, &end, WEXITED | WNOHANG);
        killed = end.si_pid == 0 || end.si_code != CLD_EXITED;
        sd_event_source_disable_unref(service->ended);
        service->ended = nullptr;
        nd_close_fd(&service->pidfd);
        service->pid = 0;
        /* The delay is for services that fail to start, not for killed ones. */
        service->delay_us =
                killed || nd_clock_us() - service->since_us > stable_uptime_us ? restart_delay_min_us : service->delay_us * 2;
        if (service->delay_us > restart_delay_max_us)
                service->delay_us = restart_delay_max_us;
        sd_event_source_disable_unref(service->restart);
        service->restart = nullptr;
        (void) sd_event_add_time_relative(service->services->loop, &service->restart, CLOCK_MONOTONIC, service->delay_us, 1000,
                                          on_restart, service);
        return 0;
}

static void watch(struct service *service) {
        service->since_us = nd_clock_us();
        (void) sd_event_add_io(service->services->loop, &service->ended, service->pidfd, EPOLLIN, on_ended, service);
}

static void start(struct service *service) {
        struct clone_args arguments = {.flags = CLONE_PIDFD, .exit_signal = SIGCHLD, .pidfd = (uintptr_t) &service->pidfd};
        nd_autoerror struct nd_error *error = nullptr;

        service->pid = nd_sys->clone3(&arguments, sizeof arguments);
        if (service->pid == 0)
                exec_service(service, service->services->node->name);
        if (service->pid < 0) {
                nd_log(ND_LOG_ERROR, "cannot start a service of the node", nd_field("part", name_of(service)),
                       nd_field("error", strerror(errno)));
                service->pid = 0;
                (void) sd_event_add_time_relative(service->services->loop, &service->restart, CLOCK_MONOTONIC,
                                                  restart_delay_max_us, 0, on_restart, service);
                return;
        }
        error = nd_process_start_time(service->pid, &service->started);
        if (error)
                service->started = 0; /* it has already exited; do not adopt it */
        save(service->services);
        watch(service);
}

struct nd_error *rootless_services_start(sd_event *loop, const struct rootless_node *node,
                                         const struct rootless_service_plan *list, size_t count,
                                         struct rootless_services **ret) {
        struct rootless_services *services;

        if (count > SERVICES_CEILING)
                return nd_error_new(ND_INTERNAL, 0, "more than %d services", SERVICES_CEILING);
        services = nd_new(struct rootless_services);
        *services = (struct rootless_services) {.loop = sd_event_ref(loop), .node = node, .count = count};
        for (size_t i = 0; i < count; i++)
                services->all[i] = (struct service) {
                        .what = list[i], .services = services, .pidfd = -EBADF, .delay_us = restart_delay_min_us};
        load(services);
        for (size_t i = 0; i < services->count; i++) {
                if (services->all[i].pidfd >= 0)
                        watch(&services->all[i]);
                else
                        start(&services->all[i]);
        }
        *ret = services;
        return nullptr;
}

void rootless_services_wait(struct rootless_services *services, uint64_t timeout_us) {
        uint64_t end = nd_clock_us() + timeout_us;

        for (size_t i = 0; services && i < services->count; i++) {
                struct pollfd ended = {.fd = services->all[i].pidfd, .events = POLLIN};
                uint64_t now = nd_clock_us();

                if (ended.fd >= 0 && now < end)
                        (void) poll(&ended, 1, (int) ((end - now) / ND_MS_US));
        }
}

void rootless_services_end(struct rootless_services *services) {
        siginfo_t end;

        if (!services)
                return;
        for (size_t i = 0; i < services->count; i++)
                if (services->all[i].pidfd >= 0) {
                        (void) nd_sys->pidfd_send_signal(services->all[i].pidfd, SIGKILL, 0);
                        (void) waitid(P_PIDFD, (id_t) services->all[i].pidfd, &end, WEXITED);
                }
        rootless_services_free(services);
}

void rootless_services_free(struct rootless_services *services) {
        if (!services)
                return;
        for (size_t i = 0; i < services->count; i++) {
                sd_event_source_disable_unref(services->all[i].ended);
                sd_event_source_disable_unref(services->all[i].restart);
                nd_close_fd(&services->all[i].pidfd);
        }
        sd_event_unref(services->loop);
        free(services);
}
