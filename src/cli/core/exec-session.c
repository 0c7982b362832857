/* SPDX-License-Identifier: Apache-2.0 */
/* exec-session.c - see exec-session.h
 *
 * Theory of operation
 *   One event loop with the socket, our input and the terminal's size. @HEAD sends the request and
 *   reads the response head; then (@OPEN) the protocol is WebSocket with version 5 of Kubernetes'
 *   channels, the only one that can signal the end of input. Output is written as it arrives, with
 *   blocking writes: a slow reader slows everything down, as with a pipe. Input is read only while
 *   the queue has room. The command has ended when its status arrives (@OVER); a connection that
 *   ends without one was lost.
 * Invariant  the terminal has its original settings when cli_exec_session_run() returns, and before
 * a signal terminates us. */
#include "cli/core/exec-session.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>
#include <termios.h>

#include "base/text.h"
#include "cli/core/detach.h"
#include "cli/core/exec-status.h"
#include "cli/core/upgrade.h"

enum channel {
        CHANNEL_INPUT,
        CHANNEL_OUTPUT,
        CHANNEL_ERRORS,
        CHANNEL_STATUS,
        CHANNEL_SIZE,
};

enum phase {
        HEAD,
        OPEN,
        OVER,
};

enum {
        ROOM_LEAST = 4 << 10, /* space in the queue that is required to read input */
        PIECE = UPGRADE_PIECE,
        ERRORS_KEPT = 4 << 10,
};

static const char protocol[] = "v5.channel.k8s.io";

struct session {
        const struct cli_exec_session_settings *settings;
        sd_event *loop;
        struct cli_upgrade upgrade;
        enum phase phase;
        sd_event_source *socket, *input, *window, *terminate, *hangup;
        struct nd_channel_mux *channels;
        struct nd_text status;
        struct nd_text errors;  /* the beginning of the command's standard error */
        struct nd_error *error; /* why it ended */
        struct termios before;
        bool raw; /* the terminal must be restored */
        struct cli_detach detach;
        bool detached; /* by the keys */
        char buffer[PIECE];
};

static void session_done(struct session *s) {
        if (s->raw)
                (void) tcsetattr(STDIN_FILENO, TCSADRAIN, &s->before);
        sd_event_source_disable_unref(s->socket);
        sd_event_source_disable_unref(s->input);
        sd_event_source_disable_unref(s->window);
        sd_event_source_disable_unref(s->terminate);
        sd_event_source_disable_unref(s->hangup);
        sd_event_unref(s->loop);
        cli_upgrade_done(&s->upgrade);
        nd_text_done(&s->status);
        nd_text_done(&s->errors);
        nd_channel_mux_free(s->channels);
        nd_error_free(s->error);
}

/* Takes the error; nullptr is a normal end. */
static void end(struct session *s, struct nd_error *error) {
        if (s->error)
                nd_error_free(error);
        else
                s->error = error;
        s->phase = OVER;
        (void) sd_event_exit(s->loop, 0);
}

/* ---- input ---- */

static void flush(struct session *s) {
        (void) sd_event_source_set_io_events(s->socket, cli_upgrade_flush(&s->upgrade, s->channels));
        if (s->input && s->channels)
                (void) sd_event_source_set_enabled(s->input, nd_channel_mux_room(s->channels) >= ROOM_LEAST ? SD_EVENT_ON
                                                                                                            : SD_EVENT_OFF);
}

static void send_input(struct session *s, const char *bytes, size_t length) {
        char kept[PIECE + 1];
        bool detached = false;

        if (s->settings->attach && s->raw) {
                length = cli_detach_filter(&s->detach, bytes, length, kept, &detached);
                bytes = kept;
        }
        if (length > 0)
                nd_channel_mux_write(s->channels, CHANNEL_INPUT, bytes, length);
        s->detached = detached;
        if (detached)
                end(s, nullptr);
}

static int on_input([[maybe_unused]] sd_event_source *source, [[maybe_unused]] int fd, [[maybe_unused]] uint32_t events,
                    void *userdata) {
        struct session *s = userdata;
        size_t room = nd_channel_mux_room(s->channels);
        ssize_t n;

        if (room < ROOM_LEAST) { /* flush() resumes it */
                (void) sd_event_source_set_enabled(s->input, SD_EVENT_OFF);
                return 0;
        }
        n = read(STDIN_FILENO, s->buffer, room < sizeof s->buffer ? room : sizeof s->buffer);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return 0;
        if (n > 0) {
                send_input(s, s->buffer, (size_t) n);
        } else {
                nd_channel_mux_end(s->channels, CHANNEL_INPUT);
                s->input = sd_event_source_disable_unref(s->input);
        }
        flush(s);
        return 0;
}

/* A regular file is always ready and cannot be polled. */
static int on_file_input([[maybe_unused]] sd_event_source *source, void *userdata) {
        return on_input(nullptr, STDIN_FILENO, 0, userdata);
}

static struct nd_error *watch_input(struct session *s) {
        int r = sd_event_add_io(s->loop, &s->input, STDIN_FILENO, EPOLLIN, on_input, s);

        if (r == -EPERM) {
                r = sd_event_add_defer(s->loop, &s->input, on_file_input, s);
                if (r >= 0)
                        r = sd_event_source_set_priority(s->input, SD_EVENT_PRIORITY_IDLE);
                if (r >= 0)
                        r = sd_event_source_set_enabled(s->input, SD_EVENT_ON);
        }
        return r < 0 ? nd_error_new(ND_INTERNAL, -r, "poll standard input") : nullptr;
}

/* ---- the terminal ---- */

static void send_size(struct session *s) {
        struct winsize window = {};
        nd_autofree char *text = nullptr;

        if (s->phase != OPEN ||
            (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) < 0 && ioctl(STDIN_FILENO, TIOCGWINSZ, &window) < 0) ||
            window.ws_col == 0 || window.ws_row == 0)
                return;
        text = nd_format("{\"Width\":%u,\"Height\":%u}", window.ws_col, window.ws_row);
        if (nd_channel_mux_room(s->channels) > strlen(text))
                nd_channel_mux_write(s->channels, CHANNEL_SIZE, text, strlen(text));
        flush(s);
}

static int on_window([[maybe_unused]] sd_event_source *source, [[maybe_unused]] const struct signalfd_siginfo *info,
                     void *userdata) {
        send_size(userdata);
        return 0;
}

static int on_ending_signal([[maybe_unused]] sd_event_source *source, const struct signalfd_siginfo *info, void *userdata) {
        end(userdata, nd_error_new(ND_CANCELLED, 0, "ended by signal %u", info->ssi_signo));
        return 0;
}

static struct nd_error *watch_signal(struct session *s, int signal, sd_event_signal_handler_t handler, sd_event_source **ret) {
        sigset_t set;
        int r;

        (void) sigemptyset(&set);
        (void) sigaddset(&set, signal);
        (void) sigprocmask(SIG_BLOCK, &set, nullptr);
        r = sd_event_add_signal(s->loop, ret, signal, handler, s);
        return r < 0 ? nd_error_new(ND_INTERNAL, -r, "wait for signal %d", signal) : nullptr;
}

/* From here on every key goes to the command, also ^C. */
static struct nd_error *take_terminal(struct session *s) {
        struct termios raw;

        nd_try(watch_signal(s, SIGWINCH, on_window, &s->window));
        if (!s->settings->input || tcgetattr(STDIN_FILENO, &s->before) < 0)
                return nullptr;
        nd_try(watch_signal(s, SIGTERM, on_ending_signal, &s->terminate));
        nd_try(watch_signal(s, SIGHUP, on_ending_signal, &s->hangup));
        raw = s->before;
        cfmakeraw(&raw);
        s->raw = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
        return nullptr;
}

/* ---- output ---- */

static struct nd_error *write_out(int fd, const char *bytes, size_t length) {
        while (length > 0) {
                ssize_t n = write(fd, bytes, length);

                if (n < 0 && errno == EAGAIN)
                        (void) poll(&(struct pollfd) {.fd = fd, .events = POLLOUT}, 1, -1);
                else if (n < 0 && errno != EINTR)
                        return nd_error_new(ND_UNAVAILABLE, errno, "write the output of the command");
                if (n > 0) {
                        bytes += n;
                        length -= (size_t) n;
                }
        }
        return nullptr;
}

static struct nd_error *take_data(struct session *s, const struct nd_channel_event *event) {
        switch (event->channel) {
        case CHANNEL_OUTPUT:
                if (s->settings->terminal)
                        nd_text_append(&s->errors, event->bytes, event->length);
                return write_out(STDOUT_FILENO, event->bytes, event->length);
        case CHANNEL_ERRORS:
                nd_text_append(&s->errors, event->bytes, event->length);
                return write_out(STDERR_FILENO, event->bytes, event->length);
        case CHANNEL_STATUS:
                nd_text_append(&s->status, event->bytes, event->length);
                return nullptr;
        default:
                return nullptr;
        }
}

static struct nd_error *take_frames(struct session *s, char *bytes, size_t length) {
        while (s->phase == OPEN) {
                struct nd_channel_event event;
                size_t used;

                nd_try(nd_channel_mux_receive(s->channels, bytes, length, &used, &event));
                bytes += used;
                length -= used;
                if (event.kind == ND_CHANNEL_NOTHING)
                        return nullptr;
                if (event.kind == ND_CHANNEL_DATA)
                        nd_try(take_data(s, &event));
                if (event.kind == ND_CHANNEL_CLOSED)
                        end(s, nullptr);
        }
        return nullptr;
}

static struct nd_error *open_streams(struct session *s) {
        s->channels = nd_channel_mux_new(ND_WEBSOCKET_CLIENT, protocol, 0);
        s->status = ND_TEXT(EXEC_STATUS_BYTES);
        s->errors = ND_TEXT(ERRORS_KEPT);
        s->phase = OPEN;
        if (s->settings->terminal) {
                nd_try(take_terminal(s));
                send_size(s);
        }
        return s->settings->input ? watch_input(s) : nullptr;
}

static struct nd_error *take_head(struct session *s, const char *bytes, size_t length) {
        bool complete;

        nd_try(cli_upgrade_take(&s->upgrade, bytes, length, &complete));
        if (!complete)
                return nullptr;
        nd_try(open_streams(s));
        return take_frames(s, s->upgrade.head.bytes, s->upgrade.head.length);
}

static int on_socket([[maybe_unused]] sd_event_source *source, [[maybe_unused]] int fd, uint32_t events, void *userdata) {
        struct session *s = userdata;
        struct nd_error *error;
        ssize_t n;

        if ((events & ~(uint32_t) EPOLLOUT) == 0) {
                flush(s);
                return 0;
        }
        n = recv(s->upgrade.fd, s->buffer, sizeof s->buffer, 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return 0;
        if (n <= 0) {
                end(s, nullptr); /* with or without a status: cli_exec_session_run() checks */
                return 0;
        }
        error = s->phase == HEAD ? take_head(s, s->buffer, (size_t) n) : take_frames(s, s->buffer, (size_t) n);
        if (error)
                end(s, error);
        else if (s->phase != OVER)
                flush(s);
        return 0;
}

/* The OCI runtime writes why a command does not start to its standard error, too. */
static struct nd_error *read_status(const struct session *s, int *ret_code) {
        struct nd_error *error = cli_exec_status_parse(s->status.bytes, s->status.length, ret_code);

        if (error && (*ret_code == EXEC_STATUS_NOT_FOUND || *ret_code == EXEC_STATUS_NOT_EXECUTABLE) &&
            strstr(nd_text_get(&s->errors), nd_error_text(error)))
                nd_error_done(&error);
        return error;
}

struct nd_error *cli_exec_session_run(const struct cli_exec_session_settings *settings, int *ret_code) {
        nd_cleanup(session_done) struct session s = {.settings = settings, .upgrade = UPGRADE_NONE};
        int r = sd_event_new(&s.loop);

        if (r < 0)
                return nd_error_new(ND_INTERNAL, -r, "create an event loop");
        nd_try(cli_upgrade_begin(settings->url, protocol, &s.upgrade));
        r = sd_event_add_io(s.loop, &s.socket, s.upgrade.fd, EPOLLIN | EPOLLOUT, on_socket, &s);
        if (r >= 0)
                r = sd_event_loop(s.loop);
        if (r < 0)
                return nd_error_new(ND_INTERNAL, -r, "wait for nodens-cri");
        if (s.error)
                return nd_take_ptr(s.error);
        if (s.detached) {
                *ret_code = 0;
                return nullptr;
        }
        if (s.status.length == 0)
                return nd_error_new(ND_UNAVAILABLE, 0, "connection to nodens-cri lost; %s",
                                    settings->attach ? "the container was not changed" : "the command was terminated");
        return read_status(&s, ret_code);
}
