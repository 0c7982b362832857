/* SPDX-License-Identifier: Apache-2.0 */
/* grpc-client.c - see grpc-client.h
 *
 * Theory of operation
 *   One connection, one nghttp2 session. A call is a stream with the request as its body, a reader
 *   for the response messages and a timer. It ends exactly once, by call_end(): when the stream
 *   closes, at its timeout, or with the connection. */
#include "net/grpc-client.h"

#include <fcntl.h>
#include <nghttp2/nghttp2.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "net/unix.h"

enum { READ_SIZE = 64 << 10 };

struct call {
        struct nd_grpc_client *client;
        struct call *next, *previous;
        int32_t stream;
        char *path;
        char *body;
        size_t body_length, body_sent;
        struct nd_grpc_reader reader;
        bool has_status;
        uint64_t status;
        char *status_text;
        struct nd_error *failure; /* an error of our own */
        sd_event_source *timer;
        struct nd_grpc_answer answer;
        void *userdata;
};

struct nd_grpc_client {
        sd_event *loop;
        char *socket_path;
        int fd;
        sd_event_source *source;
        nghttp2_session *http;
        struct call *calls;
        struct nd_text rest;
        size_t written;
        bool inside; /* nghttp2 is on the call stack */
};

static void call_end(struct call *call, struct nd_error *error) {
        struct nd_grpc_answer answer = call->answer;
        void *userdata = call->userdata;

        if (call->previous)
                call->previous->next = call->next;
        else
                call->client->calls = call->next;
        if (call->next)
                call->next->previous = call->previous;
        (void) nghttp2_session_set_stream_user_data(call->client->http, call->stream, nullptr);
        sd_event_source_disable_unref(call->timer);
        nd_grpc_reader_done(&call->reader);
        nd_error_free(call->failure);
        free(call->path);
        free(call->body);
        free(call->status_text);
        free(call);
        answer.end(error, userdata);
}

/* Converts the peer's status to an error; nullptr for OK. */
static struct nd_error *call_verdict(struct call *call) {
        enum nd_error_code code = call->status <= ND_UNAUTHENTICATED ? (enum nd_error_code) call->status : ND_UNKNOWN;

        if (call->failure)
                return nd_take_ptr(call->failure);
        if (!call->has_status)
                return nd_error_new(ND_UNAVAILABLE, 0, "%s: the server closed the call without a status", call->path);
        if (code == ND_OK)
                return nullptr;
        return nd_error_new(code, 0, "%s", call->status_text ? call->status_text : nd_error_code_name(code));
}

/* ---- nghttp2 ---- */

static struct call *call_of(nghttp2_session *http, int32_t stream) {
        return nghttp2_session_get_stream_user_data(http, stream);
}

static nghttp2_ssize pull_body([[maybe_unused]] nghttp2_session *http, [[maybe_unused]] int32_t stream, uint8_t *buffer,
                               size_t length, uint32_t *flags, nghttp2_data_source *source, [[maybe_unused]] void *userdata) {
        struct call *call = source->ptr;
        size_t left = call->body_length - call->body_sent, n = left < length ? left : length;

        memcpy(buffer, call->body + call->body_sent, n);
        call->body_sent += n;
        if (call->body_sent == call->body_length)
                *flags |= NGHTTP2_DATA_FLAG_EOF;
        return (nghttp2_ssize) n;
}

static int on_header(nghttp2_session *http, const nghttp2_frame *frame, const uint8_t *name, size_t name_length,
                     const uint8_t *value, size_t value_length, [[maybe_unused]] uint8_t flags,
                     [[maybe_unused]] void *userdata) {
        struct call *call = call_of(http, frame->hd.stream_id);
        nd_autofree char *number = nullptr;

        if (!call)
                return 0;
        if (name_length == 11 && memcmp(name, "grpc-status", 11) == 0) {
                number = nd_strndup((const char *) value, value_length);
                call->has_status = nd_text_parse_u64(number, UINT32_MAX, &call->status) == 0;
        } else if (name_length == 12 && memcmp(name, "grpc-message", 12) == 0 && !call->status_text) {
                call->status_text = nd_grpc_decode_text((const char *) value, value_length);
        }
        return 0;
}

static int on_data(nghttp2_session *http, [[maybe_unused]] uint8_t flags, int32_t stream, const uint8_t *bytes, size_t length,
                   [[maybe_unused]] void *userdata) {
        struct call *call = call_of(http, stream);

        while (call && !call->failure && length > 0) {
                bool complete = false;
                size_t used = 0;

                call->failure = nd_grpc_reader_feed(&call->reader, (const char *) bytes, length, &used, &complete);
                if (call->failure) {
                        (void) nghttp2_submit_rst_stream(http, NGHTTP2_FLAG_NONE, stream, NGHTTP2_CANCEL);
                        return 0;
                }
                if (complete) {
                        call->answer.message(nd_text_get(&call->reader.body), call->reader.body.length, call->userdata);
                        nd_grpc_reader_next(&call->reader);
                }
                bytes += used;
                length -= used;
        }
        return 0;
}

static int on_close(nghttp2_session *http, int32_t stream, [[maybe_unused]] uint32_t code, [[maybe_unused]] void *userdata) {
        struct call *call = call_of(http, stream);

        if (call)
                call_end(call, call_verdict(call));
        return 0;
}

/* ---- the connection ---- */

static void end_all(struct nd_grpc_client *client, enum nd_error_code code, const char *why) {
        while (client->calls) /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): call_end() unlinks it */
                call_end(client->calls, nd_error_new(code, 0, "%s: %s", client->socket_path, why));
}

/* Writes until the socket is full. Returns false if the connection is broken. */
static bool flush(struct nd_grpc_client *client) {
        for (;;) {
                const uint8_t *bytes;
                nghttp2_ssize n;

                while (client->written < client->rest.length) {
                        ssize_t sent = send(client->fd, client->rest.bytes + client->written,
                                            client->rest.length - client->written, MSG_NOSIGNAL | MSG_DONTWAIT);

                        if (sent < 0 && errno == EINTR)
                                continue;
                        if (sent < 0 && errno == EAGAIN) {
                                (void) sd_event_source_set_io_events(client->source, EPOLLIN | EPOLLOUT);
                                return true;
                        }
                        if (sent < 0)
                                return false;
                        client->written += (size_t) sent;
                }
                client->rest.length = client->written = 0;
                client->inside = true;
                n = nghttp2_session_mem_send2(client->http, &bytes);
                client->inside = false;
                if (n <= 0)
                        break;
                client->rest.ceiling = (size_t) n;
                nd_text_append(&client->rest, (const char *) bytes, (size_t) n);
        }
        (void) sd_event_source_set_io_events(client->source, EPOLLIN);
        return true;
}

static bool read_some(struct nd_grpc_client *client) {
        static char buffer[READ_SIZE];
        ssize_t n = recv(client->fd, buffer, sizeof buffer, MSG_DONTWAIT);
        nghttp2_ssize used;

        if (n < 0)
                return errno == EAGAIN || errno == EINTR;
        if (n == 0)
                return false;
        client->inside = true;
        used = nghttp2_session_mem_recv2(client->http, (const uint8_t *) buffer, (size_t) n);
        client->inside = false;
        return used >= 0;
}

static int on_socket([[maybe_unused]] sd_event_source *source, [[maybe_unused]] int fd, uint32_t events, void *userdata) {
        struct nd_grpc_client *client = userdata;
        bool alive = true;

        if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
                alive = read_some(client);
        if (alive)
                alive = flush(client);
        if (!alive) {
                (void) sd_event_source_set_enabled(client->source, SD_EVENT_OFF);
                end_all(client, ND_UNAVAILABLE, "connection closed");
        }
        return 0;
}

static int make_http(struct nd_grpc_client *client) {
        static const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
                                                          {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1 << 20}};
        nghttp2_session_callbacks *callbacks;
        int r;

        if (nghttp2_session_callbacks_new(&callbacks) < 0)
                abort(); /* out of memory */
        nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
        r = nghttp2_session_client_new(&client->http, callbacks, client);
        nghttp2_session_callbacks_del(callbacks);
        if (r == 0)
                r = nghttp2_submit_settings(client->http, NGHTTP2_FLAG_NONE, settings, nd_count_of(settings));
        if (r == 0)
                r = nghttp2_session_set_local_window_size(client->http, NGHTTP2_FLAG_NONE, 0, 16 << 20);
        return r;
}

/* Does not wait for a server that accepts nothing and whose queue is full: EAGAIN. */
static struct nd_error *connect_socket(const char *path, int *ret_fd) {
        struct sockaddr_un address;
        nd_autoclose int fd = -EBADF;

        nd_try(nd_unix_address(path, &address));
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "create socket");
        if (connect(fd, (struct sockaddr *) &address, sizeof address) < 0)
                return nd_error_new(ND_UNAVAILABLE, errno, "connect to '%s'", path);
        (void) fcntl(fd, F_SETFL, 0);
        *ret_fd = nd_take_fd(fd);
        return nullptr;
}

struct nd_error *nd_grpc_client_connect(sd_event *loop, const char *socket_path, struct nd_grpc_client **ret) {
        nd_cleanup(nd_grpc_client_done) struct nd_grpc_client *client = nd_new(struct nd_grpc_client);
        int r;

        client->loop = sd_event_ref(loop);
        client->socket_path = nd_strdup(socket_path);
        client->fd = -EBADF;
        nd_try(connect_socket(socket_path, &client->fd));
        r = make_http(client);
        if (r < 0)
                return nd_error_new(ND_INTERNAL, 0, "start HTTP/2: %s", nghttp2_strerror(r));
        r = sd_event_add_io(loop, &client->source, client->fd, EPOLLIN, on_socket, client);
        if (r < 0)
                return nd_error_new(ND_INTERNAL, -r, "watch '%s'", socket_path);
        *ret = nd_take_ptr(client);
        return nullptr;
}

void nd_grpc_client_free(struct nd_grpc_client *client) {
        if (!client)
                return;
        end_all(client, ND_CANCELLED, "client closed");
        sd_event_source_disable_unref(client->source);
        nghttp2_session_del(client->http);
        nd_close_fd(&client->fd);
        nd_text_done(&client->rest);
        sd_event_unref(client->loop);
        free(client->socket_path);
        free(client);
}

static void cancel(struct call *call, enum nd_error_code code, const char *why) {
        struct nd_grpc_client *client = call->client;
        nd_autofree char *path = nd_strdup(call->path);

        (void) nghttp2_submit_rst_stream(client->http, NGHTTP2_FLAG_NONE, call->stream, NGHTTP2_CANCEL);
        call_end(call, nd_error_new(code, 0, "%s: %s", path, why));
        if (!client->inside)
                (void) flush(client);
}

static int on_timer([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t usec, void *userdata) {
        cancel(userdata, ND_DEADLINE, "timed out waiting for a response");
        return 0;
}

static nghttp2_nv header(const char *name, const char *value) {
        return (nghttp2_nv) {
                .name = (uint8_t *) name, .value = (uint8_t *) value, .namelen = strlen(name), .valuelen = strlen(value)};
}

static int submit(struct call *call, uint64_t timeout_us) {
        nd_autofree char *timeout = nd_grpc_format_timeout(timeout_us);
        nghttp2_data_provider2 provider = {.source.ptr = call, .read_callback = pull_body};
        nghttp2_nv headers[] = {header(":method", "POST"),
                                header(":scheme", "http"),
                                header(":path", call->path),
                                header(":authority", "localhost"),
                                header("content-type", "application/grpc"),
                                header("te", "trailers"),
                                header("grpc-timeout", timeout)};

        return nghttp2_submit_request2(call->client->http, nullptr, headers, nd_count_of(headers) - (timeout_us == 0),
                                       &provider, call);
}

struct nd_error *nd_grpc_client_call(struct nd_grpc_client *client, const char *path, const char *request, size_t length,
                                     uint64_t timeout_us, const struct nd_grpc_answer *answer, void *userdata,
                                     int32_t *ret_call) {
        struct call *call = nd_new(struct call);
        int r;

        *call = (struct call) {.client = client,
                               .next = client->calls,
                               .path = nd_strdup(path),
                               .body = nd_malloc(ND_GRPC_PREFIX + length),
                               .body_length = ND_GRPC_PREFIX + length,
                               .answer = *answer,
                               .userdata = userdata};
        nd_grpc_write_prefix((unsigned char *) call->body, length);
        if (length > 0)
                memcpy(call->body + ND_GRPC_PREFIX, request, length);
        r = submit(call, timeout_us);
        if (r < 0) {
                free(call->path);
                free(call->body);
                free(call);
                return nd_error_new(ND_UNAVAILABLE, 0, "%s: %s", path, nghttp2_strerror(r));
        }
        call->stream = r;
        if (call->next)
                call->next->previous = call;
        client->calls = call;
        if (timeout_us > 0)
                (void) sd_event_add_time_relative(client->loop, &call->timer, CLOCK_MONOTONIC, timeout_us, ND_MS_US, on_timer,
                                                  call);
        *ret_call = call->stream;
        if (!client->inside && !flush(client))
                end_all(client, ND_UNAVAILABLE, "connection closed");
        return nullptr;
}

void nd_grpc_client_cancel(struct nd_grpc_client *client, int32_t number) {
        struct call *call = call_of(client->http, number);

        if (call)
                cancel(call, ND_CANCELLED, "cancelled");
}

/* ---- one blocking call ---- */

struct once {
        sd_event *loop;
        struct nd_error *error;
        char *bytes;
        size_t length;
};

static void once_message(const char *bytes, size_t length, void *userdata) {
        struct once *once = userdata;

        free(once->bytes);
        once->bytes = nd_malloc(length + 1);
        memcpy(once->bytes, bytes, length);
        once->length = length;
}

static void once_end(struct nd_error *error, void *userdata) {
        struct once *once = userdata;

        once->error = error;
        (void) sd_event_exit(once->loop, 0);
}

static void loop_done(sd_event **loop) {
        sd_event_unref(*loop);
}

struct nd_error *nd_grpc_call_once(const char *socket_path, const char *path, const char *request, size_t length,
                                   uint64_t timeout_us, char **ret, size_t *ret_length) {
        static const struct nd_grpc_answer answer = {.message = once_message, .end = once_end};
        nd_cleanup(loop_done) sd_event *loop = nullptr;
        nd_cleanup(nd_grpc_client_done) struct nd_grpc_client *client = nullptr;
        struct once once = {};
        int32_t call;
        int r = sd_event_new(&loop);

        if (r < 0)
                return nd_error_new(ND_INTERNAL, -r, "create event loop");
        once.loop = loop;
        nd_try(nd_grpc_client_connect(loop, socket_path, &client));
        nd_try(nd_grpc_client_call(client, path, request, length, timeout_us, &answer, &once, &call));
        r = sd_event_loop(loop);
        if (r < 0)
                return nd_error_new(ND_INTERNAL, -r, "wait for %s", path);
        if (once.error || !once.bytes) {
                free(once.bytes);
                return once.error ? once.error : nd_error_new(ND_INTERNAL, 0, "%s: response has no message", path);
        }
        *ret = once.bytes;
        *ret_length = once.length;
        return nullptr;
}
