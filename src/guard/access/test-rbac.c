/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/access/rbac.h"

#include <unit/expect.h>

#define GROUP "security.nodens.io"
#define CONSTRAINTS "\"apiGroups\":[\"" GROUP "\"],\"resources\":[\"securitycontextconstraints\"],\"verbs\":[\"use\"]"

typedef void putter(struct guard_rbac *rbac, enum guard_scope scope, yyjson_val *object);

static void apply(struct guard_rbac *rbac, putter *put, enum guard_scope scope, const char *json) {
        nd_autojson yyjson_doc *doc = nullptr;

        expect_ok(nd_json_parse(json, strlen(json), 1 << 16, &doc));
        put(rbac, scope, yyjson_doc_get_root(doc));
}

static bool asks(const struct guard_rbac *rbac, const char *user, const char *group, const char *namespace,
                 const char *constraint) {
        struct guard_subject subject = {.name = user, .uid = "", .groups = {.items = &group, .count = group ? 1 : 0}};

        return guard_rbac_allows(rbac, &subject, namespace, constraint);
}

static const char named_role[] =
        "{\"metadata\":{\"name\":\"r\"},\"rules\":[{" CONSTRAINTS ",\"resourceNames\":[\"anyuid\"]}]}";

static void a_binding_applies_to_its_namespace_and_subjects([[maybe_unused]] void **state) {
        nd_cleanup(guard_rbac_done) struct guard_rbac rbac = {};

        guard_rbac_init(&rbac, GROUP);
        apply(&rbac, guard_rbac_put_role, GUARD_SCOPE_CLUSTER, named_role);
        apply(&rbac, guard_rbac_put_binding, GUARD_SCOPE_NAMESPACE,
              "{\"metadata\":{\"name\":\"b\",\"namespace\":\"n\"},\"roleRef\":{\"kind\":\"ClusterRole\",\"name\":\"r\"},\"subjects\":["
              "{\"kind\":\"User\",\"name\":\"alice\"},{\"kind\":\"Group\",\"name\":\"g\"},{\"kind\":\"ServiceAccount\",\"name\":\"s\"},"
              "{\"kind\":\"User\",\"name\":\"alice\"}]}");
        assert_true(asks(&rbac, "alice", nullptr, "n", "anyuid"));
        assert_true(asks(&rbac, "bob", "g", "n", "anyuid"));
        assert_true(asks(&rbac, "system:serviceaccount:n:s", nullptr, "n", "anyuid"));
        assert_false(asks(&rbac, "alice", nullptr, "m", "anyuid"));
        assert_false(asks(&rbac, "alice", nullptr, "n", "privileged"));
        assert_false(asks(&rbac, "g", nullptr, "n", "anyuid")); /* a user is not a group */
        assert_false(asks(&rbac, "bob", nullptr, "n", "anyuid"));
        apply(&rbac, guard_rbac_remove_binding, GUARD_SCOPE_NAMESPACE, "{\"metadata\":{\"name\":\"b\",\"namespace\":\"n\"}}");
        assert_false(asks(&rbac, "alice", nullptr, "n", "anyuid"));
        assert_int_equal(rbac.bound.count, 0);
}

static void bindings_are_listed_again_when_a_role_begins_to_grant_something([[maybe_unused]] void **state) {
        static const char binding[] =
                "{\"metadata\":{\"name\":\"b\",\"namespace\":\"n\"},\"roleRef\":{\"kind\":\"ClusterRole\",\"name\":\"r\"},"
                "\"subjects\":[{\"kind\":\"User\",\"name\":\"alice\"}]}";
        nd_cleanup(guard_rbac_done) struct guard_rbac rbac = {};
        uint64_t role_generation;

        guard_rbac_init(&rbac, GROUP);
        apply(&rbac, guard_rbac_put_role, GUARD_SCOPE_CLUSTER, "{\"metadata\":{\"name\":\"r\"},\"rules\":[]}");
        apply(&rbac, guard_rbac_put_binding, GUARD_SCOPE_NAMESPACE, binding);
        /* unused, so it is not kept */
        assert_int_equal(rbac.bindings[GUARD_SCOPE_NAMESPACE].map.count, 0);
        role_generation = rbac.role_generation;
        apply(&rbac, guard_rbac_put_role, GUARD_SCOPE_CLUSTER, named_role);
        assert_int_not_equal(rbac.role_generation, role_generation);
        assert_false(asks(&rbac, "alice", nullptr, "n", "anyuid"));
        apply(&rbac, guard_rbac_put_binding, GUARD_SCOPE_NAMESPACE, binding);
        assert_true(asks(&rbac, "alice", nullptr, "n", "anyuid"));
        role_generation = rbac.role_generation;
        apply(&rbac, guard_rbac_put_role, GUARD_SCOPE_CLUSTER, named_role);
        /* the same role again is not a change */
        assert_int_equal(rbac.role_generation, role_generation);
}

static void a_cluster_wide_binding_applies_to_every_namespace([[maybe_unused]] void **state) {
        nd_cleanup(guard_rbac_done) struct guard_rbac rbac = {};

        guard_rbac_init(&rbac, GROUP);
        apply(&rbac, guard_rbac_put_role, GUARD_SCOPE_CLUSTER,
              "{\"metadata\":{\"name\":\"admin\"},\"rules\":[{\"apiGroups\":[\"*\"],\"resources\":[\"*\"],\"verbs\":[\"*\"]}]}");
        apply(&rbac, guard_rbac_put_binding, GUARD_SCOPE_CLUSTER,
              "{\"metadata\":{\"name\":\"b\"},\"roleRef\":{\"kind\":\"ClusterRole\",\"name\":\"admin\"},\"subjects\":[{\"kind\":\"Group\","
              "\"name\":\"g\"},{\"kind\":\"ServiceAccount\",\"name\":\"nowhere\"}]}");
        assert_true(asks(&rbac, "x", "g", "any", "custom"));
        assert_false(asks(&rbac, "x", "h", "any", "custom"));
        assert_false(asks(&rbac, "system:serviceaccount::nowhere", nullptr, "any", "custom"));
}

static void a_role_applies_to_its_namespace_only([[maybe_unused]] void **state) {
        nd_cleanup(guard_rbac_done) struct guard_rbac rbac = {};

        guard_rbac_init(&rbac, GROUP);
        apply(&rbac, guard_rbac_put_role, GUARD_SCOPE_NAMESPACE,
              "{\"metadata\":{\"name\":\"r\",\"namespace\":\"n\"},\"rules\":[{" CONSTRAINTS "}]}");
        apply(&rbac, guard_rbac_put_binding, GUARD_SCOPE_NAMESPACE,
              "{\"metadata\":{\"name\":\"b\",\"namespace\":\"m\"},\"roleRef\":{\"kind\":\"Role\",\"name\":\"r\"},"
              "\"subjects\":[{\"kind\":\"User\",\"name\":\"alice\"}]}");
        assert_false(asks(&rbac, "alice", nullptr, "m", "x"));
        apply(&rbac, guard_rbac_put_binding, GUARD_SCOPE_NAMESPACE,
              "{\"metadata\":{\"name\":\"b\",\"namespace\":\"n\"},\"roleRef\":{\"kind\":\"Role\",\"name\":\"r\"},"
              "\"subjects\":[{\"kind\":\"User\",\"name\":\"alice\"}]}");
        assert_true(asks(&rbac, "alice", nullptr, "n", "x"));
}

static void rules_about_other_things_grant_nothing([[maybe_unused]] void **state) {
        static const char *const rules[] = {
                "{\"apiGroups\":[\"\"],\"resources\":[\"securitycontextconstraints\"],\"verbs\":[\"use\"]}",
                "{\"apiGroups\":[\"" GROUP "\"],\"resources\":[\"pods\"],\"verbs\":[\"use\"]}",
                "{\"apiGroups\":[\"" GROUP "\"],\"resources\":[\"securitycontextconstraints\"],\"verbs\":[\"get\"]}",
                "{\"nonResourceURLs\":[\"*\"],\"verbs\":[\"*\"]}",
        };

        for (size_t i = 0; i < nd_count_of(rules); i++) {
                nd_cleanup(guard_rbac_done) struct guard_rbac rbac = {};
                nd_autofree char *role = nd_format("{\"metadata\":{\"name\":\"r\"},\"rules\":[%s]}", rules[i]);

                guard_rbac_init(&rbac, GROUP);
                apply(&rbac, guard_rbac_put_role, GUARD_SCOPE_CLUSTER, role);
                assert_int_equal(rbac.roles[GUARD_SCOPE_CLUSTER].map.count, 0);
        }
}

static void a_role_that_loses_its_rule_stops_granting([[maybe_unused]] void **state) {
        nd_cleanup(guard_rbac_done) struct guard_rbac rbac = {};

        guard_rbac_init(&rbac, GROUP);
        apply(&rbac, guard_rbac_put_role, GUARD_SCOPE_CLUSTER, named_role);
        apply(&rbac, guard_rbac_put_binding, GUARD_SCOPE_CLUSTER,
              "{\"metadata\":{\"name\":\"b\"},\"roleRef\":{\"kind\":\"ClusterRole\",\"name\":\"r\"},\"subjects\":[{\"kind\":\"User\",\"name\":\"a\"}]}");
        assert_true(asks(&rbac, "a", nullptr, "n", "anyuid"));
        apply(&rbac, guard_rbac_put_role, GUARD_SCOPE_CLUSTER, "{\"metadata\":{\"name\":\"r\"},\"rules\":[]}");
        assert_false(asks(&rbac, "a", nullptr, "n", "anyuid"));
}

static void objects_missing_in_a_new_list_are_dropped([[maybe_unused]] void **state) {
        nd_cleanup(guard_rbac_done) struct guard_rbac rbac = {};

        guard_rbac_init(&rbac, GROUP);
        apply(&rbac, guard_rbac_put_role, GUARD_SCOPE_CLUSTER, named_role);
        apply(&rbac, guard_rbac_put_binding, GUARD_SCOPE_CLUSTER,
              "{\"metadata\":{\"name\":\"b\"},\"roleRef\":{\"kind\":\"ClusterRole\",\"name\":\"r\"},\"subjects\":[{\"kind\":\"User\",\"name\":\"a\"}]}");
        nd_api_table_begin(&rbac.bindings[GUARD_SCOPE_CLUSTER]);
        assert_true(asks(&rbac, "a", nullptr, "n", "anyuid"));
        nd_api_table_listed(&rbac.bindings[GUARD_SCOPE_CLUSTER]);
        assert_false(asks(&rbac, "a", nullptr, "n", "anyuid"));
        assert_int_equal(rbac.bound.count, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_binding_applies_to_its_namespace_and_subjects),
                cmocka_unit_test(bindings_are_listed_again_when_a_role_begins_to_grant_something),
                cmocka_unit_test(a_cluster_wide_binding_applies_to_every_namespace),
                cmocka_unit_test(a_role_applies_to_its_namespace_only),
                cmocka_unit_test(rules_about_other_things_grant_nothing),
                cmocka_unit_test(a_role_that_loses_its_rule_stops_granting),
                cmocka_unit_test(objects_missing_in_a_new_list_are_dropped),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
