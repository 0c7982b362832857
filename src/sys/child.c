/* SPDX-License-Identifier: Apache-2.0 */
/* child.c - see child.h
 *
 * Theory of operation
 *   The clone returns the pidfd with the child, so the PID cannot be reused in between. The child
 *   shares our memory until it executes the program: a copy of our page tables would be discarded
 *   at once, and costs more than all the rest. Only a child that starts in another cgroup is a
 *   copy, since libc has no call that does both. The child becomes the leader of a session, and
 *   thereby of the process group that a deadline kills. A close-on-exec pipe carries an errno if it
 *   could not be executed. Three sources run in the loop: the pidfd, the deadline, and one per
 *   output stream; input is written to a memfd before the start, so that no handler has to feed a
 *   pipe.
 *   The child is over when its pidfd becomes readable, even if another process still has its
 *   streams open: what is readable then is kept, the rest comes from processes that outlived it. A
 *   child that hangs in the kernel after SIGKILL is abandoned after @REAP_S: the callback runs
 *   without its exit status.
 * Owns       the sources, the descriptors and the process. Cancelled or abandoned, it owns itself
 *            until it is reaped. */
#include "sys/child.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/text.h"
#include "sys/calls.h"
#include "sys/file.h"
#include "sys/limits.h"

enum {
        /* From SIGKILL to the exit; a child that waits for a dead disk or a FUSE server takes
         * longer. */
        REAP_S = 5,
        STACK = 64 << 10, /* of the child until exec; libc puts paths of up to 4 KiB there */
};

struct stream {
        int fd;
        sd_event_source *source;
        struct nd_text text;
        /* Nullptr: the data goes to text. */
        void (*sink)(const char *bytes, size_t length, void *userdata);
        void *sink_userdata;
};

struct nd_child {
        int pidfd;
        sd_event_source *exit_source;
        sd_event_source *deadline_source;
        sd_event_source *stuck_source; /* set after SIGKILL */
        struct stream output, errors;
        bool timed_out;
        nd_child_callback callback; /* nullptr after cancellation */
        void *userdata;
};

void nd_child_result_done(struct nd_child_result *result) {
        free(result->output);
        free(result->errors);
        *result = (struct nd_child_result) {};
}

static const char *last_line(const char *text, size_t *ret_length) {
        size_t end = strlen(text), start;

        while (end > 0 && (text[end - 1] == '\n' || text[end - 1] == ' '))
                end--;
        for (start = end; start > 0 && text[start - 1] != '\n'; start--)
                ;
        *ret_length = end - start;
        return text + start;
}

struct nd_error *nd_child_result_error(const struct nd_child_result *result, const char *name) {
        const char *words = nullptr;
        size_t length = 0;

        if (result->errors)
                words = last_line(result->errors, &length);
        if (result->timed_out)
                return nd_error_new(ND_DEADLINE, ETIMEDOUT, "%s did not end in time%s%.*s", name,
                                    length > 0 ? "; last output: " : "", (int) length, words ?: "");
        if (result->code == 0)
                return nullptr;
        if (result->code < 0)
                return nd_error_new(ND_INTERNAL, 0, "%s was killed by signal %d%s%.*s", name, result->signal,
                                    length > 0 ? "; last output: " : "", (int) length, words ?: "");
        return nd_error_new(ND_INTERNAL, 0, "%s ended with code %d%s%.*s", name, result->code, length > 0 ? ": " : "",
                            (int) length, words ?: "");
}

static void stream_done(struct stream *s) {
        sd_event_source_disable_unref(s->source);
        s->source = nullptr;
        nd_close_fd(&s->fd);
        nd_text_done(&s->text);
}

static void child_free(struct nd_child *child) {
        if (!child)
                return;
        sd_event_source_disable_unref(child->exit_source);
        sd_event_source_disable_unref(child->deadline_source);
        sd_event_source_disable_unref(child->stuck_source);
        stream_done(&child->output);
        stream_done(&child->errors);
        nd_close_fd(&child->pidfd);
        free(child);
}

static void child_done(struct nd_child **child) {
        child_free(*child);
}

/* Reads the available data, but not more than a pipe holds: a fast writer would keep us here past
 * every deadline. Returns false at the end of the stream. */
static bool stream_read(struct stream *s) {
        enum { PIECES = 4 }; /* of 16 KiB: a pipe's 64 KiB */
        char piece[16 * 1024];

        for (int i = 0; i < PIECES; i++) {
                ssize_t n = read(s->fd, piece, sizeof piece);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return errno == EAGAIN;
                if (n == 0)
                        return false;
                if (s->sink)
                        s->sink(piece, (size_t) n, s->sink_userdata);
                else
                        nd_text_append(&s->text, piece, (size_t) n);
        }
        return true;
}

static void sink_nothing([[maybe_unused]] const char *bytes, [[maybe_unused]] size_t length, [[maybe_unused]] void *userdata) {
}

static int on_stream(sd_event_source *source, [[maybe_unused]] int fd, [[maybe_unused]] uint32_t events, void *userdata) {
        if (!stream_read(userdata))
                return sd_event_source_set_enabled(source, SD_EVENT_OFF);
        return 0;
}

static void kill_group(struct nd_child *child) {
        if (nd_sys->pidfd_send_signal(child->pidfd, SIGKILL, PIDFD_SIGNAL_PROCESS_GROUP) < 0)
                (void) nd_sys->pidfd_send_signal(child->pidfd, SIGKILL, 0);
}

static struct nd_child_result take_result(struct nd_child *child) {
        struct nd_child_result result = {.timed_out = child->timed_out,
                                         .code = -1,
                                         .signal = SIGKILL,
                                         .truncated = child->output.text.overflow || child->errors.text.overflow,
                                         .output_length = child->output.text.length,
                                         .errors_length = child->errors.text.length};

        result.output = nd_text_steal(&child->output.text);
        result.errors = nd_text_steal(&child->errors.text);
        return result;
}

/* SIGKILL was sent @REAP_S ago. Waiting longer would break the deadline; the loop reaps the child
 * as soon as the kernel lets it exit. */
static int on_stuck([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t usec, void *userdata) {
        struct nd_child *child = userdata;
        nd_child_callback callback = nd_take_ptr(child->callback);
        struct nd_child_result result;

        if (!callback)
                return 0;
        child->timed_out = true;
        result = take_result(child);
        child->output.sink = child->errors.sink = sink_nothing;
        callback(&result, child->userdata);
        nd_child_result_done(&result);
        return 0;
}

static void kill_with_patience(struct nd_child *child) {
        sd_event *loop = sd_event_source_get_event(child->exit_source);

        kill_group(child);
        if (!child->stuck_source)
                (void) sd_event_add_time_relative(loop, &child->stuck_source, CLOCK_MONOTONIC, REAP_S * ND_SECOND_US, ND_MS_US,
                                                  on_stuck, child);
}

static int on_deadline([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t usec, void *userdata) {
        struct nd_child *child = userdata;

        child->timed_out = true;
        kill_with_patience(child);
        return 0;
}

static int on_ended(sd_event_source *source, [[maybe_unused]] int fd, [[maybe_unused]] uint32_t events, void *userdata) {
        struct nd_child *child = userdata;
        nd_child_callback callback = child->callback;
        void *callback_data = child->userdata;
        struct nd_child_result result;
        siginfo_t end = {};

        if (waitid(P_PIDFD, (id_t) child->pidfd, &end, WEXITED | WNOHANG) < 0 || end.si_pid == 0)
                return 0;
        (void) source;
        (void) stream_read(&child->output);
        (void) stream_read(&child->errors);
        result = take_result(child);
        result.code = end.si_code == CLD_EXITED ? end.si_status : -1;
        result.signal = end.si_code == CLD_EXITED ? 0 : end.si_status;
        child_free(child);
        if (callback)
                callback(&result, callback_data);
        nd_child_result_done(&result);
        return 0;
}

void nd_child_cancel(struct nd_child *child) {
        if (!child)
                return;
        child->callback = nullptr;
        child->output.sink = sink_nothing;
        kill_group(child);
}

void nd_child_kill(struct nd_child *child) {
        kill_with_patience(child);
}

pid_t nd_child_pid(const struct nd_child *child) {
        return pidfd_getpid(child->pidfd);
}

/* Everything the child's side needs, prepared before the clone: the child must not allocate. */
struct launch {
        const char *const *argv;
        char *const *environment;
        int input, output, errors, report;
        const int *descriptors;
        size_t descriptor_count;
        char oom_score_adj[16];  /* "": inherit ours */
        pid_t parent;            /* 0: do not check */
        const sigset_t *signals; /* signals with another disposition than a program expects */
};

/* A child that should be OOM-killed first must not inherit the score of a daemon that should be
 * killed last. Raising is always allowed; a failure is ignored. */
static void set_oom_score_adj(const char *text) {
        int fd;

        if (*text == '\0')
                return;
        fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
        if (fd >= 0)
                (void) !write(fd, text, strlen(text));
}

/* Puts the given descriptors at 3, 4, ... All are moved out of the way first: one may be where
 * another belongs, and the report pipe must not be overwritten. */
static bool place_descriptors(struct launch *l) {
        enum { ASIDE = 64 };
        int aside[ND_CHILD_DESCRIPTORS];

        if (l->descriptor_count == 0)
                return true;
        l->report = fcntl(l->report, F_DUPFD_CLOEXEC, ASIDE);
        for (size_t i = 0; i < l->descriptor_count; i++) {
                aside[i] = l->descriptors[i] < 0 ? -1 : fcntl(l->descriptors[i], F_DUPFD_CLOEXEC, ASIDE);
                if (l->descriptors[i] >= 0 && aside[i] < 0)
                        return false;
        }
        for (size_t i = 0; i < l->descriptor_count; i++)
                if (aside[i] < 0)
                        (void) close(3 + (int) i);
                else if (dup2(aside[i], 3 + (int) i) < 0)
                        return false;
        return true;
}

[[noreturn]] static void launch_exec(struct launch *l) {
        sigset_t none;
        int status;

        (void) sigemptyset(&none);
        for (int s = 1; s < NSIG; s++)
                if (sigismember(l->signals, s) == 1)
                        (void) signal(s, SIG_DFL);
        (void) sigprocmask(SIG_SETMASK, &none, nullptr);
        (void) setsid();
        if (l->parent != 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                /* The parent has exited before PR_SET_PDEATHSIG was set. */
                if (getppid() != l->parent)
                        _exit(127);
        }
        set_oom_score_adj(l->oom_score_adj);
        nd_limits_restore();
        /* Descriptors that we inherited may lack close-on-exec; the program gets the plan's
         * descriptors and nothing else. */
        if (dup2(l->input, STDIN_FILENO) >= 0 && dup2(l->output, STDOUT_FILENO) >= 0 && dup2(l->errors, STDERR_FILENO) >= 0 &&
            place_descriptors(l) && close_range(3 + (unsigned) l->descriptor_count, ~0U, CLOSE_RANGE_CLOEXEC) == 0)
                (void) execvpe(l->argv[0], (char *const *) l->argv, l->environment);
        status = errno;
        (void) !write(l->report, &status, sizeof status);
        _exit(127);
}

static struct nd_error *make_pipe(int *ret_read, int *ret_write) {
        int fds[2];

        if (nd_sys->pipe2(fds, O_CLOEXEC) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "create pipe");
        *ret_read = fds[0];
        *ret_write = fds[1];
        return nullptr;
}

static struct nd_error *make_input(const struct nd_child_plan *plan, int *ret_fd) {
        nd_autoclose int fd = -EBADF;

        if (!plan->input) {
                nd_try(nd_file_open_null(O_RDONLY, &fd));
        } else {
                fd = memfd_create("nodens-input", MFD_CLOEXEC);
                if (fd < 0)
                        return nd_error_new(nd_error_code_of(errno), errno, "create memfd");
                if (pwrite(fd, plan->input, plan->input_length, 0) != (ssize_t) plan->input_length)
                        return nd_error_new(ND_EXHAUSTED, errno, "write memfd");
        }
        *ret_fd = nd_take_fd(fd);
        return nullptr;
}

/* Signals that we ignore or handle. Computed once, since each query is a system call. Signals that
 * our programs ignore later are included anyway. */
static const sigset_t *unusual_signals(void) {
        static const int later[] = {SIGPIPE, SIGINT, SIGQUIT};
        static sigset_t found;
        static bool known;

        for (int s = 1; !known && s < NSIG; s++) {
                struct sigaction action;

                if (sigaction(s, nullptr, &action) == 0 && action.sa_handler != SIG_DFL)
                        (void) sigaddset(&found, s);
        }
        for (size_t i = 0; i < nd_count_of(later); i++)
                (void) sigaddset(&found, later[i]);
        known = true;
        return &found;
}

static int launch_main(void *argument) {
        launch_exec(argument);
}

/* Our signal handlers must not run in the child, which shares our memory: all signals stay blocked
 * until it has reset them. */
static pid_t start_sharing(struct launch *l, int *ret_pidfd) {
        static alignas(16) char stack[STACK];
        sigset_t all, ours;
        int error_number;
        pid_t pid;

        (void) sigfillset(&all);
        (void) sigprocmask(SIG_SETMASK, &all, &ours);
        pid = nd_sys->clone_vm(launch_main, stack + sizeof stack, l, ret_pidfd);
        error_number = errno;
        (void) sigprocmask(SIG_SETMASK, &ours, nullptr);
        errno = error_number;
        return pid;
}

static pid_t start_in_cgroup(struct launch *l, int cgroup, int *ret_pidfd) {
        struct clone_args arguments = {.flags = CLONE_PIDFD | CLONE_INTO_CGROUP,
                                       .exit_signal = SIGCHLD,
                                       .pidfd = (uintptr_t) ret_pidfd,
                                       .cgroup = (uint64_t) cgroup};
        pid_t pid = nd_sys->clone3(&arguments, sizeof arguments);

        if (pid == 0)
                launch_exec(l);
        return pid;
}

/* Clones and waits for the exec; it takes as long as the kernel needs to open the program. */
static struct nd_error *launch(const struct nd_child_plan *plan, struct nd_child *child) {
        nd_autoclose int input = -EBADF, output = -EBADF, errors = -EBADF, report = -EBADF, report_end = -EBADF,
                         cgroup = -EBADF;
        struct launch l;
        int status = 0;
        siginfo_t end;
        ssize_t n;
        pid_t pid;

        nd_try(make_input(plan, &input));
        nd_try(make_pipe(&child->output.fd, &output));
        nd_try(make_pipe(&child->errors.fd, &errors));
        nd_try(make_pipe(&report, &report_end));

        l = (struct launch) {.argv = plan->argv,
                             .environment = plan->environment ? (char *const *) plan->environment : environ,
                             .input = plan->streams ? plan->streams[0] : input,
                             .output = plan->streams ? plan->streams[1] : output,
                             .errors = plan->streams ? plan->streams[2] : errors,
                             .report = report_end,
                             .descriptors = plan->descriptors,
                             .descriptor_count = plan->descriptor_count,
                             .parent = plan->dies_with_us ? getpid() : 0,
                             .signals = unusual_signals()};
        if (plan->has_oom_score_adj)
                (void) snprintf(l.oom_score_adj, sizeof l.oom_score_adj, "%d", plan->oom_score_adj);
        if (plan->cgroup)
                nd_try(nd_error_wrap(nd_dir_open(AT_FDCWD, plan->cgroup, &cgroup), "start '%s'", plan->argv[0]));
        pid = plan->cgroup ? start_in_cgroup(&l, cgroup, &child->pidfd) : start_sharing(&l, &child->pidfd);
        if (pid < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "start '%s'%s%s", plan->argv[0],
                                    plan->cgroup ? " in cgroup " : "", plan->cgroup ?: "");
        nd_close_fd(&report_end);
        while ((n = read(report, &status, sizeof status)) < 0 && errno == EINTR)
                ;
        if (n != sizeof status)
                return nullptr;
        (void) waitid(P_PIDFD, (id_t) child->pidfd, &end, WEXITED);
        return nd_error_new(nd_error_code_of(status), status, "execute '%s'", plan->argv[0]);
}

static int watch(sd_event *loop, const struct nd_child_plan *plan, struct nd_child *child) {
        struct stream *streams[] = {&child->output, &child->errors};
        int r;

        for (size_t i = 0; i < nd_count_of(streams); i++) {
                (void) fcntl(streams[i]->fd, F_SETFL, O_NONBLOCK);
                streams[i]->text.ceiling = plan->output_ceiling;
                r = sd_event_add_io(loop, &streams[i]->source, streams[i]->fd, EPOLLIN, on_stream, streams[i]);
                if (r < 0)
                        return r;
        }
        r = sd_event_add_io(loop, &child->exit_source, child->pidfd, EPOLLIN, on_ended, child);
        if (r < 0 || plan->deadline_us == 0)
                return r;
        return sd_event_add_time_relative(loop, &child->deadline_source, CLOCK_MONOTONIC, plan->deadline_us, ND_MS_US,
                                          on_deadline, child);
}

struct nd_error *nd_child_start(sd_event *loop, const struct nd_child_plan *plan, nd_child_callback callback, void *userdata,
                                struct nd_child **ret) {
        nd_cleanup(child_done) struct nd_child *child = nd_new(struct nd_child);
        siginfo_t end;
        int r;

        child->pidfd = child->output.fd = child->errors.fd = -EBADF;
        child->callback = callback;
        child->userdata = userdata;
        child->output.sink = plan->output;
        child->output.sink_userdata = userdata;
        if (plan->descriptor_count > ND_CHILD_DESCRIPTORS)
                return nd_error_new(ND_INTERNAL, 0, "too many descriptors (%zu) for '%s'", plan->descriptor_count,
                                    plan->argv[0]);
        nd_try(launch(plan, child));
        r = watch(loop, plan, child);
        if (r < 0) {
                kill_group(child);
                (void) waitid(P_PIDFD, (id_t) child->pidfd, &end, WEXITED);
                return nd_error_new(ND_INTERNAL, -r, "watch '%s'", plan->argv[0]);
        }
        *ret = nd_take_ptr(child);
        return nullptr;
}

struct waiter {
        sd_event *loop;
        struct nd_child_result result;
};

static void on_result(struct nd_child_result *result, void *userdata) {
        struct waiter *waiter = userdata;

        waiter->result = nd_take(*result, (struct nd_child_result) {});
        (void) sd_event_exit(waiter->loop, 0);
}

static void loop_done(sd_event **loop) {
        sd_event_unref(*loop);
}

struct nd_error *nd_child_run(const struct nd_child_plan *plan, struct nd_child_result *ret) {
        nd_cleanup(loop_done) sd_event *loop = nullptr;
        struct waiter waiter = {};
        struct nd_child *child;
        int r = sd_event_new(&loop);

        if (r < 0)
                return nd_error_new(ND_INTERNAL, -r, "create event loop");
        waiter.loop = loop;
        nd_try(nd_child_start(loop, plan, on_result, &waiter, &child));
        r = sd_event_loop(loop);
        if (r < 0)
                return nd_error_new(ND_INTERNAL, -r, "wait for '%s'", plan->argv[0]);
        *ret = waiter.result;
        return nullptr;
}
