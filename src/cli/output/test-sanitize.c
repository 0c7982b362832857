/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include "cli/output/sanitize.h"

static void control_characters_become_question_marks([[maybe_unused]] void **state) {
        static const struct {
                const char *given, *plain;
        } cases[] = {
                {"", ""},
                {"web-1\tready", "web-1\tready"},
                {"\033]0;title\007", "?]0;title?"},
                {"a\rb\nc\x7f", "a?b?c?"},
                {"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"}, /* ü and ß */
                {"\xc2\x9b"
                 "31m",
                 "?31m"}, /* CSI as one character */
                {"\x9b"
                 "31m\xff",
                 "?31m?"},          /* and as one byte */
                {"\xe2\x82", "??"}, /* cut off */
                {"\xc2\xa0", "\xc2\xa0"},
                {"\xe2\x80\xae"
                 "exe.\xe2\x81\xa9"
                 "txt\xe2\x80\xa6",
                 "?exe.?txt\xe2\x80\xa6"}, /* an override, an isolate's end; an ellipsis stays */
                {"a\xe2\x80\x8f"
                 "b\xd8\x9c"
                 "c",
                 "a?b?c"}, /* marks of right-to-left text */
        };

        for (size_t i = 0; i < nd_count_of(cases); i++)
                expect_text(cli_sanitize_text(cases[i].given), cases[i].plain);
        expect_text(cli_sanitize_text(nullptr), "");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(control_characters_become_question_marks),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
