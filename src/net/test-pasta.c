/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <sys/stat.h>

#include <unit/scratch.h>

#include "base/text.h"
#include "net/pasta.h"

static void old_versions_stall([[maybe_unused]] void **state) {
        static const char *const texts[] = {
                "",
                "\n",
                "pasta 0.0~git20250503.587980c-2+deb13u1\nCopyright Red Hat\n",
                "pasta 0^20250919.g623dbf6-1.fc43.x86_64\n",
                "pasta 2026_01_20.386b5f5\n",
                "pasta 2026_05_06.0000000",
        };

        for (size_t i = 0; i < nd_count_of(texts); i++)
                assert_true(nd_pasta_version_stalls(texts[i]));
}

static void fixed_and_unknown_versions_do_not([[maybe_unused]] void **state) {
        static const char *const texts[] = {
                "pasta 0.0~git20260728.f8df3f1-1~bpo13+1\n",
                "pasta 0^20260507.g1234567-1.fc44.x86_64\n",
                "pasta 2026_05_07.1afd4ed\n",
                "pasta unknown version\n",
                "pasta 1.0\n",
                "pasta 120250503\n",                /* a longer number is not a date */
                "pasta 20250\n",                    /* neither is a shorter one */
                "pasta 1.0\nCopyright 20250503\n",  /* only the first line has the version */
                "pasta 0.0~git20260728.20250503\n", /* the first date is the version's */
        };

        for (size_t i = 0; i < nd_count_of(texts); i++)
                assert_false(nd_pasta_version_stalls(texts[i]));
}

static void installed(const char *directory, const char *version) {
        nd_autofree char *text = nd_format("#!/bin/sh\n[ \"$1\" = --version ] && echo 'pasta %s'\n", version),
                         *path = nd_format("%s/pasta", directory);

        scratch_text(directory, "pasta", text);
        assert_int_equal(chmod(path, 0755), 0);
}

static void the_installed_version_is_asked([[maybe_unused]] void **state) {
        scratch_directory directory = scratch_make();
        nd_autofree char *path = nd_format("%s:/usr/bin:/bin", directory);
        bool stalls = false;

        assert_int_equal(setenv("PATH", path, 1), 0);
        installed(directory, "0.0~git20250503.587980c");
        expect_ok(nd_pasta_stalls(&stalls));
        assert_true(stalls);
        installed(directory, "0.0~git20261002.cba3570");
        expect_ok(nd_pasta_stalls(&stalls));
        assert_false(stalls);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(old_versions_stall),
                cmocka_unit_test(fixed_and_unknown_versions_do_not),
                cmocka_unit_test(the_installed_version_is_asked),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
