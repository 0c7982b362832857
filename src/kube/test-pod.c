/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/pod.h"

#include <unit/expect.h>

#include "base/text.h"

static void decode(const char *json, struct nd_arena *arena, struct nd_pod *ret) {
        expect_ok(nd_pod_decode(json, strlen(json), arena, ret));
}

static void containers_are_walked_in_kubernetes_order([[maybe_unused]] void **state) {
        nd_autoarena struct nd_arena arena = {};
        struct nd_pod pod;
        const struct nd_pod_container *c;
        nd_autotext struct nd_text order = ND_TEXT(1000);
        size_t number;

        decode("{\"spec\": {\"containers\": [{\"name\": \"c\"}, {\"name\": \"d\"}], \"ephemeralContainers\": [{\"name\": \"e\"}],"
               " \"initContainers\": [{\"name\": \"i\"}]}}",
               &arena, &pod);
        for (size_t i = 0; (c = nd_pod_container(&pod.spec, i)); i++) {
                const char *list = nd_pod_container_list(&pod.spec, i, &number);

                nd_text_addf(&order, "%s=%s[%zu] ", c->name, list, number);
        }
        assert_string_equal(nd_text_get(&order),
                            "i=initContainers[0] c=containers[0] d=containers[1] e=ephemeralContainers[0] ");
}

static void a_whole_pod_is_read([[maybe_unused]] void **state) {
        nd_autoarena struct nd_arena arena = {};
        struct nd_pod pod;
        const struct nd_pod_container_context *security;

        decode("{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"p\", \"namespace\": \"n\","
               " \"annotations\": {\"k\": \"v\"}, \"labels\": {\"l\": \"w\"}},"
               " \"spec\": {\"hostUsers\": false, \"hostPID\": true, \"os\": {\"name\": \"windows\"}, \"serviceAccountName\": \"sa\","
               " \"securityContext\": {\"sysctls\": [{\"name\": \"a\", \"value\": \"1\"}], \"fsGroup\": 7, \"supplementalGroups\": [1]},"
               " \"volumes\": [{\"name\": \"v\", \"hostPath\": {\"path\": \"/\"}}, {\"name\": \"f\", \"flexVolume\": {\"driver\": \"d\"}},"
               " {\"name\": \"o\", \"projected\": {\"sources\": [{\"serviceAccountToken\": {\"path\": \"token\"}}]}}],"
               " \"containers\": [{\"name\": \"c\", \"ports\": [{\"hostPort\": 80}], \"securityContext\": {\"runAsUser\": 0,"
               " \"privileged\": true, \"capabilities\": {\"add\": [\"X\"]}, \"procMount\": \"Unmasked\"},"
               " \"livenessProbe\": {\"httpGet\": {\"host\": \"h\", \"port\": 1}}, \"volumeDevices\": [{\"name\": \"d\"}]}]}}",
               &arena, &pod);
        security = pod.spec.containers.items[0].security;
        assert_string_equal(nd_shape_pairs_get(&pod.metadata.annotations, "k"), "v");
        assert_true(nd_pod_has_user_namespace(&pod));
        assert_true(nd_pod_is_windows(&pod));
        assert_true(pod.spec.host_pid && !pod.spec.host_ipc);
        assert_int_equal(pod.spec.security->fs_group.value, 7);
        assert_int_equal(pod.spec.volumes.items[0].sources, nd_pod_volume_bit(ND_VOLUME_HOST_PATH));
        assert_int_equal(pod.spec.volumes.items[1].sources, nd_pod_volume_bit(ND_VOLUME_FLEX_VOLUME));
        assert_string_equal(pod.spec.volumes.items[1].flex->driver, "d");
        assert_string_equal(pod.spec.volumes.items[2].projected->sources.items[0].token->path, "token");
        assert_int_equal(pod.spec.containers.items[0].ports.items[0].host_port.value, 80);
        assert_string_equal(pod.spec.containers.items[0].liveness->http->host, "h");
        assert_true(security->run_as_user.set && security->run_as_user.value == 0);
        assert_int_equal(security->privileged, ND_ON);
        assert_string_equal(security->capabilities->add.items[0], "X");
}

static void every_volume_source_has_its_name([[maybe_unused]] void **state) {
        for (enum nd_pod_volume_source source = 0; source < ND_VOLUME_SOURCES; source++) {
                nd_autoarena struct nd_arena arena = {};
                nd_autofree char *json =
                        nd_format("{\"spec\": {\"volumes\": [{\"%s\": {}}]}}", nd_pod_volume_source_names[source]);
                struct nd_pod pod;

                decode(json, &arena, &pod);
                assert_int_equal(pod.spec.volumes.items[0].sources, nd_pod_volume_bit(source));
        }
}

static void changing_a_copy_leaves_the_original_unchanged([[maybe_unused]] void **state) {
        nd_autoarena struct nd_arena arena = {};
        struct nd_pod pod, *copy;

        decode("{\"metadata\": {\"annotations\": {\"b\": \"1\"}}, \"spec\": {\"containers\": [{\"securityContext\": {}}, {}]}}",
               &arena, &pod);
        copy = nd_pod_copy(&pod, &arena);
        copy->spec.host_users = ND_OFF;
        copy->spec.containers.items[0].security->privileged = ND_ON;
        nd_pod_container_own_context(&copy->spec.containers.items[1], &arena)->privileged = ND_ON;
        nd_pod_own_context(copy, &arena)->fs_group = ND_INT(3);
        copy->metadata.annotations.items[0].value = "2";
        assert_int_equal(pod.spec.host_users, ND_UNSET);
        assert_int_equal(pod.spec.containers.items[0].security->privileged, ND_UNSET);
        assert_null(pod.spec.containers.items[1].security);
        assert_null(pod.spec.security);
        assert_string_equal(nd_shape_pairs_get(&pod.metadata.annotations, "b"), "1");
        assert_string_equal(nd_shape_pairs_get(&copy->metadata.annotations, "b"), "2");
}

static void a_pod_has_a_size_limit([[maybe_unused]] void **state) {
        nd_autoarena struct nd_arena arena = {};
        nd_autofree char *huge = nd_malloc(ND_POD_BYTES + 2);
        struct nd_pod pod;

        memset(huge, ' ', ND_POD_BYTES + 1);
        expect_error(nd_pod_decode(huge, ND_POD_BYTES + 1, &arena, &pod), ND_INVALID, "at most");
        memset(huge, '[', 100);
        expect_error(nd_pod_decode(huge, 100, &arena, &pod), ND_INVALID, "deeper");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(containers_are_walked_in_kubernetes_order),
                cmocka_unit_test(a_whole_pod_is_read),
                cmocka_unit_test(every_volume_source_has_its_name),
                cmocka_unit_test(changing_a_copy_leaves_the_original_unchanged),
                cmocka_unit_test(a_pod_has_a_size_limit),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
