/* SPDX-License-Identifier: Apache-2.0 */
/* Cases worth seeing at a glance. tests/component/policy compares the texts with Kubernetes' own
 * code, pod by pod. */
#include "policy/podsecurity.h"

#include <unit/expect.h>

static void decode(const char *json, struct nd_arena *arena, struct nd_pod *ret) {
        expect_ok(nd_pod_decode(json, strlen(json), arena, ret));
}

/* Returns the violations of the pod; "" if it is allowed. */
static char *verdict(const char *json, enum nd_podsecurity_level level, const char *version_text) {
        nd_autoarena struct nd_arena arena = {};
        nd_autotext struct nd_text text = ND_TEXT(ND_PODSECURITY_TEXT);
        struct nd_podsecurity_rule rule = {.level = level};
        struct nd_podsecurity_findings findings;
        struct nd_pod pod;

        decode(json, &arena, &pod);
        assert_int_equal(nd_kube_version_parse(version_text, &rule.version), 0);
        nd_podsecurity_evaluate(&rule, &pod, &arena, &findings);
        nd_podsecurity_details(&findings, &text);
        return nd_strdup(nd_text_get(&text));
}

#define GOOD                                                                                                                  \
        "\"allowPrivilegeEscalation\": false, \"capabilities\": {\"drop\": [\"ALL\"]}, \"seccompProfile\": {\"type\": \"RuntimeDefault\"}"
#define POD(spec, context) "{\"spec\": {" spec " \"containers\": [{\"name\": \"a\", \"securityContext\": {" context "}}]}}"

static void a_bare_pod_is_baseline([[maybe_unused]] void **state) {
        static const char pod[] = "{\"spec\": {\"containers\": [{\"name\": \"a\"}, {\"name\": \"b\"}]}}";

        expect_text(verdict(pod, ND_LEVEL_BASELINE, "latest"), "");
        expect_text(
                verdict(pod, ND_LEVEL_RESTRICTED, "latest"),
                "allowPrivilegeEscalation != false (containers \"a\", \"b\" must set securityContext.allowPrivilegeEscalation=false), "
                "unrestricted capabilities (containers \"a\", \"b\" must set securityContext.capabilities.drop=[\"ALL\"]), "
                "runAsNonRoot != true (pod or containers \"a\", \"b\" must set securityContext.runAsNonRoot=true), "
                "seccompProfile (pod or containers \"a\", \"b\" must set securityContext.seccompProfile.type to \"RuntimeDefault\" or "
                "\"Localhost\")");
        expect_text(verdict(pod, ND_LEVEL_RESTRICTED, "v1.0"),
                    "runAsNonRoot != true (pod or containers \"a\", \"b\" must set securityContext.runAsNonRoot=true)");
}

static void root_in_a_user_namespace_is_restricted_from_1_35_on([[maybe_unused]] void **state) {
        static const char with[] = POD("\"hostUsers\": false,", GOOD ", \"runAsUser\": 0");
        static const char without[] = POD("\"hostUsers\": true,", GOOD ", \"runAsUser\": 0");
        static const char refused[] =
                "runAsNonRoot != true (pod or container \"a\" must set securityContext.runAsNonRoot=true), "
                "runAsUser=0 (container \"a\" must not set runAsUser=0)";

        expect_text(verdict(with, ND_LEVEL_RESTRICTED, "v1.35"), "");
        expect_text(verdict(with, ND_LEVEL_RESTRICTED, "latest"), "");
        expect_text(verdict(with, ND_LEVEL_RESTRICTED, "v1.99"), "");
        expect_text(verdict(with, ND_LEVEL_RESTRICTED, "v1.34"), refused);
        expect_text(verdict(without, ND_LEVEL_RESTRICTED, "latest"), refused);
}

static void an_unmasked_proc_is_baseline_in_a_user_namespace_and_never_restricted([[maybe_unused]] void **state) {
        static const char with[] = POD("\"hostUsers\": false,", GOOD ", \"procMount\": \"Unmasked\"");
        static const char refused[] = "procMount (container \"a\" must not set securityContext.procMount to \"Unmasked\")";

        expect_text(verdict(with, ND_LEVEL_BASELINE, "v1.35"), "");
        expect_text(verdict(with, ND_LEVEL_BASELINE, "v1.34"), refused);
        expect_text(verdict(with, ND_LEVEL_RESTRICTED, "v1.35"), refused);
}

static void nothing_else_is_relaxed_in_a_user_namespace([[maybe_unused]] void **state) {
        expect_text(verdict(POD("\"hostUsers\": false,", "\"privileged\": true"), ND_LEVEL_BASELINE, "latest"),
                    "privileged (container \"a\" must not set securityContext.privileged=true)");
        expect_text(
                verdict(POD("\"hostUsers\": false,", "\"capabilities\": {\"add\": [\"SYS_ADMIN\"]}"), ND_LEVEL_BASELINE,
                        "latest"),
                "non-default capabilities (container \"a\" must not include \"SYS_ADMIN\" in securityContext.capabilities.add)");
        expect_text(
                verdict("{\"spec\": {\"hostUsers\": false, \"hostNetwork\": true, \"volumes\": [{\"name\": \"v\", \"hostPath\": {}}]}}",
                        ND_LEVEL_BASELINE, "latest"),
                "host namespaces (hostNetwork=true), hostPath volumes (volume \"v\")");
}

static void a_restricted_check_replaces_the_baseline_one([[maybe_unused]] void **state) {
        expect_text(verdict("{\"spec\": {\"volumes\": [{\"name\": \"v\", \"hostPath\": {}}]}}", ND_LEVEL_RESTRICTED, "latest"),
                    "restricted volume types (volume \"v\" uses restricted volume type \"hostPath\")");
}

static void the_level_of_a_pod_is_the_strictest_it_meets([[maybe_unused]] void **state) {
        static const struct {
                const char *pod;
                enum nd_podsecurity_level level;
        } cases[] = {
                {POD("\"hostUsers\": false,", GOOD), ND_LEVEL_RESTRICTED},
                {POD("", GOOD), ND_LEVEL_BASELINE},
                {POD("\"hostIPC\": true,", GOOD), ND_LEVEL_PRIVILEGED},
        };

        for (size_t i = 0; i < nd_count_of(cases); i++) {
                nd_autoarena struct nd_arena arena = {};
                struct nd_pod pod;

                decode(cases[i].pod, &arena, &pod);
                assert_int_equal(nd_podsecurity_level(&pod, ND_POLICY_LATEST, &arena), cases[i].level);
        }
}

static void invalid_enforce_labels_fail_closed([[maybe_unused]] void **state) {
        nd_autoarena struct nd_arena arena = {};
        nd_cleanup(nd_field_errors_done) struct nd_field_errors errors = {.arena = &arena};
        const struct nd_podsecurity_rule lax = {.version = ND_POLICY_LATEST};
        struct nd_shape_pair pairs[] = {{"pod-security.kubernetes.io/audit", "nonsense"},
                                        {"pod-security.kubernetes.io/enforce", "Restricted"},
                                        {"pod-security.kubernetes.io/enforce-version", "1.24"}};
        struct nd_podsecurity_policy policy;
        nd_autotext struct nd_text text = ND_TEXT(1000);

        nd_podsecurity_of_labels(&(struct nd_shape_pairs) {pairs, 3}, ND_PODSECURITY_PREFIX,
                                 &(struct nd_podsecurity_policy) {lax, lax, lax}, &policy, &errors);
        assert_int_equal(policy.enforce.level, ND_LEVEL_RESTRICTED);
        assert_true(policy.enforce.version.latest);
        assert_int_equal(policy.audit.level, ND_LEVEL_PRIVILEGED);
        assert_int_equal(policy.warn.level, ND_LEVEL_PRIVILEGED);
        nd_field_errors_print(&errors, &text);
        expect_contains(nd_text_get(&text),
                        "metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: \"Restricted\": must be one of "
                        "privileged, baseline, restricted");
        assert_int_equal(errors.items.count, 3);
}

static void enforced_levels_are_also_warned_about([[maybe_unused]] void **state) {
        nd_autoarena struct nd_arena arena = {};
        nd_cleanup(nd_field_errors_done) struct nd_field_errors errors = {.arena = &arena};
        const struct nd_podsecurity_rule lax = {.version = ND_POLICY_LATEST};
        struct nd_shape_pair pairs[] = {{"x/enforce", "baseline"}, {"x/enforce-version", "v1.30"}};
        struct nd_podsecurity_policy policy;

        nd_podsecurity_of_labels(&(struct nd_shape_pairs) {pairs, 2}, "x/", &(struct nd_podsecurity_policy) {lax, lax, lax},
                                 &policy, &errors);
        assert_int_equal(policy.warn.level, ND_LEVEL_BASELINE);
        assert_int_equal(policy.warn.version.minor, 30);
        assert_int_equal(errors.items.count, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_bare_pod_is_baseline),
                cmocka_unit_test(root_in_a_user_namespace_is_restricted_from_1_35_on),
                cmocka_unit_test(an_unmasked_proc_is_baseline_in_a_user_namespace_and_never_restricted),
                cmocka_unit_test(nothing_else_is_relaxed_in_a_user_namespace),
                cmocka_unit_test(a_restricted_check_replaces_the_baseline_one),
                cmocka_unit_test(the_level_of_a_pod_is_the_strictest_it_meets),
                cmocka_unit_test(invalid_enforce_labels_fail_closed),
                cmocka_unit_test(enforced_levels_are_also_warned_about),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
