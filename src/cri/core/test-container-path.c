/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/core/container-path.h"

#include <unit/expect.h>

static void paths_are_normalized_as_strings([[maybe_unused]] void **state) {
        static const char *const cases[][2] = {
                {"/", "/"},          {"", "/"},         {"/a", "/a"},    {"a/b/", "/a/b"},       {"//a///b", "/a/b"},
                {"/a/./b", "/a/b"},  {"/a/../b", "/b"}, {"/../..", "/"}, {"/a/b/../../c", "/c"}, {"/..a/b..", "/..a/b.."},
                {"/a/...", "/a/..."}};

        for (size_t i = 0; i < nd_count_of(cases); i++)
                expect_text(cri_container_path_clean(cases[i][0]), cases[i][1]);
}

static void a_path_is_within_a_directory_by_whole_names([[maybe_unused]] void **state) {
        assert_true(cri_container_path_within("/dev", "/dev"));
        assert_true(cri_container_path_within("/dev/shm", "/dev"));
        assert_false(cri_container_path_within("/device", "/dev"));
        assert_false(cri_container_path_within("/", "/dev"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(paths_are_normalized_as_strings),
                cmocka_unit_test(a_path_is_within_a_directory_by_whole_names),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
