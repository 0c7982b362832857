/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/authorizer/authorizer.h"

#include <unit/expect.h>
#include <unit/guard-world.h>

#define FLOOR(spec, status)                                                                                                               \
        "{\"kind\":\"NodeVersionFloor\",\"metadata\":{\"name\":\"cluster\",\"generation\":1},\"spec\":{\"minimumKubeletVersion\":\"" spec \
        "\"},\"status\":{\"minimumKubeletVersion\":\"" status "\",\"observedGeneration\":1}}"
#define NODE(name, version)                                                                                                   \
        "{\"kind\":\"Node\",\"metadata\":{\"name\":\"" name "\"},\"status\":{\"nodeInfo\":{\"kubeletVersion\":\"" version     \
        "\"}}}"

static struct guard_world make(const char *floor) {
        struct guard_world world;

        guard_world_make(&world);
        if (floor)
                guard_world_tell(&world, floor);
        else
                nd_api_table_remove(&world.store.floors, "cluster");
        return world;
}

static struct guard_access_request of_node(const char *user, const char *verb, const char *group, const char *resource,
                                           const char *subresource, const char *name) {
        static const char *groups[] = {"system:authenticated", "system:nodes"};

        return (struct guard_access_request) {.user = {.name = user, .groups = {.items = groups, .count = 2}},
                                              .has_resource = true,
                                              .verb = verb,
                                              .group = group,
                                              .resource = resource,
                                              .subresource = subresource,
                                              .name = name,
                                              .namespace = ""};
}

static bool is_denied(const struct guard_world *world, bool current, struct guard_access_request request) {
        nd_autoarena struct nd_arena arena = {};

        return guard_authorizer_decide(&world->store, current, &request, &arena) != nullptr;
}

static bool may_list(const struct guard_world *world, const char *user) {
        return !is_denied(world, true, of_node(user, "list", "", "pods", "", ""));
}

static void nodes_are_judged_by_the_status([[maybe_unused]] void **state) {
        struct guard_world world = make(FLOOR("1.34.0", "1.30.0"));

        guard_world_tell(&world, NODE("old", "v1.29.6"));
        guard_world_tell(&world, NODE("middle", "v1.33.1-eks-1552ad0"));
        guard_world_tell(&world, NODE("new", "v1.36.3"));
        guard_world_tell(&world, NODE("odd", "v1.36.3 "));
        guard_world_tell(&world, NODE("candidate", "v1.30.0-rc.1"));
        assert_false(may_list(&world, "system:node:old"));
        assert_true(may_list(&world, "system:node:middle"));
        assert_true(may_list(&world, "system:node:new"));
        assert_false(may_list(&world, "system:node:odd"));
        assert_false(may_list(&world, "system:node:candidate"));
        assert_false(may_list(&world, "system:node:unknown"));
        assert_false(may_list(&world, "system:node:"));
        assert_false(may_list(&world, "system:node:OLD"));
        assert_false(may_list(&world, "mallory"));
        guard_world_done(&world);
}

static void a_locked_node_may_report_a_new_version([[maybe_unused]] void **state) {
        static const struct {
                const char *verb, *group, *resource, *subresource, *name;
                bool denied;
        } requests[] = {
                {"get", "", "nodes", "", "old", false},
                {"create", "", "nodes", "", "", false},
                {"create", "", "nodes", "", "old", false},
                {"update", "", "nodes", "", "old", false},
                {"patch", "", "nodes", "status", "old", false},
                {"create", "authorization.k8s.io", "subjectaccessreviews", "", "", false},
                {"get", "", "nodes", "", "new", true},
                {"get", "", "nodes", "", "", true},
                {"create", "", "nodes", "", "new", true},
                {"update", "", "nodes", "", "new", true},
                {"patch", "", "nodes", "status", "new", true},
                {"patch", "", "nodes", "", "old", true},
                {"update", "", "nodes", "status", "old", true},
                {"get", "", "nodes", "proxy", "old", true},
                {"get", "", "nodes", "status", "old", true},
                {"create", "", "nodes", "proxy", "old", true},
                {"list", "", "nodes", "", "old", true},
                {"watch", "", "nodes", "", "old", true},
                {"delete", "", "nodes", "", "old", true},
                {"*", "", "nodes", "", "old", true},
                {"get", "metrics.k8s.io", "nodes", "", "old", true},
                {"create", "", "subjectaccessreviews", "", "", true},
                {"create", "authorization.k8s.io", "selfsubjectaccessreviews", "", "", true},
                {"update", "coordination.k8s.io", "leases", "", "old", true},
                {"create", "certificates.k8s.io", "certificatesigningrequests", "", "", true},
                {"impersonate", "", "users", "", "system:node:new", true},
                {"get", "", "secrets", "", "old", true},
                {"create", "", "serviceaccounts", "token", "default", true},
        };
        struct guard_world world = make(FLOOR("1.30.0", "1.30.0"));

        guard_world_tell(&world, NODE("old", "v1.29.6"));
        guard_world_tell(&world, NODE("new", "v1.36.3"));
        for (size_t i = 0; i < nd_count_of(requests); i++) {
                struct guard_access_request request = of_node("system:node:old", requests[i].verb, requests[i].group,
                                                              requests[i].resource, requests[i].subresource, requests[i].name);

                assert_int_equal(is_denied(&world, true, request), requests[i].denied);
                request.user.name = "system:node:new";
                assert_false(is_denied(&world, true, request));
        }
        guard_world_tell(&world, NODE("old", "v1.30.0"));
        assert_true(may_list(&world, "system:node:old"));
        guard_world_done(&world);
}

static void without_knowledge_every_node_is_locked([[maybe_unused]] void **state) {
        struct guard_world world = make(FLOOR("1.30.0", "1.30.0"));

        guard_world_tell(&world, NODE("new", "v1.36.3"));
        assert_true(is_denied(&world, false, of_node("system:node:new", "list", "", "pods", "", "")));
        assert_false(is_denied(&world, false, of_node("system:node:new", "patch", "", "nodes", "status", "new")));
        guard_world_tell(
                &world,
                "{\"kind\":\"NodeVersionFloor\",\"metadata\":{\"name\":\"cluster\"},\"spec\":{\"minimumKubeletVersion\":1}}");
        assert_true(is_denied(&world, true, of_node("system:node:new", "list", "", "pods", "", "")));
        guard_world_done(&world);
}

static void other_users_and_clusters_without_a_floor_are_left_alone([[maybe_unused]] void **state) {
        struct guard_world world = make(nullptr), none = make(FLOOR("", "")), elsewhere = make(nullptr);
        struct guard_access_request request = of_node("system:node:x", "list", "", "pods", "", "");

        assert_true(may_list(&world, "system:node:x") && may_list(&none, "system:node:x") && may_list(&none, "mallory"));
        guard_world_tell(
                &elsewhere,
                "{\"kind\":\"NodeVersionFloor\",\"metadata\":{\"name\":\"other\"},\"spec\":{\"minimumKubeletVersion\":\"9.0.0\"},"
                "\"status\":{\"minimumKubeletVersion\":\"9.0.0\"}}");
        assert_true(may_list(&elsewhere, "system:node:x"));
        guard_world_tell(&world, FLOOR("1.30.0", ""));
        assert_false(may_list(&world, "system:node:x")); /* it has not reported yet */
        guard_world_tell(&world, NODE("x", "v1.20.0"));
        assert_true(may_list(&world, "system:node:x"));
        request.user.groups.count = 1;
        assert_false(is_denied(&world, false, request));
        request.user.groups.count = 2;
        request.has_resource = false;
        assert_false(is_denied(&world, false, request));
        guard_world_done(&world);
        guard_world_done(&none);
        guard_world_done(&elsewhere);
}

static void reviews_are_read_and_answered([[maybe_unused]] void **state) {
        static const char json[] =
                "{\"kind\":\"SubjectAccessReview\",\"apiVersion\":\"authorization.k8s.io/v1\",\"metadata\":{},\"spec\":{\"resourceAttributes\":"
                "{\"namespace\":\"n\",\"verb\":\"get\",\"group\":\"g\",\"version\":\"v1\",\"resource\":\"r\",\"subresource\":\"s\",\"name\":\"a\"},"
                "\"user\":\"system:node:x\",\"groups\":[\"system:nodes\"]},\"status\":{\"allowed\":true}}";
        nd_autotext struct nd_text none = ND_TEXT(1000), denied = ND_TEXT(1000);
        nd_autoarena struct nd_arena arena = {};
        struct guard_access_request request;
        nd_autoerror struct nd_error *error = nullptr;

        expect_ok(guard_access_request_decode(json, strlen(json), &arena, &request));
        assert_true(request.has_resource);
        assert_string_equal(request.verb, "get");
        assert_string_equal(request.subresource, "s");
        assert_string_equal(request.name, "a");
        assert_string_equal(request.user.name, "system:node:x");
        error = guard_access_request_decode("{\"kind\":\"SubjectAccessReview\"}", 30, &arena, &request);
        assert_non_null(error);
        guard_access_request_answer(nullptr, &none);
        assert_string_equal(nd_text_get(&none),
                            "{\"apiVersion\": \"authorization.k8s.io/v1\", \"kind\": \"SubjectAccessReview\", "
                            "\"status\": {\"allowed\": false}}");
        guard_access_request_answer("why", &denied);
        assert_non_null(strstr(nd_text_get(&denied), "\"allowed\": false, \"denied\": true, \"reason\": \"why\""));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(nodes_are_judged_by_the_status),
                cmocka_unit_test(a_locked_node_may_report_a_new_version),
                cmocka_unit_test(without_knowledge_every_node_is_locked),
                cmocka_unit_test(other_users_and_clusters_without_a_floor_are_left_alone),
                cmocka_unit_test(reviews_are_read_and_answered),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
