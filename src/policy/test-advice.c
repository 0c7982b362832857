/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/advice.h"

#include <unit/expect.h>

/* The edits, joined by "; ". */
static char *advise(const char *json, enum nd_podsecurity_level level, const char *version) {
        nd_autoarena struct nd_arena arena = {};
        nd_cleanup(nd_advice_done) struct nd_advice advice = {};
        struct nd_podsecurity_rule rule = {.level = level};
        nd_autotext struct nd_text text = ND_TEXT(10000);
        struct nd_pod pod;

        expect_ok(nd_pod_decode(json, strlen(json), &arena, &pod));
        assert_int_equal(nd_kube_version_parse(version, &rule.version), 0);
        nd_advice_find(&pod, &rule, false, &arena, &advice);
        assert_true(advice.reached);
        nd_vector_each (edit, &advice.edits)
                nd_text_addf(&text, "%s%s%s%s", text.length > 0 ? "; " : "", edit->path, edit->value ? " = " : " removed",
                             edit->value ? edit->value : "");
        return nd_strdup(nd_text_get(&text));
}

#define GOOD                                                                                                                  \
        "\"allowPrivilegeEscalation\": false, \"capabilities\": {\"drop\": [\"ALL\"]}, \"seccompProfile\": {\"type\": \"Localhost\"}"
#define POD(spec, context) "{\"spec\": {" spec " \"containers\": [{\"name\": \"a\", \"securityContext\": {" context "}}]}}"

static void a_user_namespace_lets_a_pod_stay_root([[maybe_unused]] void **state) {
        expect_text(advise(POD("", GOOD ", \"runAsUser\": 0"), ND_LEVEL_RESTRICTED, "latest"), "spec.hostUsers = false");
        expect_text(advise(POD("", GOOD), ND_LEVEL_RESTRICTED, "latest"),
                    "spec.hostUsers = false"); /* as many edits as without */
        expect_text(advise(POD("", GOOD ", \"runAsUser\": 0"), ND_LEVEL_RESTRICTED, "v1.34"),
                    "spec.securityContext.runAsNonRoot = true; spec.containers[0].securityContext.runAsUser removed");
}

static void a_pod_that_meets_the_level_gets_no_advice([[maybe_unused]] void **state) {
        expect_text(advise(POD("\"hostUsers\": false,", GOOD), ND_LEVEL_RESTRICTED, "latest"), "");
        expect_text(advise(POD("", ""), ND_LEVEL_BASELINE, "latest"), "");
}

static void only_forbidden_fields_are_removed([[maybe_unused]] void **state) {
        expect_text(
                advise("{\"spec\": {\"securityContext\": {\"sysctls\": [{\"name\": \"net.ipv4.tcp_syncookies\"}, {\"name\": \"x\"}], "
                       "\"seLinuxOptions\": {\"type\": \"container_t\", \"user\": \"u\", \"level\": \"s0\"}}}}",
                       ND_LEVEL_BASELINE, "latest"),
                "spec.securityContext.seLinuxOptions.user removed; spec.securityContext.sysctls[1] removed");
        expect_text(advise(POD("", "\"capabilities\": {\"add\": [\"CHOWN\", \"SYS_ADMIN\"]}"), ND_LEVEL_BASELINE, "latest"),
                    "spec.containers[0].securityContext.capabilities.add = [\"CHOWN\"]");
}

static void every_violation_has_a_fix([[maybe_unused]] void **state) {
        nd_autofree char *text = advise(
                "{\"metadata\": {\"annotations\": {\"container.apparmor.security.beta.kubernetes.io/a\": \"unconfined\"}}, \"spec\": {"
                "\"hostNetwork\": true, \"hostPID\": true, \"hostIPC\": true, \"volumes\": [{\"name\": \"v\", \"hostPath\": {}}, {\"nfs\": {}}], "
                "\"securityContext\": {\"windowsOptions\": {\"hostProcess\": true}, \"seccompProfile\": {\"type\": \"Unconfined\"}}, "
                "\"initContainers\": [{\"ports\": [{\"hostPort\": 1}], \"lifecycle\": {\"preStop\": {\"httpGet\": {\"host\": \"h\"}}}}], "
                "\"containers\": [{\"securityContext\": {\"privileged\": true, \"procMount\": \"Unmasked\", \"runAsNonRoot\": false, "
                "\"appArmorProfile\": {\"type\": \"Unconfined\"}, \"seccompProfile\": {\"type\": \"Unconfined\"}}}]}}",
                ND_LEVEL_RESTRICTED, "latest");

        expect_contains(text, "spec.hostNetwork removed");
        expect_contains(text, "spec.volumes[0] removed");
        expect_contains(text, "spec.initContainers[0].lifecycle.preStop.httpGet.host removed");
        expect_contains(text, "metadata.annotations[container.apparmor.security.beta.kubernetes.io/a] removed");
}

static void a_removed_volume_takes_its_mounts_along([[maybe_unused]] void **state) {
        static const char pod[] =
                "{\"spec\": {\"volumes\": [{\"name\": \"a\", \"hostPath\": {}}, {\"name\": \"b\", \"emptyDir\": {}}, {\"name\": "
                "\"c\", \"hostPath\": {}}], \"initContainers\": [{\"volumeMounts\": [{\"name\": \"c\"}]}], \"containers\": [{\"name\": "
                "\"x\"}, {\"volumeMounts\": [{\"name\": \"c\"}, {\"name\": \"b\"}, {\"name\": \"a\"}]}]}}";

        expect_text(advise(pod, ND_LEVEL_BASELINE, "latest"),
                    "spec.volumes[0] removed; spec.volumes[2] removed; spec.initContainers[0].volumeMounts[0] removed; "
                    "spec.containers[1].volumeMounts[0] removed; spec.containers[1].volumeMounts[2] removed");
}

static void the_fields_of_one_check_are_found([[maybe_unused]] void **state) {
        static const char json[] = POD("\"hostPID\": true, \"hostIPC\": true,", "\"privileged\": true");
        const struct nd_podsecurity_rule rule = {.level = ND_LEVEL_BASELINE, .version = ND_POLICY_LATEST};
        nd_cleanup(nd_advice_done) struct nd_advice namespaces = {}, privileged = {}, nothing = {};
        nd_autoarena struct nd_arena arena = {};
        struct nd_pod pod;

        expect_ok(nd_pod_decode(json, strlen(json), &arena, &pod));
        nd_advice_fields(&pod, &rule, "hostNamespaces", &arena, &namespaces);
        assert_int_equal(namespaces.edits.count, 2);
        assert_string_equal(namespaces.edits.items[0].path, "spec.hostPID");
        assert_string_equal(namespaces.edits.items[1].path, "spec.hostIPC");
        nd_advice_fields(&pod, &rule, "privileged", &arena, &privileged);
        assert_int_equal(privileged.edits.count, 1);
        assert_string_equal(privileged.edits.items[0].path, "spec.containers[0].securityContext.privileged");
        nd_advice_fields(&pod, &rule, "hostPorts", &arena, &nothing);
        assert_int_equal(nothing.edits.count, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_user_namespace_lets_a_pod_stay_root),
                cmocka_unit_test(a_pod_that_meets_the_level_gets_no_advice),
                cmocka_unit_test(only_forbidden_fields_are_removed),
                cmocka_unit_test(every_violation_has_a_fix),
                cmocka_unit_test(a_removed_volume_takes_its_mounts_along),
                cmocka_unit_test(the_fields_of_one_check_are_found),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
