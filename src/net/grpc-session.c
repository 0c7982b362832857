/* SPDX-License-Identifier: Apache-2.0 */
/* grpc-session.c - see grpc-session.h
 *
 * Theory of operation
 *   nghttp2 does HTTP/2; a stream is a call. A call has two holders: the stream, as long as the
 *   peer keeps it open, and the handler, from the moment its request is complete until it finishes
 *   the call. It is freed when both have released it (@on_stream, @handled).
 *   A response is a queue of bytes that includes the message prefixes. nghttp2 pulls from it as the
 *   peer's flow control allows, and defers the stream while it is empty; after the call is finished
 *   and the queue drained, the status follows as trailers. A call that ends before anything was
 *   sent gets its status in a single header frame ("trailers only").
 * Owns       its calls' streams; never a handler's state.
 * Invariant  a handler's functions are never called after nd_grpc_call_finish(). */
#include "net/grpc-session.h"

#include <nghttp2/nghttp2.h>
#include <string.h>

struct nd_grpc_session {
        nghttp2_session *http;
        struct nd_grpc_events events;
        void *userdata;
        struct nd_grpc_call *calls; /* all calls with a stream, newest first */
        size_t input;               /* bytes of incomplete requests */
        size_t output;              /* bytes of queued responses */
        /* nghttp2 is on the call stack: output is sent afterwards anyway. */
        bool receiving;
};

struct nd_grpc_call {
        struct nd_grpc_session *session; /* nullptr after the connection was closed */
        struct nd_grpc_call *next, *previous;
        int32_t stream;
        bool on_stream, handled, requested;
        bool is_post, is_grpc, headers_sent, finished, cancelled, telling;
        size_t header_bytes;
        char *path;
        uint64_t timeout_us;
        struct nd_grpc_reader reader;
        char *request; /* the complete message, until it is passed to the handler */
        size_t request_length;
        struct nd_text answer;
        size_t answered; /* bytes of it that nghttp2 has consumed */
        enum nd_error_code status;
        char *status_text;
        char *subject;
        void (*on_cancel)(void *userdata);
        void *on_cancel_userdata;
        void (*on_drained)(void *userdata);
        void *on_drained_userdata;
        void *attachment;
        void (*detach)(void *attachment);
};

/* ---- life of a call ---- */

static void call_free_if_unused(struct nd_grpc_call *call) {
        if (call->on_stream || call->handled || call->telling)
                return;
        if (call->detach)
                call->detach(call->attachment);
        free(call->path);
        free(call->request);
        free(call->status_text);
        free(call->subject);
        nd_grpc_reader_done(&call->reader);
        nd_text_done(&call->answer);
        free(call);
}

static size_t call_waiting(const struct nd_grpc_call *call) {
        return call->answer.length - call->answered;
}

/* The stream is closed: nothing more can be sent, and the call no longer counts against the
 * connection's limits. */
static void call_leave_stream(struct nd_grpc_call *call) {
        struct nd_grpc_session *session = call->session;

        session->output -= call_waiting(call);
        session->input -= call->reader.body.length + call->request_length;
        if (call->previous)
                call->previous->next = call->next;
        else
                session->calls = call->next;
        if (call->next)
                call->next->previous = call->previous;
        nd_text_done(&call->answer);
        call->answered = 0;
        nd_grpc_reader_done(&call->reader);
        call->request_length = 0;
        call->session = nullptr;
        call->on_stream = false;
}

static void call_cancel(struct nd_grpc_call *call) {
        if (call->cancelled || !call->handled)
                return;
        call->cancelled = true;
        call->telling = true; /* the handler may finish the call in its callback */
        if (call->on_cancel)
                call->on_cancel(call->on_cancel_userdata);
        call->telling = false;
}

static void tell_output(struct nd_grpc_session *session) {
        if (!session->receiving)
                session->events.output(session->userdata);
}

/* ---- answers ---- */

static nghttp2_nv header(const char *name, const char *value) {
        return (nghttp2_nv) {.name = (uint8_t *) name,
                             .value = (uint8_t *) value,
                             .namelen = strlen(name),
                             .valuelen = strlen(value),
                             .flags = NGHTTP2_NV_FLAG_NO_COPY_NAME};
}

/* Submits the status: as trailers after a response, or alone with the response headers. */
static int submit_status(struct nd_grpc_call *call) {
        nd_autofree char *code = nd_format("%d", (int) call->status);
        nd_autofree char *text = nd_grpc_encode_text(call->status_text ?: "");
        nghttp2_nv headers[] = {header(":status", "200"), header("content-type", "application/grpc"),
                                header("grpc-status", code), header("grpc-message", text)};
        size_t count = call->status_text ? 4 : 3;

        if (call->headers_sent)
                return nghttp2_submit_trailer(call->session->http, call->stream, headers + 2, count - 2);
        call->headers_sent = true;
        return nghttp2_submit_response2(call->session->http, call->stream, headers, count, nullptr);
}

static nghttp2_ssize pull_answer([[maybe_unused]] nghttp2_session *http, [[maybe_unused]] int32_t stream, uint8_t *buffer,
                                 size_t length, uint32_t *flags, nghttp2_data_source *source,
                                 [[maybe_unused]] void *userdata) {
        struct nd_grpc_call *call = source->ptr;
        size_t n = call_waiting(call) < length ? call_waiting(call) : length;

        if (n == 0 && !call->finished)
                return NGHTTP2_ERR_DEFERRED;
        memcpy(buffer, nd_text_get(&call->answer) + call->answered, n);
        call->answered += n;
        call->session->output -= n;
        if (call->answered == call->answer.length) {
                nd_text_done(&call->answer);
                call->answered = 0;
                if (call->on_drained && !call->finished)
                        call->on_drained(call->on_drained_userdata);
                if (call->finished && call_waiting(call) == 0) {
                        *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
                        if (submit_status(call) < 0)
                                return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
                }
        }
        return (nghttp2_ssize) n;
}

static void start_answer(struct nd_grpc_call *call) {
        nghttp2_data_provider2 provider = {.source.ptr = call, .read_callback = pull_answer};
        nghttp2_nv headers[] = {header(":status", "200"), header("content-type", "application/grpc")};

        call->headers_sent = true;
        (void) nghttp2_submit_response2(call->session->http, call->stream, headers, nd_count_of(headers), &provider);
}

/* Sets the status; queued messages are still sent. */
static void conclude(struct nd_grpc_call *call, struct nd_error *error) {
        if (call->finished) {
                nd_error_free(error);
                return;
        }
        call->finished = true;
        call->status = call->cancelled ? ND_CANCELLED : nd_error_code(error);
        call->status_text = error ? nd_strdup(nd_error_text(error)) : nullptr;
        nd_error_free(error);
        if (!call->session)
                return;
        if (call->headers_sent)
                (void) nghttp2_session_resume_data(call->session->http, call->stream);
        else
                (void) submit_status(call);
        tell_output(call->session);
}

/* Discards the queue and ends the call with an error: the peer does not read the rest. */
static void conclude_now(struct nd_grpc_call *call, struct nd_error *error) {
        if (call->session)
                call->session->output -= call_waiting(call);
        nd_text_done(&call->answer);
        call->answered = 0;
        conclude(call, error);
}

/* Moves the unsent bytes to the front, so that the buffer of an endless stream stays small. */
static void forget_answered(struct nd_grpc_call *call) {
        if (call->answered == 0)
                return;
        memmove(call->answer.bytes, call->answer.bytes + call->answered, call_waiting(call));
        call->answer.length -= call->answered;
        call->answered = 0;
}

void nd_grpc_call_send(struct nd_grpc_call *call, const char *bytes, size_t length) {
        unsigned char prefix[ND_GRPC_PREFIX];

        if (!call->session || call->finished)
                return;
        if (length > ND_GRPC_MESSAGE) {
                conclude_now(call, nd_error_new(ND_EXHAUSTED, 0, "response has %zu bytes, the maximum is %d", length,
                                                ND_GRPC_MESSAGE));
                return;
        }
        if (call->session->output + length + ND_GRPC_PREFIX > ND_GRPC_OUTPUT) {
                conclude_now(call, nd_error_new(ND_EXHAUSTED, 0, "peer does not read its responses"));
                return;
        }
        forget_answered(call);
        nd_grpc_write_prefix(prefix, length);
        call->answer.ceiling = call->answer.length + length + sizeof prefix;
        nd_text_append(&call->answer, (const char *) prefix, sizeof prefix);
        nd_text_append(&call->answer, bytes, length);
        call->session->output += length + sizeof prefix;
        if (call->headers_sent)
                (void) nghttp2_session_resume_data(call->session->http, call->stream);
        else
                start_answer(call);
        tell_output(call->session);
}

void nd_grpc_call_begin(struct nd_grpc_call *call) {
        if (!call->session || call->finished || call->headers_sent)
                return;
        start_answer(call);
        tell_output(call->session);
}

void nd_grpc_call_finish(struct nd_grpc_call *call, struct nd_error *error) {
        call->on_cancel = call->on_drained = nullptr;
        conclude(call, error);
        call->handled = false;
        call_free_if_unused(call);
}

void nd_grpc_call_expire(struct nd_grpc_call *call) {
        if (call->finished)
                return;
        conclude_now(call, nd_error_new(ND_DEADLINE, 0, "context deadline exceeded"));
        call_cancel(call);
        call_free_if_unused(call);
}

const char *nd_grpc_call_path(const struct nd_grpc_call *call) {
        return call->path;
}

uint64_t nd_grpc_call_timeout_us(const struct nd_grpc_call *call) {
        return call->timeout_us;
}

void nd_grpc_call_on_cancel(struct nd_grpc_call *call, void (*function)(void *userdata), void *userdata) {
        call->on_cancel = function;
        call->on_cancel_userdata = userdata;
        if (call->cancelled && function)
                function(userdata);
}

void nd_grpc_call_on_drained(struct nd_grpc_call *call, void (*function)(void *userdata), void *userdata) {
        call->on_drained = function;
        call->on_drained_userdata = userdata;
}

enum nd_error_code nd_grpc_call_status(const struct nd_grpc_call *call) {
        return call->finished ? call->status : ND_CANCELLED;
}

const char *nd_grpc_call_status_text(const struct nd_grpc_call *call) {
        return call->status_text ? call->status_text : "";
}

void nd_grpc_call_set_subject(struct nd_grpc_call *call, const char *subject) {
        free(call->subject);
        call->subject = nd_strdup(subject);
}

const char *nd_grpc_call_subject(const struct nd_grpc_call *call) {
        return call->subject ? call->subject : "";
}

size_t nd_grpc_call_queued(const struct nd_grpc_call *call) {
        return call_waiting(call);
}

void nd_grpc_call_attach(struct nd_grpc_call *call, void *attachment, void (*detach)(void *attachment)) {
        call->attachment = attachment;
        call->detach = detach;
}

/* ---- callbacks of nghttp2 ---- */

static struct nd_grpc_call *call_of(nghttp2_session *http, int32_t stream) {
        return nghttp2_session_get_stream_user_data(http, stream);
}

static int on_begin_headers(nghttp2_session *http, const nghttp2_frame *frame, void *userdata) {
        struct nd_grpc_session *session = userdata;
        struct nd_grpc_call *call;

        if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
                return 0;
        call = nd_new(struct nd_grpc_call);
        call->session = session;
        call->stream = frame->hd.stream_id;
        call->on_stream = true;
        call->next = session->calls;
        if (call->next)
                call->next->previous = call;
        session->calls = call;
        (void) nghttp2_session_set_stream_user_data(http, frame->hd.stream_id, call);
        return 0;
}

static bool is(const uint8_t *bytes, size_t length, const char *text) {
        return length == strlen(text) && memcmp(bytes, text, length) == 0;
}

static int on_header(nghttp2_session *http, const nghttp2_frame *frame, const uint8_t *name, size_t name_length,
                     const uint8_t *value, size_t value_length, [[maybe_unused]] uint8_t flags,
                     [[maybe_unused]] void *userdata) {
        struct nd_grpc_call *call = call_of(http, frame->hd.stream_id);

        if (!call)
                return 0;
        call->header_bytes += name_length + value_length + 32;
        if (call->header_bytes > ND_GRPC_HEADERS)
                return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* resets this stream only */
        if (is(name, name_length, ":path") && !call->path)
                call->path = nd_strndup((const char *) value, value_length);
        else if (is(name, name_length, ":method"))
                call->is_post = is(value, value_length, "POST");
        else if (is(name, name_length, "content-type"))
                call->is_grpc = value_length >= 16 && memcmp(value, "application/grpc", 16) == 0;
        else if (is(name, name_length, "grpc-timeout"))
                nd_ignore(nd_grpc_parse_timeout((const char *) value, value_length, &call->timeout_us));
        return 0;
}

static int on_data(nghttp2_session *http, [[maybe_unused]] uint8_t flags, int32_t stream, const uint8_t *bytes, size_t length,
                   void *userdata) {
        struct nd_grpc_session *session = userdata;
        struct nd_grpc_call *call = call_of(http, stream);
        struct nd_error *error = nullptr;

        while (call && !call->finished && length > 0) {
                size_t used = 0, before = call->reader.body.length;
                bool complete = false;

                if (call->request)
                        error = nd_error_new(ND_UNIMPLEMENTED, 0, "%s takes exactly one message", call->path ?: "");
                else
                        error = nd_grpc_reader_feed(&call->reader, (const char *) bytes, length, &used, &complete);
                session->input += call->reader.body.length - before;
                if (!error && session->input > ND_GRPC_INPUT)
                        error = nd_error_new(ND_EXHAUSTED, 0, "too many unfinished requests on this connection");
                if (error) {
                        conclude(call, error);
                        return 0;
                }
                if (complete) {
                        call->request_length = call->reader.body.length;
                        call->request = nd_text_steal(&call->reader.body);
                        nd_grpc_reader_next(&call->reader);
                }
                bytes += used;
                length -= used;
        }
        return 0;
}

/* The request is complete: pass it to the handler, or answer with an error. */
static void request_ended(struct nd_grpc_session *session, struct nd_grpc_call *call) {
        nd_autofree char *request = nullptr;
        size_t length;

        if (call->finished || call->requested)
                return;
        call->requested = true;
        if (!call->is_post || !call->is_grpc || !call->path) {
                conclude(call, nd_error_new(ND_INTERNAL, 0, "not a gRPC request"));
                return;
        }
        if (!call->request || !nd_grpc_reader_idle(&call->reader)) {
                conclude(call, nd_error_new(ND_INTERNAL, 0, "the request ended before its message"));
                return;
        }
        request = nd_take_ptr(call->request);
        length = nd_take(call->request_length, 0);
        session->input -= length;
        call->handled = true;
        session->events.request(call, request, length, session->userdata);
}

static int on_frame(nghttp2_session *http, const nghttp2_frame *frame, void *userdata) {
        struct nd_grpc_call *call;

        if ((frame->hd.type != NGHTTP2_DATA && frame->hd.type != NGHTTP2_HEADERS) ||
            !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
                return 0;
        call = call_of(http, frame->hd.stream_id);
        if (call)
                request_ended(userdata, call);
        return 0;
}

static int on_close(nghttp2_session *http, int32_t stream, [[maybe_unused]] uint32_t code, [[maybe_unused]] void *userdata) {
        struct nd_grpc_call *call = call_of(http, stream);

        if (!call)
                return 0;
        call_leave_stream(call);
        call_cancel(call); /* also if a limit has ended it: its handler does not know yet */
        call_free_if_unused(call);
        return 0;
}

/* The response ended before the request (too large, unknown method): ask the peer to stop
 * sending. */
static int on_sent(nghttp2_session *http, const nghttp2_frame *frame, [[maybe_unused]] void *userdata) {
        if (frame->hd.type == NGHTTP2_HEADERS && frame->hd.flags & NGHTTP2_FLAG_END_STREAM &&
            nghttp2_session_get_stream_remote_close(http, frame->hd.stream_id) == 0)
                (void) nghttp2_submit_rst_stream(http, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_NO_ERROR);
        return 0;
}

/* ---- the session ---- */

static int make_http(struct nd_grpc_session *session) {
        static const nghttp2_settings_entry settings[] = {
                {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, ND_GRPC_STREAMS},
                {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, ND_GRPC_WINDOW},
                {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, ND_GRPC_HEADERS},
                {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        };
        nghttp2_session_callbacks *callbacks;
        nghttp2_option *options;
        int r;

        if (nghttp2_session_callbacks_new(&callbacks) < 0 || nghttp2_option_new(&options) < 0)
                abort(); /* out of memory */
        nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
        nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
        nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
        nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_sent);
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
        nghttp2_option_set_max_settings(options, 32);
        nghttp2_option_set_no_closed_streams(options, 1);
        r = nghttp2_session_server_new2(&session->http, callbacks, session, options);
        if (r == 0)
                r = nghttp2_submit_settings(session->http, NGHTTP2_FLAG_NONE, settings, nd_count_of(settings));
        if (r == 0)
                r = nghttp2_session_set_local_window_size(session->http, NGHTTP2_FLAG_NONE, 0, 16 * ND_GRPC_WINDOW);
        nghttp2_session_callbacks_del(callbacks);
        nghttp2_option_del(options);
        return r;
}

struct nd_error *nd_grpc_session_new(const struct nd_grpc_events *events, void *userdata, struct nd_grpc_session **ret) {
        struct nd_grpc_session *session = nd_new(struct nd_grpc_session);
        int r;

        session->events = *events;
        session->userdata = userdata;
        r = make_http(session);
        if (r < 0) {
                nd_grpc_session_free(session);
                return nd_error_new(ND_INTERNAL, 0, "start HTTP/2: %s", nghttp2_strerror(r));
        }
        *ret = session;
        return nullptr;
}

void nd_grpc_session_free(struct nd_grpc_session *session) {
        if (!session)
                return;
        session->receiving = true; /* prevents further output */
        for (struct nd_grpc_call *call = session->calls, *next; call; call = next) {
                /* A handler may finish any call when notified, but only this function detaches a
                 * call from its stream. */
                next = call->next;
                call_leave_stream(call);
                call_cancel(call);
                call_free_if_unused(call);
        }
        nghttp2_session_del(session->http);
        free(session);
}

struct nd_error *nd_grpc_session_receive(struct nd_grpc_session *session, const char *bytes, size_t length) {
        nghttp2_ssize n;

        session->receiving = true;
        n = nghttp2_session_mem_recv2(session->http, (const uint8_t *) bytes, length);
        session->receiving = false;
        if (n < 0)
                return nd_error_new(ND_INTERNAL, 0, "HTTP/2: %s", nghttp2_strerror((int) n));
        return nullptr;
}

size_t nd_grpc_session_output(struct nd_grpc_session *session, const char **ret_bytes) {
        const uint8_t *bytes = nullptr;
        nghttp2_ssize n;

        session->receiving = true; /* frames submitted while sending go out in the same run */
        n = nghttp2_session_mem_send2(session->http, &bytes);
        session->receiving = false;
        if (n <= 0)
                return 0;
        *ret_bytes = (const char *) bytes;
        return (size_t) n;
}

bool nd_grpc_session_over(const struct nd_grpc_session *session) {
        return !nghttp2_session_want_read(session->http) && !nghttp2_session_want_write(session->http);
}
