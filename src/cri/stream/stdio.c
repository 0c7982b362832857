/* SPDX-License-Identifier: Apache-2.0 */
/* stdio.c - see stdio.h
 *
 * Theory of operation
 *   The client opens one stream per role. When the last one is open, the kind's launch() is called,
 *   which provides descriptors: pipes of a new command, sockets of a container's monitor, a
 *   terminal. Output is read only as long as the connection has room, and input is accepted only as
 *   long as the process reads it: backpressure goes through the kernel's buffers, and the daemon
 *   never blocks.
 *   The kind reports the end (cri_stdio_end()). Data that is in its descriptors then is still sent,
 *   up to DRAIN; later output of a process that was left behind is not. The result is sent last,
 *   over the error stream, then all streams are closed. If the client disconnects, cancel() is
 *   called.
 * Owns       our ends of the streams. Refers to the container by ID only. */
#include "cri/stream/stdio.h"

#include <string.h>
#include <sys/ioctl.h>

#include "base/clock.h"
#include "base/json-member.h"
#include "base/json.h"
#include "cri/core/pod-table.h"

enum {
        INPUT = 64 << 10, /* buffered for the command */
        PIECE = 32 << 10,
        DRAIN = 1 << 20, /* a pipe never holds more */
        EXIT_STATUS_CEILING = 16 << 10,
        SIZE = 256, /* of one resize message */
};

/* from the upgrade to the last stream */
static constexpr uint64_t streams_timeout_us = 30 * ND_SECOND_US;

static const char *const role_names[STDIO_ROLES] = {"error", "stdin", "stdout", "stderr", "resize"};

/* One output stream. */
struct pump {
        struct cri_stdio *stdio;
        enum cri_stdio_role role;
        int fd; /* -EBADF after its end */
        sd_event_source *source;
        size_t left; /* bytes to read after the command's end */
};

struct cri_stdio {
        struct cri_stream_connection *connection;
        struct cri_stream_request *request;
        const char *protocol;
        bool wanted[STDIO_ROLES];
        uint32_t streams[STDIO_ROLES]; /* 0 = not open yet */
        sd_event_source *timer;        /* for the last of them */
        bool started;
        const struct cri_stdio_kind *kind;
        void *work; /* the kind's state; nullptr before launch() */
        struct pump output, errors;
        int input; /* -EBADF = none yet, or closed */
        bool input_over, input_dead;
        sd_event_source *input_source;
        struct nd_text pending; /* for input */
        struct nd_text size;    /* an incomplete resize message */
        struct winsize window;  /* the last size; 0 rows = none received */
        bool ended;
        struct nd_text exit_status;
};

const char *const cri_stdio_protocols[] = {"v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io",
                                           nullptr};
const char *const cri_stdio_channel_protocols[] = {"v5.channel.k8s.io",     "v4.channel.k8s.io", "v4.base64.channel.k8s.io",
                                                   "base64.channel.k8s.io", "channel.k8s.io",    nullptr};

/* ---- end ---- */

static void pump_done(struct pump *pump) {
        pump->source = sd_event_source_disable_unref(pump->source);
        nd_close_fd(&pump->fd);
}

static void close_input(struct cri_stdio *stdio) {
        stdio->input_source = sd_event_source_disable_unref(stdio->input_source);
        nd_close_fd(&stdio->input);
        stdio->pending.length = 0;
}

static void remote_free(struct cri_stdio *stdio) {
        if (stdio->work)
                stdio->kind->cancel(stdio->work);
        sd_event_source_disable_unref(stdio->timer);
        pump_done(&stdio->output);
        pump_done(&stdio->errors);
        close_input(stdio);
        nd_text_done(&stdio->pending);
        nd_text_done(&stdio->size);
        nd_text_done(&stdio->exit_status);
        cri_stream_request_free(stdio->request);
        free(stdio);
}

void cri_stdio_gone(void *userdata) {
        remote_free(userdata);
}

/* Since version 4 of the protocol. */
static bool speaks_json(const struct cri_stdio *stdio) {
        return nd_has_prefix(stdio->protocol, "v4.") || nd_has_prefix(stdio->protocol, "v5.");
}

static void add_exit_code(struct nd_json_out *out, int code) {
        nd_autofree char *number = nd_format("%d", code);

        nd_json_open(out, "details", '{');
        nd_json_open(out, "causes", '[');
        nd_json_open(out, nullptr, '{');
        nd_json_string(out, "reason", "ExitCode");
        nd_json_string(out, "message", number);
        nd_json_close(out, '}');
        nd_json_close(out, ']');
        nd_json_close(out, '}');
}

/* Since version 4 a JSON Status; before that, only an error as plain text. */
static void write_exit_status(const struct cri_stdio *stdio, const struct nd_error *error, int code, struct nd_text *ret) {
        nd_autofree char *words = error ? nd_format("%s: %s", stdio->kind->trouble, nd_error_text(error))
                                        : nd_format("command terminated with non-zero exit code: exit code %d", code);
        struct nd_json_out out = {.text = ret};

        if (!speaks_json(stdio)) {
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
        }
        if (code != 0)
                add_exit_code(&out, code);
        nd_json_close(&out, '}');
}

/* Sends queued data, and the result once there is nothing else to send. May free the stdio. */
static void proceed(struct cri_stdio *stdio) {
        struct cri_stream_connection *connection = stdio->connection;

        if (!stdio->ended || stdio->output.fd >= 0 || stdio->errors.fd >= 0 ||
            cri_stream_connection_room(connection) < stdio->exit_status.length) {
                cri_stream_connection_flush(connection);
                return;
        }
        if (stdio->exit_status.length > 0)
                cri_stream_connection_write(connection, stdio->streams[STDIO_ERROR], stdio->exit_status.bytes,
                                            stdio->exit_status.length);
        for (enum cri_stdio_role role = 0; role < STDIO_ROLES; role++)
                if (stdio->streams[role] != 0)
                        cri_stream_connection_end_stream(connection, stdio->streams[role]);
        remote_free(stdio);
        cri_stream_connection_finish(connection);
}

/* ---- output ---- */

/* Reads one chunk, as far as there is room. False if nothing more can be done now. */
static bool pump_once(struct pump *pump) {
        struct cri_stdio *stdio = pump->stdio;
        struct cri_stream_connection *connection = stdio->connection;
        uint32_t stream = stdio->streams[pump->role];
        size_t most = cri_stream_connection_room(connection);
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
        if (n < 0 && errno == EAGAIN && !stdio->ended)
                return false;
        if (n > 0 && stream != 0)
                cri_stream_connection_write(connection, stream, piece, (size_t) n);
        if (n > 0 && (!stdio->ended || pump->left > (size_t) n)) {
                pump->left -= stdio->ended ? (size_t) n : 0;
                return true;
        }
        pump_done(pump);
        if (stream != 0)
                cri_stream_connection_end_stream(connection, stream);
        return false;
}

/* After the end no descriptor need become readable any more: read what is there. */
static void drain(struct cri_stdio *stdio) {
        for (bool more = true; more;)
                more = pump_once(&stdio->output);
        for (bool more = true; more;)
                more = pump_once(&stdio->errors);
}

static int on_output([[maybe_unused]] sd_event_source *source, [[maybe_unused]] int fd, [[maybe_unused]] uint32_t events,
                     void *userdata) {
        struct pump *pump = userdata;

        (void) pump_once(pump);
        proceed(pump->stdio);
        return 0;
}

void cri_stdio_room(void *userdata) {
        struct cri_stdio *stdio = userdata;

        if (stdio->output.source)
                (void) sd_event_source_set_enabled(stdio->output.source, SD_EVENT_ON);
        if (stdio->errors.source)
                (void) sd_event_source_set_enabled(stdio->errors.source, SD_EVENT_ON);
        if (!stdio->ended)
                return;
        drain(stdio);
        proceed(stdio);
}

static struct nd_error *pump_start(struct pump *pump, int fd) {
        pump->fd = fd;
        if (sd_event_add_io(cri_stream_connection_parts(pump->stdio->connection)->loop, &pump->source, fd, EPOLLIN, on_output,
                            pump) < 0)
                return nd_error_new(ND_INTERNAL, 0, "watch the command's output");
        return nullptr;
}

/* ---- input ---- */

static void write_input(struct cri_stdio *stdio) {
        size_t done = 0;
        ssize_t n = 0;

        while (stdio->input >= 0 && done < stdio->pending.length &&
               (n = write(stdio->input, stdio->pending.bytes + done, stdio->pending.length - done)) > 0)
                done += (size_t) n;
        if (done > 0) {
                memmove(stdio->pending.bytes, stdio->pending.bytes + done, stdio->pending.length - done);
                stdio->pending.length -= done;
        }
        if (n < 0 && errno != EAGAIN && errno != EINTR) { /* the command has closed its input */
                stdio->input_dead = true;
                close_input(stdio);
        }
        if (stdio->pending.length == 0 && stdio->input_over && !stdio->request->terminal)
                close_input(stdio);
        if (stdio->input_source)
                (void) sd_event_source_set_enabled(stdio->input_source,
                                                   stdio->pending.length > 0 ? SD_EVENT_ON : SD_EVENT_OFF);
}

static int on_input([[maybe_unused]] sd_event_source *source, [[maybe_unused]] int fd, [[maybe_unused]] uint32_t events,
                    void *userdata) {
        struct cri_stdio *stdio = userdata;

        write_input(stdio);
        if (stdio->pending.length == 0)
                cri_stream_connection_resume(stdio->connection);
        return 0;
}

static struct nd_error *input_start(struct cri_stdio *stdio, int fd) {
        stdio->input = fd;
        if (sd_event_add_io(cri_stream_connection_parts(stdio->connection)->loop, &stdio->input_source, fd, EPOLLOUT, on_input,
                            stdio) < 0)
                return nd_error_new(ND_INTERNAL, 0, "watch the command's input");
        return nullptr;
}

static void take_input(struct cri_stdio *stdio, const char *bytes, size_t length) {
        if (stdio->input_dead || stdio->ended || stdio->input_over)
                return;
        nd_text_append(&stdio->pending, bytes, length);
        if (stdio->started)
                write_input(stdio);
}

/* ---- window size ---- */

const struct winsize *cri_stdio_window(const struct cri_stdio *stdio) {
        return stdio->window.ws_row > 0 ? &stdio->window : nullptr;
}

static void resize(struct cri_stdio *stdio, const char *text, size_t length) {
        nd_autoerror struct nd_error *error = nullptr;
        nd_autojson yyjson_doc *doc = nullptr;
        uint64_t width = 0, height = 0;

        error = nd_json_parse(text, length, SIZE, &doc);
        if (!error)
                error = nd_json_member_number(yyjson_doc_get_root(doc), "Width", UINT16_MAX, &width);
        if (!error)
                error = nd_json_member_number(yyjson_doc_get_root(doc), "Height", UINT16_MAX, &height);
        if (error || width == 0 || height == 0)
                return; /* ignore an invalid size */
        stdio->window = (struct winsize) {.ws_row = (uint16_t) height, .ws_col = (uint16_t) width};
        if (stdio->work)
                stdio->kind->resize(stdio->work, &stdio->window);
}

/* A sequence of JSON objects, split at any point; objects are not nested. */
static void take_size(struct cri_stdio *stdio, const char *bytes, size_t length) {
        for (size_t i = 0; i < length; i++) {
                nd_text_append(&stdio->size, bytes + i, 1);
                if (bytes[i] != '}' && !stdio->size.overflow)
                        continue;
                if (!stdio->size.overflow)
                        resize(stdio, stdio->size.bytes, stdio->size.length);
                stdio->size.length = 0;
                stdio->size.overflow = false;
        }
}

/* ---- for the kind ---- */

const struct cri_stream_parts *cri_stdio_parts(const struct cri_stdio *stdio) {
        return cri_stream_connection_parts(stdio->connection);
}

const struct cri_stream_request *cri_stdio_request(const struct cri_stdio *stdio) {
        return stdio->request;
}

bool cri_stdio_wants(const struct cri_stdio *stdio, enum cri_stdio_role role) {
        return stdio->wanted[role];
}

struct nd_error *cri_stdio_give_output(struct cri_stdio *stdio, enum cri_stdio_role role, int fd) {
        return pump_start(role == STDIO_OUTPUT ? &stdio->output : &stdio->errors, fd);
}

struct nd_error *cri_stdio_give_input(struct cri_stdio *stdio, int fd) {
        nd_try(input_start(stdio, fd));
        if (!stdio->started)
                return nullptr;
        write_input(stdio);
        if (stdio->pending.length == 0)
                cri_stream_connection_resume(stdio->connection);
        return nullptr;
}

void cri_stdio_end(struct cri_stdio *stdio, struct nd_error *error, int code) {
        nd_autoerror struct nd_error *owned = error;

        stdio->ended = true;
        stdio->output.left = stdio->errors.left = DRAIN;
        close_input(stdio);
        write_exit_status(stdio, owned, code, &stdio->exit_status);
        drain(stdio);
        proceed(stdio);
}

/* ---- streams ---- */

static bool is_complete(const struct cri_stdio *stdio) {
        for (enum cri_stdio_role role = 0; role < STDIO_ROLES; role++)
                if (stdio->wanted[role] && stdio->streams[role] == 0)
                        return false;
        return true;
}

static struct nd_error *launch(struct cri_stdio *stdio) {
        struct cri_container *container = nullptr;

        nd_try(cri_pod_table_find_container(cri_stdio_parts(stdio)->pods, stdio->request->container, &container));
        return stdio->kind->launch(stdio, container, &stdio->work);
}

/* May free the stdio. */
static bool start(struct cri_stdio *stdio) {
        struct nd_error *error;

        stdio->timer = sd_event_source_disable_unref(stdio->timer);
        error = launch(stdio);
        stdio->started = true;
        if (error) {
                cri_stdio_end(stdio, error, 0);
                return true;
        }
        write_input(stdio);
        return stdio->pending.length == 0;
}

/* The resize stream is optional; the oldest protocols do not have it. */
static bool is_allowed(const struct cri_stdio *stdio, enum cri_stdio_role role) {
        return stdio->wanted[role] || (role == STDIO_RESIZE && stdio->request->terminal);
}

static bool take_stream(struct cri_stdio *stdio, const struct cri_stream_event *event) {
        for (enum cri_stdio_role role = 0; role < STDIO_ROLES; role++) {
                if (!nd_streq(event->type, role_names[role]) || !is_allowed(stdio, role) || stdio->streams[role] != 0 ||
                    stdio->ended)
                        continue;
                stdio->streams[role] = event->stream;
                cri_stream_connection_accept(stdio->connection, event->stream);
                return is_complete(stdio) ? start(stdio) : true;
        }
        cri_stream_connection_refuse(stdio->connection, event->stream);
        return true;
}

bool cri_stdio_event(const struct cri_stream_event *event, void *userdata) {
        struct cri_stdio *stdio = userdata;
        bool is_input = event->stream != 0 && event->stream == stdio->streams[STDIO_INPUT];

        if (event->kind == STREAM_OPENED)
                return take_stream(stdio, event);
        if (event->kind == STREAM_DATA && is_input) {
                take_input(stdio, event->bytes, event->length);
                /* input that arrived before the command was started */
                if (stdio->pending.overflow) {
                        cri_stdio_end(
                                stdio,
                                nd_error_new(ND_EXHAUSTED, 0, "the client sent too much input before it opened all streams"),
                                0);
                        return true;
                }
        }
        if (event->kind == STREAM_DATA && event->stream == stdio->streams[STDIO_RESIZE])
                take_size(stdio, event->bytes, event->length);
        if ((event->kind == STREAM_FIN || event->kind == STREAM_RESET) && is_input) {
                stdio->input_over = true;
                if (stdio->started)
                        write_input(stdio);
        }
        return !stdio->started || stdio->pending.length == 0;
}

static int on_late([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t usec, void *userdata) {
        struct cri_stdio *stdio = userdata;

        cri_stdio_end(stdio,
                      nd_error_new(ND_DEADLINE, 0, "the client did not open all streams within %llu s",
                                   (unsigned long long) (streams_timeout_us / ND_SECOND_US)),
                      0);
        return 0;
}

void *cri_stdio_begin(struct cri_stream_connection *connection, struct cri_stream_request *request, const char *protocol,
                      const struct cri_stdio_kind *kind) {
        struct cri_stdio *stdio = nd_new(struct cri_stdio);
        /* without resize */
        bool old = nd_streq(protocol, "v2.channel.k8s.io") || nd_streq(protocol, "channel.k8s.io");

        stdio->connection = connection;
        stdio->request = request;
        stdio->protocol = protocol;
        stdio->kind = kind;
        stdio->wanted[STDIO_ERROR] = true;
        stdio->wanted[STDIO_INPUT] = request->input;
        stdio->wanted[STDIO_OUTPUT] = request->output;
        stdio->wanted[STDIO_ERRORS] = request->errors;
        stdio->wanted[STDIO_RESIZE] = request->terminal && !old;
        stdio->output = (struct pump) {.stdio = stdio, .role = STDIO_OUTPUT, .fd = -EBADF};
        stdio->errors = (struct pump) {.stdio = stdio, .role = STDIO_ERRORS, .fd = -EBADF};
        stdio->input = -EBADF;
        stdio->pending.ceiling = INPUT;
        stdio->size.ceiling = SIZE;
        stdio->exit_status.ceiling = EXIT_STATUS_CEILING;
        (void) sd_event_add_time_relative(cri_stream_connection_parts(connection)->loop, &stdio->timer, CLOCK_MONOTONIC,
                                          streams_timeout_us, ND_SECOND_US, on_late, stdio);
        return stdio;
}
