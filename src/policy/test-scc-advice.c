/* SPDX-License-Identifier: Apache-2.0 */
/* What would let the default constraints admit a refused pod. */
#include "policy/scc-advice.h"

#include <unit/expect.h>

struct asking {
        const char *granted; /* names, space separated; nullptr: those for all users */
        enum nd_scc_userns userns;
        bool no_node; /* no node offers user namespaces */
        bool update;
};

static bool is_granted(const struct nd_scc *scc, void *userdata) {
        const struct asking *asking = userdata;
        nd_autofree char *name = nd_format(" %s ", scc->metadata.name);
        nd_autofree char *all = nd_format(" %s ", asking->granted ? asking->granted : "restricted-v2 restricted-v3");

        return strstr(all, name);
}

static void add_near(const struct nd_scc_near *near, struct nd_text *text) {
        nd_text_addf(text, "; near %s%s ", near->scc->metadata.name, near->usable ? "" : " (not usable)");
        if (near->first.path)
                nd_field_error_print(&near->first, text);
        else
                nd_text_add(text, near->failure);
        nd_text_addf(text, " of %zu", near->problems);
}

/* Returns "grant NAME [with a user namespace]; change to NAME: EDIT, ...; near NAME PROBLEM of N;
 * N others". */
static char *advise(const char *pod_json, struct asking asking) {
        nd_autoarena struct nd_arena arena = {};
        const struct nd_scc *sccs[32];
        struct nd_scc_set set;
        struct nd_scc_request request = {.set = &set,
                                         .namespace = {.uid_range = "1000650000/10000", .mcs = "s0:c26,c5"},
                                         .userns = asking.userns,
                                         .may_set_user_namespace = !asking.no_node,
                                         .window = ND_SCC_WINDOW,
                                         .update = asking.update,
                                         .may_use = is_granted,
                                         .userdata = &asking};
        nd_autotext struct nd_text text = ND_TEXT(100000);
        struct nd_scc_advice advice;
        struct nd_pod pod;

        for (size_t i = 0; i < nd_scc_default_count; i++)
                sccs[i] = &nd_scc_defaults[i].scc;
        set = nd_scc_set_make(sccs, nd_scc_default_count, &arena);
        expect_ok(nd_pod_decode(pod_json, strlen(pod_json), &arena, &pod));
        nd_scc_advise(&request, &pod, &arena, &advice);
        nd_text_addf(&text, "grant %s%s", advice.grant ? advice.grant->metadata.name : "nothing",
                     advice.grant_user_namespace ? " with a user namespace" : "");
        nd_text_addf(&text, "; change to %s:", advice.change ? advice.change->metadata.name : "nothing");
        for (size_t i = 0; i < advice.edit_count; i++)
                nd_text_addf(&text, "%s %s%s%s", i > 0 ? "," : "", advice.edits[i].path,
                             advice.edits[i].value ? " = " : " removed", nd_kube_or_empty(advice.edits[i].value));
        for (size_t i = 0; i < advice.near_count; i++)
                add_near(&advice.near[i], &text);
        nd_text_addf(&text, "; %zu others", advice.others);
        return nd_text_steal(&text);
}

static void expect_advice(char *text, const char *beginning) {
        nd_autofree char *owned = text;

        if (!nd_has_prefix(owned, beginning))
                assert_string_equal(owned, beginning);
}

#define POD(spec, context) "{\"spec\": {" spec " \"containers\": [{\"name\": \"a\", \"securityContext\": {" context "}}]}}"
#define AT "spec.containers[0].securityContext."

static void root_needs_a_grant_of_userns_root_or_no_user([[maybe_unused]] void **state) {
        expect_advice(advise(POD("", "\"runAsUser\": 0"), (struct asking) {}),
                      "grant userns-root with a user namespace; change to restricted-v2: " AT "runAsUser removed; near");
        /* without a node the grant of userns-root would not help */
        expect_advice(advise(POD("", "\"runAsUser\": 0"), (struct asking) {.no_node = true}),
                      "grant anyuid; change to restricted-v2: " AT "runAsUser removed; near");
}

static void hostusers_is_not_suggested_for_a_constraint_that_is_not_usable([[maybe_unused]] void **state) {
        static const char *const pods[] = {POD("\"hostUsers\": true,", "\"runAsUser\": 0"),
                                           POD("\"hostPID\": true,", "\"runAsUser\": 0"), POD("", "\"runAsUser\": 0")};

        for (size_t i = 0; i < nd_count_of(pods); i++)
                for (int no_node = 0; no_node < 2; no_node++) {
                        nd_autofree char *text = advise(pods[i], (struct asking) {.no_node = no_node});

                        assert_null(strstr(text, "spec.hostUsers = false"));
                }
        expect_advice(advise(POD("\"hostUsers\": true,", "\"runAsUser\": 0"), (struct asking) {.granted = "userns-root"}),
                      "grant anyuid; change to userns-root: spec.hostUsers = false; near");
        /* as many edits as the removal of the user */
        expect_advice(advise(POD("\"hostUsers\": true,", "\"runAsUser\": 0"),
                             (struct asking) {.granted = "restricted-v2 userns-root"}),
                      "grant anyuid; change to userns-root: spec.hostUsers = false; near");
        expect_advice(advise(POD("\"hostUsers\": true,", "\"runAsUser\": 0"),
                             (struct asking) {.granted = "userns-root", .no_node = true}),
                      "grant anyuid; change to nothing:; near");
}

static void host_access_can_be_removed_or_granted([[maybe_unused]] void **state) {
        expect_advice(
                advise(POD("\"hostPID\": true,", ""), (struct asking) {}),
                "grant hostaccess; change to restricted-v2: spec.hostPID removed; near anyuid (not usable) spec.hostPID: ");
        expect_advice(advise(POD("\"hostNetwork\": true, \"volumes\": [{\"name\": \"v\", \"hostPath\": {}}],",
                                 "\"capabilities\": {\"add\": [\"NET_BIND_SERVICE\", \"SYS_ADMIN\"]}"),
                             (struct asking) {}),
                      "grant privileged; change to restricted-v2: spec.hostNetwork removed, spec.volumes[0] removed, " AT
                      "capabilities.add = [\"NET_BIND_SERVICE\"]; near");
}

static void an_inherited_value_is_removed_where_it_is_set([[maybe_unused]] void **state) {
        expect_advice(
                advise(POD("\"securityContext\": {\"runAsUser\": 0, \"seccompProfile\": {\"type\": \"Unconfined\"}},", ""),
                       (struct asking) {}),
                "grant nested-container with a user namespace; change to restricted-v2: spec.securityContext.seccompProfile removed, "
                "spec.securityContext.runAsUser removed; near");
}

static void a_container_port_and_a_sysctl_are_removed_by_their_index([[maybe_unused]] void **state) {
        expect_advice(advise("{\"spec\": {\"securityContext\": {\"sysctls\": [{\"name\": \"net.ipv4.tcp_syncookies\"}, "
                             "{\"name\": \"kernel.msgmax\"}]}, \"initContainers\": [{\"name\": \"i\"}], \"containers\": "
                             "[{\"name\": \"a\"}, {\"name\": \"b\", \"ports\": [{}, {\"hostPort\": 80}]}]}}",
                             (struct asking) {}),
                      "grant privileged; change to restricted-v2: spec.securityContext.sysctls[1] removed, "
                      "spec.containers[1].ports[1].hostPort removed; near");
}

static void an_update_gets_no_change([[maybe_unused]] void **state) {
        nd_autofree char *text = advise(POD("", "\"runAsUser\": 0"), (struct asking) {.update = true});

        expect_contains(text, "change to nothing:");
}

static void the_nearest_constraints_come_first([[maybe_unused]] void **state) {
        nd_autofree char *text =
                advise(POD("\"hostPID\": true, \"hostIPC\": true,", "\"privileged\": true"), (struct asking) {});

        expect_contains(text, "grant privileged; change to restricted-v2: ");
        expect_contains(text, "; near hostaccess (not usable) spec.containers[0].securityContext.privileged: ");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(root_needs_a_grant_of_userns_root_or_no_user),
                cmocka_unit_test(hostusers_is_not_suggested_for_a_constraint_that_is_not_usable),
                cmocka_unit_test(host_access_can_be_removed_or_granted),
                cmocka_unit_test(an_inherited_value_is_removed_where_it_is_set),
                cmocka_unit_test(a_container_port_and_a_sysctl_are_removed_by_their_index),
                cmocka_unit_test(an_update_gets_no_change),
                cmocka_unit_test(the_nearest_constraints_come_first),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
