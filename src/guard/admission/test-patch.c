/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/admission/patch.h"

#include <unit/expect.h>

static struct nd_pod *decode(struct nd_arena *arena, const char *json) {
        struct nd_pod *pod = nd_arena_new(arena, struct nd_pod);

        expect_ok(nd_pod_decode(json, strlen(json), arena, pod));
        return pod;
}

static void an_unchanged_pod_gives_no_patch([[maybe_unused]] void **state) {
        nd_autoarena struct nd_arena arena = {};
        struct nd_pod *pod = decode(&arena, "{\"spec\": {\"containers\": [{\"name\": \"c\"}]}}");

        assert_null(guard_patch_make(pod, nd_pod_copy(pod, &arena), nullptr, 0, &arena));
}

static void a_missing_object_is_added_as_a_whole([[maybe_unused]] void **state) {
        nd_autoarena struct nd_arena arena = {};
        struct nd_pod *before = decode(&arena, "{\"spec\": {\"containers\": [{\"name\": \"c\"}]}}"),
                      *after = nd_pod_copy(before, &arena);

        nd_pod_own_context(after, &arena)->fs_group = ND_INT(7);
        nd_pod_container_own_context(&after->spec.containers.items[0], &arena)->run_as_user = ND_INT(1000);
        after->spec.containers.items[0].security->run_as_non_root = ND_ON;
        after->spec.host_users = ND_OFF;
        assert_string_equal(
                guard_patch_make(before, after, nullptr, 0, &arena),
                "[{\"op\": \"add\", \"path\": \"/spec/hostUsers\", \"value\": false}, "
                "{\"op\": \"add\", \"path\": \"/spec/securityContext\", \"value\": {\"fsGroup\": 7}}, "
                "{\"op\": \"add\", \"path\": \"/spec/containers/0/securityContext\", \"value\": {\"runAsUser\": 1000, \"runAsNonRoot\": true}}]");
}

static void an_existing_object_is_never_replaced([[maybe_unused]] void **state) {
        static const struct nd_shape_pair annotation[] = {{.key = "a.b/c~d", .value = "v"}};
        nd_autoarena struct nd_arena arena = {};
        struct nd_pod *before = decode(
                &arena,
                "{\"metadata\": {\"annotations\": {\"x\": \"y\"}}, \"spec\": {\"securityContext\": {}, \"initContainers\": "
                "[{\"name\": \"i\"}], \"containers\": [{\"name\": \"c\", \"securityContext\": {\"capabilities\": "
                "{\"add\": [\"KILL\"]}}}]}}");
        struct nd_pod *after = nd_pod_copy(before, &arena);
        struct nd_pod_capabilities *capabilities = nd_arena_new(&arena, struct nd_pod_capabilities);

        *capabilities = *before->spec.containers.items[0].security->capabilities;
        capabilities->drop = (struct nd_shape_texts) {.items = (const char *[]) {"ALL"}, .count = 1};
        nd_pod_container_own_context(&after->spec.containers.items[0], &arena)->capabilities = capabilities;
        nd_pod_own_context(after, &arena)->fs_group = ND_INT(7);
        assert_string_equal(
                guard_patch_make(before, after, annotation, 1, &arena),
                "[{\"op\": \"add\", \"path\": \"/spec/securityContext/fsGroup\", \"value\": 7}, "
                "{\"op\": \"add\", \"path\": \"/spec/containers/0/securityContext/capabilities/drop\", \"value\": [\"ALL\"]}, "
                "{\"op\": \"add\", \"path\": \"/metadata/annotations/a.b~1c~0d\", \"value\": \"v\"}]");
}

static void the_first_annotation_adds_the_object([[maybe_unused]] void **state) {
        static const struct nd_shape_pair annotations[] = {{.key = "k/1", .value = "v"}, {.key = "k/2", .value = "w"}};
        nd_autoarena struct nd_arena arena = {};
        struct nd_pod *pod = decode(&arena, "{\"spec\": {}}");

        assert_string_equal(guard_patch_make(pod, pod, annotations, 2, &arena),
                            "[{\"op\": \"add\", \"path\": \"/metadata/annotations\", \"value\": {\"k/1\": \"v\"}}, "
                            "{\"op\": \"add\", \"path\": \"/metadata/annotations/k~12\", \"value\": \"w\"}]");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_unchanged_pod_gives_no_patch),
                cmocka_unit_test(a_missing_object_is_added_as_a_whole),
                cmocka_unit_test(an_existing_object_is_never_replaced),
                cmocka_unit_test(the_first_annotation_adds_the_object),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
