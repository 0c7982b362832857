/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/hostusers.h"

#include <unit/expect.h>

static char *validate(const char *json, const char *old_json, bool gate) {
        nd_autoarena struct nd_arena arena = {};
        nd_cleanup(nd_field_errors_done) struct nd_field_errors errors = {.arena = &arena};
        nd_autotext struct nd_text text = ND_TEXT(10000);
        struct nd_pod pod, old;

        expect_ok(nd_pod_decode(json, strlen(json), &arena, &pod));
        if (old_json)
                expect_ok(nd_pod_decode(old_json, strlen(old_json), &arena, &old));
        nd_hostusers_validate(&pod, &(struct nd_hostusers_options) {.host_network = gate, .old = old_json ? &old : nullptr},
                              &errors);
        nd_field_errors_print(&errors, &text);
        return nd_strdup(nd_text_get(&text));
}

static void host_namespaces_exclude_a_user_namespace([[maybe_unused]] void **state) {
        static const char pod[] =
                "{\"spec\": {\"hostUsers\": false, \"hostNetwork\": true, \"hostPID\": true, \"hostIPC\": true}}";

        expect_text(validate(pod, nullptr, false), "[spec.hostNetwork: Forbidden: when `hostUsers` is false, "
                                                   "spec.HostPID: Forbidden: when `hostUsers` is false, "
                                                   "spec.HostIPC: Forbidden: when `hostUsers` is false]");
        expect_text(validate(pod, nullptr, true), "[spec.HostPID: Forbidden: when `hostUsers` is false, "
                                                  "spec.HostIPC: Forbidden: when `hostUsers` is false]");
        expect_text(validate("{\"spec\": {\"hostUsers\": true, \"hostPID\": true}}", nullptr, false), "");
}

static void block_devices_exclude_a_user_namespace([[maybe_unused]] void **state) {
        static const char pod[] =
                "{\"spec\": {\"hostUsers\": false, \"initContainers\": [{\"volumeDevices\": [{\"name\": \"d\"}]}],"
                " \"containers\": [{}, {\"volumeDevices\": [{}]}]}}";

        expect_text(validate(pod, nullptr, false),
                    "[spec.initContainers[0].volumeDevices: Forbidden: when `hostUsers` is false, "
                    "spec.containers[1].volumeDevices: Forbidden: when `hostUsers` is false]");
        expect_text(validate(pod, pod, false), ""); /* what was allowed before stays allowed */
}

static void an_old_pod_keeps_its_host_network([[maybe_unused]] void **state) {
        static const char pod[] = "{\"spec\": {\"hostUsers\": false, \"hostNetwork\": true}}";

        expect_text(validate(pod, pod, false), "");
        expect_text(validate(pod, "{\"spec\": {\"hostUsers\": true, \"hostNetwork\": true}}", false),
                    "spec.hostNetwork: Forbidden: when `hostUsers` is false");
}

static void an_unmasked_proc_needs_a_user_namespace([[maybe_unused]] void **state) {
        static const char pod[] = "{\"spec\": {\"containers\": [{\"securityContext\": {\"procMount\": \"Unmasked\"}}]}}";

        expect_text(
                validate(pod, nullptr, false),
                "spec.containers[0].securityContext.procMount: Invalid value: \"Unmasked\": `hostUsers` must be false to use "
                "`Unmasked`");
        expect_text(
                validate("{\"spec\": {\"hostUsers\": false, \"containers\": [{\"securityContext\": {\"procMount\": \"<\"}}]}}",
                         nullptr, false),
                "spec.containers[0].securityContext.procMount: Unsupported value: \"\\u003c\": supported values: \"Default\", "
                "\"Unmasked\"");
}

static void windows_pods_cannot_set_host_users([[maybe_unused]] void **state) {
        expect_text(validate("{\"spec\": {\"os\": {\"name\": \"windows\"}, \"hostUsers\": true}}", nullptr, false),
                    "spec.hostUsers: Forbidden: cannot be set for a windows pod");
}

static void the_conflicting_field_is_returned([[maybe_unused]] void **state) {
        static const struct {
                const char *pod;
                const char *obstacle;
        } cases[] = {
                {"{\"spec\": {}}", ""},
                {"{\"spec\": {\"hostPID\": true}}", "spec.hostPID"},
                {"{\"spec\": {\"hostIPC\": true}}", "spec.hostIPC"},
                {"{\"spec\": {\"hostNetwork\": true}}", "spec.hostNetwork"},
                {"{\"spec\": {\"os\": {\"name\": \"windows\"}}}", "spec.os.name"},
                {"{\"spec\": {\"containers\": [{\"volumeDevices\": [{}]}]}}", "volumeDevices"},
        };

        for (size_t i = 0; i < nd_count_of(cases); i++) {
                nd_autoarena struct nd_arena arena = {};
                struct nd_pod pod;

                expect_ok(nd_pod_decode(cases[i].pod, strlen(cases[i].pod), &arena, &pod));
                assert_string_equal(nd_hostusers_obstacle(&pod, false), cases[i].obstacle);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(host_namespaces_exclude_a_user_namespace),
                cmocka_unit_test(block_devices_exclude_a_user_namespace),
                cmocka_unit_test(an_old_pod_keeps_its_host_network),
                cmocka_unit_test(an_unmasked_proc_needs_a_user_namespace),
                cmocka_unit_test(windows_pods_cannot_set_host_users),
                cmocka_unit_test(the_conflicting_field_is_returned),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
