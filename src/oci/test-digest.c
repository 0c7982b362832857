/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/digest.h"

#include <unit/expect.h>

#define HEX_ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define HEX_ABC_512                                                                                                           \
        "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9" \
        "ac94fa54ca49f"

static void a_digest_survives_text_and_back([[maybe_unused]] void **state) {
        char text[ND_DIGEST_TEXT], hex[ND_DIGEST_HEX];
        struct nd_digest digest, again;

        expect_ok(nd_digest_parse("sha256:" HEX_ABC, &digest));
        assert_int_equal(digest.kind, ND_HASH_SHA256);
        assert_string_equal(nd_digest_text(&digest, text), "sha256:" HEX_ABC);
        assert_string_equal(nd_digest_hex(&digest, hex), HEX_ABC);
        assert_true(nd_digest_parse_hex(hex, &again));
        assert_true(nd_digest_equal(&digest, &again));

        expect_ok(nd_digest_parse("sha512:" HEX_ABC_512, &digest));
        assert_string_equal(nd_digest_text(&digest, text), "sha512:" HEX_ABC_512);
        assert_true(nd_digest_parse_hex(HEX_ABC_512, &again));
        assert_true(nd_digest_equal(&digest, &again));
}

static void invalid_digests_are_refused([[maybe_unused]] void **state) {
        static const char *const bad[] = {
                "",
                "sha256",
                "sha256:",
                HEX_ABC,
                "sha256:" HEX_ABC "0",
                "sha256:ba7816",
                "sha512:" HEX_ABC,
                "sha256:" HEX_ABC_512,
                "SHA256:" HEX_ABC,
                "sha256:BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD",
                "sha256:../../../../../../../../../../../../../../../../../../../../etc/pass",
                "md5:900150983cd24fb0d6963f7d28e17f72",
                "none:",
                " sha256:" HEX_ABC,
                "sha256:" HEX_ABC "\n",
        };
        struct nd_digest digest;

        for (size_t i = 0; i < nd_count_of(bad); i++)
                expect_error(nd_digest_parse(bad[i], &digest), ND_INVALID, "invalid digest");
        assert_false(nd_digest_parse_hex("", &digest));
        assert_false(nd_digest_parse_hex("../x", &digest));
}

static void pieces_hash_as_the_whole_does([[maybe_unused]] void **state) {
        char text[ND_DIGEST_TEXT];
        struct nd_digest digest;
        struct nd_digest_hash hash;

        nd_digest_hash_start(ND_HASH_SHA256, &hash);
        nd_digest_hash_add(&hash, "a", 1);
        nd_digest_hash_add(&hash, "", 0);
        nd_digest_hash_add(&hash, "bc", 2);
        digest = nd_digest_hash_finish(&hash);
        assert_string_equal(nd_digest_text(&digest, text), "sha256:" HEX_ABC);
        nd_digest_hash_add(&hash, "abc", 3);
        digest = nd_digest_hash_finish(&hash);
        assert_string_equal(nd_digest_text(&digest, text), "sha256:" HEX_ABC);
        digest = nd_digest_of(ND_HASH_SHA512, "abc", 3);
        assert_string_equal(nd_digest_text(&digest, text), "sha512:" HEX_ABC_512);
}

static void other_content_than_expected_is_an_error([[maybe_unused]] void **state) {
        struct nd_digest digest = nd_digest_of(ND_HASH_SHA256, "abc", 3), none = {};
        char text[ND_DIGEST_TEXT];

        expect_ok(nd_digest_check(&digest, "abc", 3));
        expect_error(nd_digest_check(&digest, "abd", 3), ND_DATA_LOSS, "expected sha256:" HEX_ABC);
        expect_error(nd_digest_check(&digest, "ab", 2), ND_DATA_LOSS, "");
        expect_error(nd_digest_check(&none, "", 0), ND_DATA_LOSS, "");
        assert_string_equal(nd_digest_text(&none, text), "");
        assert_false(nd_digest_is_set(&none));
}

static void digests_have_an_order([[maybe_unused]] void **state) {
        struct nd_digest a = nd_digest_of(ND_HASH_SHA256, "abc", 3), b = nd_digest_of(ND_HASH_SHA256, "", 0),
                         c = nd_digest_of(ND_HASH_SHA512, "", 0);

        assert_true(nd_digest_compare(&a, &a) == 0);
        assert_true((nd_digest_compare(&a, &b) < 0) == (nd_digest_compare(&b, &a) > 0));
        assert_true(nd_digest_compare(&a, &c) < 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_digest_survives_text_and_back), cmocka_unit_test(invalid_digests_are_refused),
                cmocka_unit_test(pieces_hash_as_the_whole_does),   cmocka_unit_test(other_content_than_expected_is_an_error),
                cmocka_unit_test(digests_have_an_order),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
