/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <stdio.h>

#include "base/text.h"
#include "cri/bundle/selinux.h"

static void a_label_combines_the_request_and_the_policys_defaults([[maybe_unused]] void **state) {
        struct cri_container_request request = {.selinux = {.type = (char *) "engine_t", .level = (char *) "s0:c5,c26"}};
        nd_cleanup(cri_selinux_labels_done) struct cri_selinux_labels labels = {};

        expect_ok(cri_selinux_labels_of(&request, "uid", &labels));
        assert_string_equal(labels.process, "system_u:system_r:engine_t:s0:c5,c26");
        assert_string_equal(labels.mount, "system_u:object_r:container_file_t:s0:c5,c26");
}

static void levels_differ_between_pods_and_match_within_one([[maybe_unused]] void **state) {
        struct cri_container_request request = {};
        nd_cleanup(cri_selinux_labels_done) struct cri_selinux_labels one = {}, same = {}, other = {}, privileged = {};
        struct cri_sandbox_request pod = {.uid = (char *) "pod-1"};
        nd_autofree char *shared = nullptr;

        expect_ok(cri_selinux_pod_label(&pod, &shared));
        expect_ok(cri_selinux_labels_of(&request, "pod-1", &one));
        expect_ok(cri_selinux_labels_of(&request, "pod-1", &same));
        expect_ok(cri_selinux_labels_of(&request, "pod-2", &other));
        assert_true(nd_has_prefix(one.process, "system_u:system_r:container_t:s0:c"));
        assert_string_equal(one.process, same.process);
        assert_string_not_equal(one.process, other.process);
        assert_string_equal(one.mount, shared);
        request.privileged = true;
        expect_ok(cri_selinux_labels_of(&request, "pod-1", &privileged));
        assert_string_equal(privileged.process, "system_u:system_r:spc_t:s0");
}

static void a_level_has_two_ordered_categories([[maybe_unused]] void **state) {
        for (int i = 0; i < 5000; i++) {
                nd_autofree char *uid = nd_format("pod-%d", i), *label = nullptr;
                struct cri_sandbox_request pod = {.uid = uid};
                unsigned first = 0, second = 0;

                expect_ok(cri_selinux_pod_label(&pod, &label));
                assert_int_equal(sscanf(label, "system_u:object_r:container_file_t:s0:c%u,c%u", &first, &second), 2);
                assert_true(first < second && second < 1024);
        }
}

static void invalid_parts_of_a_label_are_refused([[maybe_unused]] void **state) {
        struct cri_container_request request = {.selinux = {.type = (char *) "a:b"}};
        nd_cleanup(cri_selinux_labels_done) struct cri_selinux_labels labels = {};

        expect_error(cri_selinux_labels_of(&request, "uid", &labels), ND_INVALID, "invalid seLinuxOptions.type: 'a:b'");
        request.selinux = (struct cri_selinux_request) {.level = (char *) "s0\",x=\""};
        expect_error(cri_selinux_labels_of(&request, "uid", &labels), ND_INVALID, "seLinuxOptions.level");
        request.selinux = (struct cri_selinux_request) {.user = (char *) "u\n"};
        expect_error(cri_selinux_labels_of(&request, "uid", &labels), ND_INVALID, "seLinuxOptions.user");
        assert_null(labels.process);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_label_combines_the_request_and_the_policys_defaults),
                cmocka_unit_test(levels_differ_between_pods_and_match_within_one),
                cmocka_unit_test(a_level_has_two_ordered_categories),
                cmocka_unit_test(invalid_parts_of_a_label_are_refused),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
