/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/core/pod-table.h"

#include <unit/expect.h>

static struct cri_sandbox *add_sandbox(struct cri_pod_table *pods, const char *id, enum cri_sandbox_state state) {
        struct cri_sandbox *sandbox = nd_new(struct cri_sandbox);

        assert_int_equal(strlen(id), POD_ID);
        memcpy(sandbox->id, id, POD_ID + 1);
        sandbox->state = state;
        cri_pod_table_add_sandbox(pods, sandbox);
        return sandbox;
}

static struct cri_container *add_container(struct cri_pod_table *pods, struct cri_sandbox *sandbox, const char *id,
                                           enum cri_container_state state, bool internal) {
        struct cri_container *container = nd_new(struct cri_container);

        memcpy(container->id, id, POD_ID + 1);
        container->sandbox = sandbox;
        container->state = state;
        container->internal = internal;
        cri_pod_table_add_container(pods, container);
        return container;
}

#define ZEROS "000000000000000000000000000000000000000000000000000000000000"

static void objects_are_found_by_id_or_prefix([[maybe_unused]] void **state) {
        nd_cleanup(cri_pod_table_done) struct cri_pod_table pods = {};
        struct cri_sandbox *first = add_sandbox(&pods, "aaaa" ZEROS, SANDBOX_READY), *found = nullptr;

        (void) add_sandbox(&pods, "aaab" ZEROS, SANDBOX_NOTREADY);
        expect_ok(cri_pod_table_find_sandbox(&pods, "aaaa" ZEROS, &found));
        assert_ptr_equal(found, first);
        expect_ok(cri_pod_table_find_sandbox(&pods, "aaaa0", &found));
        assert_ptr_equal(found, first);
        expect_error(cri_pod_table_find_sandbox(&pods, "aaa", &found), ND_NOT_FOUND, "no pod sandbox 'aaa'");
        expect_error(cri_pod_table_find_sandbox(&pods, "bbbb", &found), ND_NOT_FOUND, "bbbb");
        expect_error(cri_pod_table_find_sandbox(&pods, "", &found), ND_NOT_FOUND, "''");
}

static void an_ambiguous_prefix_is_refused([[maybe_unused]] void **state) {
        nd_cleanup(cri_pod_table_done) struct cri_pod_table pods = {};
        struct cri_sandbox *found = nullptr;

        (void) add_sandbox(&pods, "aaaa" ZEROS, SANDBOX_READY);
        (void) add_sandbox(&pods,
                           "aaaa1"
                           "00000000000000000000000000000000000000000000000000000000000",
                           SANDBOX_READY);
        expect_error(cri_pod_table_find_sandbox(&pods, "aaaa", &found), ND_INVALID, "more than one");
}

static void objects_being_created_or_removed_are_not_found([[maybe_unused]] void **state) {
        nd_cleanup(cri_pod_table_done) struct cri_pod_table pods = {};
        struct cri_sandbox *new = add_sandbox(&pods, "aaaa" ZEROS, SANDBOX_NEW),
                           *ready = add_sandbox(&pods, "bbbb" ZEROS, SANDBOX_READY);
        struct cri_container *found_container = nullptr, *init, *shown;
        struct cri_sandbox *found = nullptr;

        expect_error(cri_pod_table_find_sandbox(&pods, new->id, &found), ND_NOT_FOUND, "");
        init = add_container(&pods, ready, "cccc" ZEROS, CONTAINER_RUNNING, true);
        assert_ptr_equal(ready->init, init);
        expect_error(cri_pod_table_find_container(&pods, init->id, &found_container), ND_NOT_FOUND, "no container");
        shown = add_container(&pods, ready, "dddd" ZEROS, CONTAINER_RUNNING, false);
        expect_ok(cri_pod_table_find_container(&pods, "dddd", &found_container));
        shown->state = CONTAINER_REMOVED;
        expect_error(cri_pod_table_find_container(&pods, "dddd", &found_container), ND_NOT_FOUND, "");
        shown->state = CONTAINER_RUNNING;
        ready->state = SANDBOX_REMOVED;
        expect_error(cri_pod_table_find_container(&pods, "dddd", &found_container), ND_NOT_FOUND, "");
}

static void a_dropped_container_leaves_its_sandbox([[maybe_unused]] void **state) {
        nd_cleanup(cri_pod_table_done) struct cri_pod_table pods = {};
        struct cri_sandbox *sandbox = add_sandbox(&pods, "aaaa" ZEROS, SANDBOX_READY);
        struct cri_container *one = add_container(&pods, sandbox, "cccc" ZEROS, CONTAINER_RUNNING, false),
                             *two = add_container(&pods, sandbox, "dddd" ZEROS, CONTAINER_RUNNING, false),
                             *init = add_container(&pods, sandbox, "eeee" ZEROS, CONTAINER_RUNNING, true);

        cri_pod_table_drop_container(&pods, one);
        assert_int_equal(sandbox->containers.count, 1);
        assert_ptr_equal(sandbox->containers.items[0], two);
        cri_pod_table_drop_container(&pods, init);
        assert_null(sandbox->init);
        cri_pod_table_drop_container(&pods, two);
        cri_pod_table_drop_sandbox(&pods, sandbox);
        assert_int_equal(pods.sandboxes.count + pods.containers.count, 0);
}

static void ids_are_hex_and_never_the_same([[maybe_unused]] void **state) {
        char one[POD_ID + 1], two[POD_ID + 1];

        cri_pod_table_new_id(one);
        cri_pod_table_new_id(two);
        assert_int_equal(strspn(one, "0123456789abcdef"), POD_ID);
        assert_string_not_equal(one, two);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(objects_are_found_by_id_or_prefix),
                cmocka_unit_test(an_ambiguous_prefix_is_refused),
                cmocka_unit_test(objects_being_created_or_removed_are_not_found),
                cmocka_unit_test(a_dropped_container_leaves_its_sandbox),
                cmocka_unit_test(ids_are_hex_and_never_the_same),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
