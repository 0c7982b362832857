/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <string.h>

#include "cli/core/detach.h"

/* Types the text in pieces of this size; returns what the container gets, '!' after the end. */
static const char *typed(const char *text, size_t piece) {
        static char got[100];
        struct cli_detach detach = {};
        size_t length = strlen(text), used = 0;
        bool over = false;

        for (size_t at = 0; at < length && !over; at += piece) {
                size_t n = length - at < piece ? length - at : piece;
                char out[100];
                size_t m = cli_detach_filter(&detach, text + at, n, out, &over);

                assert_true(m <= n + 1);
                memcpy(got + used, out, m);
                used += m;
        }
        memcpy(got + used, over ? "!" : "", over ? 2 : 1);
        return got;
}

static void the_two_keys_detach_however_they_arrive([[maybe_unused]] void **state) {
        for (size_t piece = 1; piece < 8; piece++) {
                assert_string_equal(typed("ls\n\020\021rm", piece), "ls\n!");
                assert_string_equal(typed("\020\020\021", piece), "\020!");
        }
}

static void either_key_alone_reaches_the_container([[maybe_unused]] void **state) {
        for (size_t piece = 1; piece < 8; piece++) {
                assert_string_equal(typed("a\020b\021c", piece), "a\020b\021c");
                assert_string_equal(typed("\021\020x", piece), "\021\020x");
                assert_string_equal(typed("\020\020\020x", piece), "\020\020\020x");
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_two_keys_detach_however_they_arrive),
                cmocka_unit_test(either_key_alone_reaches_the_container),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
