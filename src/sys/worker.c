/* SPDX-License-Identifier: Apache-2.0 */
/* worker.c - see worker.h
 *
 * Theory of operation
 *   One socket pair. The child sends a single packet: code, errno and text of its error, or code
 *   ND_OK, with at most one descriptor; then it exits. The parent waits for the packet or the end
 *   of file on the socket, and reaps the child before it returns. A child that was killed at the
 *   deadline but does not exit within @REAP_MS (a dead disk) is left unreaped until this process
 *   exits, since waiting for it would break the deadline.
 *   On a loop only the child's exit is watched: the packet is in the socket by then, and the
 *   resources of the child (a namespace, a mount) are free when the callback runs. At the deadline
 *   the child is killed and has @REAP_MS to exit; after that the callback runs without its exit.
 * Owns       a worker on a loop owns its sources, descriptors and process; cancelled or abandoned,
 *            it owns itself until it is reaped. */
#include "sys/worker.h"

#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/text.h"
#include "sys/calls.h"
#include "sys/fd-passing.h"

enum {
        TEXT_CEILING = 8 * 1024,
        REAP_MS = 200,
};

struct packet {
        int code;
        int error_number;
        char text[TEXT_CEILING];
};

[[noreturn]] static void child_main(int fd, pid_t parent, nd_worker_function function, void *argument) {
        nd_autoerror struct nd_error *error = nullptr;
        struct packet packet = {};
        int passed_fd = -EBADF;
        size_t length;

        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) /* the parent has exited before PR_SET_PDEATHSIG was set */
                _exit(EXIT_FAILURE);
        error = function(argument, &passed_fd);
        packet.code = (int) nd_error_code(error);
        packet.error_number = nd_error_errno(error);
        length = strnlen(nd_error_text(error), sizeof packet.text - 1);
        memcpy(packet.text, nd_error_text(error), length);
        (void) !nd_fd_passing_send(fd, &packet, offsetof(struct packet, text) + length + 1, &passed_fd,
                                   !error && passed_fd >= 0, 0);
        _exit(EXIT_SUCCESS);
}

static struct nd_error *await(const char *what, int fd, uint64_t deadline_us, struct packet *packet, int *ret_fd) {
        uint64_t end = nd_clock_us() + deadline_us;

        for (;;) {
                uint64_t now = nd_clock_us();
                struct pollfd wait = {.fd = fd, .events = POLLIN};
                struct timespec left = {};
                ssize_t n;

                if (now < end) {
                        left.tv_sec = (time_t) ((end - now) / ND_SECOND_US);
                        left.tv_nsec = (long) ((end - now) % ND_SECOND_US * 1000);
                }
                n = ppoll(&wait, 1, &left, nullptr);
                if (n < 0 && errno != EINTR)
                        return nd_error_new(ND_INTERNAL, errno, "%s: wait for child", what);
                if (n == 0)
                        return nd_error_new(ND_DEADLINE, ETIMEDOUT, "%s: timed out after %llu ms", what,
                                            (unsigned long long) (deadline_us / ND_MS_US));
                if (n < 0)
                        continue;
                n = nd_fd_passing_receive(fd, packet, sizeof *packet, ret_fd, 1, MSG_DONTWAIT);
                if (n == 0)
                        return nd_error_new(ND_INTERNAL, 0, "%s: child exited without a result", what);
                if (n < (ssize_t) offsetof(struct packet, text) + 1 && n != -EAGAIN)
                        return nd_error_new(ND_INTERNAL, n < 0 ? (int) -n : EPROTO, "%s: read the child's result", what);
                if (n > 0)
                        return nullptr;
        }
}

/* Kills a child that did not answer, and reaps it unless it hangs in the kernel. */
static void put_down(int pidfd) {
        struct pollfd wait = {.fd = pidfd, .events = POLLIN};
        siginfo_t end;

        (void) nd_calls_real.pidfd_send_signal(pidfd, SIGKILL, 0);
        (void) poll(&wait, 1, REAP_MS);
        (void) waitid(P_PIDFD, (id_t) pidfd, &end, WEXITED | WNOHANG);
}

/* Starts the child. Returns our end of the socket pair and the child's pidfd. */
static struct nd_error *spawn(const char *what, nd_worker_function function, void *argument, int *ret_fd, int *ret_pidfd) {
        nd_autoclose int ours = -EBADF, theirs = -EBADF, pidfd = -EBADF;
        struct clone_args arguments = {.flags = CLONE_PIDFD, .exit_signal = SIGCHLD, .pidfd = (uintptr_t) &pidfd};
        pid_t parent = getpid(), pid;
        int pair[2];

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "%s: create socket pair", what);
        ours = pair[0];
        theirs = pair[1];
        pid = nd_sys->clone3(&arguments, sizeof arguments);
        if (pid < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "%s: start child", what);
        if (pid == 0)
                child_main(theirs, parent, function, argument);
        *ret_fd = nd_take_fd(ours);
        *ret_pidfd = nd_take_fd(pidfd);
        return nullptr;
}

static struct nd_error *packet_error(struct packet *packet) {
        packet->text[sizeof packet->text - 1] = '\0';
        if (packet->code == ND_OK)
                return nullptr;
        return nd_error_received((enum nd_error_code) packet->code, packet->error_number, packet->text);
}

struct nd_error *nd_worker_run(const char *what, nd_worker_function function, void *argument, uint64_t deadline_us,
                               int *ret_fd) {
        nd_autoclose int fd = -EBADF, pidfd = -EBADF, passed = -EBADF;
        struct packet packet = {};
        struct nd_error *error;
        siginfo_t end;

        nd_try(spawn(what, function, argument, &fd, &pidfd));
        error = await(what, fd, deadline_us, &packet, &passed);
        if (error) {
                put_down(pidfd);
                return error;
        }
        (void) waitid(P_PIDFD, (id_t) pidfd, &end, WEXITED);
        nd_try(packet_error(&packet));
        if (ret_fd)
                *ret_fd = nd_take_fd(passed);
        return nullptr;
}

/* ---- on a loop ---- */

struct nd_worker {
        int fd, pidfd;
        sd_event_source *exit_source, *deadline_source;
        char *what;
        uint64_t deadline_us;
        bool timed_out;
        nd_worker_callback callback; /* nullptr after cancellation or abandonment */
        void *userdata;
};

static void worker_free(struct nd_worker *worker) {
        if (!worker)
                return;
        sd_event_source_disable_unref(worker->exit_source);
        sd_event_source_disable_unref(worker->deadline_source);
        nd_close_fd(&worker->fd);
        nd_close_fd(&worker->pidfd);
        free(worker->what);
        free(worker);
}

static void worker_done(struct nd_worker **worker) {
        worker_free(*worker);
}

static struct nd_error *late(const struct nd_worker *worker) {
        return nd_error_new(ND_DEADLINE, ETIMEDOUT, "%s: timed out after %llu ms", worker->what,
                            (unsigned long long) (worker->deadline_us / ND_MS_US));
}

/* Reads the packet of the child, which has exited. An answer sent in time counts even if the
 * deadline has passed since. */
static struct nd_error *answer_of(const struct nd_worker *worker, int *ret_fd) {
        struct packet packet = {};
        ssize_t n = nd_fd_passing_receive(worker->fd, &packet, sizeof packet, ret_fd, 1, MSG_DONTWAIT);

        if (n >= (ssize_t) offsetof(struct packet, text) + 1)
                return packet_error(&packet);
        if (worker->timed_out)
                return late(worker);
        return nd_error_new(ND_INTERNAL, n < 0 && n != -EAGAIN ? (int) -n : 0, "%s: child exited without a result",
                            worker->what);
}

static int on_ended([[maybe_unused]] sd_event_source *source, [[maybe_unused]] int fd, [[maybe_unused]] uint32_t events,
                    void *userdata) {
        struct nd_worker *worker = userdata;
        nd_worker_callback callback = worker->callback;
        void *callback_data = worker->userdata;
        nd_autoclose int passed = -EBADF;
        struct nd_error *error = nullptr;
        siginfo_t end = {};

        if (waitid(P_PIDFD, (id_t) worker->pidfd, &end, WEXITED | WNOHANG) < 0 || end.si_pid == 0)
                return 0;
        if (callback)
                error = answer_of(worker, &passed);
        worker_free(worker);
        if (callback)
                callback(error, error ? -EBADF : nd_take_fd(passed), callback_data);
        return 0;
}

static int on_deadline(sd_event_source *source, [[maybe_unused]] uint64_t usec, void *userdata) {
        struct nd_worker *worker = userdata;
        nd_worker_callback callback = nd_take_ptr(worker->callback);

        if (!worker->timed_out) {
                worker->timed_out = true;
                worker->callback = callback;
                (void) nd_calls_real.pidfd_send_signal(worker->pidfd, SIGKILL, 0);
                (void) sd_event_source_set_time_relative(source, REAP_MS * ND_MS_US);
                return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        }
        if (callback)
                callback(late(worker), -EBADF, worker->userdata);
        return 0;
}

static int watch(sd_event *loop, struct nd_worker *worker) {
        int r = sd_event_add_io(loop, &worker->exit_source, worker->pidfd, EPOLLIN, on_ended, worker);

        if (r < 0)
                return r;
        return sd_event_add_time_relative(loop, &worker->deadline_source, CLOCK_MONOTONIC, worker->deadline_us, ND_MS_US,
                                          on_deadline, worker);
}

struct nd_error *nd_worker_start(sd_event *loop, const char *what, nd_worker_function function, void *argument,
                                 uint64_t deadline_us, nd_worker_callback callback, void *userdata, struct nd_worker **ret) {
        nd_cleanup(worker_done) struct nd_worker *worker = nd_new(struct nd_worker);
        int r;

        *worker = (struct nd_worker) {.fd = -EBADF,
                                      .pidfd = -EBADF,
                                      .what = nd_strdup(what),
                                      .deadline_us = deadline_us,
                                      .callback = callback,
                                      .userdata = userdata};
        nd_try(spawn(what, function, argument, &worker->fd, &worker->pidfd));
        r = watch(loop, worker);
        if (r < 0) {
                put_down(worker->pidfd);
                return nd_error_new(ND_INTERNAL, -r, "%s: watch child", what);
        }
        *ret = nd_take_ptr(worker);
        return nullptr;
}

void nd_worker_cancel(struct nd_worker *worker) {
        if (!worker)
                return;
        worker->callback = nullptr;
        (void) nd_calls_real.pidfd_send_signal(worker->pidfd, SIGKILL, 0);
}
