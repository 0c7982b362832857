/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/floor.h"

#include <unit/expect.h>

static struct nd_floor_version version(const char *text) {
        struct nd_floor_version parsed = {};

        assert_int_equal(nd_floor_version_parse(text, &parsed), 0);
        return parsed;
}

static struct nd_floor decoded(struct nd_arena *arena, const char *json) {
        nd_autojson yyjson_doc *doc = nullptr;
        struct nd_floor floor = {};

        expect_ok(nd_json_parse(json, strlen(json), 1 << 16, &doc));
        expect_ok(nd_floor_decode(yyjson_doc_get_root(doc), arena, &floor));
        return floor;
}

static void versions_of_vendors_are_read([[maybe_unused]] void **state) {
        static const char *const same[] = {
                "v1.36.3",         "1.36.3",       "v1.36.3-eks-1552ad0", "v1.36.3+k3s1", "v1.36.3-gke.1014001",
                "v1.36.3-rcustom", "v1.36.3+rc.1", "v1.36.3-alphabet"};
        const struct nd_floor_version plain = version("v1.36.3"), later = version("v1.36.4-rc.0");

        for (size_t i = 0; i < nd_count_of(same); i++) {
                struct nd_floor_version one = version(same[i]);

                assert_int_equal(nd_floor_version_compare(&one, &plain), 0);
        }
        assert_true(nd_floor_version_compare(&plain, &later) < 0);
}

static void a_candidate_comes_before_its_release([[maybe_unused]] void **state) {
        static const char *const before[] = {"v1.30.0-alpha.0", "v1.30.0-beta.1", "v1.30.0-rc.2+k3s1", "v1.30.0-rc",
                                             "v1.29.99"};
        const struct nd_floor_version release = version("v1.30.0");

        for (size_t i = 0; i < nd_count_of(before); i++) {
                assert_false(nd_floor_meets(&release, before[i]));
        }
        assert_true(nd_floor_meets(&release, "v1.30.0"));
        assert_true(nd_floor_meets(&release, "v1.31.0-alpha.0"));
        assert_true(nd_floor_meets(&release, "v2.0.0"));
}

static void other_strings_are_not_versions([[maybe_unused]] void **state) {
        static const char *const bad[] = {"",
                                          "v",
                                          "vv1.36.3",
                                          "V1.36.3",
                                          "1.36",
                                          "v1.36.",
                                          "v1.36.3.4",
                                          "v1.36.3 ",
                                          " v1.36.3",
                                          "v1.36.3-",
                                          "v1.36.3+",
                                          "v1.36.3\n",
                                          "v1.036.3",
                                          "v01.36.3",
                                          "v1.36.0000003",
                                          "v1.9999999.0",
                                          "v1.-36.3",
                                          "v+1.36.3",
                                          "v1.36.3-a b",
                                          "v1.36.3-\xc3\xa9",
                                          "v1.36.3/../x",
                                          "v0x1.36.3",
                                          "latest"};
        struct nd_floor_version parsed = {.major = 7};
        char lengthy[ND_FLOOR_VERSION + 2] = "v1.36.3-";

        for (size_t i = 0; i < nd_count_of(bad); i++)
                assert_int_equal(nd_floor_version_parse(bad[i], &parsed), -EINVAL);
        memset(lengthy + 8, 'a', sizeof lengthy - 9);
        assert_int_equal(nd_floor_version_parse(lengthy, &parsed), -EINVAL);
        assert_int_equal(parsed.major, 7);
        lengthy[ND_FLOOR_VERSION] = '\0';
        assert_int_equal(nd_floor_version_parse(lengthy, &parsed), 0);
}

static void an_unreadable_version_meets_no_minimum_only([[maybe_unused]] void **state) {
        const struct nd_floor_version none = {};
        struct nd_floor_version minimum;

        assert_int_equal(nd_floor_minimum_parse("1.30.0", &minimum), 0);
        assert_false(nd_floor_meets(&minimum, "") || nd_floor_meets(&minimum, "v1.36"));
        assert_true(nd_floor_meets(&none, "") && nd_floor_meets(&none, "garbage"));
        assert_int_equal(nd_floor_minimum_parse("", &minimum), 0);
        assert_false(nd_floor_version_is_set(&minimum));
        assert_int_equal(nd_floor_minimum_parse("v1.30.0", &minimum), -EINVAL);
        assert_int_equal(nd_floor_minimum_parse("1.30.0-rc.1", &minimum), -EINVAL);
        assert_int_equal(nd_floor_minimum_parse("1a30b0", &minimum), -EINVAL);
}

/* The proposal's example: A needs 1.0.0, B 1.1.0, and the cluster has 1.0.0. */
static void gates_above_the_floor_are_off([[maybe_unused]] void **state) {
        nd_autoarena struct nd_arena arena = {};
        struct nd_floor floor = decoded(
                &arena,
                "{\"spec\":{\"minimumKubeletVersion\":\"1.0.0\",\"featureGates\":["
                "{\"name\":\"WideIDs\",\"requiredMinimumVersion\":\"1.0.0\"},"
                "{\"name\":\"NestedContainer\",\"requiredMinimumVersion\":\"1.1.0\"}]},\"status\":{\"minimumKubeletVersion\":\"1.0.0\"}}");

        assert_int_equal(nd_floor_gates_off(&floor), ND_FLOOR_ALL & ~ND_FLOOR_BIT(ND_FLOOR_WIDE_IDS));
        assert_int_equal(nd_floor_gates_off(nullptr), ND_FLOOR_ALL);
        floor = decoded(&arena,
                        "{\"spec\":{\"minimumKubeletVersion\":\"1.30.0\"},\"status\":{\"minimumKubeletVersion\":\"1.30.0\"}}");
        assert_int_equal(nd_floor_gates_off(&floor), 0);
}

static void both_directions_take_the_safe_side([[maybe_unused]] void **state) {
        nd_autoarena struct nd_arena arena = {};
        struct nd_floor raised =
                decoded(&arena, "{\"metadata\":{\"generation\":2},\"spec\":{\"minimumKubeletVersion\":\"1.34.0\"},"
                                "\"status\":{\"minimumKubeletVersion\":\"1.29.0\",\"observedGeneration\":1}}");
        struct nd_floor lowered =
                decoded(&arena, "{\"metadata\":{\"generation\":3},\"spec\":{\"minimumKubeletVersion\":\"\"},"
                                "\"status\":{\"minimumKubeletVersion\":\"1.34.0\",\"observedGeneration\":3}}");
        struct nd_floor set =
                decoded(&arena, "{\"metadata\":{\"generation\":1},\"spec\":{\"minimumKubeletVersion\":\"1.34.0\"}}");

        expect_text(nd_strdup(nd_floor_version_text(nd_floor_of_relaxations(&raised), &arena)), "1.29.0");
        expect_text(nd_strdup(nd_floor_version_text(nd_floor_of_joining(&raised), &arena)), "1.34.0");
        expect_text(nd_strdup(nd_floor_version_text(nd_floor_of_existing(&raised), &arena)), "1.29.0");
        assert_int_equal(nd_floor_gates_off(&raised), ND_FLOOR_ALL);
        expect_text(nd_strdup(nd_floor_version_text(nd_floor_of_relaxations(&lowered), &arena)), "");
        expect_text(nd_strdup(nd_floor_version_text(nd_floor_of_joining(&lowered), &arena)), "1.34.0");
        expect_text(nd_strdup(nd_floor_version_text(nd_floor_of_existing(&lowered), &arena)), "1.34.0");
        assert_int_equal(nd_floor_gates_off(&lowered), ND_FLOOR_ALL);
        assert_false(nd_floor_is_settled(&raised) || nd_floor_is_settled(&lowered) || nd_floor_is_settled(&set));
        assert_int_equal(nd_floor_gates_off(&set), ND_FLOOR_ALL);
}

static void invalid_objects_are_refused([[maybe_unused]] void **state) {
        static const char *const bad[] = {
                "{\"spec\":{\"minimumKubeletVersion\":\"1.30\"}}",
                "{\"spec\":{\"minimumKubeletVersion\":30}}",
                "{\"status\":{\"minimumKubeletVersion\":\"v1.30.0\"}}",
                "{\"spec\":{\"featureGates\":[{\"name\":\"Nonesuch\",\"requiredMinimumVersion\":\"1.0.0\"}]}}",
                "{\"spec\":{\"featureGates\":[{\"name\":\"WideIDs\",\"requiredMinimumVersion\":\"\"}]}}",
                "{\"spec\":{\"featureGates\":[{\"name\":\"WideIDs\"}]}}",
                "[]",
        };

        for (size_t i = 0; i < nd_count_of(bad); i++) {
                nd_autoarena struct nd_arena arena = {};
                nd_autojson yyjson_doc *doc = nullptr;
                nd_autoerror struct nd_error *error = nullptr;
                struct nd_floor floor = {};

                expect_ok(nd_json_parse(bad[i], strlen(bad[i]), 1 << 16, &doc));
                error = nd_floor_decode(yyjson_doc_get_root(doc), &arena, &floor);
                assert_non_null(error);
        }
}

static uint32_t gates_of(const char *name) {
        for (size_t i = 0; i < nd_scc_default_count; i++)
                if (nd_streq(nd_scc_defaults[i].scc.metadata.name, name))
                        return nd_floor_gates_of(&nd_scc_defaults[i].scc);
        fail();
}

static void constraints_that_require_a_user_namespace_need_gates([[maybe_unused]] void **state) {
        assert_int_equal(gates_of("restricted-v2"), 0);
        assert_int_equal(gates_of("privileged"), 0);
        assert_int_equal(gates_of("anyuid"), 0);
        assert_int_equal(gates_of("restricted-v3"), ND_FLOOR_BIT(ND_FLOOR_WIDE_IDS));
        assert_int_equal(gates_of("userns-root"), ND_FLOOR_BIT(ND_FLOOR_ROOT));
        assert_int_equal(gates_of("nested-container"), ND_FLOOR_BIT(ND_FLOOR_ROOT) | ND_FLOOR_BIT(ND_FLOOR_NESTED));
}

static void an_unmasked_proc_needs_a_gate_or_privileges([[maybe_unused]] void **state) {
        static const char json[] =
                "{\"spec\":{\"hostUsers\":false,\"containers\":[{},{\"securityContext\":{\"procMount\":\"Unmasked\"}}]}}";
        const struct nd_scc plain = {.metadata = {.name = "own"}}, privileged = {.allow_privileged = true};
        const uint32_t off = ND_FLOOR_BIT(ND_FLOOR_PROC_MOUNT);
        nd_autoarena struct nd_arena arena = {};
        struct nd_pod pod;

        expect_ok(nd_pod_decode(json, strlen(json), &arena, &pod));
        assert_non_null(nd_floor_obstacle(off, &plain, &pod, &arena));
        assert_null(nd_floor_obstacle(0, &plain, &pod, &arena));
        assert_null(nd_floor_obstacle(off, &privileged, &pod, &arena));
        assert_null(nd_floor_obstacle(off, &plain, &(struct nd_pod) {}, &arena));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(versions_of_vendors_are_read),
                cmocka_unit_test(a_candidate_comes_before_its_release),
                cmocka_unit_test(other_strings_are_not_versions),
                cmocka_unit_test(an_unreadable_version_meets_no_minimum_only),
                cmocka_unit_test(gates_above_the_floor_are_off),
                cmocka_unit_test(both_directions_take_the_safe_side),
                cmocka_unit_test(invalid_objects_are_refused),
                cmocka_unit_test(constraints_that_require_a_user_namespace_need_gates),
                cmocka_unit_test(an_unmasked_proc_needs_a_gate_or_privileges),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
