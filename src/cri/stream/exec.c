/* SPDX-License-Identifier: Apache-2.0 */
/* exec.c - see exec.h
 *
 * Starts a command (cri/oci-runtime/exec.h) with pipes, or with a terminal that crun sends to a
 * socket (console.h). The command ends when crun exits. If the client disconnects, the command is
 * killed with everything it started. */
#include "cri/stream/exec.h"

#include <fcntl.h>
#include <sys/ioctl.h>

#include "cri/core/paths.h"
#include "cri/oci-runtime/exec.h"
#include "cri/stream/console.h"
#include "cri/stream/stdio.h"
#include "sys/calls.h"
#include "sys/file.h"

struct work {
        struct cri_stdio *stdio;
        struct cri_exec *exec; /* nullptr after it has ended */
        struct cri_stream_console *console;
        int terminal; /* to set its window size */
};

static void cancel(void *userdata) {
        struct work *work = userdata;

        cri_exec_cancel(work->exec);
        cri_stream_console_free(work->console);
        nd_close_fd(&work->terminal);
        free(work);
}

static void resize(void *userdata, const struct winsize *window) {
        const struct work *work = userdata;

        if (work->terminal >= 0 && window)
                (void) ioctl(work->terminal, TIOCSWINSZ, window);
}

static void on_end(struct nd_error *error, struct cri_exec_result *result, void *userdata) {
        struct work *work = userdata;

        work->exec = nullptr;
        if (work->console)
                /* the terminal of a short command may not have been read yet */
                cri_stream_console_look(work->console);
        cri_stdio_end(work->stdio, error, result ? result->code : cri_exec_start_code(nd_error_text(error)));
}

static void on_terminal(int fd, void *userdata) {
        struct work *work = userdata;
        int writing = cri_stdio_wants(work->stdio, STDIO_INPUT) ? fcntl(fd, F_DUPFD_CLOEXEC, 3) : -EBADF;

        work->terminal = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        resize(work, cri_stdio_window(work->stdio));
        nd_ignore(cri_stdio_give_output(work->stdio, STDIO_OUTPUT, fd));
        if (writing >= 0)
                nd_ignore(cri_stdio_give_input(work->stdio, writing));
}

/* Owned by the user of the container's processes, as the host sees it, so that they may reopen
 * /dev/stdout. */
static struct nd_error *make_pipe(const struct cri_container *container, int ours, int *ret_ours, int *ret_theirs) {
        const struct cri_sandbox_request *pod = &container->sandbox->request;
        uint32_t uid = container->user.uid + (pod->user_namespace ? pod->uids.outside : 0),
                 gid = container->user.gid + (pod->user_namespace ? pod->gids.outside : 0);
        int fds[2];

        if (nd_sys->pipe2(fds, O_CLOEXEC) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "create a pipe");
        (void) nd_sys->fchown(fds[0], uid, gid);
        (void) fcntl(fds[ours], F_SETFL, O_NONBLOCK);
        *ret_ours = fds[ours];
        *ret_theirs = fds[1 - ours];
        return nullptr;
}

static struct nd_error *open_pipes(const struct work *work, const struct cri_container *container, int theirs[static 3]) {
        struct cri_stdio *stdio = work->stdio;
        int ours = -EBADF;

        if (cri_stdio_wants(stdio, STDIO_INPUT)) {
                nd_try(make_pipe(container, 1, &ours, &theirs[0]));
                nd_try(cri_stdio_give_input(stdio, ours));
        }
        if (cri_stdio_wants(stdio, STDIO_OUTPUT)) {
                nd_try(make_pipe(container, 0, &ours, &theirs[1]));
                nd_try(cri_stdio_give_output(stdio, STDIO_OUTPUT, ours));
        }
        if (cri_stdio_wants(stdio, STDIO_ERRORS)) {
                nd_try(make_pipe(container, 0, &ours, &theirs[2]));
                nd_try(cri_stdio_give_output(stdio, STDIO_ERRORS, ours));
        }
        return nullptr;
}

static struct nd_error *open_console(struct work *work, const struct cri_container *container) {
        const struct cri_stream_parts *parts = cri_stdio_parts(work->stdio);
        nd_autofree char *directory = cri_path_of_container_run(parts->config, container->id);

        return cri_stream_console_listen(parts->loop, directory, on_terminal, work, &work->console);
}

/* The command's ends of its streams. */
static void ends_done(int (*ends)[3]) {
        for (size_t i = 0; i < nd_count_of(*ends); i++)
                nd_close_fd(&(*ends)[i]);
}

static struct nd_error *launch(struct cri_stdio *stdio, struct cri_container *container, void **ret) {
        const struct cri_stream_parts *parts = cri_stdio_parts(stdio);
        const struct cri_stream_request *request = cri_stdio_request(stdio);
        nd_autoclose int nowhere = -EBADF;
        struct cri_exec_streams streams = {.terminal = request->terminal};
        nd_cleanup(ends_done) int theirs[3] = {-EBADF, -EBADF, -EBADF};
        struct work *work = nd_new(struct work);

        work->stdio = stdio;
        work->terminal = -EBADF;
        *ret = work;
        nd_try(nd_file_open_null(O_RDWR, &nowhere));
        nd_try(streams.terminal ? open_console(work, container) : open_pipes(work, container, theirs));
        if (streams.terminal)
                streams.console = cri_stream_console_socket(work->console);
        for (size_t i = 0; i < nd_count_of(theirs); i++)
                streams.fds[i] = theirs[i] >= 0 ? theirs[i] : nowhere;
        return cri_exec_start(
                parts->loop, parts->config,
                &(struct cri_exec_plan) {.container = container, .command = &request->command, .streams = &streams}, on_end,
                work, &work->exec);
}

static void *begin(struct cri_stream_connection *connection, struct cri_stream_request *request, const char *protocol) {
        static const struct cri_stdio_kind kind = {
                .trouble = "error executing command in container", .launch = launch, .resize = resize, .cancel = cancel};

        return cri_stdio_begin(connection, request, protocol, &kind);
}

const struct cri_stream_session_type cri_stream_exec = {
        .path = "/exec/",
        .protocols = cri_stdio_protocols,
        .channel_protocols = cri_stdio_channel_protocols,
        .begin = begin,
        .event = cri_stdio_event,
        .room = cri_stdio_room,
        .gone = cri_stdio_gone,
};
