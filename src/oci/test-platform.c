/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/platform.h"

#include <unit/expect.h>

static struct nd_platform platform(const char *architecture, const char *variant) {
        struct nd_platform made;

        assert_true(nd_platform_make("linux", architecture, variant, &made));
        return made;
}

static int rank(const char *architecture, const char *variant, const char *candidate, const char *candidate_variant) {
        struct nd_platform wanted = platform(architecture, variant), other = platform(candidate, candidate_variant);

        return nd_platform_rank(&wanted, &other);
}

static void other_names_of_an_architecture_are_the_same([[maybe_unused]] void **state) {
        static const struct {
                const char *architecture, *variant, *text;
        } cases[] = {
                {"x86_64", "", "linux/amd64"},    {"X86-64", "v1", "linux/amd64"},      {"amd64", "v3", "linux/amd64/v3"},
                {"aarch64", "v8", "linux/arm64"}, {"arm64", "8", "linux/arm64"},        {"arm64", "v9.0", "linux/arm64/v9"},
                {"armhf", "", "linux/arm/v7"},    {"arm", "", "linux/arm/v7"},          {"arm", "6", "linux/arm/v6"},
                {"armel", "", "linux/arm/v6"},    {"i386", "x", "linux/386"},           {"i686", "", "linux/386"},
                {"riscv64", "", "linux/riscv64"}, {"loongarch64", "", "linux/loong64"},
        };
        char text[ND_PLATFORM_TEXT];

        for (size_t i = 0; i < nd_count_of(cases); i++) {
                struct nd_platform p = platform(cases[i].architecture, cases[i].variant);

                assert_string_equal(nd_platform_text(&p, text), cases[i].text);
        }
}

static void an_amd64_machine_takes_older_variants_and_386_last([[maybe_unused]] void **state) {
        assert_int_equal(rank("amd64", "", "amd64", ""), 0);
        assert_int_equal(rank("amd64", "", "amd64", "v1"), 0);
        assert_int_equal(rank("amd64", "", "386", ""), 1);
        assert_int_equal(rank("amd64", "", "amd64", "v2"), -1);
        assert_int_equal(rank("amd64", "v3", "amd64", "v3"), 0);
        assert_int_equal(rank("amd64", "v3", "amd64", "v2"), 1);
        assert_int_equal(rank("amd64", "v3", "amd64", ""), 2);
        assert_int_equal(rank("amd64", "v3", "386", ""), 3);
        assert_int_equal(rank("amd64", "", "arm64", ""), -1);
}

static void an_arm64_machine_takes_older_variants_and_32_bits_last([[maybe_unused]] void **state) {
        assert_int_equal(rank("arm64", "", "arm64", "v8"), 0);
        assert_int_equal(rank("arm64", "", "arm", "v8"), 1);
        assert_int_equal(rank("arm64", "", "arm", "v7"), 2);
        assert_int_equal(rank("arm64", "", "arm", ""), 2);
        assert_int_equal(rank("arm64", "", "arm", "v5"), 4);
        assert_int_equal(rank("arm64", "", "arm64", "v8.1"), -1);
        assert_int_equal(rank("arm64", "v8.2", "arm64", "v8.1"), 1);
        assert_int_equal(rank("arm64", "v8.2", "arm64", ""), 2);
        assert_int_equal(rank("arm64", "v9.1", "arm64", "v9"), 1);
        assert_int_equal(rank("arm64", "v9.1", "arm64", "v8.6"), 2);
        assert_int_equal(rank("arm64", "v9.1", "arm64", "v8.7"), -1);
        assert_int_equal(rank("arm64", "v9.7", "arm", "v5"), 8 + 10 + 3);
        assert_int_equal(rank("arm64", "v10", "arm64", ""), -1);
        assert_int_equal(rank("arm64", "v7", "arm", "v7"), -1);
}

static void an_arm_machine_takes_older_variants([[maybe_unused]] void **state) {
        assert_int_equal(rank("arm", "v7", "arm", "v7"), 0);
        assert_int_equal(rank("arm", "v7", "arm", "v6"), 1);
        assert_int_equal(rank("arm", "v7", "arm", "v5"), 2);
        assert_int_equal(rank("arm", "v7", "arm", "v8"), -1);
        assert_int_equal(rank("arm", "v6", "arm", "v7"), -1);
}

static void other_systems_and_required_features_never_match([[maybe_unused]] void **state) {
        struct nd_platform wanted = platform("amd64", ""), other;

        assert_true(nd_platform_make("windows", "amd64", "", &other));
        assert_int_equal(nd_platform_rank(&wanted, &other), -1);
        other = platform("amd64", "");
        other.features = true;
        assert_int_equal(nd_platform_rank(&wanted, &other), -1);
        assert_true(nd_platform_make("unknown", "unknown", "", &other));
        assert_int_equal(nd_platform_rank(&wanted, &other), -1);
        assert_int_equal(rank("riscv64", "", "riscv64", ""), 0);
        assert_int_equal(rank("riscv64", "", "amd64", ""), -1);
}

static void fields_that_are_not_plain_text_never_match([[maybe_unused]] void **state) {
        struct nd_platform wanted = platform("amd64", ""), other;

        assert_false(nd_platform_make("linux\n", "amd64", "", &other));
        assert_int_equal(nd_platform_rank(&wanted, &other), -1);
        assert_false(nd_platform_make("linux", "amd64amd64amd64amd64amd64amd64amd64", "", &other));
        assert_int_equal(nd_platform_rank(&wanted, &other), -1);
        assert_true(nd_platform_make(nullptr, "amd64", nullptr, &other));
        assert_int_equal(nd_platform_rank(&wanted, &other), 0);
}

static void the_host_matches_itself([[maybe_unused]] void **state) {
        struct nd_platform host = nd_platform_host();

        assert_int_equal(nd_platform_rank(&host, &host), 0);
        assert_string_equal(host.os, "linux");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(other_names_of_an_architecture_are_the_same),
                cmocka_unit_test(an_amd64_machine_takes_older_variants_and_386_last),
                cmocka_unit_test(an_arm64_machine_takes_older_variants_and_32_bits_last),
                cmocka_unit_test(an_arm_machine_takes_older_variants),
                cmocka_unit_test(other_systems_and_required_features_never_match),
                cmocka_unit_test(fields_that_are_not_plain_text_never_match),
                cmocka_unit_test(the_host_matches_itself),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
