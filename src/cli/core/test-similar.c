/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <string.h>

#include "cli/core/similar.h"

static void names_with_one_mistake_are_similar([[maybe_unused]] void **state) {
        static const char *const words[][2] = {{"wbe", "web"},    {"wev", "web-7f9c4d-x2x9z"},   {"ngnix", "nginx"},
                                               {"ngin", "nginx"}, {"prometeus", "prometheus-0"}, {"front", "shop-frontend"},
                                               {"webb", "web"},   {"corends", "coredns-5d78"}};

        for (size_t i = 0; i < nd_count_of(words); i++)
                assert_true(cli_similar(words[i][0], words[i][1]));
}

static void other_names_are_not([[maybe_unused]] void **state) {
        static const char *const words[][2] = {{"web", "job"},           {"we", "web"}, {"", "web"}, {"missing", "web"},
                                               {"database", "frontend"}, {"web", ""}};

        for (size_t i = 0; i < nd_count_of(words); i++)
                assert_false(cli_similar(words[i][0], words[i][1]));
}

static void long_words_and_names_stay_within_bounds([[maybe_unused]] void **state) {
        char long_word[1000] = {}, long_name[1000] = {};

        memset(long_word, 'a', sizeof long_word - 1);
        memset(long_name, 'b', sizeof long_name - 1);
        assert_false(cli_similar(long_word, "aaa"));
        assert_false(cli_similar("aaa", long_name));
        memset(long_word, 0, sizeof long_word);
        memset(long_word, 'b', 64);
        long_word[3] = 'x';
        assert_true(cli_similar(long_word, long_name));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(names_with_one_mistake_are_similar),
                cmocka_unit_test(other_names_are_not),
                cmocka_unit_test(long_words_and_names_stay_within_bounds),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
