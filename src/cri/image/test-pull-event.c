/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/image/pull-event.h"

#include <unit/expect.h>

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static struct nd_error *parse(const char *line, struct cri_pull_event *ret) {
        return cri_pull_event_parse(PULL_FETCHER, line, strlen(line), ret);
}

static void a_layers_progress_is_read([[maybe_unused]] void **state) {
        nd_cleanup(cri_pull_event_done) struct cri_pull_event event = {};

        expect_ok(parse("{\"event\":\"layer\",\"digest\":\"sha256:" HEX "\",\"size\":10,\"state\":\"fetching\",\"done\":4}",
                        &event));
        assert_int_equal(event.kind, PULL_LAYER);
        assert_int_equal(event.size, 10);
        assert_int_equal(event.done, 4);
        assert_string_equal(event.state, "fetching");
}

static void a_done_event_lists_its_images([[maybe_unused]] void **state) {
        nd_cleanup(cri_pull_event_done) struct cri_pull_event event = {};

        expect_ok(parse("{\"event\":\"done\",\"images\":[{\"manifestDigest\":\"sha256:" HEX "\",\"indexDigest\":\"\","
                        "\"configDigest\":\"sha256:" HEX "\",\"names\":[\"a/b:c\"],\"layers\":[],\"configSize\":1}]}",
                        &event));
        assert_int_equal(event.images.count, 1);
        assert_false(nd_digest_is_set(&event.images.items[0].index));
        assert_string_equal(event.images.items[0].names.items[0], "a/b:c");
}

static void an_error_event_has_a_code_and_a_message([[maybe_unused]] void **state) {
        nd_cleanup(cri_pull_event_done) struct cri_pull_event event = {};

        expect_ok(parse("{\"event\":\"error\",\"code\":5,\"message\":\"not there\"}", &event));
        assert_int_equal(event.code, ND_NOT_FOUND);
        assert_string_equal(event.message, "not there");
}

static void only_the_unpacker_reports_layers([[maybe_unused]] void **state) {
        static const char unpacked[] = "{\"event\":\"unpacked\",\"chain\":\"sha256:" HEX "\",\"diffId\":\"sha256:" HEX
                                       "\",\"parent\":\"\",\"size\":4096,\"inodes\":3}",
                          synced[] = "{\"event\":\"synced\"}", done[] = "{\"event\":\"done\",\"images\":[]}";
        nd_cleanup(cri_pull_event_done) struct cri_pull_event event = {}, none = {};

        expect_ok(cri_pull_event_parse(PULL_UNPACKER, unpacked, strlen(unpacked), &event));
        assert_int_equal(event.kind, PULL_UNPACKED);
        assert_int_equal(event.layer.layer.size, 4096);
        assert_int_equal(event.layer.layer.inodes, 3);
        assert_true(nd_digest_is_set(&event.layer.chain) && !nd_digest_is_set(&event.layer.layer.parent));
        expect_ok(cri_pull_event_parse(PULL_UNPACKER, synced, strlen(synced), &event));
        assert_int_equal(event.kind, PULL_SYNCED);
        expect_error(parse(unpacked, &none), ND_INVALID, "unknown event");
        expect_error(parse(synced, &none), ND_INVALID, "unknown event");
        expect_error(cri_pull_event_parse(PULL_UNPACKER, done, strlen(done), &none), ND_INVALID, "unknown event");
}

static void invalid_lines_are_refused([[maybe_unused]] void **state) {
        static const char *const lines[] = {
                "",
                "[]",
                "{}",
                "{\"event\":\"dance\"}",
                "{\"event\":\"error\",\"code\":0,\"message\":\"x\"}",
                "{\"event\":\"error\",\"code\":17,\"message\":\"x\"}",
                "{\"event\":\"error\",\"code\":5}",
                "{\"event\":\"done\",\"images\":[]}",
                "{\"event\":\"done\",\"images\":[{}]}",
                "{\"event\":\"done\",\"images\":[{\"manifestDigest\":\"sha256:" HEX
                "\",\"configDigest\":\"../../etc/passwd\"}]}",
                "{\"event\":\"layer\",\"digest\":\"sha256:" HEX "\",\"state\":\"asleep\"}",
                "{\"event\":\"layer\",\"digest\":\"sha256:" HEX "\",\"state\":\"done\",\"size\":-1}",
        };

        for (size_t i = 0; i < nd_count_of(lines); i++) {
                nd_cleanup(cri_pull_event_done) struct cri_pull_event event = {};

                expect_error(parse(lines[i], &event), ND_INVALID, "");
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_layers_progress_is_read),
                cmocka_unit_test(a_done_event_lists_its_images),
                cmocka_unit_test(an_error_event_has_a_code_and_a_message),
                cmocka_unit_test(only_the_unpacker_reports_layers),
                cmocka_unit_test(invalid_lines_are_refused),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
