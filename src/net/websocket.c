/* SPDX-License-Identifier: Apache-2.0 */
/* websocket.c - one WebSocket connection, without any I/O
 *
 * Theory of operation
 *   Input is parsed frame by frame: @STEP_HEADER buffers the frame header (its length is in the
 *   first two bytes), then a data frame is passed on in the pieces it comes in (@STEP_DATA) and a
 *   control frame is buffered whole (@STEP_CONTROL, it is small). A message may be several frames,
 *   with control frames between them.
 *   Output is one queue of bytes. Data is accepted up to the owner's limit; answers have
 *   ND_WEBSOCKET_ANSWERS more. Only the peer's frames cause answers, so this limit detects a peer
 *   that sends without reading.
 * Why not a library: the one in Debian stores whole messages, and its queue is not bounded in
 * bytes; what remains of it without these is what is here.
 * The two sides differ in one thing: a client masks its frames, so that a proxy on the way cannot
 * mistake them for another protocol, and a server does not.
 * Invariant  input is unmasked once, in place, and never read again. */
#include "net/websocket.h"

#include <endian.h>
#include <nettle/base64.h>
#include <nettle/sha1.h>
#include <string.h>
#include <sys/random.h>

#include "base/text.h"

enum {
        HEADER_LEAST = 2,
        MASK = 4,
        KEY = ND_WEBSOCKET_KEY - 1,
        KEY_BYTES = 16,
        FLAG_FIN = 0x80,
        FLAGS_RESERVED = 0x70,
        FLAG_MASK = 0x80,
        COMPACT = 64 << 10, /* sent bytes that the queue may keep at its front */
        OUTPUT_LEAST = 4 << 10,
};

enum opcode {
        CONTINUATION = 0,
        TEXT = 1,
        BINARY = 2,
        CLOSE = 8,
        PING = 9,
        PONG = 10,
};

enum step {
        STEP_HEADER,
        STEP_DATA,
        STEP_CONTROL,
};

struct nd_websocket {
        bool client;
        size_t bound; /* of queued data */
        enum step step;
        /* A frame header, which is shorter, or a control frame. */
        unsigned char part[ND_WEBSOCKET_CONTROL];
        size_t part_length;
        enum opcode opcode;
        bool fin;
        uint64_t remaining; /* bytes of the frame */
        unsigned char mask[MASK];
        size_t mask_at;
        bool in_message;     /* the final frame has not arrived */
        bool begins;         /* no piece of the message was passed on yet */
        bool closed, failed; /* closed: we have sent a close frame */
        struct nd_text out;
        size_t out_first;
};

struct nd_websocket *nd_websocket_new(enum nd_websocket_side side, size_t output) {
        struct nd_websocket *websocket = nd_new(struct nd_websocket);

        websocket->client = side == ND_WEBSOCKET_CLIENT;
        websocket->bound = output == 0 ? ND_WEBSOCKET_OUTPUT : output < OUTPUT_LEAST ? OUTPUT_LEAST : output;
        websocket->out = ND_TEXT(websocket->bound + ND_WEBSOCKET_ANSWERS + COMPACT);
        return websocket;
}

void nd_websocket_free(struct nd_websocket *websocket) {
        if (!websocket)
                return;
        nd_text_done(&websocket->out);
        free(websocket);
}

/* ---- the handshake ---- */

static void draw(uint8_t *bytes, size_t length) {
        /* A request this small is filled completely or fails. */
        if (getrandom(bytes, length, 0) != (ssize_t) length)
                abort();
}

void nd_websocket_key(char ret[static ND_WEBSOCKET_KEY]) {
        uint8_t bytes[KEY_BYTES];

        draw(bytes, sizeof bytes);
        base64_encode_raw(ret, sizeof bytes, bytes);
        ret[KEY] = '\0';
}

bool nd_websocket_accept(const char *key, char ret[static ND_WEBSOCKET_ACCEPT]) {
        static const char suffix[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
        uint8_t hash[SHA1_DIGEST_SIZE];
        struct sha1_ctx context;

        if (strlen(key) != KEY || strcmp(key + KEY - 2, "==") != 0)
                return false;
        sha1_init(&context);
        sha1_update(&context, KEY, (const uint8_t *) key);
        sha1_update(&context, sizeof suffix - 1, (const uint8_t *) suffix);
        sha1_digest(&context, sizeof hash, hash);
        base64_encode_raw(ret, sizeof hash, hash);
        ret[ND_WEBSOCKET_ACCEPT - 1] = '\0';
        return true;
}

/* ---- output ---- */

static size_t waiting(const struct nd_websocket *websocket) {
        return websocket->out.length - websocket->out_first;
}

/* Masks the last bytes of the queue, which are a frame's payload; the mask precedes them. */
static void mask_last(struct nd_websocket *websocket, size_t length) {
        char *bytes = websocket->out.bytes + websocket->out.length - length;
        const char *mask = bytes - MASK;

        for (size_t i = 0; i < length; i++)
                bytes[i] = (char) (bytes[i] ^ mask[i % MASK]);
}

static size_t write_header(const struct nd_websocket *websocket, enum opcode opcode, size_t length,
                           unsigned char header[static ND_WEBSOCKET_HEADER]) {
        size_t header_length = HEADER_LEAST;

        header[0] = (unsigned char) (FLAG_FIN | opcode);
        if (length < 126) {
                header[1] = (unsigned char) length;
        } else if (length <= UINT16_MAX) {
                uint16_t size = htobe16((uint16_t) length);

                header[1] = 126;
                memcpy(header + HEADER_LEAST, &size, sizeof size);
                header_length += sizeof size;
        } else {
                uint64_t size = htobe64(length);

                header[1] = 127;
                memcpy(header + HEADER_LEAST, &size, sizeof size);
                header_length += sizeof size;
        }
        if (websocket->client) {
                header[1] |= FLAG_MASK;
                draw(header + header_length, MASK);
                header_length += MASK;
        }
        return header_length;
}

static void queue_frame(struct nd_websocket *websocket, enum opcode opcode, const char *bytes, size_t length) {
        unsigned char header[ND_WEBSOCKET_HEADER] = {};
        size_t header_length = write_header(websocket, opcode, length, header);

        if (websocket->closed || waiting(websocket) + header_length + length > websocket->bound + ND_WEBSOCKET_ANSWERS) {
                websocket->failed = websocket->failed || !websocket->closed;
                return;
        }
        nd_text_append(&websocket->out, (const char *) header, header_length);
        if (length > 0)
                nd_text_append(&websocket->out, bytes, length);
        if (websocket->client)
                mask_last(websocket, length);
}

void nd_websocket_send(struct nd_websocket *websocket, bool text, const char *bytes, size_t length) {
        queue_frame(websocket, text ? TEXT : BINARY, bytes, length);
}

size_t nd_websocket_room(const struct nd_websocket *websocket) {
        size_t used = waiting(websocket) + ND_WEBSOCKET_HEADER;

        if (websocket->closed || used >= websocket->bound)
                return 0;
        return websocket->bound - used < ND_WEBSOCKET_DATA_FRAME ? websocket->bound - used : ND_WEBSOCKET_DATA_FRAME;
}

void nd_websocket_close(struct nd_websocket *websocket, enum nd_websocket_status status) {
        uint16_t number = htobe16((uint16_t) status);

        queue_frame(websocket, CLOSE, (const char *) &number, sizeof number);
        websocket->closed = true;
}

size_t nd_websocket_queued(const struct nd_websocket *websocket, const char **ret_bytes) {
        *ret_bytes = waiting(websocket) > 0 ? websocket->out.bytes + websocket->out_first : nullptr;
        return waiting(websocket);
}

bool nd_websocket_sent(struct nd_websocket *websocket, size_t length) {
        bool was_full = waiting(websocket) > websocket->bound / 2;

        websocket->out_first += length;
        if (websocket->out_first == websocket->out.length || websocket->out_first > COMPACT) {
                if (waiting(websocket) > 0)
                        memmove(websocket->out.bytes, websocket->out.bytes + websocket->out_first, waiting(websocket));
                websocket->out.length = waiting(websocket);
                websocket->out_first = 0;
        }
        return was_full && waiting(websocket) <= websocket->bound / 2;
}

/* ---- input ---- */

static struct nd_error *fail(struct nd_websocket *websocket, enum nd_websocket_status status, const char *words) {
        nd_websocket_close(websocket, status);
        websocket->failed = true;
        return nd_error_new(ND_INVALID, 0, "%s", words);
}

/* Length of the header, as far as its first bytes determine it. */
static size_t header_length(const struct nd_websocket *websocket) {
        unsigned size = websocket->part_length < HEADER_LEAST ? 0 : websocket->part[1] & ~FLAG_MASK;

        if (websocket->part_length < HEADER_LEAST)
                return HEADER_LEAST;
        return HEADER_LEAST + (websocket->client ? 0 : MASK) + (size == 127 ? 8 : size == 126 ? 2 : 0);
}

static struct nd_error *check_header(struct nd_websocket *websocket) {
        bool control = websocket->opcode >= CLOSE;

        if ((websocket->part[0] & FLAGS_RESERVED) != 0 || websocket->opcode > PONG ||
            (websocket->opcode > BINARY && websocket->opcode < CLOSE))
                return fail(websocket, ND_WEBSOCKET_PROTOCOL_ERROR, "peer sent a frame of a type that was not negotiated");
        if (control && (!websocket->fin || websocket->remaining > ND_WEBSOCKET_CONTROL))
                return fail(websocket, ND_WEBSOCKET_PROTOCOL_ERROR, "peer sent an oversized or fragmented control frame");
        if (!control && websocket->in_message != (websocket->opcode == CONTINUATION))
                return fail(websocket, ND_WEBSOCKET_PROTOCOL_ERROR, "peer sent the frames of a message out of order");
        if (websocket->remaining > ND_WEBSOCKET_FRAME)
                return fail(websocket, ND_WEBSOCKET_TOO_BIG, "peer sent an oversized frame");
        return nullptr;
}

static struct nd_error *take_header(struct nd_websocket *websocket) {
        const unsigned char *part = websocket->part;
        size_t length = header_length(websocket);
        uint16_t two;
        uint64_t eight;

        websocket->fin = (part[0] & FLAG_FIN) != 0;
        websocket->opcode = (enum opcode)(part[0] & 0x0f);
        websocket->remaining = part[1] & ~FLAG_MASK;
        if (websocket->remaining == 126) {
                memcpy(&two, part + HEADER_LEAST, sizeof two);
                websocket->remaining = be16toh(two);
        } else if (websocket->remaining == 127) {
                memcpy(&eight, part + HEADER_LEAST, sizeof eight);
                websocket->remaining = be64toh(eight);
        }
        if (!websocket->client)
                memcpy(websocket->mask, part + length - MASK, MASK);
        websocket->mask_at = 0;
        nd_try(check_header(websocket));
        websocket->part_length = 0;
        websocket->step = websocket->opcode >= CLOSE ? STEP_CONTROL : STEP_DATA;
        if (websocket->step == STEP_DATA) {
                websocket->begins = websocket->begins || websocket->opcode != CONTINUATION;
                websocket->in_message = !websocket->fin;
        }
        return nullptr;
}

static void unmask(struct nd_websocket *websocket, char *bytes, size_t length) {
        if (websocket->client)
                return;
        for (size_t i = 0; i < length; i++)
                bytes[i] = (char) (bytes[i] ^ websocket->mask[websocket->mask_at++ % MASK]);
}

/* True if this gave an event. */
static bool take_control(struct nd_websocket *websocket, struct nd_websocket_event *ret) {
        websocket->step = STEP_HEADER;
        if (websocket->opcode == PING)
                queue_frame(websocket, PONG, (const char *) websocket->part, websocket->part_length);
        websocket->part_length = 0;
        if (websocket->opcode != CLOSE)
                return false;
        nd_websocket_close(websocket, ND_WEBSOCKET_NORMAL);
        ret->kind = ND_WEBSOCKET_CLOSED;
        return true;
}

static size_t collect(struct nd_websocket *websocket, char *bytes, size_t length, size_t wanted) {
        size_t n = wanted - websocket->part_length < length ? wanted - websocket->part_length : length;

        if (websocket->step == STEP_CONTROL)
                unmask(websocket, bytes, n);
        if (n > 0)
                memcpy(websocket->part + websocket->part_length, bytes, n);
        websocket->part_length += n;
        return n;
}

/* Passes on a piece of a data frame, which may be empty. */
static size_t take_data(struct nd_websocket *websocket, char *bytes, size_t length, struct nd_websocket_event *ret) {
        size_t n = websocket->remaining < length ? (size_t) websocket->remaining : length;

        unmask(websocket, bytes, n);
        websocket->remaining -= n;
        *ret = (struct nd_websocket_event) {.kind = ND_WEBSOCKET_DATA,
                                            .begins = websocket->begins,
                                            .ends = websocket->remaining == 0 && !websocket->in_message,
                                            .bytes = bytes,
                                            .length = n};
        websocket->begins = false;
        if (websocket->remaining == 0)
                websocket->step = STEP_HEADER;
        return n;
}

static struct nd_error *check_mask(struct nd_websocket *websocket) {
        if (websocket->part_length < HEADER_LEAST || ((websocket->part[1] & FLAG_MASK) != 0) != websocket->client)
                return nullptr;
        return fail(websocket, ND_WEBSOCKET_PROTOCOL_ERROR,
                    websocket->client ? "server sent a masked frame" : "client sent an unmasked frame");
}

static bool has_header(const struct nd_websocket *websocket) {
        return websocket->part_length >= HEADER_LEAST && websocket->part_length == header_length(websocket);
}

struct nd_error *nd_websocket_receive(struct nd_websocket *websocket, char *bytes, size_t length, size_t *ret_used,
                                      struct nd_websocket_event *ret) {
        size_t used = 0;

        *ret = (struct nd_websocket_event) {};
        *ret_used = length;
        while (!websocket->closed && !websocket->failed) {
                bool more = used < length;

                if (websocket->step == STEP_DATA && (more || websocket->remaining == 0)) {
                        *ret_used = used + take_data(websocket, bytes + used, length - used, ret);
                        return nullptr;
                }
                if (websocket->step == STEP_HEADER) {
                        used += collect(websocket, bytes + used, length - used, header_length(websocket));
                        nd_try(check_mask(websocket));
                        if (has_header(websocket))
                                nd_try(take_header(websocket));
                        else if (used == length)
                                return nullptr;
                        continue;
                }
                if (websocket->step == STEP_CONTROL) {
                        used += collect(websocket, bytes + used, length - used, (size_t) websocket->remaining);
                        if (websocket->part_length == websocket->remaining && take_control(websocket, ret)) {
                                *ret_used = used;
                                return nullptr;
                        }
                        if (websocket->step == STEP_CONTROL)
                                return nullptr;
                        continue;
                }
                return nullptr;
        }
        if (websocket->failed)
                return nd_error_new(ND_INVALID, 0, "peer sends requests without reading the responses");
        return nullptr; /* input after the close frame is discarded */
}
