/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include "base/text.h"
#include "net/channel.h"

/* A client's frame. */
static void add_frame(struct nd_text *out, unsigned first, const char *bytes, size_t length) {
        static const char mask[4] = {1, 2, 3, 4};
        char header[4] = {(char) first, (char) (0x80 | (length < 126 ? length : 126)), (char) (length >> 8), (char) length};

        nd_text_append(out, header, length < 126 ? 2 : 4);
        nd_text_append(out, mask, sizeof mask);
        for (size_t i = 0; i < length; i++) {
                char byte = (char) (bytes[i] ^ mask[i % 4]);

                nd_text_append(out, &byte, 1);
        }
}

/* Describes the events of a client's bytes as text; input in pieces of the given size. */
static char *told(struct nd_channel_mux *channels, const struct nd_text *sent, size_t piece) {
        struct nd_text text = ND_TEXT(1 << 20);

        for (size_t at = 0; at < sent->length; at += piece) {
                size_t length = sent->length - at < piece ? sent->length - at : piece, done = 0, used;
                nd_autofree char *copy = nd_malloc(length);
                struct nd_channel_event event;

                memcpy(copy, sent->bytes + at, length);
                do {
                        struct nd_error *error = nd_channel_mux_receive(channels, copy + done, length - done, &used, &event);

                        if (error) {
                                nd_error_free(error);
                                nd_text_add(&text, "(error)");
                                return nd_text_steal(&text);
                        }
                        done += used;
                        if (event.kind == ND_CHANNEL_DATA) {
                                nd_text_addf(&text, "%u:", event.channel);
                                nd_text_append(&text, event.bytes, event.length);
                                nd_text_add(&text, " ");
                        } else if (event.kind != ND_CHANNEL_NOTHING) {
                                nd_text_addf(&text, "%s%u ", event.kind == ND_CHANNEL_FIN ? "end" : "over", event.channel);
                        }
                } while (event.kind != ND_CHANNEL_NOTHING && event.kind != ND_CHANNEL_CLOSED);
                assert_true(event.kind == ND_CHANNEL_CLOSED || done == length);
        }
        return text.bytes ? nd_text_steal(&text) : nd_strdup("");
}

static size_t queued(const struct nd_channel_mux *channels, const char **ret) {
        return nd_websocket_queued(nd_channel_mux_websocket(channels), ret);
}

static void the_key_of_the_rfc_gets_the_answer_of_the_rfc([[maybe_unused]] void **state) {
        char accept[ND_WEBSOCKET_ACCEPT];

        assert_true(nd_websocket_accept("dGhlIHNhbXBsZSBub25jZQ==", accept));
        assert_string_equal(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_false(nd_websocket_accept("dGhlIHNhbXBsZSBub25jZQ", accept));
        assert_false(nd_websocket_accept("", accept));
}

static void messages_keep_their_channel_in_pieces_of_any_size([[maybe_unused]] void **state) {
        static const struct {
                const char *protocol;
                const char *first, *second;
        } cases[] = {{"v4.channel.k8s.io", "\1abcd", "\2xy"}, {"v4.base64.channel.k8s.io", "1YWJjZA==", "2eHk="}};

        for (size_t i = 0; i < nd_count_of(cases); i++) {
                nd_autotext struct nd_text sent = ND_TEXT(1 << 16);

                add_frame(&sent, 0x82, cases[i].first, strlen(cases[i].first));
                add_frame(&sent, 0x82, cases[i].second, strlen(cases[i].second));
                for (size_t piece = 1; piece <= sent.length; piece++) {
                        nd_cleanup(nd_channel_mux_done) struct nd_channel_mux *channels =
                                nd_channel_mux_new(ND_WEBSOCKET_SERVER, cases[i].protocol, 0);
                        nd_autofree char *got = told(channels, &sent, piece);
                        nd_autotext struct nd_text first = ND_TEXT(100), second = ND_TEXT(100);

                        for (const char *at = got; *at; at += strcspn(at, " ") + 1)
                                nd_text_append(*at == '1' ? &first : &second, at + 2, strcspn(at, " ") - 2);
                        assert_string_equal(nd_text_get(&first), "abcd");
                        assert_string_equal(nd_text_get(&second), "xy");
                }
        }
}

static void a_message_may_be_several_frames_with_a_ping_between_them([[maybe_unused]] void **state) {
        nd_cleanup(nd_channel_mux_done) struct nd_channel_mux *channels =
                nd_channel_mux_new(ND_WEBSOCKET_SERVER, "v4.channel.k8s.io", 0);
        nd_autotext struct nd_text sent = ND_TEXT(1 << 16);
        const char *bytes;

        add_frame(&sent, 0x02, "\1ab", 3);
        add_frame(&sent, 0x89, "ping", 4);
        add_frame(&sent, 0x00, "", 0);
        add_frame(&sent, 0x80, "cd", 2);
        expect_text(told(channels, &sent, sent.length), "1:ab 1:cd ");
        assert_int_equal(queued(channels, &bytes), 6);
        assert_memory_equal(bytes, "\x8a\4ping", 6);
}

static void only_the_fifth_protocol_closes_channels([[maybe_unused]] void **state) {
        nd_cleanup(nd_channel_mux_done) struct nd_channel_mux *five = nd_channel_mux_new(ND_WEBSOCKET_SERVER,
                                                                                         "v5.channel.k8s.io", 0),
                                                              *four = nd_channel_mux_new(ND_WEBSOCKET_SERVER,
                                                                                         "v4.channel.k8s.io", 0);
        nd_autotext struct nd_text sent = ND_TEXT(1 << 16);

        add_frame(&sent, 0x82, "\xff\0", 2);
        expect_text(told(five, &sent, sent.length), "end0 ");
        sent.length = 0;
        add_frame(&sent, 0x82, "\xffx", 2);
        expect_text(told(four, &sent, sent.length), "255:x ");
}

static void a_close_frame_is_answered_and_ends_the_connection([[maybe_unused]] void **state) {
        nd_cleanup(nd_channel_mux_done) struct nd_channel_mux *channels = nd_channel_mux_new(ND_WEBSOCKET_SERVER, "", 0);
        nd_autotext struct nd_text sent = ND_TEXT(1 << 16);
        const char *bytes;

        add_frame(&sent, 0x88, "\x03\xe8", 2);
        add_frame(&sent, 0x82, "\1late", 5);
        expect_text(told(channels, &sent, sent.length), "over0 ");
        assert_int_equal(queued(channels, &bytes), 4);
        assert_memory_equal(bytes, "\x88\2\x03\xe8", 4);
        nd_channel_mux_write(channels, 1, "x", 1);
        assert_int_equal(queued(channels, &bytes), 4);
}

static void protocol_violations_are_errors([[maybe_unused]] void **state) {
        static const struct {
                const char *protocol;
                unsigned first;
                const char *bytes;
        } cases[] = {
                {"", 0xc2, "\1x"}, /* an extension that was not negotiated */
                {"", 0x83, "\1x"}, /* unknown opcode */
                /* continues a message that was not begun */
                {"", 0x80, "\1x"},
                {"", 0x09, "x"},                          /* a fragmented control frame */
                {"base64.channel.k8s.io", 0x81, "xYWJj"}, /* no digit */
                {"base64.channel.k8s.io", 0x81, "1*&^"},
        };

        for (size_t i = 0; i < nd_count_of(cases); i++) {
                nd_cleanup(nd_channel_mux_done) struct nd_channel_mux *channels =
                        nd_channel_mux_new(ND_WEBSOCKET_SERVER, cases[i].protocol, 0);
                nd_autotext struct nd_text sent = ND_TEXT(1 << 16);

                add_frame(&sent, cases[i].first, cases[i].bytes, strlen(cases[i].bytes));
                expect_text(told(channels, &sent, sent.length), "(error)");
        }
        {
                nd_cleanup(nd_channel_mux_done) struct nd_channel_mux *channels =
                        nd_channel_mux_new(ND_WEBSOCKET_SERVER, "", 0);
                nd_autotext struct nd_text sent = ND_TEXT(100);

                nd_text_append(&sent, "\x82\2\1x", 4); /* without a mask */
                expect_text(told(channels, &sent, sent.length), "(error)");
        }
}

static void the_queue_is_bounded_and_a_peer_that_only_sends_is_disconnected([[maybe_unused]] void **state) {
        nd_cleanup(nd_channel_mux_done) struct nd_channel_mux *channels =
                nd_channel_mux_new(ND_WEBSOCKET_SERVER, "base64.channel.k8s.io", 0);
        nd_autofree char *zeros = nd_calloc(1, 1 << 16), *got = nullptr;
        nd_autotext struct nd_text sent = ND_TEXT(1 << 24);
        const char *bytes;
        size_t room;

        while ((room = nd_channel_mux_room(channels)) > 0)
                nd_channel_mux_write(channels, 1, zeros, room);
        assert_true(queued(channels, &bytes) <= ND_WEBSOCKET_OUTPUT);
        assert_true(queued(channels, &bytes) > ND_WEBSOCKET_OUTPUT - 64);
        for (size_t i = 0; i < 1000; i++)
                add_frame(&sent, 0x89, zeros, ND_WEBSOCKET_CONTROL);
        got = told(channels, &sent, sent.length);
        assert_string_equal(got, "(error)");
        assert_true(queued(channels, &bytes) <= ND_WEBSOCKET_OUTPUT + ND_WEBSOCKET_ANSWERS);
}

static void a_message_of_ours_has_its_length_before_it([[maybe_unused]] void **state) {
        nd_cleanup(nd_channel_mux_done) struct nd_channel_mux *channels =
                nd_channel_mux_new(ND_WEBSOCKET_SERVER, "v4.channel.k8s.io", 0);
        struct nd_websocket *websocket = nd_channel_mux_websocket(channels);
        nd_autofree char *zeros = nd_calloc(1, 1000);
        const char *bytes;

        nd_channel_mux_write(channels, 3, "hi", 2);
        assert_int_equal(queued(channels, &bytes), 5);
        assert_memory_equal(bytes, "\x82\3\3hi", 5);
        assert_false(nd_websocket_sent(websocket, 5));
        nd_channel_mux_write(channels, 1, zeros, 999);
        assert_int_equal(queued(channels, &bytes), 1004);
        assert_memory_equal(bytes, "\x82\x7e\x03\xe8\1", 5);
        assert_false(nd_websocket_sent(websocket, 1004));
        nd_channel_mux_write(channels, 1, nullptr, 0);
        assert_int_equal(queued(channels, &bytes), 3);
}

/* Delivers one side's queue to the other in pieces; describes the events as text. */
static char *carried(const struct nd_channel_mux *from, struct nd_channel_mux *to, size_t piece) {
        nd_autotext struct nd_text sent = ND_TEXT(1 << 20);
        const char *bytes;
        size_t length = queued(from, &bytes);

        if (length > 0)
                nd_text_append(&sent, bytes, length);
        (void) !nd_websocket_sent(nd_channel_mux_websocket(from), length);
        return told(to, &sent, piece);
}

static void a_client_and_a_server_understand_each_other([[maybe_unused]] void **state) {
        static const size_t pieces[] = {1, 2, 3, 7, 1 << 20};

        for (size_t i = 0; i < nd_count_of(pieces); i++) {
                nd_cleanup(nd_channel_mux_done) struct nd_channel_mux *client = nd_channel_mux_new(ND_WEBSOCKET_CLIENT,
                                                                                                   "v5.channel.k8s.io", 0),
                                                                      *server = nd_channel_mux_new(ND_WEBSOCKET_SERVER,
                                                                                                   "v5.channel.k8s.io", 0);
                nd_autofree char *input = nullptr, *output = nullptr;

                nd_channel_mux_write(client, 0, "x", 1);
                nd_channel_mux_end(client, 0);
                nd_channel_mux_write(server, 1, "y", 1);
                nd_channel_mux_write(server, 3, "z", 1);
                nd_websocket_close(nd_channel_mux_websocket(server), ND_WEBSOCKET_NORMAL);
                input = carried(client, server, pieces[i]);
                assert_string_equal(input, ""); /* it has sent a close frame */
                output = carried(server, client, pieces[i]);
                assert_string_equal(output, "1:y 3:z over0 ");
        }
        {
                nd_cleanup(nd_channel_mux_done) struct nd_channel_mux *client = nd_channel_mux_new(ND_WEBSOCKET_CLIENT,
                                                                                                   "v5.channel.k8s.io", 0),
                                                                      *server = nd_channel_mux_new(ND_WEBSOCKET_SERVER,
                                                                                                   "v5.channel.k8s.io", 0);
                nd_autofree char *zeros = nd_calloc(1, 1000), *got = nullptr;

                nd_channel_mux_write(client, 0, "abc", 3);
                nd_channel_mux_end(client, 0);
                expect_text(carried(client, server, 1 << 20), "0:abc end0 ");
                nd_channel_mux_write(client, 0, zeros, 1000);
                got = carried(client, server, 1 << 20);
                assert_int_equal(got[0], '0');
        }
}

static void a_client_masks_every_frame_anew_and_rejects_masked_frames([[maybe_unused]] void **state) {
        nd_cleanup(nd_channel_mux_done) struct nd_channel_mux *client = nd_channel_mux_new(ND_WEBSOCKET_CLIENT, "", 0);
        nd_autotext struct nd_text sent = ND_TEXT(100);
        const char *bytes;

        nd_channel_mux_write(client, 0, "same", 4);
        nd_channel_mux_write(client, 0, "same", 4);
        assert_int_equal(queued(client, &bytes), 22);
        assert_int_equal((unsigned char) bytes[1], 0x80 | 5);
        assert_memory_not_equal(bytes + 2, bytes + 13, 4); /* equal once in 2^32 runs */
        add_frame(&sent, 0x82, "\1x", 2);
        expect_text(told(client, &sent, sent.length), "(error)");
}

static void a_server_accepts_a_new_key([[maybe_unused]] void **state) {
        char key[ND_WEBSOCKET_KEY], other[ND_WEBSOCKET_KEY], accept[ND_WEBSOCKET_ACCEPT];

        nd_websocket_key(key);
        nd_websocket_key(other);
        assert_true(nd_websocket_accept(key, accept));
        assert_string_not_equal(key, other);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_client_and_a_server_understand_each_other),
                cmocka_unit_test(a_client_masks_every_frame_anew_and_rejects_masked_frames),
                cmocka_unit_test(a_server_accepts_a_new_key),
                cmocka_unit_test(the_key_of_the_rfc_gets_the_answer_of_the_rfc),
                cmocka_unit_test(messages_keep_their_channel_in_pieces_of_any_size),
                cmocka_unit_test(a_message_may_be_several_frames_with_a_ping_between_them),
                cmocka_unit_test(only_the_fifth_protocol_closes_channels),
                cmocka_unit_test(a_close_frame_is_answered_and_ends_the_connection),
                cmocka_unit_test(protocol_violations_are_errors),
                cmocka_unit_test(the_queue_is_bounded_and_a_peer_that_only_sends_is_disconnected),
                cmocka_unit_test(a_message_of_ours_has_its_length_before_it),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
