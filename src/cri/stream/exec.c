/* SPDX-License-Identifier: Apache-2.0 */
/* exec.c - see exec.h
 *
 * Theory of operation
 *   The client opens one stream for each of the roles; when the last is there the command is started (cri/exec.h), with pipes or with a terminal that crun
 *   sends to a socket (console.h). Output is read only as far as the connection has room, input is taken only as far as the command does: each side waits
 *   for the other one through the kernel's buffers, and the daemon for nobody.
 *   The command has ended when crun has. What is in its pipes then is still sent, up to DRAIN; what a process that it left behind writes later is not.
 *   Last goes the verdict, over the error stream, and the ends of all streams. A client that is gone is the command's end, with all it has started.
 * Owns       the command and our ends of its streams. Knows the container by its id only. */
#include "cri/stream/exec.h"

#include <sys/ioctl.h>
#include <termios.h>

#include "base/clock.h"
#include "base/json.h"
#include "cri/daemon.h"
#include "cri/exec.h"
#include "cri/paths.h"
#include "cri/stream/console.h"
#include "sys/calls.h"

enum {
        STREAMS_S = 30,   /* from the upgrade to the last stream */
        INPUT = 64 << 10, /* what may wait for the command */
        PIECE = 32 << 10,
        DRAIN = 1 << 20, /* no pipe holds more */
        VERDICT = 16 << 10,
        SIZE = 256, /* of one resize message */
};

enum role {
        ERROR_STREAM,
        INPUT_STREAM,
        OUTPUT_STREAM,
        ERRORS_STREAM,
        RESIZE_STREAM,
        ROLES,
};

static const char *const role_names[ROLES] = {"error", "stdin", "stdout", "stderr", "resize"};

struct session;

/* One direction of output. */
struct pump {
        struct session *session;
        enum role role;
        int fd; /* -EBADF once it has ended */
        sd_event_source *source;
        size_t left; /* to be read after the command's end */
};

struct session {
        struct connection *connection;
        struct stream_request *request;
        const char *protocol;
        bool wanted[ROLES];
        uint32_t streams[ROLES]; /* 0 = not there yet */
        sd_event_source *timer;  /* for the last of them */
        bool started;
        struct exec *exec; /* nullptr when it has ended */
        struct console *console;
        struct pump output, errors;
        int input; /* -EBADF = none yet, or no more */
        bool input_over, input_dead;
        sd_event_source *input_source;
        struct nd_text pending; /* for it */
        struct nd_text size;    /* of a resize message, so far */
        struct winsize window;  /* the last one; no rows = none came */
        bool ended;
        struct nd_text verdict;
};

static const char *const protocols[] = {"v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io",
                                        nullptr};

/* ---- the end ---- */

static void pump_done(struct pump *pump) {
        pump->source = sd_event_source_disable_unref(pump->source);
        nd_close_fd(&pump->fd);
}

static void close_input(struct session *session) {
        session->input_source = sd_event_source_disable_unref(session->input_source);
        nd_close_fd(&session->input);
        session->pending.length = 0;
}

static void session_free(struct session *session) {
        exec_cancel(session->exec);
        console_free(session->console);
        sd_event_source_disable_unref(session->timer);
        pump_done(&session->output);
        pump_done(&session->errors);
        close_input(session);
        nd_text_done(&session->pending);
        nd_text_done(&session->size);
        nd_text_done(&session->verdict);
        stream_request_free(session->request);
        free(session);
}

static void on_gone(void *userdata) {
        session_free(userdata);
}

/* The newest protocol wants to know it in JSON; before, only what went wrong was told, in words. */
static void write_verdict(const struct session *session, const struct nd_error *error, int code, struct nd_text *ret) {
        nd_autofree char *number = nd_format("%d", code);
        nd_autofree char *words = error ? nd_format("error executing command in container: %s", nd_error_text(error))
                                        : nd_format("command terminated with non-zero exit code: exit code %d", code);
        struct nd_json_out out = {.text = ret};

        if (session->protocol != protocols[0]) {
                if (error || code != 0)
                        nd_text_add(ret, words);
                return;
        }
        nd_json_open(&out, nullptr, '{');
        nd_json_string(&out, "status", error || code != 0 ? "Failure" : "Success");
        if (error) {
                nd_autofree char *message = nd_format("Internal error occurred: %s", words);

                nd_json_string(&out, "message", message);
                nd_json_string(&out, "reason", "InternalError");
                nd_json_number(&out, "code", 500);
        } else if (code != 0) {
                nd_json_string(&out, "message", words);
                nd_json_string(&out, "reason", "NonZeroExitCode");
                nd_json_open(&out, "details", '{');
                nd_json_open(&out, "causes", '[');
                nd_json_open(&out, nullptr, '{');
                nd_json_string(&out, "reason", "ExitCode");
                nd_json_string(&out, "message", number);
                nd_json_close(&out, '}');
                nd_json_close(&out, ']');
                nd_json_close(&out, '}');
        }
        nd_json_close(&out, '}');
}

/* Sends what has been queued, and the verdict when nothing else is to come. The session may be gone afterwards. */
static void proceed(struct session *session) {
        struct connection *connection = session->connection;

        if (!session->ended || session->output.fd >= 0 || session->errors.fd >= 0 ||
            connection_room(connection) < session->verdict.length) {
                connection_flush(connection);
                return;
        }
        if (session->verdict.length > 0)
                connection_write(connection, session->streams[ERROR_STREAM], session->verdict.bytes, session->verdict.length);
        for (enum role role = 0; role < ROLES; role++)
                if (session->streams[role] != 0)
                        connection_end_stream(connection, session->streams[role]);
        session_free(session);
        connection_finish(connection);
}

/* ---- output ---- */

/* Reads one piece, as far as there is room. False when nothing more can be done now. */
static bool pump_once(struct pump *pump) {
        struct session *session = pump->session;
        struct connection *connection = session->connection;
        uint32_t stream = session->streams[pump->role];
        size_t most = connection_room(connection);
        char piece[PIECE];
        ssize_t n;

        if (pump->fd < 0)
                return false;
        if (most == 0) {
                (void) sd_event_source_set_enabled(pump->source, SD_EVENT_OFF);
                return false;
        }
        n = read(pump->fd, piece, most < sizeof piece ? most : sizeof piece);
        if (n < 0 && errno == EINTR)
                return true;
        if (n < 0 && errno == EAGAIN && !session->ended)
                return false;
        if (n > 0 && stream != 0)
                connection_write(connection, stream, piece, (size_t) n);
        if (n > 0 && (!session->ended || pump->left > (size_t) n)) {
                pump->left -= session->ended ? (size_t) n : 0;
                return true;
        }
        pump_done(pump);
        if (stream != 0)
                connection_end_stream(connection, stream);
        return false;
}

/* After the end nothing need become readable any more: what is there is looked for. */
static void drain(struct session *session) {
        for (bool more = true; more;)
                more = pump_once(&session->output);
        for (bool more = true; more;)
                more = pump_once(&session->errors);
}

static int on_output([[maybe_unused]] sd_event_source *source, [[maybe_unused]] int fd, [[maybe_unused]] uint32_t events,
                     void *userdata) {
        struct pump *pump = userdata;

        (void) pump_once(pump);
        proceed(pump->session);
        return 0;
}

static void on_room(void *userdata) {
        struct session *session = userdata;

        if (session->output.source)
                (void) sd_event_source_set_enabled(session->output.source, SD_EVENT_ON);
        if (session->errors.source)
                (void) sd_event_source_set_enabled(session->errors.source, SD_EVENT_ON);
        if (!session->ended)
                return;
        drain(session);
        proceed(session);
}

static struct nd_error *pump_start(struct pump *pump, int fd) {
        pump->fd = fd;
        if (sd_event_add_io(connection_daemon(pump->session->connection)->loop, &pump->source, fd, EPOLLIN, on_output, pump) <
            0)
                return nd_error_new(ND_INTERNAL, 0, "watch the command's output");
        return nullptr;
}

/* ---- input ---- */

static void write_input(struct session *session) {
        size_t done = 0;
        ssize_t n = 0;

        while (session->input >= 0 && done < session->pending.length &&
               (n = write(session->input, session->pending.bytes + done, session->pending.length - done)) > 0)
                done += (size_t) n;
        if (done > 0) {
                __builtin_memmove(session->pending.bytes, session->pending.bytes + done, session->pending.length - done);
                session->pending.length -= done;
        }
        if (n < 0 && errno != EAGAIN && errno != EINTR) { /* the command does not want it */
                session->input_dead = true;
                close_input(session);
        }
        if (session->pending.length == 0 && session->input_over && !session->request->terminal)
                close_input(session);
        if (session->input_source)
                (void) sd_event_source_set_enabled(session->input_source,
                                                   session->pending.length > 0 ? SD_EVENT_ON : SD_EVENT_OFF);
}

static int on_input([[maybe_unused]] sd_event_source *source, [[maybe_unused]] int fd, [[maybe_unused]] uint32_t events,
                    void *userdata) {
        struct session *session = userdata;

        write_input(session);
        if (session->pending.length == 0)
                connection_resume(session->connection);
        return 0;
}

static struct nd_error *input_start(struct session *session, int fd) {
        session->input = fd;
        if (sd_event_add_io(connection_daemon(session->connection)->loop, &session->input_source, fd, EPOLLOUT, on_input,
                            session) < 0)
                return nd_error_new(ND_INTERNAL, 0, "watch the command's input");
        return nullptr;
}

static void take_input(struct session *session, const char *bytes, size_t length) {
        if (session->input_dead || session->ended || session->input_over)
                return;
        nd_text_append(&session->pending, bytes, length);
        if (session->started)
                write_input(session);
}

/* ---- the window ---- */

static void apply_window(const struct session *session) {
        if (session->window.ws_row > 0 && session->output.fd >= 0)
                (void) ioctl(session->output.fd, TIOCSWINSZ, &session->window);
}

static void resize(struct session *session, const char *text, size_t length) {
        nd_autoerror struct nd_error *error = nullptr;
        nd_autojson doc = nullptr;
        uint64_t width = 0, height = 0;

        error = nd_json_parse(text, length, SIZE, &doc);
        if (!error)
                error = nd_member_number(yyjson_doc_get_root(doc), "Width", UINT16_MAX, &width);
        if (!error)
                error = nd_member_number(yyjson_doc_get_root(doc), "Height", UINT16_MAX, &height);
        if (error || width == 0 || height == 0)
                return; /* a client that cannot say it goes without */
        session->window = (struct winsize) {.ws_row = (uint16_t) height, .ws_col = (uint16_t) width};
        apply_window(session);
}

/* Objects one after the other, cut into pieces anyhow; none has another one in it. */
static void take_size(struct session *session, const char *bytes, size_t length) {
        for (size_t i = 0; i < length; i++) {
                nd_text_append(&session->size, bytes + i, 1);
                if (bytes[i] != '}' && !session->size.overflow)
                        continue;
                if (!session->size.overflow)
                        resize(session, session->size.bytes, session->size.length);
                session->size.length = 0;
                session->size.overflow = false;
        }
}

/* ---- the command ---- */

/* Takes the error. The session may be gone afterwards. */
static void finish(struct session *session, struct nd_error *error, int code) {
        nd_autoerror struct nd_error *owned = error;

        session->ended = true;
        session->output.left = session->errors.left = DRAIN;
        close_input(session);
        write_verdict(session, owned, code, &session->verdict);
        drain(session);
        proceed(session);
}

static void on_end(struct nd_error *error, struct exec_result *result, void *userdata) {
        struct session *session = userdata;

        session->exec = nullptr;
        if (session->console)
                console_look(session->console); /* a short command's terminal may still wait there */
        finish(session, error, result ? result->code : 0);
}

static void on_terminal(int fd, void *userdata) {
        struct session *session = userdata;
        nd_autoclose int reading = fd, writing = -EBADF;

        if (session->wanted[INPUT_STREAM])
                writing = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        nd_error_free(pump_start(&session->output, nd_take_fd(reading)));
        apply_window(session);
        if (writing < 0)
                return;
        nd_error_free(input_start(session, nd_take_fd(writing)));
        write_input(session);
        if (session->pending.length == 0)
                connection_resume(session->connection);
}

/* The user of the container's processes, as the host sees it, may open /dev/stdout again. */
static struct nd_error *make_pipe(const struct container *container, int ours, int *ret_ours, int *ret_theirs) {
        const struct sandbox_request *pod = &container->sandbox->request;
        uint32_t uid = container->user.uid + (pod->user_namespace ? pod->uids.outside : 0),
                 gid = container->user.gid + (pod->user_namespace ? pod->gids.outside : 0);
        int fds[2];

        if (nd_sys->pipe2(fds, O_CLOEXEC) < 0)
                return nd_error_new(nd_code_of_errno(errno), errno, "make a pipe");
        (void) nd_sys->fchown(fds[0], uid, gid);
        (void) fcntl(fds[ours], F_SETFL, O_NONBLOCK);
        *ret_ours = fds[ours];
        *ret_theirs = fds[1 - ours];
        return nullptr;
}

static struct nd_error *open_pipes(struct session *session, const struct container *container, int theirs[static 3]) {
        int ours;

        if (session->wanted[INPUT_STREAM]) {
                nd_try(make_pipe(container, 1, &ours, &theirs[0]));
                nd_try(input_start(session, ours));
        }
        if (session->wanted[OUTPUT_STREAM]) {
                nd_try(make_pipe(container, 0, &ours, &theirs[1]));
                nd_try(pump_start(&session->output, ours));
        }
        if (session->wanted[ERRORS_STREAM]) {
                nd_try(make_pipe(container, 0, &ours, &theirs[2]));
                nd_try(pump_start(&session->errors, ours));
        }
        return nullptr;
}

static struct nd_error *open_console(struct session *session, const struct container *container) {
        struct daemon *daemon = connection_daemon(session->connection);
        nd_autofree char *directory = path_of_container_run(&daemon->config, container->id);

        return console_listen(daemon->loop, directory, on_terminal, session, &session->console);
}

/* The command's ends of its streams. */
static void ends_done(int (*ends)[3]) {
        for (size_t i = 0; i < nd_count_of(*ends); i++)
                nd_close_fd(&(*ends)[i]);
}

static struct nd_error *launch(struct session *session) {
        nd_autoclose int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
        struct daemon *daemon = connection_daemon(session->connection);
        struct exec_streams streams = {.terminal = session->request->terminal};
        nd_cleanup(ends_done) int theirs[3] = {-EBADF, -EBADF, -EBADF};
        struct container *container = nullptr;

        nd_try(pods_find_container(&daemon->pods, session->request->container, &container));
        nd_try(streams.terminal ? open_console(session, container) : open_pipes(session, container, theirs));
        if (streams.terminal) {
                streams.console_directory = console_directory(session->console);
                streams.console = console_name(session->console);
        }
        for (size_t i = 0; i < nd_count_of(theirs); i++)
                streams.fds[i] = theirs[i] >= 0 ? theirs[i] : nowhere;
        return exec_start_streams(daemon, container, &session->request->command, &streams, on_end, session, &session->exec);
}

/* ---- the streams ---- */

static bool is_complete(const struct session *session) {
        for (enum role role = 0; role < ROLES; role++)
                if (session->wanted[role] && session->streams[role] == 0)
                        return false;
        return true;
}

/* The session may be gone afterwards. */
static bool start(struct session *session) {
        struct nd_error *error;

        session->started = true;
        session->timer = sd_event_source_disable_unref(session->timer);
        error = launch(session);
        if (error) {
                finish(session, error, 0);
                return true;
        }
        write_input(session);
        return session->pending.length == 0;
}

static bool take_stream(struct session *session, const struct stream_event *event) {
        for (enum role role = 0; role < ROLES; role++) {
                if (!nd_streq(event->type, role_names[role]) || !session->wanted[role] || session->streams[role] != 0 ||
                    session->ended)
                        continue;
                session->streams[role] = event->stream;
                connection_accept(session->connection, event->stream);
                return is_complete(session) ? start(session) : true;
        }
        connection_refuse(session->connection, event->stream);
        return true;
}

static bool on_event(const struct stream_event *event, void *userdata) {
        struct session *session = userdata;
        bool is_input = event->stream != 0 && event->stream == session->streams[INPUT_STREAM];

        if (event->kind == STREAM_OPENED)
                return take_stream(session, event);
        if (event->kind == STREAM_DATA && is_input) {
                take_input(session, event->bytes, event->length);
                if (session->pending.overflow) { /* of what came before there was a command to give it to */
                        finish(session, nd_error_new(ND_EXHAUSTED, 0, "the client sends input before it opens all streams"),
                               0);
                        return true;
                }
        }
        if (event->kind == STREAM_DATA && event->stream == session->streams[RESIZE_STREAM])
                take_size(session, event->bytes, event->length);
        if ((event->kind == STREAM_FIN || event->kind == STREAM_RESET) && is_input) {
                session->input_over = true;
                if (session->started)
                        write_input(session);
        }
        return !session->started || session->pending.length == 0;
}

static int on_late([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t usec, void *userdata) {
        struct session *session = userdata;

        finish(session, nd_error_new(ND_DEADLINE, 0, "the client did not open all streams within %d s", STREAMS_S), 0);
        return 0;
}

static void *begin(struct connection *connection, struct stream_request *request, const char *protocol) {
        struct session *session = nd_new(struct session);
        bool old = protocol == protocols[2] || protocol == protocols[3]; /* these knew no resizing */

        session->connection = connection;
        session->request = request;
        session->protocol = protocol;
        session->wanted[ERROR_STREAM] = true;
        session->wanted[INPUT_STREAM] = request->input;
        session->wanted[OUTPUT_STREAM] = request->output;
        session->wanted[ERRORS_STREAM] = request->errors;
        session->wanted[RESIZE_STREAM] = request->terminal && !old;
        session->output = (struct pump) {.session = session, .role = OUTPUT_STREAM, .fd = -EBADF};
        session->errors = (struct pump) {.session = session, .role = ERRORS_STREAM, .fd = -EBADF};
        session->input = -EBADF;
        session->pending.ceiling = INPUT;
        session->size.ceiling = SIZE;
        session->verdict.ceiling = VERDICT;
        (void) sd_event_add_time_relative(connection_daemon(connection)->loop, &session->timer, CLOCK_MONOTONIC,
                                          STREAMS_S * ND_SECOND_US, ND_SECOND_US, on_late, session);
        return session;
}

const struct session_type stream_exec = {
        .path = "/exec/",
        .protocols = protocols,
        .begin = begin,
        .event = on_event,
        .room = on_room,
        .gone = on_gone,
};
