/* SPDX-License-Identifier: Apache-2.0 */
/* spdy.c - the server's side of one SPDY/3.1 connection, without any I/O
 *
 * Theory of operation
 *   Input is parsed frame by frame: @STEP_HEADER buffers the eight bytes of a frame header, then a
 *   control frame is buffered whole (@STEP_CONTROL, it is small) and a data frame is passed on in
 *   the pieces it comes in (@STEP_DATA, it may be 16 MiB and is never stored). @STEP_FIN follows a
 *   frame with the FIN flag, since such a frame may be two events.
 *   Output is one queue of bytes. Data is accepted up to the limit in the settings; answers
 *   (replies, pings, resets, GOAWAY) have ND_SPDY_ANSWERS more, because they cannot wait. Only the
 *   peer's frames cause answers, so this limit detects a peer that sends without reading, and its
 *   connection fails.
 *
 * Limits
 *      header blocks     ND_SPDY_CONTROL compressed, ND_SPDY_HEADERS inflated, ND_SPDY_FIELDS
 *      headers
 *      streams           the settings' number; one more gets RST_STREAM(REFUSED_STREAM)
 *      incoming data     not stored here
 *      outgoing data     the settings' bytes for all streams together
 *
 * Owns       the streams' states, both zlib streams, the queue. Attachments belong to the owner.
 * Invariant  a header block is inflated even if its stream is refused: the next one builds upon it.
 *            For the same reason a SYN_REPLY that was deflated is queued or the connection fails.
 * See also   spdy-headers.c */
#include "net/spdy.h"

#include <endian.h>
#include <string.h>

#include "base/vector.h"
#include "net/spdy-headers.h"

enum {
        FRAME_HEADER = 8,
        VERSION = 3,
        FLAG_FIN = 0x01,
        FLAG_UNIDIRECTIONAL = 0x02,
        OUTPUT_LEAST = 4 << 10, /* a smaller limit would only make frames smaller */
        /* Memory that an empty queue keeps, for the next write of a busy stream. */
        QUEUE_KEPT = 64 << 10,
        ID_MASK = 0x7fffffff,
};

enum control {
        SYN_STREAM = 1,
        SYN_REPLY = 2,
        RST_STREAM = 3,
        PING = 6,
        GOAWAY = 7,
        HEADERS = 8,
};

enum step {
        STEP_HEADER,
        STEP_CONTROL,
        STEP_DATA,
        STEP_FIN,
};

struct stream {
        uint32_t id;
        void *attachment;
        bool accepted;
        bool ended_here;
        bool ended_there;
};

struct nd_spdy {
        struct nd_spdy_settings settings;
        struct nd_spdy_codec *codec;
        nd_vector(struct stream) streams;
        uint32_t last_stream; /* the highest number that the peer has used */
        uint32_t next_ping;
        bool said_goodbye;

        enum step step;
        size_t remaining;    /* bytes missing in this step */
        struct nd_text part; /* a frame header or control frame, incomplete */
        unsigned control;    /* its type */
        uint32_t frame_stream;
        uint8_t frame_flags;
        struct nd_spdy_block block; /* of the last event */

        char *queue;
        size_t queue_capacity, queue_begin, queue_length;
        bool overrun; /* an answer exceeded the limit */
        bool failed;
};

const char *nd_spdy_event_header(const struct nd_spdy_event *event, const char *name) {
        for (size_t i = 0; i < event->header_count; i++)
                if (nd_streq(event->headers[i].name, name))
                        return event->headers[i].value;
        return nullptr;
}

static void expect(struct nd_spdy *spdy, enum step step, size_t remaining) {
        spdy->step = step;
        spdy->remaining = remaining;
        spdy->part.length = 0;
}

struct nd_error *nd_spdy_new(const struct nd_spdy_settings *settings, struct nd_spdy **ret) {
        nd_cleanup(nd_spdy_done) struct nd_spdy *spdy = nd_new(struct nd_spdy);

        spdy->settings = *settings;
        if (spdy->settings.streams == 0)
                spdy->settings.streams = ND_SPDY_STREAMS;
        if (spdy->settings.output == 0)
                spdy->settings.output = ND_SPDY_OUTPUT;
        if (spdy->settings.output < OUTPUT_LEAST)
                spdy->settings.output = OUTPUT_LEAST;
        spdy->part = ND_TEXT(ND_SPDY_CONTROL);
        spdy->next_ping = 2;
        expect(spdy, STEP_HEADER, FRAME_HEADER);
        nd_try(nd_spdy_codec_new(&spdy->codec));
        *ret = nd_take_ptr(spdy);
        return nullptr;
}

void nd_spdy_free(struct nd_spdy *spdy) {
        if (!spdy)
                return;
        nd_spdy_codec_free(spdy->codec);
        nd_spdy_block_done(&spdy->block);
        nd_text_done(&spdy->part);
        nd_vector_done(&spdy->streams);
        free(spdy->queue);
        free(spdy);
}

/* ---- output ---- */

static void queue_reserve(struct nd_spdy *spdy, size_t length) {
        size_t capacity = spdy->queue_capacity > 0 ? spdy->queue_capacity : 1024;

        if (spdy->queue_begin + spdy->queue_length + length <= spdy->queue_capacity)
                return;
        if (spdy->queue_begin > 0) {
                memmove(spdy->queue, spdy->queue + spdy->queue_begin, spdy->queue_length);
                spdy->queue_begin = 0;
        }
        while (capacity < spdy->queue_length + length)
                capacity *= 2;
        if (capacity == spdy->queue_capacity)
                return;
        spdy->queue = nd_realloc_array(spdy->queue, capacity, 1);
        spdy->queue_capacity = capacity;
}

static void queue_add(struct nd_spdy *spdy, const void *bytes, size_t length) {
        if (length == 0)
                return;
        queue_reserve(spdy, length);
        memcpy(spdy->queue + spdy->queue_begin + spdy->queue_length, bytes, length);
        spdy->queue_length += length;
}

static void queue_words(struct nd_spdy *spdy, uint32_t first, uint8_t flags, size_t length) {
        uint32_t words[2] = {htobe32(first), htobe32((uint32_t) flags << 24 | (uint32_t) length)};

        queue_add(spdy, words, sizeof words);
}

/* Queues a control frame, or fails if the peer has left too many answers unread. */
static void answer(struct nd_spdy *spdy, enum control type, const void *payload, size_t length) {
        if (spdy->queue_length + FRAME_HEADER + length > spdy->settings.output + ND_SPDY_ANSWERS) {
                spdy->overrun = true;
                return;
        }
        queue_words(spdy, 0x80000000U | VERSION << 16 | type, 0, length);
        queue_add(spdy, payload, length);
}

static void answer_pair(struct nd_spdy *spdy, enum control type, uint32_t first, uint32_t second) {
        uint32_t words[2] = {htobe32(first), htobe32(second)};

        answer(spdy, type, words, sizeof words);
}

size_t nd_spdy_output(const struct nd_spdy *spdy, const char **ret_bytes) {
        *ret_bytes = spdy->queue_length > 0 ? spdy->queue + spdy->queue_begin : nullptr;
        return spdy->queue_length;
}

bool nd_spdy_sent(struct nd_spdy *spdy, size_t length) {
        bool was_full = spdy->queue_length > spdy->settings.output / 2;

        spdy->queue_begin += length;
        spdy->queue_length -= length;
        if (spdy->queue_length == 0) {
                spdy->queue_begin = 0;
                if (spdy->queue_capacity > QUEUE_KEPT) {
                        free(nd_take_ptr(spdy->queue));
                        spdy->queue_capacity = 0;
                }
        }
        return was_full && spdy->queue_length <= spdy->settings.output / 2;
}

size_t nd_spdy_queued(const struct nd_spdy *spdy) {
        return spdy->queue_length;
}

size_t nd_spdy_room(const struct nd_spdy *spdy) {
        size_t free_bytes = spdy->queue_length < spdy->settings.output ? spdy->settings.output - spdy->queue_length : 0;
        size_t frames = free_bytes / (FRAME_HEADER + ND_SPDY_DATA_FRAME) + 1;

        return free_bytes > frames * FRAME_HEADER ? free_bytes - frames * FRAME_HEADER : 0;
}

/* ---- streams ---- */

static struct stream *find(const struct nd_spdy *spdy, uint32_t id) {
        nd_vector_each (stream, &spdy->streams) {
                if (stream->id == id)
                        return stream;
        }
        return nullptr;
}

static void forget(struct nd_spdy *spdy, struct stream *stream) {
        *stream = spdy->streams.items[--spdy->streams.count];
}

static void forget_if_over(struct nd_spdy *spdy, struct stream *stream) {
        if (stream->ended_here && stream->ended_there)
                forget(spdy, stream);
}

void nd_spdy_attach(struct nd_spdy *spdy, uint32_t stream, void *attachment) {
        struct stream *s = find(spdy, stream);

        if (s)
                s->attachment = attachment;
}

static void accept_stream(struct nd_spdy *spdy, struct stream *stream) {
        nd_autotext struct nd_text payload = ND_TEXT(ND_SPDY_CONTROL);
        uint32_t id = htobe32(stream->id);

        if (stream->accepted)
                return;
        stream->accepted = true;
        nd_text_append(&payload, (const char *) &id, sizeof id);
        nd_spdy_codec_write(spdy->codec, nullptr, 0, &payload);
        answer(spdy, SYN_REPLY, payload.bytes, payload.length);
}

void nd_spdy_accept(struct nd_spdy *spdy, uint32_t stream) {
        struct stream *s = find(spdy, stream);

        if (s)
                accept_stream(spdy, s);
}

size_t nd_spdy_write(struct nd_spdy *spdy, uint32_t stream, const char *bytes, size_t length) {
        struct stream *s = find(spdy, stream);
        size_t taken = 0;

        if (!s || s->ended_here)
                return length;
        accept_stream(spdy, s);
        for (size_t room = nd_spdy_room(spdy); taken < length && room > 0; room = nd_spdy_room(spdy)) {
                size_t n = length - taken;

                n = n < room ? n : room;
                n = n < ND_SPDY_DATA_FRAME ? n : ND_SPDY_DATA_FRAME;
                queue_words(spdy, stream, 0, n);
                queue_add(spdy, bytes + taken, n);
                taken += n;
        }
        return taken;
}

void nd_spdy_finish(struct nd_spdy *spdy, uint32_t stream) {
        struct stream *s = find(spdy, stream);

        if (!s || s->ended_here)
                return;
        accept_stream(spdy, s);
        if (spdy->queue_length + FRAME_HEADER > spdy->settings.output + ND_SPDY_ANSWERS)
                spdy->overrun = true;
        else
                queue_words(spdy, stream, FLAG_FIN, 0);
        s->ended_here = true;
        forget_if_over(spdy, s);
}

void nd_spdy_reset(struct nd_spdy *spdy, uint32_t stream, enum nd_spdy_status status) {
        struct stream *s = find(spdy, stream);

        if (!s)
                return;
        answer_pair(spdy, RST_STREAM, stream, status);
        forget(spdy, s);
}

bool nd_spdy_open(const struct nd_spdy *spdy, uint32_t stream) {
        return find(spdy, stream);
}

size_t nd_spdy_streams(const struct nd_spdy *spdy) {
        return spdy->streams.count;
}

void nd_spdy_goaway(struct nd_spdy *spdy, enum nd_spdy_farewell reason) {
        if (!spdy->said_goodbye)
                answer_pair(spdy, GOAWAY, spdy->last_stream, reason);
        spdy->said_goodbye = true;
}

void nd_spdy_ping(struct nd_spdy *spdy) {
        uint32_t id = htobe32(spdy->next_ping);

        spdy->next_ping += 2;
        answer(spdy, PING, &id, sizeof id);
}

/* ---- input ---- */

static uint32_t word_at(const struct nd_spdy *spdy, size_t offset) {
        uint32_t word;

        memcpy(&word, spdy->part.bytes + offset, sizeof word);
        return be32toh(word);
}

static void tell(struct nd_spdy_event *event, enum nd_spdy_kind kind, const struct stream *stream) {
        *event = (struct nd_spdy_event) {.kind = kind, .stream = stream->id, .attachment = stream->attachment};
}

/* The step after a frame: the frame may end the peer's side of the stream. */
static void end_frame(struct nd_spdy *spdy) {
        if (spdy->frame_flags & FLAG_FIN)
                expect(spdy, STEP_FIN, 0);
        else
                expect(spdy, STEP_HEADER, FRAME_HEADER);
}

static void end_of_stream(struct nd_spdy *spdy, struct nd_spdy_event *ret) {
        struct stream *stream = find(spdy, spdy->frame_stream);

        expect(spdy, STEP_HEADER, FRAME_HEADER);
        if (!stream || stream->ended_there)
                return;
        stream->ended_there = true;
        tell(ret, ND_SPDY_FIN, stream);
        forget_if_over(spdy, stream);
}

/* Reads the header block of a control frame, from an offset on. */
static struct nd_error *read_block(struct nd_spdy *spdy, size_t offset) {
        nd_spdy_block_done(&spdy->block);
        if (spdy->part.length < offset)
                return nd_error_new(ND_INVALID, 0, "a control frame of type %u has only %zu bytes", spdy->control,
                                    spdy->part.length);
        return nd_error_wrap(
                nd_spdy_codec_read(spdy->codec, spdy->part.bytes + offset, spdy->part.length - offset, &spdy->block),
                "stream %u", word_at(spdy, 0) & ID_MASK);
}

static struct nd_error *open_stream(struct nd_spdy *spdy, struct nd_spdy_event *ret) {
        uint32_t id;

        nd_try(read_block(spdy, 10)); /* after stream, associated stream, priority and slot */
        id = word_at(spdy, 0) & ID_MASK;
        if (id % 2 == 0 || id <= spdy->last_stream)
                return nd_error_new(ND_INVALID, 0, "peer opens stream %u after %u; numbers must be odd and ascending", id,
                                    spdy->last_stream);
        spdy->last_stream = id;
        spdy->frame_stream = id;
        if (spdy->said_goodbye)
                return nullptr;
        if (spdy->streams.count >= spdy->settings.streams || spdy->frame_flags & FLAG_UNIDIRECTIONAL) {
                answer_pair(spdy, RST_STREAM, id, ND_SPDY_REFUSED_STREAM);
                return nullptr;
        }
        nd_vector_push(&spdy->streams, ((struct stream) {.id = id}));
        *ret = (struct nd_spdy_event) {
                .kind = ND_SPDY_OPENED,
                .stream = id,
                .headers = spdy->block.headers,
                .header_count = spdy->block.count,
        };
        return nullptr;
}

/* More headers on a stream: no client in Kubernetes sends them, but they are part of the zlib
 * stream. */
static struct nd_error *pass_over_headers(struct nd_spdy *spdy) {
        nd_try(read_block(spdy, 4));
        spdy->frame_stream = word_at(spdy, 0) & ID_MASK;
        return nullptr;
}

static void on_reset(struct nd_spdy *spdy, struct nd_spdy_event *ret) {
        struct stream *stream = find(spdy, word_at(spdy, 0) & ID_MASK);

        if (!stream)
                return;
        tell(ret, ND_SPDY_RESET, stream);
        ret->status = word_at(spdy, 4);
        forget(spdy, stream);
}

/* A ping with an odd number is from the peer and must be echoed. */
static void on_ping(struct nd_spdy *spdy, struct nd_spdy_event *ret) {
        if (word_at(spdy, 0) % 2 == 1)
                answer(spdy, PING, spdy->part.bytes, 4);
        *ret = (struct nd_spdy_event) {.kind = ND_SPDY_PING};
}

static struct nd_error *require(const struct nd_spdy *spdy, size_t length) {
        if (spdy->part.length == length)
                return nullptr;
        return nd_error_new(ND_INVALID, 0, "a control frame of type %u has %zu bytes instead of %zu", spdy->control,
                            spdy->part.length, length);
}

static struct nd_error *control_frame(struct nd_spdy *spdy, struct nd_spdy_event *ret) {
        spdy->frame_stream = 0; /* not a stream: a stray FIN flag has no effect */
        switch (spdy->control) {
        case SYN_STREAM:
                return open_stream(spdy, ret);
        case SYN_REPLY:
                return nd_error_new(ND_INVALID, 0, "SYN_REPLY for a stream that was never opened");
        case HEADERS:
                return pass_over_headers(spdy);
        case RST_STREAM:
                nd_try(require(spdy, 8));
                on_reset(spdy, ret);
                return nullptr;
        case PING:
                nd_try(require(spdy, 4));
                on_ping(spdy, ret);
                return nullptr;
        case GOAWAY:
                nd_try(require(spdy, 8));
                *ret = (struct nd_spdy_event) {.kind = ND_SPDY_GOAWAY, .status = word_at(spdy, 4)};
                return nullptr;
        /* SETTINGS and WINDOW_UPDATE, which Kubernetes' clients ignore too, and additions of later
         * versions. */
        default:
                return nullptr;
        }
}

static struct nd_error *begin_data(struct nd_spdy *spdy, uint32_t id, size_t length, struct nd_spdy_event *ret) {
        struct stream *stream = find(spdy, id);

        if (id % 2 == 0 || id > spdy->last_stream)
                return nd_error_new(ND_INVALID, 0, "data for stream %u, which was never opened", id);
        spdy->frame_stream = id;
        expect(spdy, STEP_DATA, length);
        if (!stream || !stream->ended_there)
                return nullptr;
        tell(ret, ND_SPDY_RESET, stream);
        ret->status = ND_SPDY_STREAM_CLOSED;
        nd_spdy_reset(spdy, id, ND_SPDY_STREAM_CLOSED);
        return nullptr;
}

static struct nd_error *begin_frame(struct nd_spdy *spdy, struct nd_spdy_event *ret) {
        uint32_t first = word_at(spdy, 0), second = word_at(spdy, 4);
        size_t length = second & 0xffffff;

        spdy->frame_flags = (uint8_t) (second >> 24);
        if (!(first & 0x80000000U))
                return begin_data(spdy, first, length, ret);
        if ((first >> 16 & 0x7fff) != VERSION)
                return nd_error_new(ND_INVALID, 0, "control frame of version %u; only SPDY/3.1 is supported",
                                    first >> 16 & 0x7fff);
        if (length > ND_SPDY_CONTROL)
                return nd_error_new(ND_EXHAUSTED, 0, "control frame of %zu bytes, the maximum is %d", length, ND_SPDY_CONTROL);
        spdy->control = first & 0xffff;
        expect(spdy, STEP_CONTROL, length);
        return nullptr;
}

/* Passes on a piece of data; data of a stream that no longer exists is discarded. */
static size_t data_piece(struct nd_spdy *spdy, const char *bytes, size_t length, struct nd_spdy_event *ret) {
        struct stream *stream = find(spdy, spdy->frame_stream);
        size_t n = length < spdy->remaining ? length : spdy->remaining;

        spdy->remaining -= n;
        if (stream && n > 0) {
                tell(ret, ND_SPDY_DATA, stream);
                ret->bytes = bytes;
                ret->length = n;
        }
        if (spdy->remaining == 0)
                end_frame(spdy);
        return n;
}

/* Consumes bytes for the current step and advances when they are complete. */
static struct nd_error *advance(struct nd_spdy *spdy, const char *bytes, size_t length, size_t *used,
                                struct nd_spdy_event *ret) {
        size_t n = length < spdy->remaining ? length : spdy->remaining;

        if (spdy->step == STEP_FIN) {
                end_of_stream(spdy, ret);
                return nullptr;
        }
        if (spdy->step == STEP_DATA) {
                *used += data_piece(spdy, bytes, length, ret);
                return nullptr;
        }
        nd_text_append(&spdy->part, bytes, n);
        spdy->remaining -= n;
        *used += n;
        if (spdy->remaining > 0)
                return nullptr;
        if (spdy->step == STEP_HEADER)
                return begin_frame(spdy, ret);
        nd_try(control_frame(spdy, ret));
        end_frame(spdy);
        return nullptr;
}

static struct nd_error *receive(struct nd_spdy *spdy, const char *bytes, size_t length, size_t *used,
                                struct nd_spdy_event *ret) {
        while (ret->kind == ND_SPDY_NOTHING && (*used < length || spdy->remaining == 0)) {
                nd_try(advance(spdy, bytes + *used, length - *used, used, ret));
                if (spdy->overrun)
                        return nd_error_new(ND_EXHAUSTED, 0, "peer sends requests without reading the responses");
        }
        return nullptr;
}

struct nd_error *nd_spdy_receive(struct nd_spdy *spdy, const char *bytes, size_t length, size_t *ret_used,
                                 struct nd_spdy_event *ret) {
        struct nd_error *error;

        *ret = (struct nd_spdy_event) {};
        *ret_used = 0;
        if (spdy->failed)
                return nd_error_new(ND_INVALID, 0, "connection has already failed");
        error = receive(spdy, bytes, length, ret_used, ret);
        if (!error)
                return nullptr;
        *ret = (struct nd_spdy_event) {};
        spdy->failed = true;
        nd_spdy_goaway(spdy, ND_SPDY_GOODBYE_PROTOCOL);
        return error;
}
