/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/admission/floor-admission.h"

#include <unit/expect.h>
#include <unit/guard-world.h>

#define SPEC(minimum)                                                                                                         \
        "{\"kind\":\"NodeVersionFloor\",\"metadata\":{\"name\":\"cluster\"},\"spec\":{\"minimumKubeletVersion\":\"" minimum   \
        "\"}}"

static void put_node(struct guard_world *world, const char *name, const char *version) {
        nd_autofree char *json =
                nd_format("{\"kind\":\"Node\",\"metadata\":{\"name\":\"%s\"},\"status\":{\"nodeInfo\":{\"kubeletVersion\":"
                          "\"%s\"}}}",
                          name, version);

        guard_world_tell(world, json);
}

/* Returns "allowed" or the message of the refusal. */
static char *decided(const struct guard_world *world, const char *operation, const char *resource, const char *name,
                     const char *user, const char *object, const char *old) {
        nd_autofree char *text = nd_format(
                "{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"request\":{\"uid\":\"u\",\"operation\":\"%s\","
                "\"resource\":{\"group\":\"g\",\"resource\":\"%s\"},\"name\":\"%s\",\"userInfo\":{\"username\":\"%s\",\"groups\":"
                "[\"%s\"]},\"object\":%s,\"oldObject\":%s}}",
                operation, resource, name, user, nd_has_prefix(user, "system:node:") ? "system:nodes" : "x",
                object ? object : "null", old ? old : "null");
        nd_autoarena struct nd_arena arena = {};
        struct guard_response response;
        struct guard_review review;

        expect_ok(guard_review_decode(text, strlen(text), &arena, &review));
        guard_floor_decide(&world->store, &review, &arena, &response);
        return nd_strdup(response.allowed ? "allowed" : response.message);
}

static char *written(const struct guard_world *world, const char *object, const char *old) {
        return decided(world, old ? "UPDATE" : "CREATE", "nodeversionfloors", "cluster", "admin", object, old);
}

static void a_floor_above_a_kubelet_is_refused_with_its_node([[maybe_unused]] void **state) {
        struct guard_world world;

        guard_world_make(&world);
        put_node(&world, "b", "v1.33.1");
        put_node(&world, "a", "");
        put_node(&world, "c", "v1.36.3");
        expect_text(written(&world, SPEC("1.34.0"), nullptr),
                    "spec.minimumKubeletVersion: 1.34.0 is above the kubelets of these nodes: a (no version), b (v1.33.1); "
                    "upgrade them or remove them first");
        expect_text(written(&world, SPEC("1.34.0"), SPEC("1.34.0")), "allowed");
        expect_text(written(&world, SPEC("1.30.0"), SPEC("1.34.0")), "allowed");
        expect_text(written(&world, SPEC(""), nullptr), "allowed");
        put_node(&world, "a", "v1.34.0-rc.1");
        put_node(&world, "b", "v1.34.0");
        expect_text(
                written(&world, SPEC("1.34.0"), SPEC("1.30.0")),
                "spec.minimumKubeletVersion: 1.34.0 is above the kubelets of these nodes: a (v1.34.0-rc.1); upgrade them or "
                "remove them first");
        put_node(&world, "a", "v1.34.0");
        expect_text(written(&world, SPEC("1.34.0"), SPEC("1.30.0")), "allowed");
        guard_world_done(&world);
}

static void many_nodes_are_counted([[maybe_unused]] void **state) {
        nd_autofree char *text = nullptr;
        struct guard_world world;

        guard_world_make(&world);
        for (unsigned i = 0; i < 13; i++) {
                nd_autofree char *name = nd_format("n%02u", i);

                put_node(&world, name, "v1.2.3-\\u001b[31m");
        }
        text = written(&world, SPEC("1.34.0"), nullptr);
        assert_non_null(strstr(text, "n00 (v1.2.3-"));
        assert_non_null(strstr(text, "n09 "));
        assert_null(strstr(text, "n10 "));
        assert_non_null(strstr(text, " and 3 more;"));
        assert_null(strchr(text, '\x1b'));
        guard_world_done(&world);
}

static void a_floor_in_use_is_not_deleted([[maybe_unused]] void **state) {
        struct guard_world world;
        char *text;

        guard_world_make(&world);
        text = decided(&world, "DELETE", "nodeversionfloors", "cluster", "admin", nullptr, SPEC("1.30.0"));
        assert_non_null(strstr(text, "the version floor is in use"));
        free(text);
        text = decided(&world, "DELETE", "nodeversionfloors", "cluster", "admin", nullptr,
                       "{\"spec\":{\"minimumKubeletVersion\":\"\"},\"status\":{\"minimumKubeletVersion\":\"1.30.0\"}}");
        assert_non_null(strstr(text, "the version floor is in use"));
        free(text);
        expect_text(decided(&world, "DELETE", "nodeversionfloors", "cluster", "admin", nullptr, SPEC("")), "allowed");
        expect_text(decided(&world, "CREATE", "nodeversionfloors", "other", "admin", SPEC("1.0.0"), nullptr),
                    "metadata.name: the only version floor that counts is named 'cluster'");
        guard_world_done(&world);
}

static char *joined(const struct guard_world *world, const char *user, const char *version) {
        nd_autofree char *object = nd_format("{\"status\":{\"nodeInfo\":{\"kubeletVersion\":\"%s\"}}}", version);
        nd_autofree char *text = nd_format(
                "{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"request\":{\"uid\":\"u\",\"operation\":"
                "\"CREATE\",\"resource\":{\"group\":\"\",\"resource\":\"nodes\"},\"userInfo\":{\"username\":\"%s\",\"groups\":"
                "[\"%s\"]},\"object\":%s}}",
                user, nd_has_prefix(user, "system:node:") ? "system:nodes" : "x", object);
        nd_autoarena struct nd_arena arena = {};
        struct guard_response response;
        struct guard_review review;

        expect_ok(guard_review_decode(text, strlen(text), &arena, &review));
        guard_floor_decide(&world->store, &review, &arena, &response);
        return nd_strdup(response.allowed ? "allowed" : response.message);
}

static void old_kubelets_cannot_join_and_existing_ones_may_register([[maybe_unused]] void **state) {
        struct guard_world world;

        guard_world_make(&world);
        guard_world_tell(
                &world,
                "{\"kind\":\"NodeVersionFloor\",\"metadata\":{\"name\":\"cluster\"},\"spec\":{\"minimumKubeletVersion\":"
                "\"1.34.0\"},\"status\":{\"minimumKubeletVersion\":\"1.30.0\"}}");
        put_node(&world, "existing", "v1.36.3");
        expect_text(joined(&world, "system:node:fresh", "v1.33.9"),
                    "kubelet version v1.33.9 is below the minimum 1.34.0 of NodeVersionFloor cluster: upgrade it");
        expect_text(
                joined(&world, "system:node:fresh", "latest"),
                "kubelet version (none, or not readable) is below the minimum 1.34.0 of NodeVersionFloor cluster: upgrade it");
        expect_text(joined(&world, "system:node:", "v1.33.9"),
                    "kubelet version v1.33.9 is below the minimum 1.34.0 of NodeVersionFloor cluster: upgrade it");
        expect_text(joined(&world, "system:node:fresh", "v1.34.0"), "allowed");
        expect_text(joined(&world, "system:node:existing", "v1.29.6"), "allowed");
        expect_text(joined(&world, "cloud-controller", "v1.29.6"), "allowed");
        guard_world_tell(
                &world,
                "{\"kind\":\"NodeVersionFloor\",\"metadata\":{\"name\":\"cluster\"},\"spec\":{\"minimumKubeletVersion\":1}}");
        expect_text(joined(&world, "system:node:fresh", "v1.36.3"),
                    "the version floor cannot be read: correct NodeVersionFloor cluster");
        nd_api_table_remove(&world.store.floors, "cluster");
        expect_text(joined(&world, "system:node:fresh", "v1.0.0"), "allowed");
        guard_world_done(&world);
}

static void locked_nodes_get_no_certificates([[maybe_unused]] void **state) {
        struct guard_world world;
        char *text;

        guard_world_make(&world);
        guard_world_tell(
                &world,
                "{\"kind\":\"NodeVersionFloor\",\"metadata\":{\"name\":\"cluster\"},\"spec\":{\"minimumKubeletVersion\":"
                "\"1.30.0\"},\"status\":{\"minimumKubeletVersion\":\"1.30.0\"}}");
        put_node(&world, "old", "v1.29.6");
        put_node(&world, "new", "v1.36.3");
        text = decided(&world, "CREATE", "certificatesigningrequests", "", "system:node:old", "{}", nullptr);
        assert_non_null(strstr(text, "kubelet version \"v1.29.6\" of node \"old\" is below the minimum 1.30.0"));
        free(text);
        text = decided(&world, "CREATE", "certificatesigningrequests", "", "system:node:unknown", "{}", nullptr);
        assert_non_null(strstr(text, "has not reported"));
        free(text);
        expect_text(decided(&world, "CREATE", "certificatesigningrequests", "", "system:node:new", "{}", nullptr), "allowed");
        expect_text(decided(&world, "CREATE", "certificatesigningrequests", "", "system:bootstrap:abc", "{}", nullptr),
                    "allowed");
        guard_world_done(&world);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_floor_above_a_kubelet_is_refused_with_its_node),
                cmocka_unit_test(many_nodes_are_counted),
                cmocka_unit_test(a_floor_in_use_is_not_deleted),
                cmocka_unit_test(old_kubelets_cannot_join_and_existing_ones_may_register),
                cmocka_unit_test(locked_nodes_get_no_certificates),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
