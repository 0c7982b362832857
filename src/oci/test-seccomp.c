/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/seccomp.h"

#include <linux/capability.h>
#include <unit/expect.h>

#include "base/json.h"
#include "sys/file.h"

#define BIT(capability) (UINT64_C(1) << (capability))
#define PROFILE "/usr/share/containers/seccomp.json"

static char *convert_for(const char *profile, const struct nd_seccomp_host *host) {
        nd_autotext struct nd_text text = ND_TEXT(1 << 20);

        expect_ok(nd_seccomp_convert(profile, strlen(profile), host, &text));
        return nd_text_steal(&text);
}

static const struct nd_seccomp_host plain = {.architecture = "amd64", .kernel_major = 6, .kernel_minor = 12};

static struct nd_error *refused(const char *profile) {
        nd_autotext struct nd_text text = ND_TEXT(1 << 20);

        return nd_seccomp_convert(profile, strlen(profile), &plain, &text);
}

#define RULE(conditions)                                                                                                      \
        "{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"syscalls\":[{\"names\":[\"bpf\"],\"action\":\"SCMP_ACT_ALLOW\"" conditions   \
        "}]}"

static bool holds(const char *profile, const struct nd_seccomp_host *host) {
        nd_autofree char *text = convert_for(profile, host);

        return strstr(text, "\"bpf\"");
}

static void a_rule_that_includes_capabilities_applies_with_all_of_them([[maybe_unused]] void **state) {
        static const char profile[] = RULE(",\"includes\":{\"caps\":[\"CAP_BPF\",\"CAP_SYS_ADMIN\"]}");
        struct nd_seccomp_host host = plain;

        assert_false(holds(profile, &host));
        host.capabilities = BIT(CAP_BPF);
        assert_false(holds(profile, &host));
        host.capabilities |= BIT(CAP_SYS_ADMIN);
        assert_true(holds(profile, &host));
}

static void a_rule_that_excludes_capabilities_applies_with_none_of_them([[maybe_unused]] void **state) {
        static const char profile[] = RULE(",\"excludes\":{\"caps\":[\"CAP_BPF\",\"CAP_SYS_ADMIN\"]}");
        struct nd_seccomp_host host = plain;

        assert_true(holds(profile, &host));
        host.capabilities = BIT(CAP_BPF);
        assert_false(holds(profile, &host));
}

static void rules_are_for_architectures_and_kernels([[maybe_unused]] void **state) {
        struct nd_seccomp_host arm = {.architecture = "arm64", .kernel_major = 4, .kernel_minor = 7};

        assert_true(holds(RULE(",\"includes\":{\"arches\":[\"amd64\",\"x32\"]}"), &plain));
        assert_false(holds(RULE(",\"includes\":{\"arches\":[\"amd64\",\"x32\"]}"), &arm));
        assert_false(holds(RULE(",\"excludes\":{\"arches\":[\"arm64\"]}"), &arm));
        assert_true(holds(RULE(",\"includes\":{\"minKernel\":\"4.8\"}"), &plain));
        assert_false(holds(RULE(",\"includes\":{\"minKernel\":\"4.8\"}"), &arm));
        assert_true(holds(RULE(",\"excludes\":{\"minKernel\":\"4.8\"}"), &arm));
        assert_false(holds(RULE(",\"excludes\":{\"minKernel\":\"4.8\"}"), &plain));
}

static void the_machines_architectures_are_chosen([[maybe_unused]] void **state) {
        nd_autofree char *text =
                convert_for("{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"archMap\":[{\"architecture\":\"SCMP_ARCH_AARCH64\"},"
                            "{\"architecture\":\"SCMP_ARCH_X86_64\",\"subArchitectures\":[\"SCMP_ARCH_X86\"]}]}",
                            &plain);

        expect_contains(text, "\"architectures\": [\"SCMP_ARCH_X86_64\", \"SCMP_ARCH_X86\"]");
}

static void arguments_errnos_and_flags_are_kept([[maybe_unused]] void **state) {
        nd_autofree char *text = convert_for(
                "{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"defaultErrnoRet\":38,\"flags\":[\"SECCOMP_FILTER_FLAG_LOG\"],"
                "\"syscalls\":[{\"name\":\"personality\",\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":1,"
                "\"args\":[{\"index\":5,\"value\":18446744073709551615,\"op\":\"SCMP_CMP_MASKED_EQ\"}]}]}",
                &plain);

        assert_string_equal(text, "{\"defaultAction\": \"SCMP_ACT_ERRNO\", \"defaultErrnoRet\": 38, \"flags\": "
                                  "[\"SECCOMP_FILTER_FLAG_LOG\"], \"syscalls\": [{\"names\": [\"personality\"], \"action\": "
                                  "\"SCMP_ACT_ERRNO\", \"errnoRet\": 1, \"args\": [{\"index\": 5, \"value\": "
                                  "18446744073709551615, \"valueTwo\": 0, \"op\": \"SCMP_CMP_MASKED_EQ\"}]}]}");
}

static void an_invalid_profile_is_refused_with_the_place([[maybe_unused]] void **state) {
        expect_error(refused("[]"), ND_INVALID, "not a JSON object");
        expect_error(refused("{}"), ND_INVALID, "no 'defaultAction'");
        expect_error(refused("{\"defaultAction\":\"SCMP_ACT_SHOUT\"}"), ND_INVALID, "unknown value 'SCMP_ACT_SHOUT'");
        expect_error(refused("{\"defaultAction\":\"SCMP_ACT_NOTIFY\"}"), ND_UNIMPLEMENTED, "listener");
        expect_error(refused("{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"listenerPath\":\"/x\"}"), ND_UNIMPLEMENTED,
                     "listenerPath");
        expect_error(refused("{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"flags\":[\"NEW_LISTENER\"]}"), ND_INVALID,
                     "flag 'NEW_LISTENER'");
        expect_error(refused("{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"syscalls\":[1]}"), ND_INVALID, "syscalls[0]");
        expect_error(refused("{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"syscalls\":[{\"action\":\"SCMP_ACT_ALLOW\"}]}"),
                     ND_INVALID, "syscalls[0]: a rule without 'names'");
        expect_error(refused(RULE(",\"args\":[{\"index\":6,\"op\":\"SCMP_CMP_EQ\"}]")), ND_INVALID, "'index' is larger");
        expect_error(refused(RULE(",\"includes\":{\"minKernel\":\"new\"}")), ND_INVALID, "minKernel");
        expect_error(refused("{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"architectures\":[\"SCMP_ARCH_X86\"],\"archMap\":[]}"),
                     ND_INVALID, "one is enough");
}

static void the_profile_of_the_containers_project_is_read([[maybe_unused]] void **state) {
        nd_autofree char *profile = nullptr, *text = nullptr, *powerful = nullptr;
        struct nd_seccomp_host admin = plain;
        struct nd_error *error = nd_file_read_kernel(PROFILE, ND_SECCOMP_CEILING, &profile);

        if (error) {
                nd_error_free(error);
                skip_because("there is no %s", PROFILE);
        }
        text = convert_for(profile, &plain);
        expect_contains(text, "\"defaultErrnoRet\": 38");
        expect_contains(text, "SCMP_ARCH_X32");
        expect_contains(text, "arch_prctl"); /* specific to amd64 */
        assert_null(strstr(text, "riscv_flush_icache"));
        assert_null(strstr(text, "includes"));
        admin.capabilities = UINT64_MAX;
        powerful = convert_for(profile, &admin);
        assert_string_not_equal(text, powerful);
}

static void with_one_id_calls_that_change_ids_do_nothing([[maybe_unused]] void **state) {
        static const char profile[] = "{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"syscalls\":["
                                      "{\"names\":[\"read\",\"setuid\"],\"action\":\"SCMP_ACT_ALLOW\"},"
                                      "{\"names\":[\"chown\",\"setgroups\"],\"action\":\"SCMP_ACT_KILL\"}]}";
        struct nd_seccomp_host host = plain;
        nd_autotext struct nd_text alone = ND_TEXT(1 << 16);
        nd_autofree char *text = nullptr;
        nd_autojson yyjson_doc *doc = nullptr, *without = nullptr;
        yyjson_val *rules;

        host.single_id = true;
        text = convert_for(profile, &host);
        expect_ok(nd_json_parse(text, strlen(text), 1 << 20, &doc));
        rules = yyjson_doc_ptr_get(doc, "/syscalls");
        /* the second rule of the profile has no call left */
        assert_int_equal(yyjson_arr_size(rules), 2);
        assert_int_equal(yyjson_arr_size(yyjson_doc_ptr_get(doc, "/syscalls/0/names")), 1);
        assert_string_equal(yyjson_get_str(yyjson_doc_ptr_get(doc, "/syscalls/0/names/0")), "read");
        assert_string_equal(yyjson_get_str(yyjson_doc_ptr_get(doc, "/syscalls/1/action")), "SCMP_ACT_ERRNO");
        assert_int_equal(yyjson_get_int(yyjson_doc_ptr_get(doc, "/syscalls/1/errnoRet")), 0);
        assert_string_equal(yyjson_get_str(yyjson_doc_ptr_get(doc, "/syscalls/1/names/0")), "setuid");

        nd_seccomp_single_id(&alone);
        expect_ok(nd_json_parse(alone.bytes, alone.length, 1 << 20, &without));
        assert_string_equal(yyjson_get_str(yyjson_doc_ptr_get(without, "/defaultAction")), "SCMP_ACT_ALLOW");
        assert_int_equal(yyjson_arr_size(yyjson_doc_ptr_get(without, "/syscalls")), 1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(with_one_id_calls_that_change_ids_do_nothing),
                cmocka_unit_test(a_rule_that_includes_capabilities_applies_with_all_of_them),
                cmocka_unit_test(a_rule_that_excludes_capabilities_applies_with_none_of_them),
                cmocka_unit_test(rules_are_for_architectures_and_kernels),
                cmocka_unit_test(the_machines_architectures_are_chosen),
                cmocka_unit_test(arguments_errnos_and_flags_are_kept),
                cmocka_unit_test(an_invalid_profile_is_refused_with_the_place),
                cmocka_unit_test(the_profile_of_the_containers_project_is_read),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
