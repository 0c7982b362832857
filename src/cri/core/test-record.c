/* SPDX-License-Identifier: Apache-2.0 */
/* test-record.c - records load as they were saved, and a damaged record affects only itself */
#include <unit/expect.h>

#include <cri.pb-c.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unit/scratch.h>

#include "cri/core/config.h"
#include "cri/core/paths.h"
#include "cri/core/record-format.h"
#include "cri/core/record.h"
#include "cri/core/request-decode.h"
#include "net/protobuf.h"

struct fixture {
        char *directory;
        struct cri_config config;
        struct cri_record_store *store;
        struct cri_pod_table pods;
};

static void fixture_done(struct fixture *f) {
        cri_pod_table_done(&f->pods);
        cri_record_store_free(f->store);
        cri_config_done(&f->config);
        scratch_remove(&f->directory);
}

static void fixture_init(struct fixture *f) {
        *f = (struct fixture) {.directory = scratch_make()};
        cri_config_init(&f->config);
        free(f->config.state);
        f->config.state = nd_format("%s/state", f->directory);
        expect_ok(cri_record_store_open(&f->config, &f->store));
}

/* The daemon exits and another one starts. */
static void restart(struct fixture *f, struct nd_strings *problems) {
        cri_pod_table_done(&f->pods);
        f->pods = (struct cri_pod_table) {};
        cri_record_store_free(f->store);
        expect_ok(cri_record_store_open(&f->config, &f->store));
        expect_ok(cri_record_load(f->store, &f->pods, problems));
}

static void pack_pod(struct nd_text *ret) {
        Runtime__V1__RunPodSandboxRequest request = RUNTIME__V1__RUN_POD_SANDBOX_REQUEST__INIT;
        Runtime__V1__PodSandboxConfig config = RUNTIME__V1__POD_SANDBOX_CONFIG__INIT;
        Runtime__V1__PodSandboxMetadata metadata = RUNTIME__V1__POD_SANDBOX_METADATA__INIT;

        metadata.name = (char *) "web";
        metadata.namespace_ = (char *) "default";
        metadata.uid = (char *) "u-1";
        config.metadata = &metadata;
        request.config = &config;
        nd_protobuf_pack(&request.base, ret);
}

static void pack_container(struct nd_text *ret) {
        Runtime__V1__CreateContainerRequest request = RUNTIME__V1__CREATE_CONTAINER_REQUEST__INIT;
        Runtime__V1__ContainerConfig config = RUNTIME__V1__CONTAINER_CONFIG__INIT;
        Runtime__V1__ContainerMetadata metadata = RUNTIME__V1__CONTAINER_METADATA__INIT;
        Runtime__V1__ImageSpec image = RUNTIME__V1__IMAGE_SPEC__INIT;

        metadata.name = (char *) "main";
        image.image = (char *) "sha256:1";
        config.metadata = &metadata;
        config.image = &image;
        request.config = &config;
        nd_protobuf_pack(&request.base, ret);
}

static struct cri_sandbox *add_sandbox(struct fixture *f) {
        struct cri_sandbox *sandbox = nd_new(struct cri_sandbox);
        nd_autotext struct nd_text bytes = {};

        pack_pod(&bytes);
        cri_pod_table_new_id(sandbox->id);
        sandbox->this_boot = true;
        expect_ok(cri_request_decode_sandbox(nd_text_get(&bytes), bytes.length, &sandbox->request));
        expect_ok(cri_record_new_sandbox(f->store, sandbox, nd_text_get(&bytes), bytes.length));
        cri_pod_table_add_sandbox(&f->pods, sandbox);
        return sandbox;
}

static struct cri_container *add_container(struct fixture *f, struct cri_sandbox *sandbox, bool internal) {
        struct cri_container *container = nd_new(struct cri_container);
        nd_autofree char *id = nullptr;
        nd_autotext struct nd_text bytes = {};

        pack_container(&bytes);
        cri_pod_table_new_id(container->id);
        container->sandbox = sandbox;
        container->internal = internal;
        container->state = CONTAINER_NEW;
        if (!internal)
                expect_ok(cri_request_decode_container(nd_text_get(&bytes), bytes.length, &id, &container->request));
        expect_ok(cri_record_new_container(f->store, container, internal ? nullptr : nd_text_get(&bytes), bytes.length));
        cri_pod_table_add_container(&f->pods, container);
        return container;
}

static char *path_in(const struct fixture *f, const struct cri_sandbox *sandbox, const char *name) {
        return nd_format("%s/pods/%s/%s", f->config.state, sandbox->id, name);
}

/* ---- tests ---- */

static void a_sandbox_is_the_same_after_a_restart([[maybe_unused]] void **state) {
        nd_cleanup(nd_strings_done) struct nd_strings problems = {};
        nd_cleanup(fixture_done) struct fixture f = {};
        struct cri_sandbox *sandbox, *again;
        char id[POD_ID + 1];

        fixture_init(&f);
        sandbox = add_sandbox(&f);
        memcpy(id, sandbox->id, sizeof id);
        sandbox->state = SANDBOX_READY;
        sandbox->made = SANDBOX_MADE_NAMESPACES | SANDBOX_MADE_NETWORK;
        sandbox->created_at = 1700000000000000001;
        sandbox->oom_kills = 3;
        nd_strings_add(&sandbox->addresses, "10.0.0.1");
        nd_strings_add(&sandbox->addresses, "fd00::1");
        sandbox->network_result = nd_strdup("{\"a\":\"\\u0001\"}");
        expect_ok(cri_record_save_sandbox(f.store, sandbox, RECORD_SYNC));
        restart(&f, &problems);

        assert_int_equal(problems.count, 0);
        again = nd_map_get(&f.pods.sandboxes, id);
        assert_non_null(again);
        assert_int_equal(again->state, SANDBOX_READY);
        assert_int_equal(again->made, SANDBOX_MADE_NAMESPACES | SANDBOX_MADE_NETWORK);
        assert_true(again->created_at == 1700000000000000001);
        assert_int_equal(again->oom_kills, 3);
        assert_int_equal(again->addresses.count, 2);
        assert_string_equal(again->addresses.items[1], "fd00::1");
        assert_string_equal(again->network_result, "{\"a\":\"\\u0001\"}");
        assert_string_equal(again->request.name, "web");
        assert_true(again->this_boot);
}

static void fill(struct cri_container *container) {
        container->state = CONTAINER_EXITED;
        container->made = CONTAINER_MADE_DIRECTORY;
        container->started = true;
        container->created_at = 1;
        container->started_at = 2;
        container->finished_at = UINT64_MAX;
        container->exit_code = 137;
        container->reason = nd_strdup("OOMKilled");
        container->message = nd_strdup("line\nline \x7f \"quoted\"");
        container->pid = 4242;
        container->pid_birth = 99;
        container->user.uid = 1000;
        nd_vector_push(&container->user.groups, 0u);
        nd_vector_push(&container->user.groups, UINT32_MAX);
        nd_vector_push(&container->mappings, ((struct cri_mount_mapping) {.how = MAPPING_IDMAPPED}));
        nd_vector_push(&container->mappings, ((struct cri_mount_mapping) {.how = MAPPING_BRIDGED, .filesystem = "fuse.s3fs"}));
        container->image = nd_digest_of(ND_HASH_SHA256, "a", 1);
        container->log_path = nd_strdup("/var/log/0.log");
        container->request.resources.cpu_quota = -1;
        container->request.resources.memory_limit = INT64_MAX;
        nd_vector_push(&container->request.resources.unified,
                       ((struct cri_pair) {.key = nd_strdup("memory.oom.group"), .value = nd_strdup("1")}));
        nd_vector_push(&container->request.resources.hugepages,
                       ((struct cri_hugepage_limit) {.page_size = nd_strdup("2MB"), .limit = 1}));
}

static void a_container_is_the_same_after_a_restart([[maybe_unused]] void **state) {
        nd_cleanup(nd_strings_done) struct nd_strings problems = {};
        nd_cleanup(fixture_done) struct fixture f = {};
        struct cri_container *container, *again;
        char id[POD_ID + 1];

        fixture_init(&f);
        container = add_container(&f, add_sandbox(&f), false);
        memcpy(id, container->id, sizeof id);
        fill(container);
        expect_ok(cri_record_save_container(f.store, container, RECORD_NOSYNC));
        restart(&f, &problems);

        assert_int_equal(problems.count, 0);
        again = nd_map_get(&f.pods.containers, id);
        assert_non_null(again);
        assert_int_equal(again->state, CONTAINER_EXITED);
        assert_true(again->finished_at == UINT64_MAX);
        assert_int_equal(again->exit_code, 137);
        assert_string_equal(again->reason, "OOMKilled");
        assert_string_equal(again->message, "line\nline \x7f \"quoted\"");
        assert_int_equal(again->user.groups.count, 2);
        assert_int_equal(again->mappings.count, 2);
        assert_int_equal(cri_container_mapping(again, 0).how, MAPPING_IDMAPPED);
        assert_int_equal(cri_container_mapping(again, 1).how, MAPPING_BRIDGED);
        assert_string_equal(cri_container_mapping(again, 1).filesystem, "fuse.s3fs");
        assert_int_equal(cri_container_mapping(again, 2).how, MAPPING_UNKNOWN);
        assert_true(again->user.groups.items[1] == UINT32_MAX);
        assert_true(nd_digest_is_set(&again->image) && !nd_digest_is_set(&again->top));
        assert_int_equal(again->request.resources.cpu_quota, -1);
        assert_true(again->request.resources.memory_limit == INT64_MAX);
        assert_true(cri_pairs_have(&again->request.resources.unified, "memory.oom.group", "1"));
        assert_int_equal(again->request.resources.hugepages.count, 1);
        assert_string_equal(again->request.name, "main");
        assert_string_equal(again->cgroup, ""); /* strings that were never set are "" */
        assert_string_equal(again->monitor_cgroup, "");
}

static void the_pods_init_comes_back_without_a_request([[maybe_unused]] void **state) {
        nd_cleanup(nd_strings_done) struct nd_strings problems = {};
        nd_cleanup(fixture_done) struct fixture f = {};
        struct cri_sandbox *again;
        char id[POD_ID + 1];

        fixture_init(&f);
        memcpy(id, add_container(&f, add_sandbox(&f), true)->sandbox->id, sizeof id);
        restart(&f, &problems);
        assert_int_equal(problems.count, 0);
        again = nd_map_get(&f.pods.sandboxes, id);
        assert_non_null(again->init);
        assert_true(again->init->internal);
        assert_int_equal(again->containers.count, 0);
}

static void removal_is_complete_and_can_be_repeated([[maybe_unused]] void **state) {
        nd_cleanup(nd_strings_done) struct nd_strings problems = {};
        nd_cleanup(fixture_done) struct fixture f = {};
        struct cri_container *container;
        struct cri_sandbox *sandbox;

        fixture_init(&f);
        sandbox = add_sandbox(&f);
        container = add_container(&f, sandbox, false);
        expect_error(cri_record_remove_sandbox(f.store, sandbox), nd_error_code_of(ENOTEMPTY), sandbox->id);
        expect_ok(cri_record_remove_container(f.store, container));
        expect_ok(cri_record_remove_container(f.store, container));
        expect_ok(cri_record_remove_sandbox(f.store, sandbox));
        expect_ok(cri_record_remove_sandbox(f.store, sandbox));
        assert_int_equal(scratch_entries(f.directory, "state/pods"), 0);
        restart(&f, &problems);
        assert_int_equal(f.pods.sandboxes.count, 0);
}

/* Killed between making the directory and the record, or between removing them. */
static void loading_removes_a_directory_without_a_record([[maybe_unused]] void **state) {
        nd_cleanup(nd_strings_done) struct nd_strings problems = {};
        nd_cleanup(fixture_done) struct fixture f = {};
        nd_autofree char *sandbox_json = nullptr, *container_json = nullptr, *temporary = nullptr;
        struct cri_sandbox *kept, *left;
        char id[POD_ID + 1];

        fixture_init(&f);
        kept = add_sandbox(&f);
        memcpy(id, kept->id, sizeof id);
        container_json = nd_format("containers/%s/container.json", add_container(&f, kept, false)->id);
        left = add_sandbox(&f);
        sandbox_json = path_in(&f, left, "sandbox.json");
        temporary = nd_format("state/pods/%s/"
                              ".nodens-0123",
                              left->id);
        scratch_text(f.directory, temporary, "half");
        assert_int_equal(unlink(sandbox_json), 0);
        free(sandbox_json);
        sandbox_json = path_in(&f, kept, container_json);
        assert_int_equal(unlink(sandbox_json), 0);
        restart(&f, &problems);

        assert_int_equal(problems.count, 0);
        assert_int_equal(f.pods.sandboxes.count, 1);
        assert_int_equal(f.pods.containers.count, 0);
        assert_non_null(nd_map_get(&f.pods.sandboxes, id));
        assert_int_equal(scratch_entries(f.directory, "state/pods"), 1);
}

static void a_damaged_record_loads_as_one_pod_to_be_undone([[maybe_unused]] void **state) {
        nd_cleanup(nd_strings_done) struct nd_strings problems = {};
        nd_cleanup(fixture_done) struct fixture f = {};
        nd_autofree char *name = nullptr, *other = nullptr;
        char sandbox_id[POD_ID + 1], container_id[POD_ID + 1];
        struct cri_container *container;
        struct cri_sandbox *damaged;

        fixture_init(&f);
        (void) add_sandbox(&f);
        damaged = add_sandbox(&f);
        memcpy(sandbox_id, damaged->id, sizeof sandbox_id);
        name = nd_format("state/pods/%s/sandbox.json", damaged->id);
        scratch_text(f.directory, name, "{\"version\":1,\"state\":");
        container = add_container(&f, add_sandbox(&f), false);
        other = nd_format("state/pods/%s/containers/%s/container.pb", container->sandbox->id, container->id);
        memcpy(container_id, container->id, sizeof container_id);
        container->sandbox->state = SANDBOX_READY;
        expect_ok(cri_record_save_sandbox(f.store, container->sandbox, RECORD_NOSYNC));
        scratch_text(f.directory, other, "\xff");
        restart(&f, &problems);

        assert_int_equal(problems.count, 2);
        assert_int_equal(f.pods.sandboxes.count, 3);
        assert_int_equal(f.pods.containers.count, 1);
        damaged = nd_map_get(&f.pods.sandboxes, sandbox_id);
        assert_int_equal(damaged->state, SANDBOX_NEW);
        assert_true(damaged->made & SANDBOX_MADE_NETWORK && damaged->made & SANDBOX_MADE_NAMESPACES);
        container = nd_map_get(&f.pods.containers, container_id);
        assert_int_equal(container->state, CONTAINER_NEW);
        assert_true(container->made & CONTAINER_MADE_ENGINE);
        /* its sandbox is not affected */
        assert_int_equal(container->sandbox->state, SANDBOX_READY);
}

static void a_newer_daemons_record_is_left_alone([[maybe_unused]] void **state) {
        nd_cleanup(nd_strings_done) struct nd_strings problems = {};
        nd_cleanup(fixture_done) struct fixture f = {};
        nd_autofree char *name = nullptr;

        fixture_init(&f);
        name = nd_format("state/pods/%s/sandbox.json", add_sandbox(&f)->id);
        scratch_text(f.directory, name, "{\"version\":2,\"state\":\"ready\"}");
        restart(&f, &problems);
        assert_int_equal(problems.count, 1);
        expect_contains(problems.items[0], "not cleaned up: sandbox.json: written by a newer nodens-cri");
        assert_int_equal(f.pods.sandboxes.count, 0);
        assert_true(scratch_has(f.directory, name));
}

static void a_newer_format_has_its_own_error_code([[maybe_unused]] void **state) {
        nd_cleanup(cri_pod_table_done) struct cri_pod_table pods = {};
        struct cri_sandbox *sandbox = nd_new(struct cri_sandbox);
        static const char newer[] = "{\"version\":2,\"state\":\"ready\"}", none[] = "{\"state\":\"ready\"}",
                          odd[] = "{\"version\":1,\"state\":\"odd\"}";

        cri_pod_table_new_id(sandbox->id);
        cri_pod_table_add_sandbox(&pods, sandbox);
        expect_error(cri_record_parse_sandbox(newer, strlen(newer), "", sandbox), ND_UNIMPLEMENTED, "newer nodens-cri");
        expect_error(cri_record_parse_sandbox(none, strlen(none), "", sandbox), ND_INVALID, "the record has no version");
        expect_error(cri_record_parse_sandbox(odd, strlen(odd), "", sandbox), ND_INVALID, "unknown state 'odd'");
}

static void a_record_of_an_earlier_boot_stays_one([[maybe_unused]] void **state) {
        nd_cleanup(nd_strings_done) struct nd_strings problems = {};
        nd_cleanup(fixture_done) struct fixture f = {};
        struct cri_sandbox *sandbox;
        char id[POD_ID + 1];

        fixture_init(&f);
        sandbox = add_sandbox(&f);
        memcpy(id, sandbox->id, sizeof id);
        sandbox->this_boot = false;
        expect_ok(cri_record_save_sandbox(f.store, sandbox, RECORD_NOSYNC));
        restart(&f, &problems);
        sandbox = nd_map_get(&f.pods.sandboxes, id);
        assert_false(sandbox->this_boot);
        expect_ok(cri_record_save_sandbox(f.store, sandbox, RECORD_NOSYNC)); /* a stop saves it */
        restart(&f, &problems);
        sandbox = nd_map_get(&f.pods.sandboxes, id);
        assert_false(sandbox->this_boot);
}

static void a_pods_directory_is_crossed_by_root_and_its_own_root_alone([[maybe_unused]] void **state) {
        nd_cleanup(fixture_done) struct fixture f;
        struct cri_sandbox_request pod = {.user_namespace = true, .gids = {.outside = 655360, .count = 65536}};
        nd_autofree char *path = nullptr, *own = nullptr;
        const struct cri_sandbox *sandbox;
        struct stat st;

        fixture_init(&f);
        sandbox = add_sandbox(&f); /* with the host's users */
        path = cri_path_of_sandbox(&f.config, sandbox->id);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0700);
        own = nd_format("%s/own", f.directory);
        if (geteuid() != 0)
                skip_because("only root may give directories away");
        expect_ok(cri_path_make_of_pod(AT_FDCWD, own, &pod));
        assert_int_equal(stat(own, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0710);
        assert_int_equal(st.st_uid, 0);
        assert_int_equal(st.st_gid, 655360);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_sandbox_is_the_same_after_a_restart),
                cmocka_unit_test(a_container_is_the_same_after_a_restart),
                cmocka_unit_test(the_pods_init_comes_back_without_a_request),
                cmocka_unit_test(removal_is_complete_and_can_be_repeated),
                cmocka_unit_test(loading_removes_a_directory_without_a_record),
                cmocka_unit_test(a_damaged_record_loads_as_one_pod_to_be_undone),
                cmocka_unit_test(a_newer_daemons_record_is_left_alone),
                cmocka_unit_test(a_newer_format_has_its_own_error_code),
                cmocka_unit_test(a_record_of_an_earlier_boot_stays_one),
                cmocka_unit_test(a_pods_directory_is_crossed_by_root_and_its_own_root_alone),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
