/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <sys/stat.h>

#include <unit/resources.h>
#include <unit/scratch.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/strings.h"
#include "base/text.h"
#include "cri/core/config.h"
#include "cri/network/network.h"

/* Plugins are real programs here: scripts that record how they were called. */
static const char script[] =
        "#!/bin/sh\n"
        "here=$(dirname \"$0\")\n"
        "echo \"$CNI_COMMAND $(basename \"$0\") $CNI_CONTAINERID $CNI_NETNS $CNI_IFNAME $CNI_ARGS\" >>\"$here/../log\"\n"
        "cat >\"$here/../input-$CNI_COMMAND-$(basename \"$0\")\"\n";

static const char answer[] = "echo '{\"cniVersion\":\"1.0.0\",\"ips\":[{\"address\":\"10.7.0.2/24\"}]}'\n";

struct fixture {
        char *root;
        struct cri_config config;
        sd_event *loop;
        struct cri_network *network;
        struct cri_sandbox sandbox;
        bool called;
        struct nd_error *error;
};

static void plugin(struct fixture *f, const char *name, const char *end) {
        nd_autofree char *file = nd_format("bin/%s", name), *path = nd_format("%s/bin/%s", f->root, name);
        nd_autofree char *text = nd_format("%s%s", script, end);

        scratch_text(f->root, file, text);
        assert_int_equal(chmod(path, 0755), 0);
}

static void conflist(struct fixture *f, const char *file, const char *name, const char *first, const char *second) {
        nd_autofree char *path = nd_format("net.d/%s", file);
        nd_autofree char *text =
                nd_format("{\"cniVersion\":\"1.0.0\",\"name\":\"%s\",\"plugins\":[{\"type\":\"%s\"},{\"type\":\"%s\"}]}", name,
                          first, second);

        scratch_text(f->root, path, text);
}

static void replace(char **field, char *value) {
        free(*field);
        *field = value;
}

static void set_up(struct fixture *f) {
        static char name[] = "web", uid[] = "u-1", namespace[] = "default", empty[] = "";

        *f = (struct fixture) {.root = scratch_make()};
        scratch_mkdir(f->root, "net.d");
        scratch_mkdir(f->root, "bin");
        cri_config_init(&f->config);
        replace(&f->config.cni_config, nd_format("%s/net.d", f->root));
        replace(&f->config.cni_plugins, nd_format("/nowhere:%s/bin", f->root));
        replace(&f->config.netns, nd_strdup(f->root));
        assert_true(sd_event_new(&f->loop) >= 0);
        f->network = cri_network_new(f->loop, &f->config);
        f->sandbox.request =
                (struct cri_sandbox_request) {.name = name, .uid = uid, .namespace = namespace, .hostname = empty};
        memset(f->sandbox.id, 'a', POD_ID);
}

static void tear_down(struct fixture *f) {
        cri_network_free(f->network);
        sd_event_unref(f->loop);
        cri_config_done(&f->config);
        free(f->sandbox.network_result);
        nd_strings_done(&f->sandbox.addresses);
        scratch_remove(&f->root);
}

static void on_call(struct nd_error *error, void *userdata) {
        struct fixture *f = userdata;

        assert_false(f->called);
        f->called = true;
        f->error = error;
}

static struct nd_error *wait_for(struct fixture *f) {
        while (!f->called)
                assert_true(sd_event_run(f->loop, 10 * ND_SECOND_US) >= 0);
        f->called = false;
        return nd_take_ptr(f->error);
}

static struct nd_error *add(struct fixture *f) {
        struct cri_network_call *call;

        nd_try(cri_network_choose(f->network, &f->sandbox));
        cri_network_add(f->network, &f->sandbox, on_call, f, &call);
        assert_false(f->called);
        return wait_for(f);
}

static struct nd_error *remove_it(struct fixture *f) {
        struct cri_network_call *call;

        cri_network_remove(f->network, &f->sandbox, on_call, f, &call);
        assert_false(f->called);
        return wait_for(f);
}

static void the_network_is_ready_as_soon_as_a_configuration_is_installed([[maybe_unused]] void **state) {
        const char *reason, *message;
        struct fixture f;

        set_up(&f);
        assert_false(cri_network_ready(f.network, &reason, &message));
        assert_string_equal(reason, "NetworkPluginNotReady");
        expect_contains(message, "install a CNI network plugin");
        scratch_text(f.root, "net.d/05-broken.conflist", "{");
        scratch_text(f.root, "net.d/README", "not a configuration");
        conflist(&f, "10-x.conflist", "x", "first", "second");
        assert_false(cri_network_ready(f.network, &reason, &message));
        expect_contains(message, "10-x.conflist' needs the CNI plugin 'first', which is not in /nowhere:");
        plugin(&f, "first", answer);
        plugin(&f, "second", answer);
        assert_true(cri_network_ready(f.network, &reason, &message));
        conflist(&f, "10-x.conflist", "x", "first", "third"); /* rewritten in place */
        assert_false(cri_network_ready(f.network, &reason, &message));
        expect_contains(message, "'third'");
        tear_down(&f);
}

static struct nd_strings lines; /* of the log */

static void keep([[maybe_unused]] enum nd_log_level level, const char *line) {
        if (strstr(line, "pods"))
                nd_strings_add(&lines, line);
}

static void each_reason_of_a_missing_network_is_logged_once_and_its_end([[maybe_unused]] void **state) {
        const char *reason, *message;
        struct fixture f;

        set_up(&f);
        nd_log_set_sink(keep);
        assert_false(cri_network_ready(f.network, &reason, &message));
        assert_false(cri_network_ready(f.network, &reason, &message));
        assert_null(cri_network_configuration(f.network));
        assert_int_equal(lines.count, 1);
        expect_contains(lines.items[0],
                        "warning: pods cannot start, except on the host's network: no valid CNI configuration");
        conflist(&f, "10-x.conflist", "x", "first", "second");
        assert_false(cri_network_ready(f.network, &reason, &message));
        assert_int_equal(lines.count, 2);
        expect_contains(lines.items[1], "needs the CNI plugin 'first'");
        plugin(&f, "first", answer);
        plugin(&f, "second", answer);
        assert_true(cri_network_ready(f.network, &reason, &message));
        assert_true(cri_network_ready(f.network, &reason, &message));
        assert_string_equal(cri_network_configuration(f.network), "10-x.conflist");
        assert_int_equal(lines.count, 3);
        expect_contains(lines.items[2], "notice: the network for pods is ready");
        nd_log_set_sink(nullptr);
        nd_strings_done(&lines);
        lines = (struct nd_strings) {};
        tear_down(&f);
}

static void every_plugin_is_called_in_order_and_back([[maybe_unused]] void **state) {
        static const char who[] = "IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=web;K8S_POD_INFRA_CONTAINER_ID=";
        struct fixture f;

        set_up(&f);
        conflist(&f, "10-x.conflist", "x", "first", "second");
        plugin(&f, "first", answer);
        plugin(&f, "second", answer);
        expect_ok(add(&f));
        assert_int_equal(f.sandbox.addresses.count, 1);
        assert_string_equal(f.sandbox.addresses.items[0], "10.7.0.2");

        /* DEL still uses the configuration of ADD */
        conflist(&f, "10-x.conflist", "another", "third", "fourth");
        expect_ok(remove_it(&f));
        assert_null(f.sandbox.network_result);
        {
                nd_autofree char *log = scratch_read(f.root, "log"), *second = scratch_read(f.root, "input-ADD-second");
                nd_autofree char *first = scratch_read(f.root, "input-ADD-first"),
                                 *last = scratch_read(f.root, "input-DEL-first");
                const char *at[] = {strstr(log, "ADD first aaaa"), strstr(log, "ADD second aaaa"),
                                    strstr(log, "DEL second aaaa"), strstr(log, "DEL first aaaa")};

                assert_true(at[0] && at[0] < at[1] && at[1] < at[2] && at[2] < at[3]);
                expect_contains(log, who);
                expect_contains(log, ";K8S_POD_UID=u-1\n");
                assert_null(strstr(first, "prevResult"));
                expect_contains(second, "\"prevResult\":{\"cniVersion\":\"1.0.0\",\"ips\":[{\"address\":\"10.7.0.2/24\"}]}");
                expect_contains(last, "\"name\":\"x\"");
                expect_contains(last, "\"prevResult\"");
        }
        assert_int_equal(resources_children(), 0);
        tear_down(&f);
}

static void the_error_of_a_plugin_is_quoted_and_all_plugins_get_del([[maybe_unused]] void **state) {
        struct fixture f;

        set_up(&f);
        conflist(&f, "10-x.conflist", "x", "first", "second");
        plugin(&f, "first", answer);
        plugin(&f, "second", "[ $CNI_COMMAND = DEL ] && exit 3; echo '{\"code\":100,\"msg\":\"no room\"}'; exit 1\n");
        expect_error(add(&f), ND_INTERNAL, "network 'x': CNI plugin 'second' (ADD): no room (CNI code 100)");
        assert_int_equal(f.sandbox.addresses.count, 0);
        assert_non_null(f.sandbox.network_result);
        expect_error(remove_it(&f), ND_INTERNAL, "network 'x': CNI plugin 'second' (DEL): it ended with code 3");
        assert_non_null(f.sandbox.network_result); /* to be retried */
        {
                nd_autofree char *log = scratch_read(f.root, "log");

                expect_contains(log, "DEL first");
        }
        plugin(&f, "second", "");
        expect_ok(remove_it(&f));
        tear_down(&f);
}

static void check_runs_the_plugins_in_order([[maybe_unused]] void **state) {
        struct cri_network_call *call = nullptr;
        nd_autofree char *first = nullptr, *log = nullptr;
        struct fixture f;

        set_up(&f);
        conflist(&f, "10-x.conflist", "x", "first", "second");
        plugin(&f, "first", answer);
        plugin(&f, "second", answer);
        expect_ok(add(&f));
        cri_network_check(f.network, &f.sandbox, on_call, &f, &call);
        assert_non_null(call);
        expect_ok(wait_for(&f));
        first = scratch_read(f.root, "input-CHECK-first");
        expect_contains(first, "\"prevResult\":{\"cniVersion\":\"1.0.0\",\"ips\":[{\"address\":\"10.7.0.2/24\"}]}");

        plugin(&f, "first", "echo '{\"code\":100,\"msg\":\"no such address\"}'; exit 1\n");
        cri_network_check(f.network, &f.sandbox, on_call, &f, &call);
        expect_error(wait_for(&f), ND_INTERNAL, "network 'x': CNI plugin 'first' (CHECK): no such address (CNI code 100)");
        assert_non_null(f.sandbox.network_result);
        assert_int_equal(f.sandbox.addresses.count, 1);
        log = scratch_read(f.root, "log");
        assert_true(strstr(log, "CHECK first") < strstr(log, "CHECK second"));
        tear_down(&f);
}

static void check_is_not_run_for_old_configurations([[maybe_unused]] void **state) {
        struct cri_network_call *call = nullptr;
        struct fixture f;

        set_up(&f);
        scratch_text(f.root, "net.d/10-x.conf", "{\"cniVersion\":\"0.3.1\",\"name\":\"x\",\"type\":\"first\"}");
        plugin(&f, "first", answer);
        expect_ok(add(&f));
        cri_network_check(f.network, &f.sandbox, on_call, &f, &call);
        assert_null(call);
        tear_down(&f);
}

static void an_invalid_bandwidth_is_refused_before_add([[maybe_unused]] void **state) {
        struct cri_pair item = {.key = (char *) "kubernetes.io/egress-bandwidth", .value = (char *) "1"};
        struct fixture f;

        set_up(&f);
        conflist(&f, "10-x.conflist", "x", "first", "first");
        plugin(&f, "first", answer);
        f.sandbox.request.annotations.items = &item;
        f.sandbox.request.annotations.count = 1;
        expect_error(add(&f), ND_INVALID, "kubernetes.io/egress-bandwidth: '1' is not between 1k and 1P");
        assert_null(f.sandbox.network_result);
        tear_down(&f);
}

static void a_plugin_that_hangs_is_killed_with_its_children([[maybe_unused]] void **state) {
        uint64_t start = nd_clock_us();
        struct cri_network_call *call;
        struct fixture f;

        set_up(&f);
        conflist(&f, "10-x.conflist", "x", "first", "second");
        plugin(&f, "first", "sleep 600 & echo $! >\"$here/../pid\"; sleep 601\n");
        plugin(&f, "second", answer);
        expect_ok(cri_network_choose(f.network, &f.sandbox));
        cri_network_add(f.network, &f.sandbox, on_call, &f, &call);
        while (!scratch_has(f.root, "pid"))
                assert_true(sd_event_run(f.loop, 10 * ND_MS_US) >= 0);
        cri_network_abort(call);
        expect_error(wait_for(&f), ND_CANCELLED, "cancelled by the caller");
        assert_true(nd_clock_us() - start < 300 * ND_SECOND_US);
        {
                nd_autofree char *pid = scratch_read(f.root, "pid"), *log = scratch_read(f.root, "log");
                nd_autofree char *path = nd_format("/proc/%.*s/stat", (int) strcspn(pid, "\n"), pid);

                /* another process reaps orphans */
                for (int i = 0; i < 100 && access(path, F_OK) == 0; i++)
                        (void) usleep(20 * 1000);
                assert_null(strstr(log, "second"));
        }
        tear_down(&f);
}

static void a_network_without_an_address_is_an_error([[maybe_unused]] void **state) {
        struct fixture f;

        set_up(&f);
        conflist(&f, "10-x.conflist", "x", "first", "first");
        plugin(&f, "first", "echo '{}'\n");
        expect_error(add(&f), ND_INTERNAL, "network 'x': the CNI plugins returned no address");
        plugin(&f, "first", "echo '{'\n");
        expect_error(add(&f), ND_INVALID, "");
        plugin(&f, "first", "");
        expect_error(add(&f), ND_INTERNAL, "network 'x': the CNI plugins returned no result");
        tear_down(&f);
}

static void without_a_note_del_uses_the_current_configuration([[maybe_unused]] void **state) {
        nd_autofree char *log = nullptr;
        struct fixture f;

        set_up(&f);
        expect_ok(remove_it(&f)); /* no configuration: nothing to call */
        conflist(&f, "10-x.conflist", "x", "first", "first");
        plugin(&f, "first", "");
        expect_ok(remove_it(&f));
        log = scratch_read(f.root, "log");
        expect_contains(log, "DEL");
        assert_null(f.sandbox.network_result);
        f.sandbox.network_result = nd_strdup("{}");
        expect_error(remove_it(&f), ND_INTERNAL, "has no CNI configuration");
        tear_down(&f);
}

/* A daemon was killed between making the file and mounting the namespace there. */
static void a_pin_without_a_namespace_is_not_shown_to_plugins([[maybe_unused]] void **state) {
        nd_autofree char *pin = nullptr, *log = nullptr, *expected = nullptr;
        struct fixture f;

        set_up(&f);
        pin = nd_format("nodens-%s", f.sandbox.id);
        scratch_text(f.root, pin, "");
        conflist(&f, "10-x.conflist", "x", "first", "first");
        plugin(&f, "first", "");
        expect_ok(cri_network_choose(f.network, &f.sandbox));
        expect_ok(remove_it(&f));
        log = scratch_read(f.root, "log");
        expected = nd_format("DEL first %s  eth0", f.sandbox.id);
        expect_contains(log, expected);
        tear_down(&f);
}

static void a_name_cannot_smuggle_an_argument([[maybe_unused]] void **state) {
        static char name[] = "a;K8S_POD_NAMESPACE=kube-system";
        struct fixture f;

        set_up(&f);
        conflist(&f, "10-x.conflist", "x", "first", "first");
        plugin(&f, "first", answer);
        f.sandbox.request.name = name;
        expect_error(add(&f), ND_INVALID, "cannot be passed to a CNI plugin");
        assert_false(scratch_has(f.root, "log"));
        tear_down(&f);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_network_is_ready_as_soon_as_a_configuration_is_installed),
                cmocka_unit_test(each_reason_of_a_missing_network_is_logged_once_and_its_end),
                cmocka_unit_test(every_plugin_is_called_in_order_and_back),
                cmocka_unit_test(the_error_of_a_plugin_is_quoted_and_all_plugins_get_del),
                cmocka_unit_test(check_runs_the_plugins_in_order),
                cmocka_unit_test(check_is_not_run_for_old_configurations),
                cmocka_unit_test(an_invalid_bandwidth_is_refused_before_add),
                cmocka_unit_test(a_plugin_that_hangs_is_killed_with_its_children),
                cmocka_unit_test(a_network_without_an_address_is_an_error),
                cmocka_unit_test(without_a_note_del_uses_the_current_configuration),
                cmocka_unit_test(a_pin_without_a_namespace_is_not_shown_to_plugins),
                cmocka_unit_test(a_name_cannot_smuggle_an_argument),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
