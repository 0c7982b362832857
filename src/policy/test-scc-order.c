/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/scc.h"

#include <unit/expect.h>

static const struct nd_scc *find(const char *name) {
        for (size_t i = 0; i < nd_scc_default_count; i++)
                if (nd_streq(nd_scc_defaults[i].scc.metadata.name, name))
                        return &nd_scc_defaults[i].scc;
        fail_msg("no constraint %s", name);
        return nullptr;
}

static void the_defaults_have_openshifts_points([[maybe_unused]] void **state) {
        static const struct {
                const char *name;
                uint32_t points;
        } cases[] = {
                {"anyuid", 154950},          {"restricted-v2", 132010},    {"restricted-v3", 132010},
                {"restricted", 134800},      {"nested-container", 135020}, {"nonroot-v2", 142010},
                {"nonroot", 144800},         {"hostmount-anyuid", 254950}, {"hostmount-anyuid-v2", 284950},
                {"hostnetwork-v2", 1332010}, {"hostnetwork", 1334800},     {"hostaccess", 1434800},
                {"privileged", 3089000},     {"userns-root", 135130},
        };

        assert_int_equal(nd_count_of(cases), nd_scc_default_count);
        for (size_t i = 0; i < nd_count_of(cases); i++)
                assert_int_equal(nd_scc_points(find(cases[i].name)), cases[i].points);
}

static char *order(bool user_namespace) {
        const struct nd_scc **sccs = nd_calloc(nd_scc_default_count, sizeof *sccs);
        nd_autotext struct nd_text text = ND_TEXT(1000);

        for (size_t i = 0; i < nd_scc_default_count; i++)
                sccs[i] = &nd_scc_defaults[nd_scc_default_count - 1 - i].scc;
        nd_scc_sort(sccs, nd_scc_default_count, user_namespace);
        for (size_t i = 0; i < nd_scc_default_count; i++)
                nd_text_addf(&text, "%s%s", i > 0 ? " " : "", sccs[i]->metadata.name);
        free(sccs);
        return nd_strdup(nd_text_get(&text));
}

static void priority_then_points_then_name([[maybe_unused]] void **state) {
        expect_text(order(false),
                    "anyuid restricted-v2 restricted-v3 restricted nested-container userns-root nonroot-v2 nonroot "
                    "hostmount-anyuid hostmount-anyuid-v2 hostnetwork-v2 hostnetwork hostaccess privileged");
}

static void constraints_that_require_a_user_namespace_come_first_for_one([[maybe_unused]] void **state) {
        expect_text(order(true),
                    "anyuid restricted-v3 nested-container userns-root restricted-v2 restricted nonroot-v2 nonroot "
                    "hostmount-anyuid hostmount-anyuid-v2 hostnetwork-v2 hostnetwork hostaccess privileged");
}

static void capabilities_score_as_in_openshift([[maybe_unused]] void **state) {
        static const char *many[60];
        struct nd_scc scc = {};

        assert_int_equal(nd_scc_points(&scc), 5000);
        scc.required_drop = (struct nd_shape_texts) {(const char *[]) {"*"}, 1};
        assert_int_equal(nd_scc_points(&scc), 4950); /* a '*' here is not ALL */
        scc.required_drop = (struct nd_shape_texts) {(const char *[]) {"all"}, 1};
        assert_int_equal(nd_scc_points(&scc), 2000);
        scc.required_drop = (struct nd_shape_texts) {};
        scc.allowed_capabilities = (struct nd_shape_texts) {(const char *[]) {"ALL"}, 1};
        assert_int_equal(nd_scc_points(&scc), 9000);
        for (size_t i = 0; i < nd_count_of(many); i++)
                many[i] = "X";
        scc.default_add = (struct nd_shape_texts) {many, nd_count_of(many)};
        assert_int_equal(nd_scc_points(&scc), 9999);
        scc = (struct nd_scc) {.required_drop = {many, nd_count_of(many)}};
        for (size_t i = 0; i < nd_count_of(many); i++)
                many[i] = "Y";
        assert_int_equal(nd_scc_points(&scc), 2000);
}

static void volumes_score_by_the_worst([[maybe_unused]] void **state) {
        struct nd_scc scc = {.volumes = {(const char *[]) {"secret", "projected", "none"}, 3}};

        assert_int_equal(nd_scc_points(&scc), 5000);
        scc.volumes = (struct nd_shape_texts) {(const char *[]) {"secret", "nfs"}, 2};
        assert_int_equal(nd_scc_points(&scc), 105000);
        scc.volumes = (struct nd_shape_texts) {(const char *[]) {"nfs", "*"}, 2};
        assert_int_equal(nd_scc_points(&scc), 205000);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_defaults_have_openshifts_points),
                cmocka_unit_test(priority_then_points_then_name),
                cmocka_unit_test(constraints_that_require_a_user_namespace_come_first_for_one),
                cmocka_unit_test(capabilities_score_as_in_openshift),
                cmocka_unit_test(volumes_score_by_the_worst),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
