/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base64.h"

#include <unit/expect.h>

static void every_length_comes_back([[maybe_unused]] void **state) {
        char bytes[64], *text, *back;
        size_t length;

        for (size_t i = 0; i < sizeof bytes; i++)
                bytes[i] = (char) (i * 37 + 200);
        for (size_t n = 0; n <= sizeof bytes; n++) {
                text = nd_base64(bytes, n);
                assert_int_equal(strlen(text), (n + 2) / 3 * 4);
                expect_ok(nd_base64_decode(text, strlen(text), &back, &length));
                assert_int_equal(length, n);
                assert_memory_equal(back, bytes, n);
                free(text);
                free(back);
        }
}

static void known_texts_have_the_standard_encoding([[maybe_unused]] void **state) {
        expect_text(nd_base64("", 0), "");
        expect_text(nd_base64("f", 1), "Zg==");
        expect_text(nd_base64("fo", 2), "Zm8=");
        expect_text(nd_base64("foobar", 6), "Zm9vYmFy");
        expect_text(nd_base64("\xff\xfe\xfd", 3), "//79");
}

static void white_space_is_skipped_and_nulls_end_a_text([[maybe_unused]] void **state) {
        char *text;

        expect_ok(nd_base64_parse(" Zm9v\nYmFy\r\n", &text));
        expect_text(text, "foobar");
        expect_ok(nd_base64_parse("Zm8AAAAA", &text));
        expect_text(text, "fo");
}

static void invalid_base64_is_refused([[maybe_unused]] void **state) {
        static const char *const bad[] = {"Z", "Zg", "Zg=", "Zg===", "Zg==Zg==", "Zm9*", "=", "====", "Zm-_"};
        char *text;

        for (size_t i = 0; i < nd_count_of(bad); i++)
                expect_error(nd_base64_parse(bad[i], &text), ND_INVALID, "not base64");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_length_comes_back),
                cmocka_unit_test(known_texts_have_the_standard_encoding),
                cmocka_unit_test(white_space_is_skipped_and_nulls_end_a_text),
                cmocka_unit_test(invalid_base64_is_refused),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
