/* SPDX-License-Identifier: Apache-2.0 */
/* test-spdy.c - the test acts as the client: it writes frames as the protocol demands, with its own
 * zlib streams, and parses the server's
 *
 * Frames in hexadecimal were written by spdystream, which kubelet and kubectl use. */
#include <endian.h>

#include <unit/expect.h>

#define ZLIB_CONST
#include <zlib.h>

#include "base/text.h"
#include "net/spdy-headers.h"

static const char go_error[] =
        "80030001000000290000000100000000000078f9e3c6a7c26260606004a7b392a2d4c45c6851c29a0a0a6800000000ffff";
static const char go_stdin[] = "800300010000001700000003000000000000c22e555c92929907000000ffff";
static const char go_stdout_port[] =
        "80030001000000330000000500000000000002255548a95d04ce20160616060c0c0c9c459058ce04a57e46030ccd6cc52529f9a52500000000ffff";

struct client {
        struct nd_spdy *spdy;
        z_stream out, in;
        struct nd_text bytes; /* to the server, not delivered yet */
        size_t given;
        struct nd_text heard; /* from the server, not parsed yet */
};

static void client_begin(struct client *c, struct nd_spdy_settings settings) {
        *c = (struct client) {.bytes = ND_TEXT(64 << 20), .heard = ND_TEXT(64 << 20)};
        expect_ok(nd_spdy_new(&settings, &c->spdy));
        assert_int_equal(deflateInit(&c->out, 9), Z_OK);
        assert_int_equal(deflateSetDictionary(&c->out, (const Bytef *) nd_spdy_dictionary, ND_SPDY_DICTIONARY), Z_OK);
        assert_int_equal(inflateInit(&c->in), Z_OK);
}

static void client_done(struct client *c) {
        nd_spdy_free(c->spdy);
        (void) deflateEnd(&c->out);
        (void) inflateEnd(&c->in);
        nd_text_done(&c->bytes);
        nd_text_done(&c->heard);
}

static void add_word(struct nd_text *text, uint32_t word) {
        word = htobe32(word);
        nd_text_append(text, (const char *) &word, sizeof word);
}

static void say_control(struct client *c, unsigned type, unsigned flags, const struct nd_text *payload) {
        add_word(&c->bytes, 0x80030000U | type);
        add_word(&c->bytes, flags << 24 | (uint32_t) payload->length);
        nd_text_append(&c->bytes, nd_text_get(payload), payload->length);
}

static void say_words(struct client *c, unsigned type, size_t count, uint32_t first, uint32_t second) {
        nd_autotext struct nd_text payload = ND_TEXT(64);

        add_word(&payload, first);
        if (count > 1)
                add_word(&payload, second);
        say_control(c, type, 0, &payload);
}

static void say_data(struct client *c, uint32_t stream, unsigned flags, const char *data, size_t length) {
        add_word(&c->bytes, stream);
        add_word(&c->bytes, flags << 24 | (uint32_t) length);
        nd_text_append(&c->bytes, data, length);
}

static void say_hex(struct client *c, const char *hex) {
        for (; *hex; hex += 2) {
                char digits[3] = {hex[0], hex[1]}, byte = (char) strtoul(digits, nullptr, 16);

                nd_text_append(&c->bytes, &byte, 1);
        }
}

/* A frame with a header block of these plain bytes. */
static void say_block(struct client *c, unsigned type, unsigned flags, uint32_t stream, const char *plain, size_t length) {
        nd_autotext struct nd_text payload = ND_TEXT(ND_SPDY_CONTROL * 4);
        char *compressed = nd_malloc(length + 1024);

        add_word(&payload, stream);
        if (type == 1)
                nd_text_append(&payload, "\0\0\0\0\0\0", 6);
        c->out.next_in = (const Bytef *) plain;
        c->out.avail_in = (uInt) length;
        c->out.next_out = (Bytef *) compressed;
        c->out.avail_out = (uInt) length + 1024;
        assert_int_equal(deflate(&c->out, Z_SYNC_FLUSH), Z_OK);
        nd_text_append(&payload, compressed, length + 1024 - c->out.avail_out);
        free(compressed);
        say_control(c, type, flags, &payload);
}

static void say_open(struct client *c, uint32_t stream, unsigned flags, const char *type) {
        nd_autotext struct nd_text plain = ND_TEXT(1024);

        add_word(&plain, 1);
        add_word(&plain, 10);
        nd_text_add(&plain, "streamtype");
        add_word(&plain, (uint32_t) strlen(type));
        nd_text_add(&plain, type);
        say_block(c, 1, flags, stream, plain.bytes, plain.length);
}

/* The next event of the bytes delivered so far. */
static struct nd_error *give(struct client *c, struct nd_spdy_event *ret) {
        struct nd_error *error;
        size_t used;

        error = nd_spdy_receive(c->spdy, c->bytes.bytes + c->given, c->bytes.length - c->given, &used, ret);
        c->given += used;
        assert_true(c->given <= c->bytes.length);
        if (!error && ret->kind == ND_SPDY_NOTHING)
                assert_int_equal(c->given, c->bytes.length);
        return error;
}

static struct nd_spdy_event expect_event(struct client *c, enum nd_spdy_kind kind, uint32_t stream) {
        struct nd_spdy_event event;

        expect_ok(give(c, &event));
        assert_int_equal(event.kind, kind);
        assert_int_equal(event.stream, stream);
        return event;
}

static void hear(struct client *c, size_t most) {
        const char *bytes;
        size_t length = nd_spdy_output(c->spdy, &bytes);

        length = length < most ? length : most;
        nd_text_append(&c->heard, bytes, length);
        (void) nd_spdy_sent(c->spdy, length);
}

struct frame {
        uint32_t first; /* 0x8003 and a type, or a stream */
        uint8_t flags;
        size_t length;
        char bytes[ND_SPDY_DATA_FRAME];
};

static uint32_t word_of(const char *bytes) {
        uint32_t word;

        memcpy(&word, bytes, sizeof word);
        return be32toh(word);
}

/* The next complete frame that the server sent; false if there is none. */
static bool read_frame(struct client *c, struct frame *ret) {
        hear(c, SIZE_MAX);
        if (c->heard.length < 8)
                return false;
        ret->first = word_of(c->heard.bytes);
        ret->flags = (uint8_t) (word_of(c->heard.bytes + 4) >> 24);
        ret->length = word_of(c->heard.bytes + 4) & 0xffffff;
        assert_true(ret->length <= sizeof ret->bytes && c->heard.length >= 8 + ret->length);
        memcpy(ret->bytes, c->heard.bytes + 8, ret->length);
        c->heard.length -= 8 + ret->length;
        memmove(c->heard.bytes, c->heard.bytes + 8 + ret->length, c->heard.length);
        return true;
}

static struct frame expect_frame(struct client *c, uint32_t first, unsigned flags, size_t length) {
        struct frame frame = {};

        assert_true(read_frame(c, &frame));
        assert_int_equal(frame.first, first);
        assert_int_equal(frame.flags, flags);
        assert_int_equal(frame.length, length);
        return frame;
}

static void expect_reset(struct client *c, uint32_t stream, uint32_t status) {
        struct frame frame = expect_frame(c, 0x80030003, 0, 8);

        assert_int_equal(word_of(frame.bytes), stream);
        assert_int_equal(word_of(frame.bytes + 4), status);
}

static void expect_goaway(struct client *c, uint32_t last, uint32_t status) {
        struct frame frame = expect_frame(c, 0x80030007, 0, 8);

        assert_int_equal(word_of(frame.bytes), last);
        assert_int_equal(word_of(frame.bytes + 4), status);
}

/* A SYN_REPLY without headers, read with the client's zlib stream. */
static void expect_reply(struct client *c, uint32_t stream) {
        struct frame frame = {};
        char plain[64] = {};
        int result;

        assert_true(read_frame(c, &frame));
        assert_int_equal(frame.first, 0x80030002);
        assert_int_equal(frame.flags, 0);
        assert_int_equal(word_of(frame.bytes), stream);
        c->in.next_in = (const Bytef *) frame.bytes + 4;
        c->in.avail_in = (uInt) frame.length - 4;
        c->in.next_out = (Bytef *) plain;
        c->in.avail_out = sizeof plain;
        result = inflate(&c->in, Z_SYNC_FLUSH);
        if (result == Z_NEED_DICT) {
                assert_int_equal(inflateSetDictionary(&c->in, (const Bytef *) nd_spdy_dictionary, ND_SPDY_DICTIONARY), Z_OK);
                result = inflate(&c->in, Z_SYNC_FLUSH);
        }
        assert_int_equal(result, Z_OK);
        assert_int_equal(c->in.avail_in, 0);
        assert_int_equal(sizeof plain - c->in.avail_out, 4);
        assert_int_equal(word_of(plain), 0);
}

/* The server's GOAWAY to a peer that violates the protocol; it accepts nothing afterwards. */
static void expect_failure(struct client *c, enum nd_error_code code, const char *words) {
        struct nd_spdy_event event;
        struct frame frame = {};

        expect_error(give(c, &event), code, words);
        assert_int_equal(event.kind, ND_SPDY_NOTHING);
        while (read_frame(c, &frame) && frame.first != 0x80030007)
                ;
        assert_int_equal(frame.first, 0x80030007);
        assert_int_equal(word_of(frame.bytes + 4), 1);
        expect_error(give(c, &event), ND_INVALID, "already failed");
}

static void the_dictionary_is_the_one_of_the_protocol([[maybe_unused]] void **state) {
        assert_true(adler32(adler32(0, nullptr, 0), (const Bytef *) nd_spdy_dictionary, ND_SPDY_DICTIONARY) == 0xe3c6a7c2);
}

static void frames_of_spdystream_are_read([[maybe_unused]] void **state) {
        nd_cleanup(client_done) struct client c;
        struct nd_spdy_event event;
        struct frame frame;

        client_begin(&c, (struct nd_spdy_settings) {});
        say_hex(&c, go_error);
        say_hex(&c, go_stdin);
        say_hex(&c, go_stdout_port);
        say_hex(&c, "000000030000000568656c6c6f");       /* hello */
        say_hex(&c, "0000000301000000");                 /* FIN of 3 */
        say_hex(&c, "800300060000000400000007");         /* PING 7 */
        say_hex(&c, "80030003000000080000000500000005"); /* RST_STREAM 5, CANCEL */
        say_hex(&c, "80030007000000080000000000000000"); /* GOAWAY */

        event = expect_event(&c, ND_SPDY_OPENED, 1);
        assert_int_equal(event.header_count, 1);
        assert_string_equal(nd_spdy_event_header(&event, "streamtype"), "error");
        assert_null(nd_spdy_event_header(&event, "port"));
        event = expect_event(&c, ND_SPDY_OPENED, 3);
        assert_string_equal(nd_spdy_event_header(&event, "streamtype"), "stdin");
        nd_spdy_attach(c.spdy, 3, &c);
        event = expect_event(&c, ND_SPDY_OPENED, 5);
        assert_int_equal(event.header_count, 3);
        assert_string_equal(nd_spdy_event_header(&event, "streamtype"), "stdout");
        assert_string_equal(nd_spdy_event_header(&event, "port"), "8080");
        assert_string_equal(nd_spdy_event_header(&event, "requestid"), "0");

        event = expect_event(&c, ND_SPDY_DATA, 3);
        assert_int_equal(event.length, 5);
        assert_memory_equal(event.bytes, "hello", 5);
        assert_ptr_equal(event.attachment, &c);
        event = expect_event(&c, ND_SPDY_FIN, 3);
        assert_ptr_equal(event.attachment, &c);
        (void) expect_event(&c, ND_SPDY_PING, 0);
        event = expect_event(&c, ND_SPDY_RESET, 5);
        assert_int_equal(event.status, ND_SPDY_CANCEL);
        (void) expect_event(&c, ND_SPDY_GOAWAY, 0);
        (void) expect_event(&c, ND_SPDY_NOTHING, 0);
        assert_int_equal(nd_spdy_streams(c.spdy), 2);
        frame = expect_frame(&c, 0x80030006, 0, 4);
        assert_int_equal(word_of(frame.bytes), 7);
        assert_int_equal(nd_spdy_queued(c.spdy), 0);
}

static void bytes_may_come_one_by_one([[maybe_unused]] void **state) {
        static const enum nd_spdy_kind wanted[] = {ND_SPDY_OPENED, ND_SPDY_OPENED, ND_SPDY_DATA,  ND_SPDY_DATA,
                                                   ND_SPDY_FIN,    ND_SPDY_FIN,    ND_SPDY_GOAWAY};
        nd_cleanup(client_done) struct client c;
        size_t count = 0;

        client_begin(&c, (struct nd_spdy_settings) {});
        say_open(&c, 1, 0, "error");
        say_open(&c, 3, 0, "stdin");
        say_data(&c, 3, 1, "ab", 2);
        say_data(&c, 1, 1, "", 0);
        say_words(&c, 7, 2, 0, 0);
        for (size_t i = 0; i < c.bytes.length; i++) {
                struct nd_spdy_event event = {};
                size_t used, left = 1;

                do {
                        expect_ok(nd_spdy_receive(c.spdy, c.bytes.bytes + i + 1 - left, left, &used, &event));
                        left -= used;
                        if (event.kind == ND_SPDY_NOTHING)
                                break;
                        assert_true(count < nd_count_of(wanted));
                        assert_int_equal(event.kind, wanted[count++]);
                } while (true);
                assert_int_equal(left, 0);
        }
        assert_int_equal(count, nd_count_of(wanted));
}

static void a_reply_comes_before_data_and_only_once([[maybe_unused]] void **state) {
        nd_cleanup(client_done) struct client c;
        struct frame frame;

        client_begin(&c, (struct nd_spdy_settings) {});
        for (uint32_t id = 1; id <= 5; id += 2) {
                say_open(&c, id, 0, "stdout");
                (void) expect_event(&c, ND_SPDY_OPENED, id);
        }
        nd_spdy_accept(c.spdy, 1);
        nd_spdy_accept(c.spdy, 1);
        assert_int_equal(nd_spdy_write(c.spdy, 3, "out", 3), 3);
        nd_spdy_finish(c.spdy, 5);
        expect_reply(&c, 1);
        expect_reply(&c, 3);
        frame = expect_frame(&c, 3, 0, 3);
        assert_memory_equal(frame.bytes, "out", 3);
        expect_reply(&c, 5);
        (void) expect_frame(&c, 5, 1, 0);
        assert_false(read_frame(&c, &frame));
}

static void each_side_ends_a_stream_for_itself([[maybe_unused]] void **state) {
        nd_cleanup(client_done) struct client c;

        client_begin(&c, (struct nd_spdy_settings) {});
        say_open(&c, 1, 1, "stdout"); /* the client will not send on it */
        say_open(&c, 3, 0, "stdin");
        (void) expect_event(&c, ND_SPDY_OPENED, 1);
        (void) expect_event(&c, ND_SPDY_FIN, 1);
        (void) expect_event(&c, ND_SPDY_OPENED, 3);
        assert_true(nd_spdy_open(c.spdy, 1));
        assert_int_equal(nd_spdy_write(c.spdy, 1, "x", 1), 1);
        nd_spdy_finish(c.spdy, 1);
        assert_false(nd_spdy_open(c.spdy, 1));
        expect_reply(&c, 1);
        (void) expect_frame(&c, 1, 0, 1);
        (void) expect_frame(&c, 1, 1, 0);

        nd_spdy_finish(c.spdy, 3);
        assert_true(nd_spdy_open(c.spdy, 3));
        say_data(&c, 3, 1, "last", 4);
        (void) expect_event(&c, ND_SPDY_DATA, 3);
        (void) expect_event(&c, ND_SPDY_FIN, 3);
        assert_int_equal(nd_spdy_streams(c.spdy), 0);
}

static void calls_on_a_closed_stream_have_no_effect([[maybe_unused]] void **state) {
        nd_cleanup(client_done) struct client c;
        struct frame frame;

        client_begin(&c, (struct nd_spdy_settings) {});
        say_open(&c, 1, 0, "data");
        (void) expect_event(&c, ND_SPDY_OPENED, 1);
        nd_spdy_reset(c.spdy, 1, ND_SPDY_CANCEL);
        expect_reset(&c, 1, ND_SPDY_CANCEL);
        nd_spdy_reset(c.spdy, 1, ND_SPDY_CANCEL);
        nd_spdy_accept(c.spdy, 1);
        nd_spdy_attach(c.spdy, 1, &c);
        nd_spdy_finish(c.spdy, 1);
        assert_int_equal(nd_spdy_write(c.spdy, 1, "abc", 3), 3);
        assert_false(read_frame(&c, &frame));
        say_data(&c, 1, 1, "under way", 9); /* sent before the reset arrived */
        say_words(&c, 3, 2, 1, 5);
        (void) expect_event(&c, ND_SPDY_NOTHING, 0);
}

static void data_after_the_end_resets_the_stream([[maybe_unused]] void **state) {
        nd_cleanup(client_done) struct client c;

        client_begin(&c, (struct nd_spdy_settings) {});
        say_open(&c, 1, 1, "stdin");
        say_data(&c, 1, 1, "more", 4);
        (void) expect_event(&c, ND_SPDY_OPENED, 1);
        (void) expect_event(&c, ND_SPDY_FIN, 1);
        assert_int_equal(expect_event(&c, ND_SPDY_RESET, 1).status, ND_SPDY_STREAM_CLOSED);
        (void) expect_event(&c, ND_SPDY_NOTHING, 0);
        expect_reset(&c, 1, ND_SPDY_STREAM_CLOSED);
}

static void one_stream_too_many_is_refused_and_the_others_go_on([[maybe_unused]] void **state) {
        nd_cleanup(client_done) struct client c;

        client_begin(&c, (struct nd_spdy_settings) {.streams = 2});
        for (uint32_t id = 1; id <= 5; id += 2)
                say_open(&c, id, 0, "data");
        say_data(&c, 5, 0, "lost", 4);
        say_open(&c, 7, 2, "data"); /* unidirectional */
        (void) expect_event(&c, ND_SPDY_OPENED, 1);
        (void) expect_event(&c, ND_SPDY_OPENED, 3);
        (void) expect_event(&c, ND_SPDY_NOTHING, 0);
        expect_reset(&c, 5, ND_SPDY_REFUSED_STREAM);
        expect_reset(&c, 7, ND_SPDY_REFUSED_STREAM);
        say_words(&c, 3, 2, 1, 5);
        say_open(&c, 9, 0, "data");
        (void) expect_event(&c, ND_SPDY_RESET, 1);
        (void) expect_event(&c, ND_SPDY_OPENED, 9);
}

static void settings_and_window_updates_and_headers_are_ignored([[maybe_unused]] void **state) {
        nd_cleanup(client_done) struct client c;
        nd_autotext struct nd_text payload = ND_TEXT(64);

        client_begin(&c, (struct nd_spdy_settings) {});
        say_open(&c, 1, 0, "stdin");
        add_word(&payload, 0);
        say_control(&c, 4, 0, &payload);
        say_words(&c, 9, 2, 1, 65536);
        say_control(&c, 77, 1, &(struct nd_text) {});
        say_block(&c, 8, 1, 1, "\0\0\0\1\0\0\0\1a\0\0\0\1b", 14); /* more headers, with FIN */
        say_open(&c, 3, 0, "stdout");                             /* its block builds upon them */
        (void) expect_event(&c, ND_SPDY_OPENED, 1);
        (void) expect_event(&c, ND_SPDY_FIN, 1);
        (void) expect_event(&c, ND_SPDY_OPENED, 3);
        (void) expect_event(&c, ND_SPDY_NOTHING, 0);
}

static void after_goaway_streams_go_on_and_new_ones_are_ignored([[maybe_unused]] void **state) {
        nd_cleanup(client_done) struct client c;

        client_begin(&c, (struct nd_spdy_settings) {});
        say_open(&c, 1, 0, "stdin");
        (void) expect_event(&c, ND_SPDY_OPENED, 1);
        nd_spdy_goaway(c.spdy, ND_SPDY_GOODBYE);
        nd_spdy_goaway(c.spdy, ND_SPDY_GOODBYE);
        expect_goaway(&c, 1, 0);
        say_open(&c, 3, 0, "stdin");
        say_data(&c, 3, 1, "x", 1);
        say_data(&c, 1, 0, "y", 1);
        (void) expect_event(&c, ND_SPDY_DATA, 1);
        assert_int_equal(nd_spdy_queued(c.spdy), 0);
}

static void a_ping_of_ours_is_even_and_its_answer_is_not_answered([[maybe_unused]] void **state) {
        nd_cleanup(client_done) struct client c;

        client_begin(&c, (struct nd_spdy_settings) {});
        nd_spdy_ping(c.spdy);
        assert_int_equal(word_of(expect_frame(&c, 0x80030006, 0, 4).bytes), 2);
        say_words(&c, 6, 1, 2, 0);
        (void) expect_event(&c, ND_SPDY_PING, 0);
        assert_int_equal(nd_spdy_queued(c.spdy), 0);
}

static void a_peer_that_does_not_read_blocks_only_the_writer([[maybe_unused]] void **state) {
        nd_cleanup(client_done) struct client c;
        nd_autofree char *data = nd_calloc(1, 1 << 20);
        size_t taken, most = 0, room;
        struct frame frame;

        client_begin(&c, (struct nd_spdy_settings) {});
        say_open(&c, 1, 0, "stdout");
        (void) expect_event(&c, ND_SPDY_OPENED, 1);
        nd_spdy_accept(c.spdy, 1);
        room = nd_spdy_room(c.spdy);
        taken = nd_spdy_write(c.spdy, 1, data, 1 << 20);
        assert_true(taken >= room && taken < 1 << 20);
        assert_int_equal(nd_spdy_room(c.spdy), 0);
        assert_int_equal(nd_spdy_write(c.spdy, 1, data, 1), 0);
        assert_true(nd_spdy_queued(c.spdy) <= ND_SPDY_OUTPUT);

        assert_false(nd_spdy_sent(c.spdy, 1));
        assert_false(nd_spdy_sent(c.spdy, ND_SPDY_OUTPUT / 2 - 64));
        assert_true(nd_spdy_sent(c.spdy, 128));
        assert_false(nd_spdy_sent(c.spdy, 128));
        assert_true(nd_spdy_room(c.spdy) >= ND_SPDY_OUTPUT / 2);
        (void) nd_spdy_sent(c.spdy, nd_spdy_queued(c.spdy));
        assert_int_equal(nd_spdy_output(c.spdy, &(const char *) {}), 0);

        taken = nd_spdy_write(c.spdy, 1, data, 100000);
        assert_int_equal(taken, 100000);
        for (taken = 0; read_frame(&c, &frame); taken += frame.length)
                most = most > frame.length ? most : frame.length;
        assert_int_equal(taken, 100000);
        assert_int_equal(most, ND_SPDY_DATA_FRAME);
}

static void a_peer_that_sends_requests_without_reading_is_disconnected([[maybe_unused]] void **state) {
        nd_cleanup(client_done) struct client c;
        struct nd_spdy_event event = {.kind = ND_SPDY_PING};
        struct nd_error *error = nullptr;

        client_begin(&c, (struct nd_spdy_settings) {});
        for (uint32_t i = 0; i < 100000; i++)
                say_words(&c, 6, 1, 2 * i + 1, 0);
        while (!error && event.kind == ND_SPDY_PING)
                error = give(&c, &event);
        expect_error(error, ND_EXHAUSTED, "without reading the responses");
        assert_true(nd_spdy_queued(c.spdy) <= ND_SPDY_OUTPUT + ND_SPDY_ANSWERS);
}

static void a_block_that_inflates_a_thousandfold_ends_the_connection([[maybe_unused]] void **state) {
        nd_cleanup(client_done) struct client c;
        nd_autotext struct nd_text plain = ND_TEXT(8 << 20);
        nd_autofree char *zeroes = nd_calloc(1, 4 << 20);

        client_begin(&c, (struct nd_spdy_settings) {});
        add_word(&plain, 1);
        add_word(&plain, 1);
        nd_text_add(&plain, "a");
        add_word(&plain, 4 << 20);
        nd_text_append(&plain, zeroes, 4 << 20);
        say_block(&c, 1, 0, 1, plain.bytes, plain.length);
        assert_true(c.bytes.length < ND_SPDY_CONTROL);
        expect_failure(&c, ND_EXHAUSTED, "inflates to more than 65536 bytes");
}

static void a_large_block_within_the_bounds_is_read([[maybe_unused]] void **state) {
        nd_cleanup(client_done) struct client c;
        nd_autotext struct nd_text plain = ND_TEXT(1 << 20);
        nd_autofree char *zeroes = nd_calloc(1, ND_SPDY_HEADERS);
        size_t length = ND_SPDY_HEADERS - 4 - 4 - 1 - 4;

        client_begin(&c, (struct nd_spdy_settings) {});
        add_word(&plain, 1);
        add_word(&plain, 1);
        nd_text_add(&plain, "a");
        add_word(&plain, (uint32_t) length);
        nd_text_append(&plain, zeroes, length);
        say_block(&c, 1, 0, 1, plain.bytes, plain.length);
        assert_int_equal(expect_event(&c, ND_SPDY_OPENED, 1).headers[0].value_length, length);
}

static void a_bad_block_ends_the_connection([[maybe_unused]] void **state) {
        static const struct {
                const char *plain;
                size_t length;
                const char *words;
        } cases[] = {
                {"", 0, "before its first number"},
                {"\0\0\0\1", 4, "before its first name"},
                {"\0\0\0\1\0\0\0\2a", 9, "name of header 0 is cut off"},
                {"\0\0\0\1\xff\xff\xff\xff"
                 "a",
                 9, "name of header 0 is cut off"},
                {"\0\0\0\1\0\0\0\1a\0\0\0\2b", 14, "value of header 0 is cut off"},
                {"\0\0\0\1\0\0\0\1a", 9, "value of header 0 is cut off"},
                {"\0\0\0\2\0\0\0\1a\0\0\0\1b", 14, "before the name of header 1"},
                {"\0\0\0\1\0\0\0\0\0\0\0\1b", 13, "lower-case token"},
                {"\0\0\0\1\0\0\0\1A\0\0\0\1b", 14, "lower-case token"},
                {"\0\0\0\1\0\0\0\2a\0\0\0\0\1b", 15, "lower-case token"},
                {"\0\0\0\2\0\0\0\1a\0\0\0\1b\0\0\0\1a\0\0\0\1b", 24, "appears twice"},
                {"\0\0\0\1\0\0\0\1a\0\0\0\1bx", 15, "after its last header"},
        };

        for (size_t i = 0; i < nd_count_of(cases); i++) {
                nd_cleanup(client_done) struct client c;

                client_begin(&c, (struct nd_spdy_settings) {});
                say_block(&c, 1, 0, 1, cases[i].plain, cases[i].length);
                expect_failure(&c, ND_INVALID, cases[i].words);
        }
}

static void too_many_headers_end_the_connection([[maybe_unused]] void **state) {
        nd_cleanup(client_done) struct client c;

        client_begin(&c, (struct nd_spdy_settings) {});
        say_block(&c, 1, 0, 1, "\0\0\0\x41", 4);
        expect_failure(&c, ND_EXHAUSTED, "has 65 headers");
}

static void frames_against_the_protocol_end_the_connection([[maybe_unused]] void **state) {
        static const struct {
                const char *hex;
                enum nd_error_code code;
                const char *words;
        } cases[] = {
                {"8002000600000004"
                 "00000001",
                 ND_INVALID, "version 2"},
                {"4745542f20485454", ND_INVALID, "never opened"}, /* "GET / HTT" */
                {"0000000100000000", ND_INVALID, "never opened"},
                {"0000000000000000", ND_INVALID, "never opened"},
                {"8003000600000005"
                 "0000000100",
                 ND_INVALID, "instead of 4"},
                {"8003000600000000", ND_INVALID, "instead of 4"},
                {"8003000300000004"
                 "00000001",
                 ND_INVALID, "instead of 8"},
                {"8003000700000004"
                 "00000001",
                 ND_INVALID, "instead of 8"},
                {"8003000100000009"
                 "000000010000000000",
                 ND_INVALID, "has only 9 bytes"},
                {"8003000800000003"
                 "000000",
                 ND_INVALID, "has only 3 bytes"},
                {"800300020000000400000001", ND_INVALID, "never opened"},
                {"800300010000000c"
                 "00000001000000000000ffff",
                 ND_INVALID, "zlib"},
                {"8003000100004001", ND_EXHAUSTED, "16385 bytes"},
        };

        for (size_t i = 0; i < nd_count_of(cases); i++) {
                nd_cleanup(client_done) struct client c;

                client_begin(&c, (struct nd_spdy_settings) {});
                say_hex(&c, cases[i].hex);
                expect_failure(&c, cases[i].code, cases[i].words);
        }
}

static void a_streams_number_is_odd_and_new([[maybe_unused]] void **state) {
        static const uint32_t numbers[] = {0, 2, 1, 3};

        for (size_t i = 0; i < nd_count_of(numbers); i++) {
                nd_cleanup(client_done) struct client c;

                client_begin(&c, (struct nd_spdy_settings) {});
                say_open(&c, 3, 0, "error");
                (void) expect_event(&c, ND_SPDY_OPENED, 3);
                say_open(&c, numbers[i], 0, "error");
                expect_failure(&c, ND_INVALID, "odd and ascending");
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_dictionary_is_the_one_of_the_protocol),
                cmocka_unit_test(frames_of_spdystream_are_read),
                cmocka_unit_test(bytes_may_come_one_by_one),
                cmocka_unit_test(a_reply_comes_before_data_and_only_once),
                cmocka_unit_test(each_side_ends_a_stream_for_itself),
                cmocka_unit_test(calls_on_a_closed_stream_have_no_effect),
                cmocka_unit_test(data_after_the_end_resets_the_stream),
                cmocka_unit_test(one_stream_too_many_is_refused_and_the_others_go_on),
                cmocka_unit_test(settings_and_window_updates_and_headers_are_ignored),
                cmocka_unit_test(after_goaway_streams_go_on_and_new_ones_are_ignored),
                cmocka_unit_test(a_ping_of_ours_is_even_and_its_answer_is_not_answered),
                cmocka_unit_test(a_peer_that_does_not_read_blocks_only_the_writer),
                cmocka_unit_test(a_peer_that_sends_requests_without_reading_is_disconnected),
                cmocka_unit_test(a_block_that_inflates_a_thousandfold_ends_the_connection),
                cmocka_unit_test(a_large_block_within_the_bounds_is_read),
                cmocka_unit_test(a_bad_block_ends_the_connection),
                cmocka_unit_test(too_many_headers_end_the_connection),
                cmocka_unit_test(frames_against_the_protocol_end_the_connection),
                cmocka_unit_test(a_streams_number_is_odd_and_new),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
