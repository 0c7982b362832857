/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the default constraints admits a pod. */
#include "policy/scc.h"

#include <unit/expect.h>

/* A request about one pod. */
struct asking {
        const char *granted; /* names, space separated; nullptr: all */
        enum nd_scc_userns userns;
        bool no_node; /* no node offers user namespaces */
        bool update;
        const struct nd_scc *more; /* in addition to the defaults */
        bool without_ranges;
};

static bool is_granted(const struct nd_scc *scc, void *userdata) {
        const struct asking *asking = userdata;
        nd_autofree char *name = nd_format(" %s ", scc->metadata.name);
        nd_autofree char *all = nd_format(" %s ", asking->granted ? asking->granted : "");

        return !asking->granted || strstr(all, name);
}

/* Returns "NAME", "NAME with a user namespace" if it was set, or the denial. */
static char *chosen(const char *pod_json, struct asking asking) {
        nd_autoarena struct nd_arena arena = {};
        nd_cleanup(nd_scc_choice_done) struct nd_scc_choice choice = {};
        const struct nd_scc *sccs[32];
        struct nd_scc_set set;
        size_t count = 0;
        struct nd_scc_request request = {.set = &set,
                                         .namespace = {.uid_range = "1000650000/10000", .mcs = "s0:c26,c5"},
                                         .userns = asking.userns,
                                         .may_set_user_namespace = !asking.no_node,
                                         .window = ND_SCC_WINDOW,
                                         .update = asking.update,
                                         .may_use = is_granted,
                                         .userdata = &asking};
        struct nd_pod pod;

        for (size_t i = 0; i < nd_scc_default_count; i++)
                sccs[count++] = &nd_scc_defaults[i].scc;
        if (asking.more)
                sccs[count++] = asking.more;
        set = nd_scc_set_make(sccs, count, &arena);
        if (asking.without_ranges)
                request.namespace = (struct nd_scc_namespace) {.mcs = "s0:c26,c5"};
        expect_ok(nd_pod_decode(pod_json, strlen(pod_json), &arena, &pod));
        nd_scc_choose(&request, &pod, &arena, &choice);
        if (!choice.scc)
                return nd_strdup(choice.refusal);
        return nd_format("%s%s", choice.scc->metadata.name, choice.set_user_namespace ? " with a user namespace" : "");
}

static void expect_refusal(char *text, const char *part) {
        nd_autofree char *owned = text;

        expect_contains(owned, part);
}

#define UNGRANTED "restricted-v2 restricted-v3"
#define PLAIN "{\"spec\": {\"containers\": [{\"name\": \"a\"}]}}"
#define ROOT "{\"spec\": {\"containers\": [{\"name\": \"a\", \"securityContext\": {\"runAsUser\": 0}}]}}"
#define USERNS "{\"spec\": {\"hostUsers\": false, \"containers\": [{\"name\": \"a\"}]}}"
#define USERNS_ROOT                                                                                                           \
        "{\"spec\": {\"hostUsers\": false, \"containers\": [{\"name\": \"a\", \"securityContext\": {\"runAsUser\": 0}}]}}"

static void a_plain_pod_is_admitted_unchanged_by_restricted_v2([[maybe_unused]] void **state) {
        expect_text(chosen(PLAIN, (struct asking) {.granted = UNGRANTED}), "restricted-v2");
}

static void a_pod_with_a_user_namespace_is_admitted_by_restricted_v3([[maybe_unused]] void **state) {
        expect_text(chosen(USERNS, (struct asking) {.granted = UNGRANTED}), "restricted-v3");
}

static void root_in_a_user_namespace_needs_one_grant([[maybe_unused]] void **state) {
        nd_autofree char *refused = chosen(USERNS_ROOT, (struct asking) {.granted = UNGRANTED});

        expect_contains(refused, "unable to validate against any security context constraint: [");
        expect_contains(
                refused,
                "provider restricted-v3: spec.containers[0].securityContext.runAsUser: Invalid value: 0: must be in the "
                "ranges: [1000, 65534]");
        expect_contains(refused, "provider \"userns-root\": Forbidden: not usable by user or serviceaccount");
        expect_text(chosen(USERNS_ROOT, (struct asking) {.granted = UNGRANTED " userns-root"}), "userns-root");
}

static void the_user_namespace_is_set_if_nothing_else_fits([[maybe_unused]] void **state) {
        expect_text(chosen(ROOT, (struct asking) {.granted = UNGRANTED " userns-root"}), "userns-root with a user namespace");
        expect_text(chosen(ROOT, (struct asking) {.granted = UNGRANTED " anyuid userns-root"}), "anyuid");
        expect_refusal(chosen(ROOT, (struct asking) {.granted = UNGRANTED " userns-root", .no_node = true}),
                       "unable to validate");
}

static void a_namespace_can_ask_for_user_namespaces([[maybe_unused]] void **state) {
        const struct asking by_default = {.granted = UNGRANTED " hostnetwork-v2", .userns = ND_SCC_USERNS_DEFAULT};
        const struct asking required = {.granted = UNGRANTED " hostnetwork-v2", .userns = ND_SCC_USERNS_REQUIRE};

        expect_text(chosen(PLAIN, by_default), "restricted-v3 with a user namespace");
        expect_text(chosen(PLAIN, required), "restricted-v3 with a user namespace");
        expect_text(chosen("{\"spec\": {\"hostUsers\": true, \"containers\": [{}]}}", by_default), "restricted-v2");
        expect_text(chosen("{\"spec\": {\"hostNetwork\": true, \"containers\": [{}]}}", by_default), "hostnetwork-v2");
        expect_text(chosen("{\"spec\": {\"hostUsers\": true, \"containers\": [{}]}}", required),
                    "the namespace requires user namespaces, but the pod sets spec.hostUsers to true");
        expect_text(chosen("{\"spec\": {\"hostNetwork\": true, \"containers\": [{}]}}", required),
                    "the namespace requires user namespaces, but spec.hostNetwork cannot be combined with one");
}

static void a_denial_is_about_the_pod_with_its_required_user_namespace([[maybe_unused]] void **state) {
        nd_autofree char *text = chosen(ROOT, (struct asking) {.granted = UNGRANTED, .userns = ND_SCC_USERNS_REQUIRE});

        expect_contains(text, "provider restricted-v3: spec.containers[0].securityContext.runAsUser: Invalid value: 0");
        assert_null(strstr(text, "Host Users must be set to false"));
}

static void without_a_node_a_default_is_ignored_and_a_requirement_is_denied([[maybe_unused]] void **state) {
        expect_text(chosen(PLAIN, (struct asking) {.granted = UNGRANTED, .userns = ND_SCC_USERNS_DEFAULT, .no_node = true}),
                    "restricted-v2");
        expect_text(chosen(PLAIN, (struct asking) {.granted = UNGRANTED, .userns = ND_SCC_USERNS_REQUIRE, .no_node = true}),
                    "the namespace requires user namespaces, but no schedulable node offers them to the pod's runtime class");
}

static void one_invalid_constraint_does_not_affect_others([[maybe_unused]] void **state) {
        static const struct nd_scc broken = {
                .metadata = {.name = "broken"}, .priority = {.value = 99, .set = true}, .user = {.type = "MustRunAs"}};

        expect_text(chosen(PLAIN, (struct asking) {.granted = UNGRANTED, .more = &broken}), "restricted-v2");
}

static void constraints_without_ranges_fit_a_namespace_without_ranges([[maybe_unused]] void **state) {
        expect_text(chosen(USERNS, (struct asking) {.granted = UNGRANTED, .without_ranges = true}), "restricted-v3");
        expect_text(chosen(PLAIN, (struct asking) {.granted = UNGRANTED, .without_ranges = true}),
                    "restricted-v3 with a user namespace");
}

static void an_update_must_fit_as_it_is([[maybe_unused]] void **state) {
        expect_refusal(chosen(PLAIN, (struct asking) {.granted = UNGRANTED, .update = true}),
                       "provider restricted-v2: would have to change the pod");
        expect_text(chosen(PLAIN, (struct asking) {.update = true}), "privileged");
}

static void nested_containers_have_a_constraint([[maybe_unused]] void **state) {
        static const char pod[] =
                "{\"spec\": {\"hostUsers\": false, \"containers\": [{\"name\": \"podman\", \"securityContext\": {\"runAsUser\": 1000, "
                "\"procMount\": \"Unmasked\", \"capabilities\": {\"add\": [\"SETUID\", \"SETGID\"]}}}]}}";

        expect_text(chosen(pod, (struct asking) {.granted = UNGRANTED " nested-container userns-root"}), "nested-container");
        expect_refusal(chosen(pod, (struct asking) {.granted = UNGRANTED " userns-root"}),
                       "procMount type is not allowed to be used");
}

static void a_user_with_all_grants_gets_the_first_that_fits([[maybe_unused]] void **state) {
        /* by its priority, a known pitfall of OpenShift */
        expect_text(chosen(PLAIN, (struct asking) {}), "anyuid");
        expect_text(chosen("{\"spec\": {\"hostPID\": true, \"containers\": [{}]}}", (struct asking) {}), "hostaccess");
        expect_text(
                chosen("{\"spec\": {\"containers\": [{\"securityContext\": {\"privileged\": true}}]}}", (struct asking) {}),
                "privileged");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_plain_pod_is_admitted_unchanged_by_restricted_v2),
                cmocka_unit_test(a_pod_with_a_user_namespace_is_admitted_by_restricted_v3),
                cmocka_unit_test(root_in_a_user_namespace_needs_one_grant),
                cmocka_unit_test(the_user_namespace_is_set_if_nothing_else_fits),
                cmocka_unit_test(a_namespace_can_ask_for_user_namespaces),
                cmocka_unit_test(a_denial_is_about_the_pod_with_its_required_user_namespace),
                cmocka_unit_test(without_a_node_a_default_is_ignored_and_a_requirement_is_denied),
                cmocka_unit_test(one_invalid_constraint_does_not_affect_others),
                cmocka_unit_test(constraints_without_ranges_fit_a_namespace_without_ranges),
                cmocka_unit_test(an_update_must_fit_as_it_is),
                cmocka_unit_test(nested_containers_have_a_constraint),
                cmocka_unit_test(a_user_with_all_grants_gets_the_first_that_fits),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
