/* SPDX-License-Identifier: Apache-2.0 */
/* test-sandbox.c - pod sandboxes from run to removal, with real namespaces and records; CNI plugins
 * are scripts */
#include <unit/expect.h>

#include <sys/stat.h>

#include <unit/resources.h>
#include <unit/scratch.h>

#include "base/clock.h"
#include "base/text.h"
#include "cri/core/parts.h"
#include "cri/core/paths.h"
#include "cri/core/record.h"
#include "cri/namespace/pins.h"
#include "cri/network/network.h"
#include "cri/pod/sandbox.h"
#include "sys/mount.h"

enum { HOST = 1 << 20, COUNT = 65536 };

struct fixture {
        char *root;
        struct cri_parts parts;
        struct cri_sandbox_operation *operation;
        bool called;
        struct nd_error *error;
        struct cri_sandbox *sandbox;
};

static void replace(char **field, char *value) {
        free(*field);
        *field = value;
}

/* The plugin assigns one address and keeps a file for each ADD without a DEL. */
static const char good[] = "#!/bin/sh\n"
                           "leases=$(dirname \"$0\")/../leases\n"
                           "if [ $CNI_COMMAND = DEL ]; then rm -f $leases/$CNI_CONTAINERID; exit 0; fi\n"
                           "touch $leases/$CNI_CONTAINERID\n"
                           "echo '{\"cniVersion\":\"1.0.0\",\"ips\":[{\"address\":\"10.7.0.2/24\"}]}'\n";

static void plugin(struct fixture *f, const char *text) {
        nd_autofree char *path = nd_format("%s/bin/net", f->root);

        scratch_text(f->root, "bin/net", text);
        assert_int_equal(chmod(path, 0755), 0);
}

static void set_up(struct fixture *f) {
        struct cri_config *config = &f->parts.config;

        *f = (struct fixture) {.root = scratch_make()};
        scratch_mkdir(f->root, "net.d");
        scratch_mkdir(f->root, "bin");
        scratch_mkdir(f->root, "leases");
        scratch_mkdir(f->root, "state");
        scratch_text(f->root, "net.d/10-x.conflist",
                     "{\"cniVersion\":\"1.0.0\",\"name\":\"x\",\"plugins\":[{\"type\":\"net\"}]}");
        plugin(f, good);
        cri_config_init(config);
        replace(&config->state, nd_format("%s/state", f->root));
        replace(&config->run, nd_format("%s/run", f->root));
        replace(&config->netns, nd_format("%s/netns", f->root));
        replace(&config->cni_config, nd_format("%s/net.d", f->root));
        replace(&config->cni_plugins, nd_format("%s/bin", f->root));
        assert_true(sd_event_new(&f->parts.loop) >= 0);
        expect_ok(cri_pins_open(config, &f->parts.pins));
        expect_ok(cri_record_store_open(config, &f->parts.records));
        f->parts.network = cri_network_new(f->parts.loop, config);
}

static void tear_down(struct fixture *f) {
        nd_autofree char *mnt = nd_format("%s/run/pins/mnt", f->root), *pins = nd_format("%s/run/pins", f->root);

        cri_pod_table_done(&f->parts.pods);
        cri_network_free(f->parts.network);
        cri_record_store_free(f->parts.records);
        cri_pins_free(f->parts.pins);
        sd_event_unref(f->parts.loop);
        cri_config_done(&f->parts.config);
        assert_int_equal(umount2(mnt, MNT_DETACH), 0);
        assert_int_equal(umount2(pins, MNT_DETACH), 0);
        scratch_remove(&f->root);
}

/* Call it before anything is created: skipping jumps past the cleanup. */
static void needs_privilege(void) {
        if (geteuid() != 0)
                skip_because("pods need privilege");
}

static void on_done(struct nd_error *error, struct cri_sandbox *sandbox, void *userdata) {
        struct fixture *f = userdata;

        assert_false(f->called);
        f->called = true;
        f->error = error;
        f->sandbox = sandbox;
}

static struct nd_error *wait_for(struct fixture *f) {
        while (!f->called)
                assert_true(sd_event_run(f->parts.loop, 10 * ND_SECOND_US) >= 0);
        f->called = false;
        return nd_take_ptr(f->error);
}

static void order(struct fixture *f) {
        struct cri_sandbox_request request = {.name = nd_strdup("web"),
                                              .uid = nd_strdup("u-1"),
                                              .namespace = nd_strdup("default"),
                                              .hostname = nd_strdup("web"),
                                              .log_directory = nd_strdup(""),
                                              .cgroup_parent = nd_strdup(""),
                                              .runtime_handler = nd_strdup(""),
                                              .pid = NAMESPACE_CONTAINER,
                                              .user_namespace = true,
                                              .uids = {.outside = HOST, .count = COUNT},
                                              .gids = {.outside = HOST, .count = COUNT}};

        cri_sandbox_run(&f->parts, &request, "bytes", 5, on_done, f, &f->operation);
        assert_false(f->called);
}

static struct nd_error *run(struct fixture *f) {
        order(f);
        return wait_for(f);
}

static struct nd_error *stop(struct fixture *f, struct cri_sandbox *sandbox) {
        cri_sandbox_stop(&f->parts, sandbox, on_done, f, nullptr);
        return wait_for(f);
}

static struct nd_error *remove_it(struct fixture *f, struct cri_sandbox *sandbox) {
        cri_sandbox_remove(&f->parts, sandbox, on_done, f, nullptr);
        return wait_for(f);
}

/* Checks that nothing of any pod is left. */
static void nothing_is_left(struct fixture *f, size_t lines) {
        assert_int_equal(f->parts.pods.sandboxes.count, 0);
        assert_int_equal(resources_mounts(), lines);
        assert_int_equal(scratch_entries(f->root, "leases"), 0);
        assert_int_equal(scratch_entries(f->root, "state/pods"), 0);
        if (scratch_has(f->root, "netns"))
                assert_int_equal(scratch_entries(f->root, "netns"), 0);
        if (scratch_has(f->root, "run/pods"))
                assert_int_equal(scratch_entries(f->root, "run/pods"), 0);
        assert_int_equal(resources_children(), 0);
}

static void a_pod_runs_stops_and_leaves_nothing([[maybe_unused]] void **state) {
        struct cri_sandbox *sandbox;
        size_t lines;
        struct fixture f;

        needs_privilege();
        set_up(&f);
        lines = resources_mounts();
        expect_ok(run(&f));
        sandbox = f.sandbox;
        assert_int_equal(sandbox->state, SANDBOX_READY);
        assert_string_equal(sandbox->addresses.items[0], "10.7.0.2");
        assert_true(resources_mounts() - lines <= 3); /* the design's limit per pod */
        assert_int_equal(scratch_entries(f.root, "leases"), 1);
        expect_ok(stop(&f, sandbox));
        assert_int_equal(sandbox->state, SANDBOX_NOTREADY);
        assert_int_equal(sandbox->made, 0);
        assert_int_equal(resources_mounts(), lines);
        assert_int_equal(scratch_entries(f.root, "leases"), 0);
        expect_ok(stop(&f, sandbox)); /* a second time */
        expect_ok(remove_it(&f, sandbox));
        assert_null(f.sandbox);
        nothing_is_left(&f, lines);
        tear_down(&f);
}

static void removing_a_pod_stops_it_first([[maybe_unused]] void **state) {
        struct fixture f;
        size_t lines;

        needs_privilege();
        set_up(&f);
        lines = resources_mounts();
        expect_ok(run(&f));
        expect_ok(remove_it(&f, f.sandbox));
        nothing_is_left(&f, lines);
        tear_down(&f);
}

static size_t count;

static void on_counted(struct nd_error *error, [[maybe_unused]] struct cri_sandbox *sandbox, [[maybe_unused]] void *userdata) {
        expect_ok(error);
        count++;
}

static void operations_queued_during_a_removal_succeed([[maybe_unused]] void **state) {
        struct cri_sandbox *sandbox;
        struct fixture f;
        size_t lines;

        needs_privilege();
        set_up(&f);
        lines = resources_mounts();
        expect_ok(run(&f));
        sandbox = f.sandbox;
        count = 0;
        cri_sandbox_stop(&f.parts, sandbox, on_counted, &f, nullptr);
        cri_sandbox_remove(&f.parts, sandbox, on_counted, &f, nullptr);
        cri_sandbox_remove(&f.parts, sandbox, on_counted, &f, nullptr);
        cri_sandbox_stop(&f.parts, sandbox, on_counted, &f, nullptr);
        while (count < 4)
                assert_true(sd_event_run(f.parts.loop, 10 * ND_SECOND_US) >= 0);
        nothing_is_left(&f, lines);
        tear_down(&f);
}

static void a_pod_whose_network_fails_is_undone([[maybe_unused]] void **state) {
        struct fixture f;
        size_t lines;

        needs_privilege();
        set_up(&f);
        lines = resources_mounts();
        plugin(&f, "#!/bin/sh\n[ $CNI_COMMAND = DEL ] && exit 0\necho '{\"code\":100,\"msg\":\"no room\"}'; exit 1\n");
        expect_error(run(&f), ND_INTERNAL, "no room");
        assert_null(f.sandbox);
        nothing_is_left(&f, lines);
        tear_down(&f);
}

static void a_pod_that_cannot_be_undone_is_listed_until_it_is_removed([[maybe_unused]] void **state) {
        const struct nd_map_slot *slot;
        struct cri_sandbox *sandbox;
        struct fixture f;
        size_t lines, at = 0;

        needs_privilege();
        set_up(&f);
        lines = resources_mounts();
        plugin(&f, "#!/bin/sh\necho \"{\\\"code\\\":100,\\\"msg\\\":\\\"no $CNI_COMMAND today\\\"}\"; exit 1\n");
        expect_error(run(&f), ND_INTERNAL, "no ADD today");
        slot = nd_map_next(&f.parts.pods.sandboxes, &at);
        assert_non_null(slot);
        sandbox = slot->value;
        assert_int_equal(sandbox->state, SANDBOX_NOTREADY);
        assert_true(cri_sandbox_is_shown(sandbox));
        expect_error(stop(&f, sandbox), ND_INTERNAL, "no DEL today");
        plugin(&f, good);
        expect_ok(stop(&f, sandbox));
        expect_ok(remove_it(&f, sandbox));
        nothing_is_left(&f, lines);
        tear_down(&f);
}

static void without_a_network_nothing_is_created([[maybe_unused]] void **state) {
        nd_autofree char *path = nullptr;
        struct fixture f;
        size_t lines;

        needs_privilege();
        set_up(&f);
        lines = resources_mounts();
        path = nd_format("%s/net.d/10-x.conflist", f.root);
        assert_int_equal(unlink(path), 0);
        expect_error(run(&f), ND_UNAVAILABLE, "install a CNI network plugin");
        nothing_is_left(&f, lines);
        tear_down(&f);
}

/* The caller goes away after so many iterations of the loop: before the start, while namespaces are
 * created, while a plugin hangs. */
static void a_pod_whose_caller_is_gone_is_undone([[maybe_unused]] void **state) {
        struct fixture f;
        size_t lines;

        needs_privilege();
        set_up(&f);
        lines = resources_mounts();
        for (int rounds = 0; rounds < 8; rounds++) {
                plugin(&f, rounds < 4 ? good : "#!/bin/sh\n[ $CNI_COMMAND = DEL ] || sleep 60\n");
                order(&f);
                for (int i = 0; i < rounds && !f.called; i++)
                        assert_true(sd_event_run(f.parts.loop, 100 * ND_MS_US) >= 0);
                if (f.called) {
                        f.called = false;
                        expect_ok(f.error);
                        expect_ok(remove_it(&f, f.sandbox));
                        continue;
                }
                cri_sandbox_abandon(f.operation);
                while (f.parts.pods.sandboxes.count > 0)
                        assert_true(sd_event_run(f.parts.loop, 10 * ND_SECOND_US) >= 0);
                assert_false(f.called);
                nothing_is_left(&f, lines);
        }
        tear_down(&f);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_pod_runs_stops_and_leaves_nothing),
                cmocka_unit_test(removing_a_pod_stops_it_first),
                cmocka_unit_test(operations_queued_during_a_removal_succeed),
                cmocka_unit_test(a_pod_whose_network_fails_is_undone),
                cmocka_unit_test(a_pod_that_cannot_be_undone_is_listed_until_it_is_removed),
                cmocka_unit_test(without_a_network_nothing_is_created),
                cmocka_unit_test(a_pod_whose_caller_is_gone_is_undone),
        };

        scratch_private_mounts();
        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
