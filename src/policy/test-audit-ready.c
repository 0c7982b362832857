/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/audit-cluster.h>

#define GOOD_NODE(name)                                                                                                       \
        "{\"metadata\": {\"name\": \"" name "\"}, \"status\": {\"nodeInfo\": {\"kubeletVersion\": \"v1.36.3\"}, "             \
        "\"runtimeHandlers\": [{\"name\": \"\", \"features\": {\"userNamespaces\": true}}, {\"name\": \"vm\"}]}}"

static void begin(struct setting *s) {
        begin_empty(s);
        put(s, ND_AUDIT_NODE, GOOD_NODE("good"));
        put(s, ND_AUDIT_RUNTIME_CLASS, "{\"metadata\": {\"name\": \"kata\"}, \"handler\": \"vm\"}");
        nd_audit_settle(&s->cluster);
}

/* "yes", or "no: the first reason". */
static char *judge_as(struct setting *s, enum nd_audit_kind kind, const char *json) {
        struct nd_audit_workload workload;
        struct nd_audit_readiness found;

        decode(s, kind, json, &workload);
        nd_audit_judge(&s->cluster, &workload, &s->arena, &found);
        return nd_format("%s%s%s", nd_audit_verdict_name(found.verdict), found.reason_count > 0 ? ": " : "",
                         found.reason_count > 0 ? found.reasons[0] : "");
}

static char *judge(struct setting *s, const char *spec) {
        nd_autofree char *pod = nd_format("{\"metadata\": {\"name\": \"p\", \"namespace\": \"n\"}, \"spec\": %s}", spec);

        return judge_as(s, ND_AUDIT_POD, pod);
}

static void what_a_pod_asks_for_decides([[maybe_unused]] void **state) {
        static const struct {
                const char *spec;
                const char *verdict;
        } cases[] = {
                {"{\"containers\": [{\"name\": \"c\"}]}", "yes"},
                {"{\"hostUsers\": false}", "already"},
                {"{\"hostUsers\": true}", "check: hostUsers is set to true"},
                {"{\"hostPID\": true}", "no: spec.hostPID excludes a user namespace"},
                {"{\"hostNetwork\": true}", "no: spec.hostNetwork excludes a user namespace"},
                {"{\"os\": {\"name\": \"windows\"}}", "no: spec.os.name excludes a user namespace"},
                {"{\"containers\": [{\"name\": \"c\", \"volumeDevices\": [{\"name\": \"d\"}]}]}",
                 "no: volumeDevices excludes a user namespace"},
                {"{\"containers\": [{\"name\": \"c\", \"securityContext\": {\"privileged\": true}}]}",
                 "no: container c is privileged"},
                {"{\"initContainers\": [{\"name\": \"i\", \"securityContext\": {\"privileged\": true}}]}",
                 "no: container i is privileged"},
                {"{\"containers\": [{\"name\": \"c\", \"securityContext\": {\"capabilities\": {\"add\": [\"CAP_CHOWN\", "
                 "\"NET_ADMIN\"]}}}]}",
                 "yes"},
                {"{\"containers\": [{\"name\": \"c\", \"securityContext\": {\"capabilities\": {\"add\": [\"SYS_TIME\"]}}}]}",
                 "no: capability SYS_TIME of container c has no effect in a user namespace"},
                {"{\"containers\": [{\"name\": \"c\", \"securityContext\": {\"capabilities\": {\"add\": [\"SYS_ADMIN\"]}}}]}",
                 "check: capability SYS_ADMIN of container c is limited in a user namespace"},
                {"{\"containers\": [{\"name\": \"c\", \"securityContext\": {\"capabilities\": {\"add\": [\"NEW_ONE\"]}}}]}",
                 "check: capability NEW_ONE of container c is limited in a user namespace"},
                {"{\"securityContext\": {\"runAsUser\": 65535}}", "yes"},
                {"{\"securityContext\": {\"runAsUser\": 65536}}",
                 "no: runAsUser 65536 is above 65535, the last ID of a user namespace"},
                {"{\"securityContext\": {\"supplementalGroups\": [1, 70000]}}",
                 "no: supplementalGroups 70000 is above 65535, the last ID of a user namespace"},
                {"{\"containers\": [{\"name\": \"c\", \"resources\": {\"limits\": {\"cpu\": 1, \"nvidia.com/gpu\": 1}}}]}",
                 "check: a container asks for nvidia.com/gpu: root of a user namespace may not open the device"},
                {"{\"resourceClaims\": [{\"name\": \"x\"}]}",
                 "check: a container asks for a resource claim: root of a user namespace may not open the device"},
                {"{\"securityContext\": {\"sysctls\": [{\"name\": \"net.ipv4.tcp_syncookies\"}]}}", "yes"},
                {"{\"securityContext\": {\"sysctls\": [{\"name\": \"net.ipv4.ping_group_range\"}]}}",
                 "check: sysctl net.ipv4.ping_group_range may not exist or be refused in a user namespace"},
                {"{\"runtimeClassName\": \"kata\"}", "no: no schedulable node offers user namespaces to handler vm"},
                {"{\"runtimeClassName\": \"other\"}", "check: the runtime class other is not known"},
        };
        struct setting s;

        begin(&s);
        for (size_t i = 0; i < nd_count_of(cases); i++)
                expect_text(judge(&s, cases[i].spec), cases[i].verdict);
        end(&s);
}

static void volumes_need_a_filesystem_that_can_be_idmapped([[maybe_unused]] void **state) {
        static const struct {
                const char *volume;
                const char *verdict;
        } cases[] = {
                {"{\"name\": \"v\", \"configMap\": {}}", "yes"},
                {"{\"name\": \"v\", \"projected\": {}}", "yes"},
                {"{\"name\": \"v\", \"emptyDir\": {\"medium\": \"Memory\"}}", "yes"},
                {"{\"name\": \"v\", \"emptyDir\": {\"medium\": \"HugePages\"}}", "check: volume v has the medium HugePages"},
                {"{\"name\": \"v\", \"nfs\": {}}", "no: volume v is a network filesystem that cannot be idmapped"},
                {"{\"name\": \"v\", \"hostPath\": {\"path\": \"/dev/kvm\"}}", "no: volume v is /dev/kvm of the host"},
                {"{\"name\": \"v\", \"hostPath\": {\"path\": \"/devices\"}}",
                 "check: volume v is /devices of the host: its filesystem must support idmapped mounts"},
                {"{\"name\": \"v\", \"cephfs\": {}}",
                 "check: volume v is of type cephfs: its filesystem must support idmapped mounts"},
                {"{\"name\": \"v\", \"persistentVolumeClaim\": {\"claimName\": \"disk\"}}", "yes"},
                {"{\"name\": \"v\", \"persistentVolumeClaim\": {\"claimName\": \"share\"}}",
                 "no: volume v is of driver nfs.csi.k8s.io, whose filesystem cannot be idmapped"},
                {"{\"name\": \"v\", \"persistentVolumeClaim\": {\"claimName\": \"raw\"}}", "no: volume v is a block device"},
                {"{\"name\": \"v\", \"persistentVolumeClaim\": {\"claimName\": \"none\"}}",
                 "check: the volume of claim none is not known"},
                /* a source that this version does not know is not ready */
                {"{\"name\": \"v\", \"newSource\": {}}",
                 "check: volume v is of type an unknown type: its filesystem must support idmapped mounts"},
        };
        struct setting s;

        begin(&s);
        put(&s, ND_AUDIT_VOLUME,
            "{\"metadata\": {\"name\": \"a\"}, \"spec\": {\"csi\": {\"driver\": \"ebs.csi.aws.com\", \"fsType\": \"ext4\"}}}");
        put(&s, ND_AUDIT_VOLUME, "{\"metadata\": {\"name\": \"b\"}, \"spec\": {\"csi\": {\"driver\": \"nfs.csi.k8s.io\"}}}");
        put(&s, ND_AUDIT_CLAIM,
            "{\"metadata\": {\"name\": \"disk\", \"namespace\": \"n\"}, \"spec\": {\"volumeName\": \"a\"}}");
        put(&s, ND_AUDIT_CLAIM,
            "{\"metadata\": {\"name\": \"share\", \"namespace\": \"n\"}, \"spec\": {\"volumeName\": \"b\"}}");
        put(&s, ND_AUDIT_CLAIM,
            "{\"metadata\": {\"name\": \"raw\", \"namespace\": \"n\"}, \"spec\": {\"volumeName\": \"a\", \"volumeMode\": \"Block\"}}");
        for (size_t i = 0; i < nd_count_of(cases); i++) {
                nd_autofree char *spec = nd_format("{\"volumes\": [%s]}", cases[i].volume);

                expect_text(judge(&s, spec), cases[i].verdict);
        }
        expect_text(judge(&s, "{\"containers\": [{\"name\": \"c\", \"volumeMounts\": [{\"name\": \"v\", "
                              "\"mountPropagation\": \"Bidirectional\"}]}]}"),
                    "no: volume v is mounted with propagation to the host");
        end(&s);
}

static void claims_of_a_stateful_set_count([[maybe_unused]] void **state) {
        static const char set[] =
                "{\"metadata\": {\"name\": \"db\", \"namespace\": \"n\"}, \"spec\": {\"template\": {\"spec\": {}}, "
                "\"volumeClaimTemplates\": [{\"metadata\": {\"name\": \"data\"}}]}}";
        struct setting s;

        begin(&s);
        expect_text(judge_as(&s, ND_AUDIT_STATEFUL_SET, set), "check: the volume of claim data-db-0 is not known");
        put(&s, ND_AUDIT_VOLUME, "{\"metadata\": {\"name\": \"pv\"}, \"spec\": {\"nfs\": {\"server\": \"s\"}}}");
        put(&s, ND_AUDIT_CLAIM,
            "{\"metadata\": {\"name\": \"data-db-0\", \"namespace\": \"n\"}, \"spec\": {\"volumeName\": \"pv\"}}");
        expect_text(judge_as(&s, ND_AUDIT_STATEFUL_SET, set), "no: volume data is of type nfs, which cannot be idmapped");
        end(&s);
}

static void every_schedulable_node_must_offer_user_namespaces([[maybe_unused]] void **state) {
        struct setting s;

        begin(&s);
        put(&s, ND_AUDIT_NODE, "{\"metadata\": {\"name\": \"away\"}, \"spec\": {\"unschedulable\": true}}");
        nd_audit_settle(&s.cluster);
        expect_text(judge(&s, "{}"), "yes");
        put(&s, ND_AUDIT_NODE,
            "{\"metadata\": {\"name\": \"plain\"}, \"status\": {\"nodeInfo\": {\"kubeletVersion\": \"v1.36.3\"}}}");
        nd_audit_settle(&s.cluster);
        expect_text(judge(&s, "{}"), "check: 1 schedulable nodes do not offer user namespaces, such as plain");
        s.cluster.known[ND_AUDIT_NODE] = false;
        expect_text(judge(&s, "{}"), "check: the nodes are not known");
        end(&s);
}

static void known_ids_of_images_and_processes_count([[maybe_unused]] void **state) {
        struct setting s;

        begin(&s);
        (void) nd_map_put(&s.cluster.images, "high", (void *) (uintptr_t) 70001);
        (void) nd_map_put(&s.cluster.images, "low", (void *) (uintptr_t) 65536);
        expect_text(judge(&s, "{\"containers\": [{\"image\": \"high\"}]}"), "no: image high has files of ID 70000");
        expect_text(judge(&s, "{\"containers\": [{\"image\": \"low\"}]}"), "yes");
        expect_text(
                judge_as(
                        &s, ND_AUDIT_POD,
                        "{\"metadata\": {\"namespace\": \"n\"}, \"spec\": {}, \"status\": {\"containerStatuses\": [{\"user\": "
                        "{\"linux\": {\"uid\": 1, \"gid\": 1, \"supplementalGroups\": [100000]}}}]}}"),
                "no: a container runs with ID 100000");
        end(&s);
}

static void the_label_names_the_constraint_or_the_grant([[maybe_unused]] void **state) {
        static const char pod[] =
                "{\"metadata\": {\"name\": \"p\", \"namespace\": \"n\"}, \"spec\": {\"containers\": [{\"name\": "
                "\"c\", \"securityContext\": {\"runAsUser\": 0}}]}}";
        struct nd_audit_workload workload;
        struct nd_audit_readiness found;
        nd_autojson yyjson_doc *doc = nullptr;
        struct setting s;

        begin(&s);
        put(&s, ND_AUDIT_CONSTRAINT,
            "{\"metadata\": {\"name\": \"userns-root\"}, \"userNamespaceLevel\": \"RequirePodLevel\", \"runAsUser\": {\"type\": "
            "\"MustRunAsRange\", \"uidRangeMin\": 0, \"uidRangeMax\": 65535}, \"seLinuxContext\": {\"type\": \"RunAsAny\"}, "
            "\"seccompProfiles\": [\"*\"]}");
        put(&s, ND_AUDIT_CLUSTER_ROLE,
            "{\"metadata\": {\"name\": \"r\"}, \"rules\": [{\"verbs\": [\"use\"], \"apiGroups\": [\"security.nodens.io\"], "
            "\"resources\": [\"securitycontextconstraints\"], \"resourceNames\": [\"userns-root\"]}]}");
        nd_audit_settle(&s.cluster);
        expect_ok(nd_json_parse(pod, strlen(pod), 1 << 20, &doc));
        expect_ok(nd_audit_workload_decode(ND_AUDIT_POD, yyjson_doc_get_root(doc), &s.arena, &workload));
        nd_audit_judge(&s.cluster, &workload, &s.arena, &found);
        assert_null(found.constraint);
        assert_string_equal(found.grant, "userns-root");
        assert_string_equal(found.account, "default");
        put(&s, ND_AUDIT_ROLE_BINDING,
            "{\"metadata\": {\"name\": \"b\", \"namespace\": \"n\"}, \"roleRef\": {\"kind\": \"ClusterRole\", \"name\": \"r\"}, "
            "\"subjects\": [{\"kind\": \"ServiceAccount\", \"name\": \"default\"}]}");
        nd_audit_judge(&s.cluster, &workload, &s.arena, &found);
        assert_string_equal(found.constraint, "userns-root");
        end(&s);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_a_pod_asks_for_decides),
                cmocka_unit_test(volumes_need_a_filesystem_that_can_be_idmapped),
                cmocka_unit_test(claims_of_a_stateful_set_count),
                cmocka_unit_test(every_schedulable_node_must_offer_user_namespaces),
                cmocka_unit_test(known_ids_of_images_and_processes_count),
                cmocka_unit_test(the_label_names_the_constraint_or_the_grant),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
