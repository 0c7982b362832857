/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/scc-level.h"

#include <unit/expect.h>

static enum nd_podsecurity_level level_of(const char *json) {
        nd_autoarena struct nd_arena arena = {};
        nd_autojson yyjson_doc *doc = nullptr;
        struct nd_scc scc = {};

        expect_ok(nd_json_parse(json, strlen(json), 1 << 16, &doc));
        expect_ok(nd_scc_decode(yyjson_doc_get_root(doc), &arena, &scc));
        return nd_scc_level(&scc);
}

static void the_default_constraints_have_their_levels([[maybe_unused]] void **state) {
        static const struct {
                const char *name;
                enum nd_podsecurity_level level;
        } expected[] = {
                {"restricted", ND_LEVEL_BASELINE},         {"restricted-v2", ND_LEVEL_RESTRICTED},
                {"restricted-v3", ND_LEVEL_RESTRICTED},    {"nonroot", ND_LEVEL_BASELINE},
                {"nonroot-v2", ND_LEVEL_RESTRICTED},       {"nested-container", ND_LEVEL_BASELINE},
                {"userns-root", ND_LEVEL_BASELINE},        {"anyuid", ND_LEVEL_BASELINE},
                {"hostmount-anyuid", ND_LEVEL_PRIVILEGED}, {"hostmount-anyuid-v2", ND_LEVEL_PRIVILEGED},
                {"hostnetwork", ND_LEVEL_PRIVILEGED},      {"hostnetwork-v2", ND_LEVEL_PRIVILEGED},
                {"hostaccess", ND_LEVEL_PRIVILEGED},       {"privileged", ND_LEVEL_PRIVILEGED},
        };

        assert_int_equal(nd_scc_default_count, nd_count_of(expected));
        for (size_t i = 0; i < nd_count_of(expected); i++) {
                assert_string_equal(nd_scc_defaults[i].scc.metadata.name, expected[i].name);
                if (nd_scc_level(&nd_scc_defaults[i].scc) != expected[i].level)
                        fail_msg("%s has the level %s", expected[i].name,
                                 nd_podsecurity_level_name(nd_scc_level(&nd_scc_defaults[i].scc)));
        }
}

/* restricted-v2, with one field replaced or added. */
#define WITH(field)                                                                                                           \
        "{\"metadata\":{\"name\":\"c\"},\"allowPrivilegeEscalation\":false,\"requiredDropCapabilities\":[\"ALL\"],"           \
        "\"allowedCapabilities\":[\"NET_BIND_SERVICE\"],\"seccompProfiles\":[\"runtime/default\"],"                           \
        "\"volumes\":[\"secret\"],\"seLinuxContext\":{\"type\":\"MustRunAs\"},"                                               \
        "\"runAsUser\":{\"type\":\"MustRunAsRange\"},\"fsGroup\":{\"type\":\"MustRunAs\"},"                                   \
        "\"supplementalGroups\":{\"type\":\"RunAsAny\"}" field "}"

static void each_field_that_allows_more_needs_a_laxer_level([[maybe_unused]] void **state) {
        static const struct {
                const char *json;
                enum nd_podsecurity_level level;
        } cases[] = {
                {WITH(""), ND_LEVEL_RESTRICTED},
                {WITH(",\"allowHostDirVolumePlugin\":true"), ND_LEVEL_PRIVILEGED},
                {WITH(",\"allowHostPorts\":true"), ND_LEVEL_PRIVILEGED},
                {WITH(",\"allowHostIPC\":true"), ND_LEVEL_PRIVILEGED},
                {WITH(",\"allowHostPID\":true"), ND_LEVEL_PRIVILEGED},
                {WITH(",\"allowHostNetwork\":true"), ND_LEVEL_PRIVILEGED},
                {WITH(",\"allowPrivilegedContainer\":true"), ND_LEVEL_PRIVILEGED},
                {WITH(",\"defaultAddCapabilities\":[\"CHOWN\"]"), ND_LEVEL_BASELINE},
                {WITH(",\"defaultAddCapabilities\":[\"SYS_ADMIN\"]"), ND_LEVEL_PRIVILEGED},
                {WITH(",\"allowedUnsafeSysctls\":[\"kernel.shm_rmid_forced\"]"), ND_LEVEL_RESTRICTED},
                {WITH(",\"allowedUnsafeSysctls\":[\"kernel.*\"]"), ND_LEVEL_PRIVILEGED},
                {WITH(",\"allowedAppArmorProfiles\":[\"localhost/a\"]"), ND_LEVEL_RESTRICTED},
                {WITH(",\"allowedAppArmorProfiles\":[\"unconfined\"]"), ND_LEVEL_PRIVILEGED},
                {WITH(",\"allowedProcMountTypes\":[\"Default\"]"), ND_LEVEL_RESTRICTED},
                {WITH(",\"allowedProcMountTypes\":[\"Unmasked\"],\"userNamespaceLevel\":\"RequirePodLevel\""),
                 ND_LEVEL_BASELINE},
        };

        for (size_t i = 0; i < nd_count_of(cases); i++)
                if (level_of(cases[i].json) != cases[i].level)
                        fail_msg("%s has the level %s", cases[i].json, nd_podsecurity_level_name(level_of(cases[i].json)));
}

static struct nd_scc restricted(void) {
        return nd_scc_defaults[1].scc; /* restricted-v2 */
}

static void fields_with_one_value_need_a_level_too([[maybe_unused]] void **state) {
        struct nd_pod_selinux role = {.role = "sysadm_r"}, type = {.type = "spc_t"};
        struct nd_scc scc = restricted();

        scc.selinux.options = &role;
        assert_int_equal(nd_scc_level(&scc), ND_LEVEL_PRIVILEGED);
        scc.selinux.options = &type;
        assert_int_equal(nd_scc_level(&scc), ND_LEVEL_PRIVILEGED);
        scc = restricted();
        scc.seccomp_profiles.count = 0;
        assert_int_equal(nd_scc_level(&scc), ND_LEVEL_BASELINE);
        scc = restricted();
        scc.seccomp_profiles = (struct nd_shape_texts) {.items = (const char *[]) {"unconfined"}, .count = 1};
        assert_int_equal(nd_scc_level(&scc), ND_LEVEL_PRIVILEGED);
        scc = restricted();
        scc.volumes = (struct nd_shape_texts) {.items = (const char *[]) {"nfs"}, .count = 1};
        assert_int_equal(nd_scc_level(&scc), ND_LEVEL_BASELINE);
        scc.volumes.items = (const char *[]) {"*"};
        assert_int_equal(nd_scc_level(&scc), ND_LEVEL_PRIVILEGED);
}

static void root_needs_baseline_without_a_user_namespace_only([[maybe_unused]] void **state) {
        static const struct nd_scc_user users[] = {
                {.type = "RunAsAny"},
                {.type = "MustRunAs", .uid = {.value = 0, .set = true}},
                {.type = "MustRunAsRange", .min = {.value = 0, .set = true}, .max = {.value = 9, .set = true}},
        };
        struct nd_scc scc = restricted();

        for (size_t i = 0; i < nd_count_of(users); i++) {
                scc.user = users[i];
                scc.user_namespace_level = "AllowHostLevel";
                assert_int_equal(nd_scc_level(&scc), ND_LEVEL_BASELINE);
                scc.user_namespace_level = "RequirePodLevel";
                assert_int_equal(nd_scc_level(&scc), ND_LEVEL_RESTRICTED);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_default_constraints_have_their_levels),
                cmocka_unit_test(each_field_that_allows_more_needs_a_laxer_level),
                cmocka_unit_test(fields_with_one_value_need_a_level_too),
                cmocka_unit_test(root_needs_baseline_without_a_user_namespace_only),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
