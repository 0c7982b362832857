/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/layer.h"

#include <unit/expect.h>

#define A "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

static void a_chain_is_the_hash_of_what_lies_below_and_the_layer([[maybe_unused]] void **state) {
        struct nd_digest a, chain, two, expected;
        char text[ND_DIGEST_TEXT];

        expect_ok(nd_digest_parse(A, &a));
        chain = nd_layer_chain_of(nullptr, &a);
        assert_string_equal(nd_digest_text(&chain, text), A);
        two = nd_layer_chain_of(&chain, &a);
        expected = nd_digest_of(ND_HASH_SHA256, A " " A, strlen(A " " A));
        assert_true(nd_digest_equal(&two, &expected));
}

static void a_layer_file_survives_writing_and_reading([[maybe_unused]] void **state) {
        struct nd_layer layer = {.size = 12345, .inodes = 67}, again = {};
        nd_autofree char *text = nullptr, *lowest = nullptr;

        expect_ok(nd_digest_parse(A, &layer.diff_id));
        layer.parent = nd_digest_of(ND_HASH_SHA256, "x", 1);
        text = nd_layer_format(&layer);
        expect_ok(nd_layer_parse(text, strlen(text), &again));
        assert_true(nd_digest_equal(&layer.diff_id, &again.diff_id));
        assert_true(nd_digest_equal(&layer.parent, &again.parent));
        assert_int_equal(again.size, 12345);
        assert_int_equal(again.inodes, 67);

        layer.parent = (struct nd_digest) {};
        lowest = nd_layer_format(&layer);
        expect_contains(lowest, "\"parent\": \"\"");
        expect_ok(nd_layer_parse(lowest, strlen(lowest), &again));
        assert_false(nd_digest_is_set(&again.parent));
}

static void the_highest_owner_above_a_pods_ids_is_recorded([[maybe_unused]] void **state) {
        struct nd_layer layer = {.owner.known = true}, again = {}, older = {};
        nd_autofree char *none = nullptr, *text = nullptr, *unknown = nullptr;
        char longer[ND_LAYER_OWNER_PATH + 1] = {};

        expect_ok(nd_digest_parse(A, &layer.diff_id));
        nd_layer_owner_consider(&layer.owner, 65535, 65535, "ordinary");
        none = nd_layer_format(&layer);
        expect_ok(nd_layer_parse(none, strlen(none), &again));
        assert_true(again.owner.known);
        assert_false(nd_layer_owner_is_outside(&again.owner, 65536, 65536));

        memset(longer, 'x', sizeof longer - 1);
        nd_layer_owner_consider(&layer.owner, 70000, 0, "first");
        nd_layer_owner_consider(&layer.owner, 1, 200000, "opt/a \"b\"");
        nd_layer_owner_consider(&layer.owner, 200000, 1, "as high");
        nd_layer_owner_consider(&layer.owner, 300000, 1, longer);
        nd_layer_owner_consider(&layer.owner, 300000, 1, "not UTF-8: \xff");
        text = nd_layer_format(&layer);
        expect_ok(nd_layer_parse(text, strlen(text), &again));
        assert_string_equal(again.owner.path, "opt/a \"b\"");
        assert_int_equal(again.owner.uid, 1);
        assert_int_equal(again.owner.gid, 200000);
        assert_true(nd_layer_owner_is_outside(&again.owner, 65536, 65536));
        assert_false(nd_layer_owner_is_outside(&again.owner, 65536, 262144));

        unknown = nd_layer_format(&(struct nd_layer) {.diff_id = layer.diff_id});
        expect_ok(nd_layer_parse(unknown, strlen(unknown), &older));
        assert_false(older.owner.known);
}

static void a_damaged_layer_file_is_an_error([[maybe_unused]] void **state) {
        static const char *const bad[] = {
                "",
                "[]",
                "{}",
                "{\"diffId\":\"x\"}",
                "{\"diffId\":\"" A "\",\"parent\":\"../x\"}",
                "{\"diffId\":\"" A "\",\"size\":-5}",
                "{\"diffId\":\"" A "\",\"size\":18446744073709551615}",
                "{\"diffId\":\"" A "\",\"inodes\":\"7\"}",
                "{\"diffId\":\"" A "\",\"owner\":7}",
                "{\"diffId\":\"" A "\",\"owner\":{\"path\":\"a\",\"uid\":4294967296}}",
        };
        struct nd_layer layer;

        for (size_t i = 0; i < nd_count_of(bad); i++)
                expect_error(nd_layer_parse(bad[i], strlen(bad[i]), &layer), ND_INVALID, "");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_chain_is_the_hash_of_what_lies_below_and_the_layer),
                cmocka_unit_test(a_layer_file_survives_writing_and_reading),
                cmocka_unit_test(the_highest_owner_above_a_pods_ids_is_recorded),
                cmocka_unit_test(a_damaged_layer_file_is_an_error),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
