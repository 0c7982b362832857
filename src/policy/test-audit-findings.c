/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/audit-cluster.h>

#define NAME(text) "\"metadata\": {\"name\": \"" text "\"}"
#define USERNS "\"userNamespaceLevel\": \"RequirePodLevel\""
#define USERS(least, most)                                                                                                    \
        "\"runAsUser\": {\"type\": \"MustRunAsRange\", \"uidRangeMin\": " least ", \"uidRangeMax\": " most "}"
#define USE(names)                                                                                                            \
        "\"rules\": [{\"verbs\": [\"use\"], \"apiGroups\": [\"security.nodens.io\"], \"resources\": "                         \
        "[\"securitycontextconstraints\"], \"resourceNames\": [" names "]}]"

static void begin(struct setting *s) {
        begin_empty(s);
        put(s, ND_AUDIT_NODE,
            "{" NAME(
                    "good") ", \"status\": {\"nodeInfo\": {\"kubeletVersion\": \"v1.36.3\"}, \"runtimeHandlers\": [{\"name\": "
                            "\"\", \"features\": {\"userNamespaces\": true}}]}}");
        put(s, ND_AUDIT_NODE, "{" NAME("plain") ", \"status\": {\"nodeInfo\": {\"kubeletVersion\": \"v1.36.3\"}}}");
        put(s, ND_AUDIT_NODE,
            "{" NAME("old") ", \"status\": {\"nodeInfo\": {\"kubeletVersion\": \"v1.29.6\"}, \"runtimeHandlers\": [{\"name\": "
                            "\"\", \"features\": {\"userNamespaces\": true}}]}}");
        put(s, ND_AUDIT_CONSTRAINT, "{" NAME("nested-container") ", " USERNS ", " USERS("0", "65534") "}");
        put(s, ND_AUDIT_CONSTRAINT,
            "{" NAME("userns-root") ", " USERNS ", " USERS("0", "65535") ", \"allowPrivilegeEscalation\": false}");
        put(s, ND_AUDIT_CONSTRAINT,
            "{" NAME("restricted-v3") ", " USERNS
                                      ", " USERS("1000", "65534") ", \"allowPrivilegeEscalation\": false, "
                                                                  "\"allowedCapabilities\": [\"NET_BIND_SERVICE\"]}");
        put(s, ND_AUDIT_CONSTRAINT, "{" NAME("anyuid") ", \"runAsUser\": {\"type\": \"RunAsAny\"}}");
        nd_audit_settle(&s->cluster);
}

/* "topic: text", one per line. */
static char *find(struct setting *s, enum nd_audit_kind kind, const char *json) {
        nd_autotext struct nd_text text = ND_TEXT(10000);
        struct nd_audit_workload workload;
        struct nd_audit_findings found;

        decode(s, kind, json, &workload);
        nd_audit_find(&s->cluster, &workload, &s->arena, &found);
        for (size_t i = 0; i < found.count; i++)
                nd_text_addf(&text, "%s%s %s: %s", i > 0 ? "\n" : "", nd_audit_topic_name(found.items[i].topic),
                             found.items[i].severe ? "high" : "medium", found.items[i].text);
        return nd_strdup(nd_text_get(&text));
}

static void pods_show_the_constraint_that_admitted_them([[maybe_unused]] void **state) {
        struct setting s;

        begin(&s);
        expect_text(find(&s, ND_AUDIT_POD, "{\"metadata\": {\"annotations\": {\"openshift.io/scc\": \"nested-container\"}}}"),
                    "nested-container-pod high: without a user namespace nested-container allows on the node: root, privilege "
                    "escalation");
        expect_text(find(&s, ND_AUDIT_POD, "{\"metadata\": {\"annotations\": {\"security.nodens.io/scc\": \"userns-root\"}}}"),
                    "user-namespace-constraint-pod high: without a user namespace userns-root allows on the node: root");
        expect_text(
                find(&s, ND_AUDIT_POD, "{\"metadata\": {\"annotations\": {\"security.nodens.io/scc\": \"restricted-v3\"}}}"),
                "user-namespace-constraint-pod medium: without a user namespace restricted-v3 allows on the node: users 1000 "
                "to 65534");
        expect_text(find(&s, ND_AUDIT_POD, "{\"metadata\": {\"annotations\": {\"security.nodens.io/scc\": \"anyuid\"}}}"), "");
        expect_text(
                find(&s, ND_AUDIT_POD,
                     "{\"metadata\": {\"annotations\": {\"security.nodens.io/scc\": \"gone\"}}, \"spec\": {\"hostUsers\": false}}"),
                "user-namespace-constraint-pod high: the constraint gone, which admitted it, does not exist any more");
        /* a label is not an annotation, and an ended pod runs nothing */
        expect_text(find(&s, ND_AUDIT_POD, "{\"metadata\": {\"labels\": {\"openshift.io/scc\": \"nested-container\"}}}"), "");
        expect_text(
                find(&s, ND_AUDIT_POD,
                     "{\"metadata\": {\"annotations\": {\"openshift.io/scc\": \"nested-container\"}}, \"status\": {\"phase\": "
                     "\"Succeeded\"}}"),
                "");
        end(&s);
}

static void nodes_must_be_new_and_offer_user_namespaces([[maybe_unused]] void **state) {
        struct setting s;

        begin(&s);
        expect_text(find(&s, ND_AUDIT_POD, "{\"spec\": {\"hostUsers\": false, \"nodeName\": \"good\"}}"), "");
        expect_text(find(&s, ND_AUDIT_POD, "{\"spec\": {\"nodeName\": \"plain\"}}"), "");
        expect_text(find(&s, ND_AUDIT_POD, "{\"spec\": {\"hostUsers\": false, \"nodeName\": \"plain\"}}"),
                    "node-without-user-namespaces high: node plain does not offer user namespaces");
        expect_text(
                find(&s, ND_AUDIT_POD,
                     "{\"spec\": {\"nodeName\": \"old\", \"containers\": [{\"securityContext\": {\"procMount\": \"Unmasked\"}}]}}"),
                "node-without-user-namespaces high: the kubelet of node old has version v1.29.6, below 1.30.0");
        expect_text(find(&s, ND_AUDIT_POD,
                         "{\"spec\": {\"hostUsers\": false, \"nodeName\": \"good\", \"runtimeClassName\": \"x\"}}"),
                    "node-without-user-namespaces high: node good does not offer user namespaces");
        end(&s);
}

static void the_floor_raises_the_minimum([[maybe_unused]] void **state) {
        struct setting s;

        begin(&s);
        put(&s, ND_AUDIT_FLOOR, "{" NAME("other") ", \"spec\": {\"minimumKubeletVersion\": \"9.0.0\"}}");
        put(&s, ND_AUDIT_FLOOR, "{" NAME("cluster") ", \"spec\": {\"minimumKubeletVersion\": \"1.36.9\"}}");
        nd_audit_settle(&s.cluster);
        expect_text(find(&s, ND_AUDIT_POD, "{\"spec\": {\"hostUsers\": false, \"nodeName\": \"good\"}}"),
                    "node-without-user-namespaces high: the kubelet of node good has version v1.36.3, below 1.36.9");
        put(&s, ND_AUDIT_FLOOR, "{" NAME("cluster") ", \"status\": {\"minimumKubeletVersion\": \"1.2.0\"}}");
        assert_string_equal(s.cluster.minimum, "1.36.9");
        end(&s);
}

static void the_kernels_map_is_compared_with_the_pod([[maybe_unused]] void **state) {
        static const char own[] =
                "{\"metadata\": {\"uid\": \"u-1\"}, \"spec\": {\"hostUsers\": false, \"nodeName\": \"good\"}}";
        struct setting s;

        begin(&s);
        (void) nd_map_put(&s.cluster.host_mapped, "u-1", &s);
        expect_text(find(&s, ND_AUDIT_POD, own), "");
        s.cluster.maps_known = true;
        s.cluster.map_node = "good";
        expect_text(find(&s, ND_AUDIT_POD, own),
                    "host-id-map high: hostUsers is false, but user 0 of a process is user 0 of node good");
        expect_text(find(&s, ND_AUDIT_POD, "{\"metadata\": {\"uid\": \"u-1\"}, \"spec\": {\"nodeName\": \"good\"}}"), "");
        s.cluster.map_node = "plain";
        expect_text(find(&s, ND_AUDIT_POD, own), "");
        end(&s);
}

static void templates_that_come_back_are_found([[maybe_unused]] void **state) {
        static const char template[] = "\"template\": {\"metadata\": {\"annotations\": {\"openshift.io/required-scc\": "
                                       "\"userns-root\"}}}";
        nd_autofree char *deployment = nd_format("{\"spec\": {%s}}", template);
        nd_autofree char *cron = nd_format("{\"spec\": {\"jobTemplate\": {\"spec\": {%s}}}}", template);
        nd_autofree char *owned = nd_format("{\"metadata\": {\"ownerReferences\": [{\"kind\": \"Deployment\", \"apiVersion\": "
                                            "\"apps/v1\", \"name\": \"d\", \"controller\": true}]}, \"spec\": {%s}}",
                                            template);
        struct setting s;

        begin(&s);
        expect_text(
                find(&s, ND_AUDIT_DEPLOYMENT, deployment),
                "required-constraint-template high: its pods require userns-root and would be created again after they are "
                "removed");
        expect_text(
                find(&s, ND_AUDIT_CRON_JOB, cron),
                "required-constraint-template high: its pods require userns-root and would be created again after they are "
                "removed");
        expect_text(find(&s, ND_AUDIT_REPLICA_SET, owned), "");
        expect_text(find(&s, ND_AUDIT_DEPLOYMENT, "{\"spec\": {\"template\": {\"spec\": {\"hostUsers\": false}}}}"), "");
        expect_text(find(&s, ND_AUDIT_DEPLOYMENT,
                         "{\"spec\": {\"template\": {\"spec\": {\"hostUsers\": false, \"hostNetwork\": true}}}}"),
                    "host-network-user-namespace medium: needs the gate UserNamespacesHostNetworkSupport: without it the pod "
                    "cannot be created again or changed");
        end(&s);
}

static void pods_that_are_older_than_a_rule_are_found([[maybe_unused]] void **state) {
        struct setting s;

        begin(&s);
        put(&s, ND_AUDIT_NAMESPACE,
            "{\"metadata\": {\"name\": \"n\", \"labels\": {\"security.nodens.io/constraints\": \"enforce\", "
            "\"security.nodens.io/user-namespaces\": \"require\", \"pod-security.kubernetes.io/enforce\": \"baseline\"}}}");
        put(&s, ND_AUDIT_NAMESPACE,
            "{\"metadata\": {\"name\": \"kube-system\", \"labels\": {\"security.nodens.io/constraints\": \"enforce\"}}}");
        expect_text(
                find(&s, ND_AUDIT_POD, "{\"metadata\": {\"namespace\": \"n\"}, \"spec\": {\"hostPID\": true}}"),
                "violates-constraints medium: it is older than security.nodens.io/constraints=enforce\n"
                "violates-user-namespaces medium: it is older than security.nodens.io/user-namespaces=require, and hostUsers "
                "is not false\n"
                "violates-pod-security medium: not baseline: host namespaces");
        expect_text(find(&s, ND_AUDIT_POD,
                         "{\"metadata\": {\"namespace\": \"n\", \"annotations\": {\"security.nodens.io/scc\": \"anyuid\"}}, "
                         "\"spec\": {\"hostUsers\": false, \"hostNetwork\": true}}"),
                    "host-network-user-namespace medium: needs the gate UserNamespacesHostNetworkSupport: without it the pod "
                    "cannot be created again or changed\n"
                    "violates-constraints medium: the constraint anyuid, which admitted it, does not fit it any more\n"
                    "violates-pod-security medium: not baseline: host namespaces");
        expect_text(find(&s, ND_AUDIT_POD, "{\"metadata\": {\"namespace\": \"kube-system\"}, \"spec\": {\"hostPID\": true}}"),
                    "");
        expect_text(find(&s, ND_AUDIT_POD, "{\"metadata\": {\"namespace\": \"other\"}, \"spec\": {\"hostPID\": true}}"), "");
        end(&s);
}

/* ---- grants ---- */

static char *grants(struct setting *s) {
        nd_autotext struct nd_text text = ND_TEXT(10000);

        nd_vector_each (grant, &s->cluster.grants) {
                struct nd_audit_finding found;

                if (nd_audit_find_grant(&s->cluster, *grant, &s->arena, &found))
                        nd_text_addf(&text, "%s%s %s/%s: %s", text.length > 0 ? "\n" : "", (*grant)->kind, (*grant)->namespace,
                                     (*grant)->name, found.text);
        }
        return nd_strdup(nd_text_get(&text));
}

#define BINDING(name, role, subject)                                                                                          \
        "{\"metadata\": {\"name\": \"" name                                                                                   \
        "\", \"namespace\": \"n\"}, \"roleRef\": {\"kind\": \"ClusterRole\", \"name\": \"" role                               \
        "\"}, \"subjects\": [" subject "]}"
#define ALICE "{\"kind\": \"User\", \"name\": \"alice\"}"

static void grants_of_relying_constraints_are_found([[maybe_unused]] void **state) {
        struct setting s;

        begin(&s);
        put(&s, ND_AUDIT_CLUSTER_ROLE, "{" NAME("root") ", " USE("\"userns-root\"") "}");
        put(&s, ND_AUDIT_CLUSTER_ROLE, "{" NAME("v3") ", " USE("\"restricted-v3\", \"anyuid\"") "}");
        put(&s, ND_AUDIT_CLUSTER_ROLE,
            "{" NAME(
                    "stars") ", \"rules\": [{\"verbs\": [\"*\"], \"apiGroups\": [\"security.nodens.io\"], \"resources\": [\"*\"]}]}");
        put(&s, ND_AUDIT_CLUSTER_ROLE,
            "{" NAME("cluster-admin") ", \"rules\": [{\"verbs\": [\"*\"], \"apiGroups\": [\"*\"], \"resources\": [\"*\"]}]}");
        put(&s, ND_AUDIT_CLUSTER_ROLE,
            "{" NAME("view") ", \"rules\": [{\"verbs\": [\"get\"], \"apiGroups\": [\"*\"], \"resources\": [\"*\"]}]}");
        put(&s, ND_AUDIT_CLUSTER_ROLE_BINDING, BINDING("admins", "cluster-admin", ALICE));
        put(&s, ND_AUDIT_CLUSTER_ROLE_BINDING, BINDING("viewers", "view", ALICE));
        put(&s, ND_AUDIT_CLUSTER_ROLE_BINDING,
            BINDING("all", "v3", "{\"kind\": \"Group\", \"name\": \"system:authenticated\"}"));
        expect_text(grants(&s), "");
        put(&s, ND_AUDIT_ROLE_BINDING,
            BINDING("one", "root", "{\"kind\": \"ServiceAccount\", \"name\": \"sa\"}, {\"kind\": \"X\"}"));
        put(&s, ND_AUDIT_ROLE_BINDING, BINDING("two", "stars", ALICE));
        /* everything, but in one namespace only */
        put(&s, ND_AUDIT_ROLE_BINDING, BINDING("three", "cluster-admin", ALICE));
        expect_text(grants(&s),
                    "RoleBinding n/one: service account n:sa may use userns-root, by role root\n"
                    "RoleBinding n/two: user alice may use nested-container, userns-root, by role stars\n"
                    "RoleBinding n/three: user alice may use nested-container, userns-root, by role cluster-admin");
        end(&s);
}

static void subjects_in_a_constraint_are_found([[maybe_unused]] void **state) {
        struct setting s;

        begin(&s);
        put(&s, ND_AUDIT_CONSTRAINT,
            "{" NAME("team") ", " USERNS ", " USERS("1", "2") ", \"users\": [\"bob\"], \"groups\": [\"dev\"]}");
        expect_text(grants(&s), "SecurityContextConstraints /team: user bob may use team\n"
                                "SecurityContextConstraints /team: group dev may use team");
        end(&s);
}

static void a_service_account_has_the_grants_of_its_groups([[maybe_unused]] void **state) {
        struct setting s;
        const struct nd_scc *root;

        begin(&s);
        root = nd_map_get(&s.cluster.constraint_names, "userns-root");
        put(&s, ND_AUDIT_CLUSTER_ROLE, "{" NAME("root") ", " USE("\"userns-root\"") "}");
        assert_false(nd_audit_may_use(&s.cluster, "n", "sa", root));
        put(&s, ND_AUDIT_ROLE_BINDING, BINDING("b", "root", "{\"kind\": \"Group\", \"name\": \"system:serviceaccounts:n\"}"));
        assert_true(nd_audit_may_use(&s.cluster, "n", "sa", root));
        assert_false(nd_audit_may_use(&s.cluster, "m", "sa", root));
        assert_false(nd_audit_may_use(&s.cluster, "n", "sa", nd_map_get(&s.cluster.constraint_names, "anyuid")));
        end(&s);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(pods_show_the_constraint_that_admitted_them),
                cmocka_unit_test(nodes_must_be_new_and_offer_user_namespaces),
                cmocka_unit_test(the_floor_raises_the_minimum),
                cmocka_unit_test(the_kernels_map_is_compared_with_the_pod),
                cmocka_unit_test(templates_that_come_back_are_found),
                cmocka_unit_test(pods_that_are_older_than_a_rule_are_found),
                cmocka_unit_test(grants_of_relying_constraints_are_found),
                cmocka_unit_test(subjects_in_a_constraint_are_found),
                cmocka_unit_test(a_service_account_has_the_grants_of_its_groups),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
