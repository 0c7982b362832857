/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/workload.h"

#include <unit/expect.h>

static struct nd_error *decode(const char *json, struct nd_arena *arena, struct nd_workload *ret) {
        nd_autojson yyjson_doc *doc = nullptr;

        nd_try(nd_json_parse(json, strlen(json), ND_POD_BYTES, &doc));
        return nd_workload_decode(yyjson_doc_get_root(doc), arena, ret);
}

static void templates_are_found([[maybe_unused]] void **state) {
        static const struct {
                const char *json;
                const char *prefix;
        } cases[] = {
                {"{\"kind\": \"Pod\", \"spec\": {\"hostPID\": true}}", ""},
                {"{\"kind\": \"PodTemplate\", \"template\": {\"spec\": {\"hostPID\": true}}}", "template."},
                {"{\"kind\": \"Deployment\", \"spec\": {\"template\": {\"spec\": {\"hostPID\": true}}}}", "spec.template."},
                {"{\"kind\": \"CronJob\", \"spec\": {\"jobTemplate\": {\"spec\": {\"template\": {\"spec\": {\"hostPID\": true}}}}}}",
                 "spec.jobTemplate.spec.template."},
        };

        for (size_t i = 0; i < nd_count_of(cases); i++) {
                nd_autoarena struct nd_arena arena = {};
                struct nd_workload workload;

                expect_ok(decode(cases[i].json, &arena, &workload));
                assert_string_equal(workload.prefix, cases[i].prefix);
                assert_true(workload.pod.spec.host_pid);
        }
}

static void other_objects_are_not_workloads([[maybe_unused]] void **state) {
        nd_autoarena struct nd_arena arena = {};
        struct nd_workload workload;

        expect_ok(decode("{\"kind\": \"Service\", \"spec\": {\"ports\": []}}", &arena, &workload));
        assert_null(workload.kind);
        expect_ok(decode("{}", &arena, &workload));
        assert_null(workload.kind);
        expect_ok(decode("{\"kind\": \"Job\", \"metadata\": {\"generateName\": \"j-\"}}", &arena,
                         &workload)); /* without a template */
        assert_string_equal(workload.name, "j-");
        expect_error(decode("[]", &arena, &workload), ND_INVALID, "an object is expected");
        expect_error(decode("{\"kind\": \"Job\", \"spec\": {\"template\": {\"spec\": {\"hostPID\": 1}}}}", &arena, &workload),
                     ND_INVALID, "in spec.template: spec.hostPID: true or false is expected");
}

static void kinds_of_other_groups_are_not_workloads([[maybe_unused]] void **state) {
        nd_autoarena struct nd_arena arena = {};
        struct nd_workload workload;

        expect_ok(decode("{\"apiVersion\": \"batch.volcano.sh/v1alpha1\", \"kind\": \"Job\"}", &arena, &workload));
        assert_null(workload.kind);
        assert_string_equal(workload.written, "Job");
        assert_string_equal(workload.group, "batch.volcano.sh");
        expect_ok(decode("{\"apiVersion\": \"batch/v1beta1\", \"kind\": \"CronJob\"}", &arena, &workload));
        assert_string_equal(workload.kind, "CronJob");
        expect_ok(decode("{\"apiVersion\": \"v1\", \"kind\": \"Pod\"}", &arena, &workload));
        assert_string_equal(workload.kind, "Pod");
        expect_ok(decode("{\"apiVersion\": \"extensions/v1beta1\", \"kind\": \"DaemonSet\"}", &arena, &workload));
        assert_string_equal(workload.kind, "DaemonSet");
        expect_ok(decode("{\"apiVersion\": \"v1\", \"kind\": \"Deployment\"}", &arena, &workload));
        assert_null(workload.kind);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(templates_are_found),
                cmocka_unit_test(other_objects_are_not_workloads),
                cmocka_unit_test(kinds_of_other_groups_are_not_workloads),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
