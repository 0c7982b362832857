/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <locale.h>

#include "cli/output/progress.h"
#include "cli/output/width.h"

static const struct cli_progress_item half = {.name = (char *) "sha256:0123456789abcdef0123456789abcdef",
                                              .state = (char *) "fetching",
                                              .size = 2000000,
                                              .done = 1000000};

static void a_line_has_a_bar_where_there_is_room([[maybe_unused]] void **state) {
        expect_text(cli_progress_line(&half, 200),
                    "0123456789ab  fetching   [###############---------------]    1.0 MB /   2.0 MB");
        expect_text(cli_progress_line(&half, 60), "0123456789ab  fetching   [######------]    1.0 MB /   2.0 MB");
        expect_text(cli_progress_line(&half, 50), "0123456789ab  fetching     1.0 MB /   2.0 MB");
        expect_text(cli_progress_line(&half, 20), "0123456789ab  fetchi");
}

static void a_line_is_never_wider_than_the_terminal([[maybe_unused]] void **state) {
        static const struct cli_progress_item items[] = {
                {.name = (char *) "sha256:0123456789abcdef", .state = (char *) "done", .size = UINT64_MAX, .done = 0},
                {.name = (char *) "x", .state = (char *) "unpacking", .size = 1, .done = UINT64_MAX},
                {.name = (char *) "", .state = (char *) "", .size = 0, .done = 0},
        };

        for (size_t i = 0; i < nd_count_of(items); i++)
                for (size_t columns = 0; columns < 120; columns++) {
                        nd_autofree char *line = cli_progress_line(&items[i], columns);

                        assert_true(cli_width_of(line) <= columns);
                }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_line_has_a_bar_where_there_is_room),
                cmocka_unit_test(a_line_is_never_wider_than_the_terminal),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
