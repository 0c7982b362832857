/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <unit/expect.h>

#include "cli/check/kubelet.h"

#define ARGUMENTS(text) text, sizeof text /* with the null byte at the end */

static void arguments_of_a_kubelet_are_found([[maybe_unused]] void **state) {
        nd_cleanup(cli_kubelet_arguments_done) struct cli_kubelet_arguments found = {};

        cli_kubelet_arguments_parse(
                ARGUMENTS("/usr/bin/kubelet\0--config=/a\0--config-dir\0/b\0-cgroup-driver\0cgroupfs\0"
                          "--container-runtime-endpoint=unix:///old\0--container-runtime-endpoint\0unix:///new"),
                &found);
        assert_string_equal(found.config, "/a");
        assert_string_equal(found.drop_ins, "/b");
        assert_string_equal(found.cgroup_driver, "cgroupfs");
        assert_string_equal(found.endpoint, "unix:///new");
}

static void other_arguments_and_missing_values_are_ignored([[maybe_unused]] void **state) {
        nd_cleanup(cli_kubelet_arguments_done) struct cli_kubelet_arguments found = {};

        cli_kubelet_arguments_parse(nullptr, 0, &found);
        cli_kubelet_arguments_parse(ARGUMENTS("kubelet\0--kubeconfig=/k\0--configuration=/c\0config=/no\0-\0--\0--="), &found);
        cli_kubelet_arguments_parse("--config=/cut off here", strlen("--config=/cut"), &found);
        assert_string_equal(found.config, "/cut");
        assert_null(found.drop_ins);
        cli_kubelet_arguments_parse(ARGUMENTS("--cgroup-driver"), &found);
        assert_null(found.cgroup_driver);
        assert_null(found.endpoint);
}

static struct nd_error *parse(const char *text, struct cli_kubelet_config *ret) {
        cli_kubelet_config_init(ret);
        return cli_kubelet_config_parse(text, strlen(text), ret);
}

static void a_configuration_is_yaml_or_json([[maybe_unused]] void **state) {
        struct cli_kubelet_config config;

        expect_ok(parse(
                "kind: KubeletConfiguration\ncontainerRuntimeEndpoint: unix:///run/nodens/cri.sock\ncgroupDriver: systemd\n",
                &config));
        assert_string_equal(config.endpoint, "unix:///run/nodens/cri.sock");
        assert_string_equal(config.cgroup_driver, "systemd");
        assert_false(config.ignores_runtime);
        assert_int_equal(config.max_pods, 110);
        expect_ok(parse("{\"containerRuntimeEndpoint\":\"unix:///a\",\"maxPods\":7,"
                        "\"featureGates\":{\"KubeletCgroupDriverFromCRI\":false}}",
                        &config));
        assert_string_equal(config.endpoint, "unix:///a");
        assert_string_equal(config.cgroup_driver, "");
        assert_true(config.ignores_runtime);
        assert_int_equal(config.max_pods, 7);
        assert_true(config.found);
}

static void a_later_file_changes_only_what_it_has([[maybe_unused]] void **state) {
        struct cli_kubelet_config config;
        static const char second[] = "cgroupDriver: cgroupfs\n";

        expect_ok(parse("containerRuntimeEndpoint: unix:///a\ncgroupDriver: systemd\nmaxPods: 9\n", &config));
        expect_ok(cli_kubelet_config_parse(second, strlen(second), &config));
        assert_string_equal(config.endpoint, "unix:///a");
        assert_string_equal(config.cgroup_driver, "cgroupfs");
        assert_int_equal(config.max_pods, 9);
}

static void texts_that_are_no_texts_or_too_long_are_refused([[maybe_unused]] void **state) {
        struct cli_kubelet_config config;
        nd_autofree char *text = nd_format("cgroupDriver: %0200d", 7);

        expect_error(parse("containerRuntimeEndpoint: [unix]\n", &config), ND_INVALID,
                     "containerRuntimeEndpoint is not a text of at most 255 characters");
        expect_error(parse(text, &config), ND_INVALID, "cgroupDriver is not a text");
        expect_ok(parse("cgroupDriver: null\n", &config));
        assert_string_equal(config.cgroup_driver, "");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(arguments_of_a_kubelet_are_found),
                cmocka_unit_test(other_arguments_and_missing_values_are_ignored),
                cmocka_unit_test(a_configuration_is_yaml_or_json),
                cmocka_unit_test(a_later_file_changes_only_what_it_has),
                cmocka_unit_test(texts_that_are_no_texts_or_too_long_are_refused),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
