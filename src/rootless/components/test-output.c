/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include "rootless/components/output.h"

static void keep(const char *line, size_t length, void *userdata) {
        nd_text_append(userdata, line, length);
}

static void lines_have_the_components_name([[maybe_unused]] void **state) {
        nd_autotext struct nd_text written = ND_TEXT(4096);
        struct rootless_output output = {.name = "kubelet", .write = keep, .userdata = &written};

        rootless_output_add(&output, "one\ntw", 6);
        assert_string_equal(nd_text_get(&written), "kubelet: one\n");
        rootless_output_add(&output, "o\n\n<0>all", 9);
        rootless_output_end(&output);
        rootless_output_end(&output);
        assert_string_equal(nd_text_get(&written), "kubelet: one\nkubelet: two\nkubelet: \nkubelet: <0>all\n");
}

static void control_characters_do_not_reach_a_terminal([[maybe_unused]] void **state) {
        nd_autotext struct nd_text written = ND_TEXT(4096);
        struct rootless_output output = {.name = "c", .write = keep, .userdata = &written};

        rootless_output_add(&output,
                            "\x1b]0;t\x07\xc2\x9b"
                            "31m\r\n",
                            13);
        assert_null(strpbrk(nd_text_get(&written), "\x1b\x07\r"));
        assert_null(strstr(nd_text_get(&written), "\xc2\x9b"));
}

static void long_lines_are_split([[maybe_unused]] void **state) {
        nd_autotext struct nd_text written = ND_TEXT(64 * 1024);
        struct rootless_output output = {.name = "c", .write = keep, .userdata = &written};
        size_t lines = 0;

        for (int i = 0; i < 10 * OUTPUT_LINE_BYTES; i++)
                rootless_output_add(&output, "x", 1);
        for (const char *c = nd_text_get(&written); *c; c++)
                lines += *c == '\n';
        assert_int_equal(lines, 10);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(lines_have_the_components_name),
                cmocka_unit_test(control_characters_do_not_reach_a_terminal),
                cmocka_unit_test(long_lines_are_split),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
