/* SPDX-License-Identifier: Apache-2.0 */
/* remote.c - see remote.h
 *
 * Theory of operation
 *   The client opens one stream for each of the roles; when the last is there the kind's launch() is called, which gives us descriptors: pipes of a new
 *   command, sockets of a container's monitor, a terminal. Output is read only as far as the connection has room, input is taken only as far as the
 *   other side does: each waits for the other one through the kernel's buffers, and the daemon for nobody.
 *   The kind says when it is over (remote_end()). What is in its descriptors then is still sent, up to DRAIN; what a process that was left behind writes
 *   later is not. Last goes the verdict, over the error stream, and the ends of all streams. A client that is gone is the end, too (cancel()).
 * Owns       our ends of the streams. Knows the container by its id only. */
#include "cri/stream/remote.h"

#include <string.h>
#include <sys/ioctl.h>

#include "base/clock.h"
#include "base/json-member.h"
#include "base/json.h"
#include "cri/pods.h"

enum {
        INPUT = 64 << 10, /* what may wait for the command */
        PIECE = 32 << 10,
        DRAIN = 1 << 20, /* no pipe holds more */
        VERDICT = 16 << 10,
        SIZE = 256, /* of one resize message */
};

static constexpr uint64_t streams_timeout_us = 30 * ND_SECOND_US; /* from the upgrade to the last stream */

static const char *const role_names[REMOTE_ROLES] = {"error", "stdin", "stdout", "stderr", "resize"};

/* One direction of output. */
struct pump {
        struct remote *remote;
        enum remote_role role;
        int fd; /* -EBADF once it has ended */
        sd_event_source *source;
        size_t left; /* to be read after the command's end */
};

struct remote {
        struct connection *connection;
        struct stream_request *request;
        const char *protocol;
        bool wanted[REMOTE_ROLES];
        uint32_t streams[REMOTE_ROLES]; /* 0 = not there yet */
        sd_event_source *timer;         /* for the last of them */
        bool started;
        const struct remote_kind *kind;
        void *work; /* the kind's; nullptr before it was launched */
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

const char *const remote_protocols[] = {"v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io",
                                        nullptr};
const char *const remote_channel_protocols[] = {"v5.channel.k8s.io",     "v4.channel.k8s.io", "v4.base64.channel.k8s.io",
                                                "base64.channel.k8s.io", "channel.k8s.io",    nullptr};

/* ---- the end ---- */

static void pump_done(struct pump *pump) {
        pump->source = sd_event_source_disable_unref(pump->source);
        nd_close_fd(&pump->fd);
}

static void close_input(struct remote *remote) {
        remote->input_source = sd_event_source_disable_unref(remote->input_source);
        nd_close_fd(&remote->input);
        remote->pending.length = 0;
}

static void remote_free(struct remote *remote) {
        if (remote->work)
                remote->kind->cancel(remote->work);
        sd_event_source_disable_unref(remote->timer);
        pump_done(&remote->output);
        pump_done(&remote->errors);
        close_input(remote);
        nd_text_done(&remote->pending);
        nd_text_done(&remote->size);
        nd_text_done(&remote->verdict);
        stream_request_free(remote->request);
        free(remote);
}

void remote_gone(void *userdata) {
        remote_free(userdata);
}

/* Since the fourth version of the protocol. */
static bool speaks_json(const struct remote *remote) {
        return nd_has_prefix(remote->protocol, "v4.") || nd_has_prefix(remote->protocol, "v5.");
}

/* The newest protocol wants to know it in JSON; before, only what went wrong was told, in words. */
static void write_verdict(const struct remote *remote, const struct nd_error *error, int code, struct nd_text *ret) {
        nd_autofree char *number = nd_format("%d", code);
        nd_autofree char *words = error ? nd_format("%s: %s", remote->kind->trouble, nd_error_text(error))
                                        : nd_format("command terminated with non-zero exit code: exit code %d", code);
        struct nd_json_out out = {.text = ret};

        if (!speaks_json(remote)) {
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

/* Sends what has been queued, and the verdict when nothing else is to come. The remote may be gone afterwards. */
static void proceed(struct remote *remote) {
        struct connection *connection = remote->connection;

        if (!remote->ended || remote->output.fd >= 0 || remote->errors.fd >= 0 ||
            connection_room(connection) < remote->verdict.length) {
                connection_flush(connection);
                return;
        }
        if (remote->verdict.length > 0)
                connection_write(connection, remote->streams[REMOTE_ERROR], remote->verdict.bytes, remote->verdict.length);
        for (enum remote_role role = 0; role < REMOTE_ROLES; role++)
                if (remote->streams[role] != 0)
                        connection_end_stream(connection, remote->streams[role]);
        remote_free(remote);
        connection_finish(connection);
}

/* ---- output ---- */

/* Reads one piece, as far as there is room. False when nothing more can be done now. */
static bool pump_once(struct pump *pump) {
        struct remote *remote = pump->remote;
        struct connection *connection = remote->connection;
        uint32_t stream = remote->streams[pump->role];
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
        if (n < 0 && errno == EAGAIN && !remote->ended)
                return false;
        if (n > 0 && stream != 0)
                connection_write(connection, stream, piece, (size_t) n);
        if (n > 0 && (!remote->ended || pump->left > (size_t) n)) {
                pump->left -= remote->ended ? (size_t) n : 0;
                return true;
        }
        pump_done(pump);
        if (stream != 0)
                connection_end_stream(connection, stream);
        return false;
}

/* After the end nothing need become readable any more: what is there is looked for. */
static void drain(struct remote *remote) {
        for (bool more = true; more;)
                more = pump_once(&remote->output);
        for (bool more = true; more;)
                more = pump_once(&remote->errors);
}

static int on_output([[maybe_unused]] sd_event_source *source, [[maybe_unused]] int fd, [[maybe_unused]] uint32_t events,
                     void *userdata) {
        struct pump *pump = userdata;

        (void) pump_once(pump);
        proceed(pump->remote);
        return 0;
}

void remote_room(void *userdata) {
        struct remote *remote = userdata;

        if (remote->output.source)
                (void) sd_event_source_set_enabled(remote->output.source, SD_EVENT_ON);
        if (remote->errors.source)
                (void) sd_event_source_set_enabled(remote->errors.source, SD_EVENT_ON);
        if (!remote->ended)
                return;
        drain(remote);
        proceed(remote);
}

static struct nd_error *pump_start(struct pump *pump, int fd) {
        pump->fd = fd;
        if (sd_event_add_io(connection_parts(pump->remote->connection)->loop, &pump->source, fd, EPOLLIN, on_output, pump) < 0)
                return nd_error_new(ND_INTERNAL, 0, "watch the command's output");
        return nullptr;
}

/* ---- input ---- */

static void write_input(struct remote *remote) {
        size_t done = 0;
        ssize_t n = 0;

        while (remote->input >= 0 && done < remote->pending.length &&
               (n = write(remote->input, remote->pending.bytes + done, remote->pending.length - done)) > 0)
                done += (size_t) n;
        if (done > 0) {
                memmove(remote->pending.bytes, remote->pending.bytes + done, remote->pending.length - done);
                remote->pending.length -= done;
        }
        if (n < 0 && errno != EAGAIN && errno != EINTR) { /* the command does not want it */
                remote->input_dead = true;
                close_input(remote);
        }
        if (remote->pending.length == 0 && remote->input_over && !remote->request->terminal)
                close_input(remote);
        if (remote->input_source)
                (void) sd_event_source_set_enabled(remote->input_source,
                                                   remote->pending.length > 0 ? SD_EVENT_ON : SD_EVENT_OFF);
}

static int on_input([[maybe_unused]] sd_event_source *source, [[maybe_unused]] int fd, [[maybe_unused]] uint32_t events,
                    void *userdata) {
        struct remote *remote = userdata;

        write_input(remote);
        if (remote->pending.length == 0)
                connection_resume(remote->connection);
        return 0;
}

static struct nd_error *input_start(struct remote *remote, int fd) {
        remote->input = fd;
        if (sd_event_add_io(connection_parts(remote->connection)->loop, &remote->input_source, fd, EPOLLOUT, on_input,
                            remote) < 0)
                return nd_error_new(ND_INTERNAL, 0, "watch the command's input");
        return nullptr;
}

static void take_input(struct remote *remote, const char *bytes, size_t length) {
        if (remote->input_dead || remote->ended || remote->input_over)
                return;
        nd_text_append(&remote->pending, bytes, length);
        if (remote->started)
                write_input(remote);
}

/* ---- the window ---- */

const struct winsize *remote_window(const struct remote *remote) {
        return remote->window.ws_row > 0 ? &remote->window : nullptr;
}

static void resize(struct remote *remote, const char *text, size_t length) {
        nd_autoerror struct nd_error *error = nullptr;
        nd_autojson doc = nullptr;
        uint64_t width = 0, height = 0;

        error = nd_json_parse(text, length, SIZE, &doc);
        if (!error)
                error = nd_json_member_number(yyjson_doc_get_root(doc), "Width", UINT16_MAX, &width);
        if (!error)
                error = nd_json_member_number(yyjson_doc_get_root(doc), "Height", UINT16_MAX, &height);
        if (error || width == 0 || height == 0)
                return; /* a client that cannot say it goes without */
        remote->window = (struct winsize) {.ws_row = (uint16_t) height, .ws_col = (uint16_t) width};
        if (remote->work)
                remote->kind->resize(remote->work, &remote->window);
}

/* Objects one after the other, cut into pieces anyhow; none has another one in it. */
static void take_size(struct remote *remote, const char *bytes, size_t length) {
        for (size_t i = 0; i < length; i++) {
                nd_text_append(&remote->size, bytes + i, 1);
                if (bytes[i] != '}' && !remote->size.overflow)
                        continue;
                if (!remote->size.overflow)
                        resize(remote, remote->size.bytes, remote->size.length);
                remote->size.length = 0;
                remote->size.overflow = false;
        }
}

/* ---- for the kind ---- */

const struct stream_parts *remote_parts(const struct remote *remote) {
        return connection_parts(remote->connection);
}

const struct stream_request *remote_request(const struct remote *remote) {
        return remote->request;
}

bool remote_wants(const struct remote *remote, enum remote_role role) {
        return remote->wanted[role];
}

struct nd_error *remote_give_output(struct remote *remote, enum remote_role role, int fd) {
        return pump_start(role == REMOTE_OUTPUT ? &remote->output : &remote->errors, fd);
}

struct nd_error *remote_give_input(struct remote *remote, int fd) {
        nd_try(input_start(remote, fd));
        if (!remote->started)
                return nullptr;
        write_input(remote);
        if (remote->pending.length == 0)
                connection_resume(remote->connection);
        return nullptr;
}

void remote_end(struct remote *remote, struct nd_error *error, int code) {
        nd_autoerror struct nd_error *owned = error;

        remote->ended = true;
        remote->output.left = remote->errors.left = DRAIN;
        close_input(remote);
        write_verdict(remote, owned, code, &remote->verdict);
        drain(remote);
        proceed(remote);
}

/* ---- the streams ---- */

static bool is_complete(const struct remote *remote) {
        for (enum remote_role role = 0; role < REMOTE_ROLES; role++)
                if (remote->wanted[role] && remote->streams[role] == 0)
                        return false;
        return true;
}

static struct nd_error *launch(struct remote *remote) {
        struct container *container = nullptr;

        nd_try(pods_find_container(remote_parts(remote)->pods, remote->request->container, &container));
        return remote->kind->launch(remote, container, &remote->work);
}

/* The remote may be gone afterwards. */
static bool start(struct remote *remote) {
        struct nd_error *error;

        remote->timer = sd_event_source_disable_unref(remote->timer);
        error = launch(remote);
        remote->started = true;
        if (error) {
                remote_end(remote, error, 0);
                return true;
        }
        write_input(remote);
        return remote->pending.length == 0;
}

/* Those who resize need not, and in the oldest protocols they did not. */
static bool is_allowed(const struct remote *remote, enum remote_role role) {
        return remote->wanted[role] || (role == REMOTE_RESIZE && remote->request->terminal);
}

static bool take_stream(struct remote *remote, const struct stream_event *event) {
        for (enum remote_role role = 0; role < REMOTE_ROLES; role++) {
                if (!nd_streq(event->type, role_names[role]) || !is_allowed(remote, role) || remote->streams[role] != 0 ||
                    remote->ended)
                        continue;
                remote->streams[role] = event->stream;
                connection_accept(remote->connection, event->stream);
                return is_complete(remote) ? start(remote) : true;
        }
        connection_refuse(remote->connection, event->stream);
        return true;
}

bool remote_event(const struct stream_event *event, void *userdata) {
        struct remote *remote = userdata;
        bool is_input = event->stream != 0 && event->stream == remote->streams[REMOTE_INPUT];

        if (event->kind == STREAM_OPENED)
                return take_stream(remote, event);
        if (event->kind == STREAM_DATA && is_input) {
                take_input(remote, event->bytes, event->length);
                if (remote->pending.overflow) { /* of what came before there was a command to give it to */
                        remote_end(remote, nd_error_new(ND_EXHAUSTED, 0, "the client sends input before it opens all streams"),
                                   0);
                        return true;
                }
        }
        if (event->kind == STREAM_DATA && event->stream == remote->streams[REMOTE_RESIZE])
                take_size(remote, event->bytes, event->length);
        if ((event->kind == STREAM_FIN || event->kind == STREAM_RESET) && is_input) {
                remote->input_over = true;
                if (remote->started)
                        write_input(remote);
        }
        return !remote->started || remote->pending.length == 0;
}

static int on_late([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t usec, void *userdata) {
        struct remote *remote = userdata;

        remote_end(remote,
                   nd_error_new(ND_DEADLINE, 0, "the client did not open all streams within %llu s",
                                (unsigned long long) (streams_timeout_us / ND_SECOND_US)),
                   0);
        return 0;
}

void *remote_begin(struct connection *connection, struct stream_request *request, const char *protocol,
                   const struct remote_kind *kind) {
        struct remote *remote = nd_new(struct remote);
        bool old =
                nd_streq(protocol, "v2.channel.k8s.io") || nd_streq(protocol, "channel.k8s.io"); /* these knew no resizing */

        remote->connection = connection;
        remote->request = request;
        remote->protocol = protocol;
        remote->kind = kind;
        remote->wanted[REMOTE_ERROR] = true;
        remote->wanted[REMOTE_INPUT] = request->input;
        remote->wanted[REMOTE_OUTPUT] = request->output;
        remote->wanted[REMOTE_ERRORS] = request->errors;
        remote->wanted[REMOTE_RESIZE] = request->terminal && !old;
        remote->output = (struct pump) {.remote = remote, .role = REMOTE_OUTPUT, .fd = -EBADF};
        remote->errors = (struct pump) {.remote = remote, .role = REMOTE_ERRORS, .fd = -EBADF};
        remote->input = -EBADF;
        remote->pending.ceiling = INPUT;
        remote->size.ceiling = SIZE;
        remote->verdict.ceiling = VERDICT;
        (void) sd_event_add_time_relative(connection_parts(connection)->loop, &remote->timer, CLOCK_MONOTONIC,
                                          streams_timeout_us, ND_SECOND_US, on_late, remote);
        return remote;
}
