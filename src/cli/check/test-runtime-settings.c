/* SPDX-License-Identifier: Apache-2.0 */
#include <sched.h>
#include <string.h>
#include <unit/expect.h>

#include "cli/check/runtime-settings.h"

static void a_missing_configuration_gives_the_defaults([[maybe_unused]] void **state) {
        nd_cleanup(cli_runtime_settings_done) struct cli_runtime_settings settings = {};

        expect_ok(cli_runtime_settings_read("/nonexistent/cri.yaml", &settings));
        assert_string_equal(settings.socket, "/run/nodens/cri.sock");
        assert_string_equal(settings.cni_config, "/etc/cni/net.d");
        assert_string_equal(settings.cni_plugins, "/opt/cni/bin:/usr/lib/cni");
        assert_string_equal(settings.cgroup_driver, "systemd");
}

static void settings_are_read_and_others_ignored([[maybe_unused]] void **state) {
        static const char text[] = "socket: /s\ncniPlugins: [/a, /b]\ncgroupDriver: cgroupfs\nparallelPulls: 3\ncniConfig: 7\n"
                                   "runtimeHandlers: [{name: runc}]\n";
        nd_cleanup(cli_runtime_settings_done) struct cli_runtime_settings settings = {};

        cli_runtime_settings_init(&settings);
        expect_ok(cli_runtime_settings_parse(text, strlen(text), &settings));
        assert_string_equal(settings.socket, "/s");
        assert_string_equal(settings.cni_plugins, "/a:/b");
        assert_string_equal(settings.cgroup_driver, "cgroupfs");
        assert_string_equal(settings.cni_config, "/etc/cni/net.d");
        expect_error(cli_runtime_settings_parse("[", 1, &settings), ND_INVALID, "");
}

static void volumes_have_the_form_of_the_daemon([[maybe_unused]] void **state) {
        static const char text[] =
                "bridgeHelper: /b\nvolumes:\n  bridge: auto\n  rules:\n  - filesystem: nfs4\n    as: caller\n"
                "  - filesystem: fuse.s3fs\n    forceOwner: 1000:1001\n  - filesystem: cifs\n";
        nd_cleanup(cli_runtime_settings_done) struct cli_runtime_settings settings = {};

        cli_runtime_settings_init(&settings);
        assert_string_equal(settings.volumes, "bridge=off");
        assert_string_equal(strrchr(settings.bridge_helper, '/'), "/nodens-bridge");
        expect_ok(cli_runtime_settings_parse(text, strlen(text), &settings));
        assert_string_equal(settings.volumes, "bridge=auto,nfs4=caller,fuse.s3fs=1000:1001,cifs=root");
        assert_string_equal(settings.bridge_helper, "/b");
        expect_ok(cli_runtime_settings_parse("volumes: {bridge: off}\n", 23, &settings));
        assert_string_equal(settings.volumes, "bridge=off");
}

static void the_daemons_own_settings_count([[maybe_unused]] void **state) {
        nd_cleanup(cli_runtime_settings_done) struct cli_runtime_settings settings = {};
        Nodens__V1__SettingEntry driver = NODENS__V1__SETTING_ENTRY__INIT, unknown = NODENS__V1__SETTING_ENTRY__INIT;
        Nodens__V1__InfoAnswer info = NODENS__V1__INFO_ANSWER__INIT;

        driver.name = (char *) "cgroupDriver";
        driver.value = (char *) "cgroupfs";
        unknown.name = (char *) "future";
        unknown.value = (char *) "x";
        info.n_settings = 2;
        info.settings = (Nodens__V1__SettingEntry *[]) {&unknown, &driver};
        cli_runtime_settings_init(&settings);
        cli_runtime_settings_take(&info, &settings);
        assert_string_equal(settings.cgroup_driver, "cgroupfs");
        assert_string_equal(settings.socket, "/run/nodens/cri.sock");
}

/* The last test: the process stays in the user namespace. */
static void in_a_rootless_node_the_cgroup_driver_is_cgroupfs([[maybe_unused]] void **state) {
        nd_cleanup(cli_runtime_settings_done) struct cli_runtime_settings settings = {};

        assert_int_equal(unshare(CLONE_NEWUSER), 0);
        cli_runtime_settings_init(&settings);
        assert_string_equal(settings.cgroup_driver, "cgroupfs");
        expect_ok(cli_runtime_settings_parse("cgroupDriver: systemd\n", 22, &settings));
        assert_string_equal(settings.cgroup_driver, "systemd");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_missing_configuration_gives_the_defaults),
                cmocka_unit_test(settings_are_read_and_others_ignored),
                cmocka_unit_test(volumes_have_the_form_of_the_daemon),
                cmocka_unit_test(the_daemons_own_settings_count),
                cmocka_unit_test(in_a_rootless_node_the_cgroup_driver_is_cgroupfs),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
