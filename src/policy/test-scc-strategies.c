/* SPDX-License-Identifier: Apache-2.0 */
/* One constraint tried on one pod: filled fields and errors. */
#include "policy/scc.h"

#include <unit/expect.h>

/* The result of trying a pod. */
struct trial {
        struct nd_arena arena;
        struct nd_pod *pod;
        struct nd_field_errors errors;
};

static void trial_done(struct trial *trial) {
        nd_field_errors_done(&trial->errors);
        nd_arena_done(&trial->arena);
}

static const struct nd_scc_namespace some_namespace = {.uid_range = "1000650000/10000", .mcs = "s0:c26,c5"};

static void try_pod(struct trial *trial, const char *scc_json, const char *pod_json) {
        nd_autojson yyjson_doc *doc = nullptr;
        struct nd_scc scc, bound;
        struct nd_pod pod;

        expect_ok(nd_json_parse(scc_json, strlen(scc_json), ND_SCC_BYTES, &doc));
        expect_ok(nd_scc_decode(yyjson_doc_get_root(doc), &trial->arena, &scc));
        expect_ok(nd_scc_bind(&scc, &some_namespace, &trial->arena, &bound));
        expect_ok(nd_pod_decode(pod_json, strlen(pod_json), &trial->arena, &pod));
        trial->pod = nd_pod_copy(&pod, &trial->arena);
        trial->errors.arena = &trial->arena;
        nd_scc_fit(&bound, trial->pod, ND_SCC_WINDOW, &trial->errors);
}

/* Returns the errors about a pod with one container. */
static char *said(const char *scc_json, const char *pod_json) {
        nd_cleanup(trial_done) struct trial trial = {};
        nd_autotext struct nd_text text = ND_TEXT(10000);

        try_pod(&trial, scc_json, pod_json);
        nd_field_errors_print(&trial.errors, &text);
        return nd_strdup(nd_text_get(&text));
}

#define ANY "\"runAsUser\": {\"type\": \"RunAsAny\"}, \"seLinuxContext\": {\"type\": \"RunAsAny\"}"
#define USER(strategy) "{\"runAsUser\": {" strategy "}, \"seLinuxContext\": {\"type\": \"RunAsAny\"}}"
#define POD(context) "{\"spec\": {\"containers\": [{\"name\": \"a\", \"securityContext\": {" context "}}]}}"
#define PATH "spec.containers[0].securityContext"

static void users_are_generated_and_compared([[maybe_unused]] void **state) {
        static const char must[] = USER("\"type\": \"MustRunAs\", \"uid\": 5");
        static const char range[] = USER("\"type\": \"MustRunAsRange\", \"uidRangeMin\": 10, \"uidRangeMax\": 20");
        nd_cleanup(trial_done) struct trial a = {}, b = {}, c = {};

        try_pod(&a, must, POD(""));
        assert_int_equal(a.pod->spec.containers.items[0].security->run_as_user.value, 5);
        /* as pod security requires */
        assert_int_equal(a.pod->spec.containers.items[0].security->run_as_non_root, ND_ON);
        try_pod(&b, range, POD(""));
        assert_int_equal(b.pod->spec.containers.items[0].security->run_as_user.value, 10);
        try_pod(&c, range, "{\"spec\": {\"securityContext\": {\"runAsUser\": 15}, \"containers\": [{}]}}");
        /* the pod's own suffices */
        assert_false(c.pod->spec.containers.items[0].security->run_as_user.set);
        assert_int_equal(c.errors.items.count, 0);
        expect_text(said(must, POD("\"runAsUser\": 6")), PATH ".runAsUser: Invalid value: 6: must be: 5");
        expect_text(said(range, POD("\"runAsUser\": 20")), "");
        expect_text(said(range, POD("\"runAsUser\": 21")),
                    PATH ".runAsUser: Invalid value: 21: must be in the ranges: [10, 20]");
        expect_text(said(range, POD("\"runAsUser\": 9")),
                    PATH ".runAsUser: Invalid value: 9: must be in the ranges: [10, 20]");
}

static void non_root_is_required_if_no_user_is_set([[maybe_unused]] void **state) {
        static const char scc[] = USER("\"type\": \"MustRunAsNonRoot\"");
        nd_cleanup(trial_done) struct trial trial = {};

        try_pod(&trial, scc, POD(""));
        assert_int_equal(trial.errors.items.count, 0);
        assert_int_equal(trial.pod->spec.containers.items[0].security->run_as_non_root, ND_ON);
        expect_text(said(scc, POD("\"runAsNonRoot\": false")), PATH ".runAsNonRoot: Invalid value: false: must be true");
        expect_text(said(scc, POD("\"runAsUser\": 0")),
                    PATH ".runAsUser: Invalid value: 0: running with the root UID is forbidden");
        expect_text(said(scc, POD("\"runAsUser\": 7")), "");
}

static void groups_are_generated_and_compared([[maybe_unused]] void **state) {
        static const char scc[] =
                "{" ANY ", \"fsGroup\": {\"type\": \"MustRunAs\", \"ranges\": [{\"min\": 5, \"max\": 6}, {\"min\": 9, "
                "\"max\": 9}]}, \"supplementalGroups\": {\"type\": \"MustRunAs\", \"ranges\": [{\"min\": 7, \"max\": 8}]}}";
        nd_cleanup(trial_done) struct trial trial = {};

        try_pod(&trial, scc, POD(""));
        assert_int_equal(trial.pod->spec.security->fs_group.value, 5);
        assert_int_equal(trial.pod->spec.security->supplemental_groups.items[0], 7);
        expect_text(said(scc, "{\"spec\": {\"securityContext\": {\"fsGroup\": 9, \"supplementalGroups\": [7, 8]}}}"), "");
        expect_text(said(scc, "{\"spec\": {\"securityContext\": {\"fsGroup\": 7, \"supplementalGroups\": [8, 9]}}}"),
                    "[spec.securityContext.fsGroup: Invalid value: [7]: 7 is not an allowed group, "
                    "spec.securityContext.supplementalGroups: Invalid value: [8,9]: 9 is not an allowed group]");
        expect_text(
                said(scc, "{\"spec\": {\"securityContext\": {\"supplementalGroups\": []}}}"),
                "spec.securityContext.supplementalGroups: Invalid value: []: unable to validate empty groups against required ranges");
}

static void selinux_levels_are_sets([[maybe_unused]] void **state) {
        static const char scc[] = "{\"runAsUser\": {\"type\": \"RunAsAny\"}, \"seLinuxContext\": {\"type\": \"MustRunAs\"}}";
        nd_cleanup(trial_done) struct trial trial = {};

        try_pod(&trial, scc, POD(""));
        assert_string_equal(trial.pod->spec.security->selinux->level, "s0:c26,c5");
        assert_null(trial.pod->spec.containers.items[0].security->selinux); /* it inherits */
        expect_text(said(scc, POD("\"seLinuxOptions\": {\"level\": \"s0:c5,c26\"}")), "");
        expect_text(said(scc, POD("\"seLinuxOptions\": {\"level\": \"s0:c5\", \"type\": \"spc_t\"}")),
                    "[" PATH ".seLinuxOptions.level: Invalid value: \"s0:c5\": must be s0:c26,c5, " PATH
                    ".seLinuxOptions.type: Invalid value: \"spc_t\": must be ]");
        expect_text(said(scc, "{\"spec\": {\"securityContext\": {\"seLinuxOptions\": {\"level\": \"s1:c26,c5\"}}}}"),
                    "spec.securityContext.seLinuxOptions.level: Invalid value: \"s1:c26,c5\": must be s0:c26,c5");
}

#define CAPS(more) "{" ANY ", " more "}"

static void capabilities_are_added_and_dropped([[maybe_unused]] void **state) {
        static const char scc[] = CAPS(
                "\"defaultAddCapabilities\": [\"D\"], \"requiredDropCapabilities\": [\"K\", \"A\"], \"allowedCapabilities\": [\"B\"]");
        nd_cleanup(trial_done) struct trial a = {}, b = {}, c = {};

        try_pod(&a, scc, POD("\"capabilities\": {\"add\": [\"B\"], \"drop\": [\"Z\", \"A\"]}"));
        assert_int_equal(a.errors.items.count, 0);
        assert_int_equal(a.pod->spec.containers.items[0].security->capabilities->add.count, 2);
        assert_string_equal(a.pod->spec.containers.items[0].security->capabilities->add.items[0], "B");
        assert_int_equal(a.pod->spec.containers.items[0].security->capabilities->drop.count, 3);
        assert_string_equal(a.pod->spec.containers.items[0].security->capabilities->drop.items[1], "K");
        /* a default can be dropped */
        try_pod(&b, scc, POD("\"capabilities\": {\"drop\": [\"D\", \"K\", \"A\"]}"));
        assert_int_equal(b.pod->spec.containers.items[0].security->capabilities->add.count, 0);
        try_pod(&c, CAPS("\"volumes\": []"), POD(""));
        /* nothing to do, so it is unchanged */
        assert_null(c.pod->spec.containers.items[0].security->capabilities);
        expect_text(said(scc, POD("\"capabilities\": {\"add\": [\"b\"]}")),
                    PATH ".capabilities.add: Invalid value: \"b\": capability may not be added");
        expect_text(said(CAPS("\"allowedCapabilities\": [\"*\"]"), POD("\"capabilities\": {\"add\": [\"X\"]}")), "");
        expect_text(said(CAPS("\"volumes\": []"), POD("\"capabilities\": {\"add\": [\"X\"]}")),
                    PATH ".capabilities.add: Invalid value: \"X\": capability may not be added");
}

static void the_first_seccomp_profile_is_the_default([[maybe_unused]] void **state) {
        static const char list[] = CAPS("\"seccompProfiles\": [\"*\", \"localhost/x\"]"),
                          only[] = CAPS("\"seccompProfiles\": [\"docker/default\"]");
        nd_cleanup(trial_done) struct trial a = {}, b = {};

        try_pod(&a, list, POD(""));
        assert_string_equal(a.pod->spec.security->seccomp->type, "Localhost");
        assert_string_equal(a.pod->spec.security->seccomp->localhost, "x");
        assert_int_equal(a.pod->metadata.annotations.count, 0);
        try_pod(&b, list, POD("\"seccompProfile\": {\"type\": \"Unconfined\"}"));
        assert_string_equal(b.pod->spec.containers.items[0].security->seccomp->type, "Unconfined");
        /* two names of the same profile */
        expect_text(said(only, POD("\"seccompProfile\": {\"type\": \"RuntimeDefault\"}")), "");
        expect_text(
                said(only, POD("\"seccompProfile\": {\"type\": \"Unconfined\"}")), PATH
                ".seccompProfile: Forbidden: unconfined is not an allowed seccomp profile. Valid values are [docker/default]");
        expect_text(said(CAPS("\"volumes\": []"), POD("\"seccompProfile\": {\"type\": \"RuntimeDefault\"}")),
                    PATH ".seccompProfile: Forbidden: seccomp may not be set");
}

/* Current kubelets do not read these annotations, so they neither excuse nor confine a
 * container. */
static void seccomp_annotations_are_ignored([[maybe_unused]] void **state) {
#define DEAD                                                                                                                  \
        "{\"metadata\": {\"annotations\": {\"container.seccomp.security.alpha.kubernetes.io/a\": \"runtime/default\", "       \
        "\"seccomp.security.alpha.kubernetes.io/pod\": \"runtime/default\"}}, "
        static const char only[] = CAPS("\"seccompProfiles\": [\"runtime/default\"]"), none[] = CAPS("\"volumes\": []");

        expect_text(said(only, DEAD "\"spec\": {\"containers\": [{\"name\": \"a\", \"securityContext\": {\"seccompProfile\": "
                                    "{\"type\": \"Unconfined\"}}}]}}"),
                    PATH ".seccompProfile: Forbidden: unconfined is not an allowed seccomp profile. Valid values are "
                         "[runtime/default]");
        expect_text(
                said(only, DEAD "\"spec\": {\"securityContext\": {\"seccompProfile\": {\"type\": \"Unconfined\"}}}}"),
                "spec.securityContext.seccompProfile: Forbidden: unconfined is not an allowed seccomp profile. Valid values "
                "are [runtime/default]");
        expect_text(said(none, DEAD "\"spec\": {\"containers\": [{\"name\": \"a\"}]}}"), "");
}

#define SAID_APPARMOR(profile) "Forbidden: " profile " is not an allowed AppArmor profile. Valid values are [runtime/default]"

static void apparmor_profiles_in_fields_and_annotations_are_compared([[maybe_unused]] void **state) {
        static const char only[] = CAPS("\"allowedAppArmorProfiles\": [\"runtime/default\"]"),
                          some[] = CAPS("\"allowedAppArmorProfiles\": [\"localhost/k8s-*\"]"),
                          open[] = CAPS("\"allowedAppArmorProfiles\": [\"*\"], \"allowPrivilegedContainer\": true"),
                          strong[] = CAPS(
                                  "\"allowedAppArmorProfiles\": [\"runtime/default\"], \"allowPrivilegedContainer\": true");
        static const char annotated[] =
                "{\"metadata\": {\"annotations\": {\"container.apparmor.security.beta.kubernetes.io/a\": "
                "\"localhost/x\"}}, \"spec\": {\"containers\": [{\"name\": \"a\"}]}}";

        expect_text(said(only, POD("")), "");
        expect_text(said(only, POD("\"appArmorProfile\": {\"type\": \"RuntimeDefault\"}")), "");
        expect_text(said(only, POD("\"appArmorProfile\": {\"type\": \"Unconfined\"}")),
                    PATH ".appArmorProfile: " SAID_APPARMOR("unconfined"));
        expect_text(
                said(only, POD("\"appArmorProfile\": {\"type\": \"Localhost\", \"localhostProfile\": \"nodens-rootless\"}")),
                PATH ".appArmorProfile: " SAID_APPARMOR("localhost/nodens-rootless"));
        expect_text(said(only, POD("\"appArmorProfile\": {\"type\": \"Later\"}")),
                    PATH ".appArmorProfile: " SAID_APPARMOR("'Later'"));
        expect_text(said(only,
                         "{\"spec\": {\"securityContext\": {\"appArmorProfile\": {\"type\": \"Unconfined\"}}, \"containers\": "
                         "[{\"securityContext\": {\"appArmorProfile\": {\"type\": \"RuntimeDefault\"}}}]}}"),
                    "spec.securityContext.appArmorProfile: " SAID_APPARMOR("unconfined"));
        expect_text(said(only, annotated),
                    "metadata.annotations[container.apparmor.security.beta.kubernetes.io/a]: " SAID_APPARMOR("localhost/x"));
        expect_text(said(some, POD("\"appArmorProfile\": {\"type\": \"Localhost\", \"localhostProfile\": \"k8s-web\"}")), "");
        expect_text(said(some, POD("")),
                    PATH ".appArmorProfile: Forbidden: runtime/default is not an allowed AppArmor profile. "
                         "Valid values are [localhost/k8s-*]");
        expect_text(said(open, POD("\"privileged\": true, \"appArmorProfile\": {\"type\": \"Unconfined\"}")), "");
        expect_text(said(strong, POD("\"privileged\": true")), PATH ".appArmorProfile: " SAID_APPARMOR("unconfined"));
        expect_text(said("{" ANY "}", POD("\"appArmorProfile\": {\"type\": \"Unconfined\"}")),
                    ""); /* OpenShift's own constraints have no list */
}

static void windows_pods_are_checked_for_host_access([[maybe_unused]] void **state) {
#define WINDOWS(more) "{\"spec\": {\"os\": {\"name\": \"windows\"}, " more "}}"
        static const char strict[] =
                CAPS("\"volumes\": [\"secret\"], \"requiredDropCapabilities\": [\"ALL\"], \"seccompProfiles\": "
                     "[\"runtime/default\"]"),
                          strong[] = CAPS(
                                  "\"allowPrivilegedContainer\": true, \"allowHostNetwork\": true, \"allowHostPorts\": true, "
                                  "\"allowHostDirVolumePlugin\": true");
        static const char greedy[] = WINDOWS(
                "\"hostNetwork\": true, \"securityContext\": {\"windowsOptions\": {\"hostProcess\": true}}, \"volumes\": "
                "[{\"hostPath\": {}}], \"containers\": [{\"ports\": [{\"hostPort\": 80}], \"securityContext\": {\"windowsOptions\": "
                "{\"hostProcess\": true}}}]");
        nd_cleanup(trial_done) struct trial plain = {};

        try_pod(&plain, strict, WINDOWS("\"containers\": [{}]"));
        assert_int_equal(plain.errors.items.count, 0);
        assert_null(plain.pod->spec.security); /* the API server would refuse Linux fields */
        assert_null(plain.pod->spec.containers.items[0].security);
        expect_text(
                said(strict, greedy),
                "[spec.securityContext.windowsOptions.hostProcess: Invalid value: true: Host process containers are not allowed, "
                "spec.hostNetwork: Invalid value: true: Host network is not allowed to be used, "
                "spec.volumes[0]: Invalid value: \"hostPath\": hostPath volumes are not allowed to be used, " PATH
                ".windowsOptions.hostProcess: Invalid value: true: Host process containers are not allowed, "
                "spec.containers[0].ports[0].hostPort: Invalid value: 80: Host ports are not allowed to be used]");
        expect_text(said(strong, greedy), "");
        /* the field counts even if the pod does not name its operating system */
        expect_text(said("{" ANY "}", POD("\"windowsOptions\": {\"hostProcess\": true}")),
                    PATH ".windowsOptions.hostProcess: Invalid value: true: Host process containers are not allowed");
}

static void host_access_is_reported_once([[maybe_unused]] void **state) {
        static const char pod[] =
                "{\"spec\": {\"hostNetwork\": true, \"hostPID\": true, \"hostIPC\": true, \"containers\": [{\"ports\": "
                "[{}, {\"hostPort\": 80}]}, {\"securityContext\": {\"privileged\": true}}]}}";

        expect_text(
                said("{" ANY "}", pod),
                "[spec.hostNetwork: Invalid value: true: Host network is not allowed to be used, "
                "spec.hostPID: Invalid value: true: Host PID is not allowed to be used, "
                "spec.hostIPC: Invalid value: true: Host IPC is not allowed to be used, "
                "spec.containers[0].ports[1].hostPort: Invalid value: 80: Host ports are not allowed to be used, "
                "spec.containers[1].securityContext.privileged: Invalid value: true: Privileged containers are not allowed]");
        expect_text(
                said(CAPS("\"allowHostNetwork\": true, \"allowHostPID\": true, \"allowHostIPC\": true, \"allowHostPorts\": true, "
                          "\"allowPrivilegedContainer\": true"),
                     pod),
                "");
}

static void a_user_namespace_is_required_and_not_set([[maybe_unused]] void **state) {
        static const char scc[] = CAPS("\"userNamespaceLevel\": \"RequirePodLevel\"");

        expect_text(said(scc, "{\"spec\": {}}"), "spec.hostUsers: Invalid value: null: Host Users must be set to false");
        expect_text(said(scc, "{\"spec\": {\"hostUsers\": true}}"),
                    "spec.hostUsers: Invalid value: true: Host Users must be set to false");
        expect_text(said(scc, "{\"spec\": {\"hostUsers\": false}}"), "");
        expect_text(said("{" ANY "}", "{\"spec\": {\"hostUsers\": true}}"), "");
}

static void ids_lie_within_the_pods_window([[maybe_unused]] void **state) {
        static const char of_namespace[] = USER("\"type\": \"MustRunAsRange\"");
        nd_cleanup(trial_done) struct trial trial = {};

        expect_text(
                said(of_namespace, "{\"spec\": {\"hostUsers\": false, \"containers\": [{}]}}"), PATH
                ".runAsUser: Invalid value: null: the range [1000650000, 1000659999] has none of the IDs 0 to 65535 of the pod's "
                "user namespace");
        expect_text(
                said("{" ANY "}",
                     "{\"spec\": {\"hostUsers\": false, \"securityContext\": {\"fsGroup\": 65536}, \"containers\": "
                     "[{\"securityContext\": {\"runAsUser\": 70000, \"runAsGroup\": 65535}}]}}"),
                "[spec.securityContext.fsGroup: Invalid value: 65536: is outside of the IDs 0 to 65535 of the pod's user namespace, " PATH
                ".runAsUser: Invalid value: 70000: is outside of the IDs 0 to 65535 of the pod's user namespace]");
        try_pod(&trial, of_namespace, POD(""));
        assert_int_equal(trial.pod->spec.containers.items[0].security->run_as_user.value, 1000650000);
}

static void sysctls_match_patterns([[maybe_unused]] void **state) {
        static const char pod[] =
                "{\"spec\": {\"securityContext\": {\"sysctls\": [{\"name\": \"net.ipv4.tcp_rmem\"}, {\"name\": \"kernel.msgmax\"}, "
                "{\"name\": \"kernel.shm_rmid_forced\"}]}}}";

        expect_text(said("{" ANY "}", pod),
                    "spec.securityContext.sysctls[1]: Forbidden: unsafe sysctl \"kernel.msgmax\" is not allowed");
        expect_text(said(CAPS("\"allowedUnsafeSysctls\": [\"kernel.msg*\"]"), pod), "");
        expect_text(said(CAPS("\"allowedUnsafeSysctls\": [\"*\"], \"forbiddenSysctls\": [\"kernel.shm*\"]"), pod),
                    "spec.securityContext.sysctls[2]: Forbidden: sysctl \"kernel.shm_rmid_forced\" is not allowed");
}

#define TOKEN(path, extra)                                                                                                       \
        "{\"spec\": {\"volumes\": [{\"name\": \"t\", \"projected\": {\"sources\": [{\"serviceAccountToken\": {\"path\": \"" path \
        "\"}}, {\"configMap\": {\"name\": \"kube-root-ca.crt\", \"items\": [{\"key\": \"ca.crt\", \"path\": \"ca.crt\"}]}}, "    \
        "{\"downwardAPI\": {\"items\": [{\"path\": \"namespace\", \"fieldRef\": {\"apiVersion\": \"v1\", \"fieldPath\": "        \
        "\"metadata.namespace\"}}]}}" extra "]}}]}}"

static void volumes_are_compared_by_type([[maybe_unused]] void **state) {
        static const char secrets[] = CAPS("\"volumes\": [\"secret\"]");

        expect_text(said(secrets, "{\"spec\": {\"volumes\": [{\"secret\": {}}, {\"cephfs\": {}}]}}"),
                    "spec.volumes[1]: Invalid value: \"cephFS\": cephFS volumes are not allowed to be used");
        expect_text(said(secrets, TOKEN("token", "")), ""); /* every pod has this one */
        expect_text(said(secrets, TOKEN("else", "")),
                    "spec.volumes[0]: Invalid value: \"projected\": projected volumes are not allowed to be used");
        expect_text(said(secrets, TOKEN("token", ", {\"secret\": {}}")),
                    "spec.volumes[0]: Invalid value: \"projected\": projected volumes are not allowed to be used");
        expect_text(said(secrets, "{\"spec\": {\"volumes\": [{\"name\": \"v\"}]}}"),
                    "spec.volumes[0]: Invalid value: \"\": unknown volume type for volume: v");
        expect_text(
                said(CAPS("\"volumes\": [\"flexVolume\"], \"allowedFlexVolumes\": [{\"driver\": \"d\"}]"),
                     "{\"spec\": {\"volumes\": [{\"flexVolume\": {\"driver\": \"d\"}}, {\"flexVolume\": {\"driver\": \"e\"}}]}}"),
                "spec.volumes[1].driver: Invalid value: \"e\": Flexvolume driver is not allowed to be used");
}

static void escalation_and_root_filesystem_are_filled_in([[maybe_unused]] void **state) {
        static const char scc[] = CAPS("\"allowPrivilegeEscalation\": false, \"readOnlyRootFilesystem\": true");
        nd_cleanup(trial_done) struct trial a = {}, b = {};

        try_pod(&a, scc, POD(""));
        assert_int_equal(a.pod->spec.containers.items[0].security->allow_privilege_escalation, ND_OFF);
        assert_int_equal(a.pod->spec.containers.items[0].security->read_only_root, ND_ON);
        expect_text(
                said(scc, POD("\"allowPrivilegeEscalation\": true, \"readOnlyRootFilesystem\": false")),
                "[" PATH
                ".allowPrivilegeEscalation: Invalid value: true: Allowing privilege escalation for containers is not allowed, " PATH
                ".readOnlyRootFilesystem: Invalid value: false: ReadOnlyRootFilesystem must be set to true]");
        try_pod(&b, CAPS("\"defaultAllowPrivilegeEscalation\": false, \"allowPrivilegedContainer\": true"),
                POD("\"privileged\": true"));
        assert_int_equal(b.pod->spec.containers.items[0].security->allow_privilege_escalation, ND_UNSET);
}

static void extension_fields_apply_if_present([[maybe_unused]] void **state) {
        static const char scc[] = CAPS(
                "\"allowedProcMountTypes\": [\"Default\"], \"runAsGroup\": {\"type\": \"MustRunAs\", \"ranges\": [{\"min\": 3, "
                "\"max\": 4}]}, \"supplementalGroupsPolicy\": \"Strict\"");
        nd_cleanup(trial_done) struct trial trial = {};

        try_pod(&trial, scc, POD(""));
        assert_int_equal(trial.errors.items.count, 0);
        assert_int_equal(trial.pod->spec.containers.items[0].security->run_as_group.value, 3);
        assert_string_equal(trial.pod->spec.security->supplemental_groups_policy, "Strict");
        expect_text(
                said(scc,
                     "{\"spec\": {\"securityContext\": {\"supplementalGroupsPolicy\": \"Merge\"}, \"containers\": [{\"securityContext\": "
                     "{\"procMount\": \"Unmasked\", \"runAsGroup\": 5}}]}}"),
                "[spec.securityContext.supplementalGroupsPolicy: Invalid value: \"Merge\": must be Strict, " PATH
                ".runAsGroup: Invalid value: 5: 5 is not an allowed group, " PATH
                ".procMount: Invalid value: \"Unmasked\": procMount type is not allowed to be used]");
}

static void all_kinds_of_containers_are_tried([[maybe_unused]] void **state) {
        expect_text(
                said("{" ANY "}", "{\"spec\": {\"initContainers\": [{\"securityContext\": {\"privileged\": true}}], "
                                  "\"ephemeralContainers\": [{}, {\"securityContext\": {\"privileged\": true}}]}}"),
                "[spec.initContainers[0].securityContext.privileged: Invalid value: true: Privileged containers are not allowed, "
                "spec.ephemeralContainers[1].securityContext.privileged: Invalid value: true: Privileged containers are not allowed]");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(users_are_generated_and_compared),
                cmocka_unit_test(non_root_is_required_if_no_user_is_set),
                cmocka_unit_test(groups_are_generated_and_compared),
                cmocka_unit_test(selinux_levels_are_sets),
                cmocka_unit_test(capabilities_are_added_and_dropped),
                cmocka_unit_test(the_first_seccomp_profile_is_the_default),
                cmocka_unit_test(seccomp_annotations_are_ignored),
                cmocka_unit_test(apparmor_profiles_in_fields_and_annotations_are_compared),
                cmocka_unit_test(windows_pods_are_checked_for_host_access),
                cmocka_unit_test(host_access_is_reported_once),
                cmocka_unit_test(a_user_namespace_is_required_and_not_set),
                cmocka_unit_test(ids_lie_within_the_pods_window),
                cmocka_unit_test(sysctls_match_patterns),
                cmocka_unit_test(volumes_are_compared_by_type),
                cmocka_unit_test(escalation_and_root_filesystem_are_filled_in),
                cmocka_unit_test(extension_fields_apply_if_present),
                cmocka_unit_test(all_kinds_of_containers_are_tried),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
