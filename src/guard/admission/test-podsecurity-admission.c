/* SPDX-License-Identifier: Apache-2.0 */
/* The flow of pod security. tests/component/guard/test_pod_security.py compares the texts with the
 * plugin's. */
#include "guard/admission/podsecurity-admission.h"

#include <unit/expect.h>
#include <unit/guard-world.h>

#include "guard/admission/podsecurity-scan.h"

#define BAD                                                                                                                   \
        "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\"},\"spec\":{\"hostPID\":true,\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}"
#define DEPLOYMENT                                                                                                            \
        "{\"kind\":\"Deployment\",\"metadata\":{\"name\":\"d\"},\"spec\":{\"template\":{\"spec\":{\"hostPID\":true,"          \
        "\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}}}"
#define LABEL(name, value) "\"pod-security.nodens.io/" name "\":\"" value "\""

struct asking {
        const char *labels; /* of the namespace n */
        const char *group, *resource, *subresource, *operation, *user, *namespace;
        const char *object, *old;
};

static void read_review(const struct asking *asking, struct nd_arena *arena, struct guard_review *ret) {
        nd_autofree char *text = nd_format(
                "{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"request\":{\"uid\":\"u\",\"operation\":\"%s\","
                "\"resource\":{\"group\":\"%s\",\"resource\":\"%s\"},\"subResource\":\"%s\",\"namespace\":\"%s\",\"name\":\"p\",\"userInfo\":"
                "{\"username\":\"%s\"},\"object\":%s,\"oldObject\":%s}}",
                asking->operation ? asking->operation : "CREATE", nd_kube_or_empty(asking->group),
                asking->resource ? asking->resource : "pods", nd_kube_or_empty(asking->subresource),
                asking->namespace ? asking->namespace : "n", asking->user ? asking->user : "alice", asking->object,
                asking->old ? asking->old : "null");

        expect_ok(guard_review_decode(text, strlen(text), arena, ret));
}

/* Returns "allowed" or the denial, then warnings and audit annotations. */
static char *judged(struct guard_world *world, struct asking asking) {
        nd_autofree char *namespace = nd_format("{\"kind\":\"Namespace\",\"metadata\":{\"name\":\"n\",\"labels\":{%s}}}",
                                                nd_kube_or_empty(asking.labels));
        nd_autotext struct nd_text text = ND_TEXT(1 << 20);
        struct guard_review review;
        struct guard_response response;
        nd_autoarena struct nd_arena arena = {};

        guard_world_tell(world, namespace);
        read_review(&asking, &arena, &review);
        guard_podsecurity_decide(&world->standards, &world->store, &review, &arena, &response);
        nd_text_add(&text, response.allowed ? "allowed" : response.message);
        for (size_t i = 0; i < response.warning_count; i++)
                nd_text_addf(&text, " warning: %s", response.warnings[i]);
        for (size_t i = 0; i < response.audit_count; i++)
                nd_text_addf(&text, " [%s=%s]", response.audit[i].key, response.audit[i].value);
        return nd_text_steal(&text);
}

static void expect_judged(struct guard_world *world, struct asking asking, const char *text) {
        nd_autofree char *found = judged(world, asking);

        assert_string_equal(found, text);
}

static void a_level_is_enforced_audited_and_warned_about([[maybe_unused]] void **state) {
        nd_cleanup(guard_world_done) struct guard_world world = {};

        guard_world_make(&world);
        expect_judged(&world, (struct asking) {.labels = LABEL("enforce", "baseline"), .object = BAD},
                      "pods \"p\" is forbidden: violates PodSecurity \"baseline:latest\": host namespaces (hostPID=true) "
                      "[enforce-policy=baseline:latest]");
        expect_judged(&world,
                      (struct asking) {.labels = LABEL("warn", "baseline") "," LABEL("warn-version", "v1.30"), .object = BAD},
                      "allowed warning: would violate PodSecurity \"baseline:v1.30\": host namespaces (hostPID=true) "
                      "[enforce-policy=privileged:latest]");
        expect_judged(
                &world, (struct asking) {.labels = LABEL("audit", "baseline"), .object = BAD},
                "allowed [enforce-policy=privileged:latest] [audit-violations=would violate PodSecurity \"baseline:latest\": host "
                "namespaces (hostPID=true)]");
        expect_judged(&world, (struct asking) {.object = BAD}, "allowed [enforce-policy=privileged:latest]");
}

static void invalid_labels_enforce_the_strictest_level([[maybe_unused]] void **state) {
        nd_cleanup(guard_world_done) struct guard_world world = {};
        nd_autofree char *found = nullptr;

        guard_world_make(&world);
        found = judged(&world, (struct asking) {.labels = LABEL("enforce", "mild"), .object = BAD});
        expect_contains(found, "violates PodSecurity \"restricted:latest\"");
        expect_contains(
                found,
                "[error=Failed to parse policy: metadata.labels[pod-security.nodens.io/enforce]: Invalid value: \"mild\"");
}

static void workload_controllers_are_never_denied([[maybe_unused]] void **state) {
        nd_cleanup(guard_world_done) struct guard_world world = {};

        guard_world_make(&world);
        expect_judged(&world,
                      (struct asking) {.labels = LABEL("enforce", "baseline"),
                                       .group = "apps",
                                       .resource = "deployments",
                                       .object = DEPLOYMENT},
                      "allowed warning: would violate PodSecurity \"baseline:latest\": host namespaces (hostPID=true)");
        expect_judged(&world,
                      (struct asking) {.labels = LABEL("enforce", "baseline"),
                                       .group = "apps",
                                       .resource = "deployments",
                                       .subresource = "scale",
                                       .object = DEPLOYMENT},
                      "allowed");
}

static void exempt_requests_are_not_evaluated([[maybe_unused]] void **state) {
        nd_cleanup(guard_world_done) struct guard_world world = {};

        guard_world_make(&world);
        nd_strings_add(&world.standards.users, "root");
        nd_strings_add(&world.standards.namespaces, "kube-system");
        nd_strings_add(&world.standards.runtime_classes, "vm");
        expect_judged(&world, (struct asking) {.labels = LABEL("enforce", "restricted"), .user = "root", .object = BAD},
                      "allowed [exempt=user]");
        expect_judged(&world, (struct asking) {.namespace = "kube-system", .object = BAD}, "allowed [exempt=namespace]");
        expect_judged(&world,
                      (struct asking) {.labels = LABEL("enforce", "restricted"),
                                       .object = "{\"kind\":\"Pod\",\"spec\":{\"runtimeClassName\":\"vm\",\"hostPID\":true}}"},
                      "allowed [exempt=runtimeClass]");
        expect_judged(
                &world,
                (struct asking) {.resource = "namespaces",
                                 .namespace = "kube-system",
                                 .object = "{\"metadata\":{\"labels\":{" LABEL("warn", "baseline") "}}}"},
                "allowed warning: namespace \"p\" is exempt from Pod Security, and the policy (warn=baseline:latest) will be ignored");
}

static void only_images_and_new_ephemeral_containers_matter_in_updates([[maybe_unused]] void **state) {
#define OF(image, more)                                                                                                       \
        "{\"kind\":\"Pod\",\"spec\":{\"hostPID\":true,\"containers\":[{\"name\":\"c\",\"image\":\"" image "\"}]" more "}}"
        static const struct {
                const char *object;
                bool matters;
        } cases[] = {
                {OF("i", ",\"priority\":5"), false},
                {OF("j", ""), true},
                {OF("i", ",\"ephemeralContainers\":[{\"name\":\"e\",\"image\":\"x\"}]"), true},
                {OF("i", ",\"initContainers\":[{\"name\":\"e\",\"image\":\"x\"}]"), true},
        };
        nd_cleanup(guard_world_done) struct guard_world world = {};

        guard_world_make(&world);
        for (size_t i = 0; i < nd_count_of(cases); i++) {
                nd_autofree char *found = judged(&world, (struct asking) {.labels = LABEL("enforce", "baseline"),
                                                                          .operation = "UPDATE",
                                                                          .object = cases[i].object,
                                                                          .old = OF("i", "")});

                assert_int_equal(strstr(found, "violates") != nullptr, cases[i].matters);
        }
}

static void a_namespace_with_new_invalid_labels_is_denied([[maybe_unused]] void **state) {
#define NAMED(labels) "{\"metadata\":{\"labels\":{" labels "}}}"
        nd_cleanup(guard_world_done) struct guard_world world = {};
        const char *wrong = NAMED(LABEL("enforce", "mild"));
        nd_autofree char *found = nullptr;

        guard_world_make(&world);
        found = judged(&world, (struct asking) {.resource = "namespaces", .object = wrong});
        expect_contains(
                found, "Namespace \"p\" is invalid: metadata.labels[pod-security.nodens.io/enforce]: Invalid value: \"mild\"");
        expect_judged(&world, (struct asking) {.resource = "namespaces", .operation = "UPDATE", .object = wrong, .old = wrong},
                      "allowed");
}

static enum guard_podsecurity_need wanted(struct guard_world *world, const char *labels, const char *old) {
        struct asking asking = {.resource = "namespaces", .operation = "UPDATE", .object = labels, .old = old};
        struct nd_podsecurity_rule rule;
        struct guard_review review;
        nd_autoarena struct nd_arena arena = {};

        read_review(&asking, &arena, &review);
        return guard_podsecurity_needs(&world->standards, &world->store, &review, &arena, &rule);
}

static void pods_are_scanned_when_a_level_gets_stricter([[maybe_unused]] void **state) {
        nd_cleanup(guard_world_done) struct guard_world world = {};
        const char *none = NAMED(""), *baseline = NAMED(LABEL("enforce", "baseline")),
                   *restricted = NAMED(LABEL("enforce", "restricted"));

        guard_world_make(&world);
        assert_int_equal(wanted(&world, baseline, none), GUARD_PODSECURITY_NEEDS_PODS);
        assert_int_equal(wanted(&world, restricted, baseline), GUARD_PODSECURITY_NEEDS_PODS);
        assert_int_equal(wanted(&world, baseline, restricted), GUARD_PODSECURITY_NEEDS_NOTHING);
        assert_int_equal(wanted(&world, baseline, baseline), GUARD_PODSECURITY_NEEDS_NOTHING);
        assert_int_equal(wanted(&world, none, baseline), GUARD_PODSECURITY_NEEDS_NOTHING);
}

static void a_scan_names_pods_that_would_be_denied([[maybe_unused]] void **state) {
        static const char pods[] =
                "[{\"metadata\":{\"name\":\"b\"},\"spec\":{\"hostPID\":true}},{\"metadata\":{\"name\":\"a\"},\"spec\":"
                "{\"hostPID\":true}},{\"metadata\":{\"name\":\"c\"},\"spec\":{\"hostPID\":true}},"
                "{\"metadata\":{\"name\":\"good\"},\"spec\":{}},{\"metadata\":{\"name\":\"v\"},\"spec\":{\"volumes\":"
                "[{\"name\":\"x\",\"hostPath\":{}}]}}]";
        nd_cleanup(guard_world_done) struct guard_world world = {};
        nd_cleanup(guard_podsecurity_scan_done) struct guard_podsecurity_scan scan = {
                .standards = &world.standards, .rule = {.level = ND_LEVEL_BASELINE, .version = ND_POLICY_LATEST}};
        struct guard_response response = {.allowed = true};
        nd_autoarena struct nd_arena arena = {};
        nd_autojson yyjson_doc *doc = nullptr;

        guard_world_make(&world);
        expect_ok(nd_json_parse(pods, strlen(pods), 1 << 20, &doc));
        guard_podsecurity_scan_add(&scan, yyjson_doc_get_root(doc));
        guard_podsecurity_scan_skip(&scan, 7);
        guard_podsecurity_scan_report(&scan, "n", &arena, &response);
        assert_int_equal(response.warning_count, 4);
        assert_string_equal(response.warnings[0],
                            "new PodSecurity enforce level only checked against the first 5 of 12 existing pods");
        assert_string_equal(response.warnings[1],
                            "existing pods in namespace \"n\" violate the new PodSecurity enforce level \"baseline:latest\"");
        assert_string_equal(response.warnings[2], "a (and 2 other pods): host namespaces");
        assert_string_equal(response.warnings[3], "v: hostPath volumes");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_level_is_enforced_audited_and_warned_about),
                cmocka_unit_test(invalid_labels_enforce_the_strictest_level),
                cmocka_unit_test(workload_controllers_are_never_denied),
                cmocka_unit_test(exempt_requests_are_not_evaluated),
                cmocka_unit_test(only_images_and_new_ephemeral_containers_matter_in_updates),
                cmocka_unit_test(a_namespace_with_new_invalid_labels_is_denied),
                cmocka_unit_test(pods_are_scanned_when_a_level_gets_stricter),
                cmocka_unit_test(a_scan_names_pods_that_would_be_denied),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
