/* SPDX-License-Identifier: Apache-2.0 */
/* The object: defaults, validation, blocks, and values of the namespace. */
#include "policy/scc.h"

#include <unit/expect.h>

static void decode(const char *json, struct nd_arena *arena, struct nd_scc *ret) {
        nd_autojson yyjson_doc *doc = nullptr;

        expect_ok(nd_json_parse(json, strlen(json), ND_SCC_BYTES, &doc));
        expect_ok(nd_scc_decode(yyjson_doc_get_root(doc), arena, ret));
}

static char *join(const struct nd_shape_texts *texts) {
        nd_autotext struct nd_text text = ND_TEXT(10000);

        for (size_t i = 0; i < texts->count; i++)
                nd_text_addf(&text, "%s%s", i > 0 ? " " : "", texts->items[i]);
        return nd_strdup(nd_text_get(&text));
}

static char *volumes_of(const char *json) {
        nd_autoarena struct nd_arena arena = {};
        struct nd_scc scc;

        decode(json, &arena, &scc);
        return join(&scc.volumes);
}

static void volumes_get_openshifts_defaults([[maybe_unused]] void **state) {
        nd_autofree char *expanded = volumes_of("{\"volumes\": [\"*\"]}"), *legacy = volumes_of("{}");

        expect_text(volumes_of("{\"allowHostDirVolumePlugin\": true}"), "*");
        expect_text(volumes_of("{\"volumes\": []}"), "none");
        expect_text(volumes_of("{\"volumes\": [], \"allowHostDirVolumePlugin\": true}"), "hostPath");
        expect_text(volumes_of("{\"volumes\": [\"secret\"], \"allowHostDirVolumePlugin\": true}"), "hostPath secret");
        expect_text(volumes_of("{\"volumes\": [\"*\"], \"allowHostDirVolumePlugin\": true}"), "*");
        expect_text(volumes_of("{\"volumes\": [\"secret\", \"hostPath\"]}"), "secret");
        /* null means all; without host directories these are all types */
        assert_string_equal(expanded, legacy);
        expect_contains(expanded, "azureDisk azureFile cephFS");
        expect_contains(expanded, "storageOS vsphere");
        assert_null(strstr(expanded, "hostPath"));
}

static void other_fields_get_openshifts_defaults([[maybe_unused]] void **state) {
        nd_autoarena struct nd_arena arena = {};
        struct nd_scc scc;

        decode("{\"fsGroup\": {}, \"priority\": null}", &arena, &scc);
        assert_string_equal(scc.fs_group.type, "RunAsAny");
        assert_string_equal(scc.supplemental_groups.type, "RunAsAny");
        assert_string_equal(scc.user_namespace_level, "AllowHostLevel");
        assert_int_equal(scc.allow_privilege_escalation, ND_ON);
        assert_false(scc.priority.set);
}

static char *problems(const char *json) {
        nd_autoarena struct nd_arena arena = {};
        nd_cleanup(nd_field_errors_done) struct nd_field_errors errors = {.arena = &arena};
        nd_autotext struct nd_text text = ND_TEXT(10000);
        struct nd_scc scc;

        decode(json, &arena, &scc);
        nd_scc_validate(&scc, &errors);
        nd_field_errors_print(&errors, &text);
        return nd_strdup(nd_text_get(&text));
}

#define SCC(more) "{\"runAsUser\": {\"type\": \"RunAsAny\"}, \"seLinuxContext\": {\"type\": \"RunAsAny\"}" more "}"

static void errors_of_an_invalid_constraint_name_the_field([[maybe_unused]] void **state) {
        static const struct {
                const char *json;
                const char *text;
        } cases[] = {
                {SCC(""), ""},
                {SCC(", \"priority\": -1"), "priority: Invalid value: -1: priority cannot be negative"},
                {"{\"seLinuxContext\": {\"type\": \"RunAsAny\"}, \"runAsUser\": {\"type\": \"x\"}}",
                 "runAsUser.type: Invalid value: \"x\": invalid strategy type.  Valid values are MustRunAs, MustRunAsNonRoot, "
                 "MustRunAsRange, RunAsAny"},
                {"{\"runAsUser\": {\"type\": \"RunAsAny\"}, \"seLinuxContext\": {}}",
                 "seLinuxContext.type: Invalid value: \"\": invalid strategy type.  Valid values are MustRunAs, RunAsAny"},
                {"{\"seLinuxContext\": {\"type\": \"RunAsAny\"}, \"runAsUser\": {\"type\": \"MustRunAs\"}}",
                 "runAsUser.uid: Required value: MustRunAs requires a UID"},
                {"{\"seLinuxContext\": {\"type\": \"RunAsAny\"}, \"runAsUser\": {\"type\": \"MustRunAs\", \"uid\": -1}}",
                 "runAsUser.uid: Invalid value: -1: uid cannot be negative"},
                {"{\"seLinuxContext\": {\"type\": \"RunAsAny\"}, \"runAsUser\": {\"type\": \"MustRunAsRange\", \"uidRangeMin\": 5, "
                 "\"uidRangeMax\": 1}}",
                 "runAsUser.uidRangeMin: Invalid value: 5: min cannot be greater than max"},
                {SCC(", \"fsGroup\": {\"type\": \"x\"}"),
                 "fsGroup.type: Unsupported value: \"x\": supported values: \"MustRunAs\", \"RunAsAny\""},
                {SCC(", \"fsGroup\": {\"type\": \"MustRunAs\", \"ranges\": [{\"min\": 2, \"max\": 1}]}"),
                 "fsGroup.ranges[0].min: Invalid value: 2: min cannot be greater than max"},
                {SCC(", \"requiredDropCapabilities\": [\"K\"], \"allowedCapabilities\": [\"*\"]"),
                 "requiredDropCapabilities: Invalid value: \"K\": required capabilities must be empty when all capabilities are allowed "
                 "by a wildcard"},
                {SCC(", \"requiredDropCapabilities\": [\"K\"], \"defaultAddCapabilities\": [\"K\"]"),
                 "defaultAddCapabilities: Invalid value: \"K\": capability is listed in defaultAddCapabilities and "
                 "requiredDropCapabilities"},
                {SCC(", \"allowPrivilegeEscalation\": false, \"defaultAllowPrivilegeEscalation\": true"),
                 "defaultAllowPrivilegeEscalation: Invalid value: true: Cannot set DefaultAllowPrivilegeEscalation to true without "
                 "also setting AllowPrivilegeEscalation to true"},
                {SCC(", \"volumes\": [\"none\", \"secret\"]"),
                 "volumes: Invalid value: \"none\": if 'none' is specified, no other values are allowed"},
                {SCC(", \"volumes\": [\"secrets\"]"), "volumes[0]: Invalid value: \"secrets\": unknown volume type"},
                {SCC(", \"volumes\": [\"flexVolume\"], \"allowedFlexVolumes\": [{}]"),
                 "allowedFlexVolumes[0].driver: Required value: must specify a driver"},
                {SCC(", \"volumes\": [\"secret\"], \"allowedFlexVolumes\": [{\"driver\": \"d\"}]"),
                 "allowedFlexVolumes: Invalid value: \"\": volumes does not include 'flexVolume' or '*', so no flex volumes are allowed"},
                {SCC(", \"forbiddenSysctls\": [\"\"]"), "forbiddenSysctls[0]: Invalid value: \"\": empty sysctl not allowed"},
                {SCC(", \"allowedUnsafeSysctls\": [\"*\", \"kernel.msgmax\"]"),
                 "allowedUnsafeSysctls[0]: Forbidden: if '*' is present, must not specify other sysctls"},
                {SCC(", \"allowedUnsafeSysctls\": [\"kernel.*\"], \"forbiddenSysctls\": [\"kernel.msgmax\"]"),
                 "allowedUnsafeSysctls[0]: Invalid value: \"kernel.*\": sysctl overlaps with kernel.msgmax"},
                {SCC(", \"userNamespaceLevel\": \"Pod\""),
                 "userNamespaceLevel: Unsupported value: \"Pod\": supported values: \"AllowHostLevel\", \"RequirePodLevel\""},
        };

        for (size_t i = 0; i < nd_count_of(cases); i++)
                expect_text(problems(cases[i].json), cases[i].text);
        for (size_t i = 0; i < nd_scc_default_count; i++) {
                nd_autoarena struct nd_arena arena = {};
                nd_cleanup(nd_field_errors_done) struct nd_field_errors errors = {.arena = &arena};

                nd_scc_validate(&nd_scc_defaults[i].scc, &errors);
                assert_int_equal(errors.items.count, 0);
        }
}

static void sysctl_patterns_may_end_with_a_star([[maybe_unused]] void **state) {
        static const char *const good[] = {"kernel.msgmax", "net.*", "a/b.c", "kernel.shm*", "net.ipv4.x_y-z"};
        static const char *const bad[] = {"a..b", ".a", "a.", "a*b", "A", "a b", "-a", "a-.b"};

        for (size_t i = 0; i < nd_count_of(good) + nd_count_of(bad); i++) {
                bool valid = i < nd_count_of(good);
                nd_autofree char *json =
                        nd_format(SCC(", \"forbiddenSysctls\": [\"%s\"]"), valid ? good[i] : bad[i - nd_count_of(good)]);
                nd_autofree char *text = problems(json);

                if (valid != (text[0] == '\0'))
                        print_error("%s: %s\n", json, text);
                assert_true(valid == (text[0] == '\0'));
        }
}

static void blocks_are_parsed_strictly([[maybe_unused]] void **state) {
        static const char *const bad[] = {"",     "1",    "x/1",   "1/",  "/1", "1/0", "5-4", "4294967295/2", "4294967296/1",
                                          "1/1x", "1 /1", "1-2-3", "-1/5"};
        struct nd_scc_id_pair block;

        expect_ok(nd_scc_block_parse("1000650000/10000", &block));
        assert_true(block.min.value == 1000650000 && block.max.value == 1000659999);
        expect_ok(nd_scc_block_parse("1-5", &block));
        assert_true(block.min.value == 1 && block.max.value == 5);
        expect_ok(nd_scc_block_parse("4294967295/1", &block));
        for (size_t i = 0; i < nd_count_of(bad); i++)
                expect_error(nd_scc_block_parse(bad[i], &block), ND_INVALID, "invalid block");
}

static void open_values_are_filled_from_the_namespace([[maybe_unused]] void **state) {
        nd_autoarena struct nd_arena arena = {};
        const struct nd_scc_namespace namespace = {
                .uid_range = "1000650000/10000", .supplemental_groups = "7/2,100-200", .mcs = "s0:c26,c0"};
        const struct nd_scc_namespace plain = {.uid_range = "1000650000/10000", .mcs = "s0:c26,c0"};
        struct nd_scc scc, bound;

        decode("{\"runAsUser\": {\"type\": \"MustRunAsRange\"}, \"seLinuxContext\": {\"type\": \"MustRunAs\", \"seLinuxOptions\": {\"type\": "
               "\"t\"}}, \"fsGroup\": {\"type\": \"MustRunAs\"}, \"supplementalGroups\": {\"type\": \"MustRunAs\"}}",
               &arena, &scc);
        expect_ok(nd_scc_bind(&scc, &namespace, &arena, &bound));
        assert_int_equal(bound.user.min.value, 1000650000);
        assert_string_equal(bound.selinux.options->level, "s0:c26,c0");
        assert_string_equal(bound.selinux.options->type, "t");
        assert_null(scc.selinux.options->level); /* the constraint itself is unchanged */
        assert_int_equal(scc.fs_group.ranges.count, 0);
        assert_true(bound.fs_group.ranges.count == 1 && bound.fs_group.ranges.items[0].max.value == 7);
        assert_true(bound.supplemental_groups.ranges.count == 2 && bound.supplemental_groups.ranges.items[1].max.value == 200);

        expect_ok(nd_scc_bind(&scc, &plain, &arena, &bound)); /* groups fall back to the users */
        assert_int_equal(bound.supplemental_groups.ranges.items[0].max.value, 1000659999);
        expect_error_text(nd_scc_bind(&scc, &(struct nd_scc_namespace) {.mcs = "s0"}, &arena, &bound),
                          "unable to find annotation openshift.io/sa.scc.uid-range");
        expect_error_text(nd_scc_bind(&scc, &(struct nd_scc_namespace) {.uid_range = "1/1"}, &arena, &bound),
                          "unable to find annotation openshift.io/sa.scc.mcs");
        expect_error(nd_scc_bind(&scc, &(struct nd_scc_namespace) {.uid_range = "1/1", .mcs = "s0", .supplemental_groups = ""},
                                 &arena, &bound),
                     ND_PRECONDITION, "unable to find groups");
}

static void a_strategy_without_values_cannot_be_bound([[maybe_unused]] void **state) {
        nd_autoarena struct nd_arena arena = {};
        struct nd_scc scc = {.user = {.type = "MustRunAs"}}, bound;

        expect_error_text(nd_scc_bind(&scc, &(struct nd_scc_namespace) {}, &arena, &bound), "MustRunAs requires a UID");
        scc.user = (struct nd_scc_user) {.type = "MustRunAsRange", .min = ND_INT(1)};
        expect_error_text(nd_scc_bind(&scc, &(struct nd_scc_namespace) {}, &arena, &bound),
                          "MustRunAsRange requires a UIDRangeMax");
        scc.user = (struct nd_scc_user) {.type = "MustRunAsRange", .max = ND_INT(1)};
        expect_error_text(nd_scc_bind(&scc, &(struct nd_scc_namespace) {}, &arena, &bound),
                          "MustRunAsRange requires a UIDRangeMin");
}

static void lists_are_bounded([[maybe_unused]] void **state) {
        nd_autoarena struct nd_arena arena = {};
        nd_autotext struct nd_text json = ND_TEXT(1 << 20);
        nd_autojson yyjson_doc *doc = nullptr;
        struct nd_scc scc;

        nd_text_add(&json, "{\"users\": [\"\"");
        for (int i = 0; i < ND_SCC_LIST; i++)
                nd_text_add(&json, ", \"u\"");
        nd_text_add(&json, "]}");
        expect_ok(nd_json_parse(nd_text_get(&json), json.length, ND_SCC_BYTES, &doc));
        expect_error_text(nd_scc_decode(yyjson_doc_get_root(doc), &arena, &scc), "users: too many items (1025, at most 1024)");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(volumes_get_openshifts_defaults),
                cmocka_unit_test(other_fields_get_openshifts_defaults),
                cmocka_unit_test(errors_of_an_invalid_constraint_name_the_field),
                cmocka_unit_test(sysctl_patterns_may_end_with_a_star),
                cmocka_unit_test(blocks_are_parsed_strictly),
                cmocka_unit_test(open_values_are_filled_from_the_namespace),
                cmocka_unit_test(a_strategy_without_values_cannot_be_bound),
                cmocka_unit_test(lists_are_bounded),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
