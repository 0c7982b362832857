/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <sys/stat.h>

#include <unit/scratch.h>

#include "userns/store.h"

struct world {
        char *root;
        struct nd_userns_store store;
};

static int start(void **state) {
        struct world *world = nd_new(struct world);

        world->root = scratch_make();
        nd_userns_store_init(world->root, &world->store);
        *state = world;
        return 0;
}

static int finish(void **state) {
        struct world *world = *state;

        nd_userns_store_done(&world->store);
        scratch_remove(&world->root);
        free(world);
        return 0;
}

static void a_uid_that_cannot_name_a_directory_is_refused([[maybe_unused]] void **state) {
        char uid[255];

        memset(uid, 'a', 254);
        uid[254] = '\0';
        expect_error(nd_userns_store_check_uid(uid), ND_INVALID, "cannot name a directory");
        uid[253] = '\0';
        expect_ok(nd_userns_store_check_uid(uid));
        expect_ok(nd_userns_store_check_uid("0f4e3d2c-0000-4000-8000-00000000000a"));
        expect_error(nd_userns_store_check_uid(""), ND_INVALID, "pod UID \"\" cannot name a directory");
        expect_error(nd_userns_store_check_uid("."), ND_INVALID, "");
        expect_error(nd_userns_store_check_uid(".."), ND_INVALID, "");
        expect_error(nd_userns_store_check_uid(".hidden"), ND_INVALID, "");
        expect_error(nd_userns_store_check_uid("a/b"), ND_INVALID, "pod UID \"a/b\"");
        expect_error(nd_userns_store_check_uid("../../etc"), ND_INVALID, "");
}

static void writing_creates_missing_directories(void **state) {
        struct world *world = *state;
        nd_autofree char *directory = nd_format("%s/pods/a", world->root), *file = nd_format("%s/userns", directory);
        struct stat st;

        expect_ok(nd_userns_store_write(&world->store, "a", "text"));
        expect_text(scratch_read(world->root, "pods/a/userns"), "text");
        assert_int_equal(stat(file, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
        assert_int_equal(stat(directory, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0750);
        assert_int_equal(scratch_entries(world->root, "pods/a"), 1);
}

static void no_directory_no_file_and_an_empty_file_all_mean_no_namespace(void **state) {
        struct world *world = *state;
        char *bytes = nullptr;
        size_t length = 1;

        expect_ok(nd_userns_store_read(&world->store, "a", &bytes, &length));
        assert_null(bytes);
        assert_int_equal(length, 0);
        scratch_mkdir(world->root, "pods/a");
        expect_ok(nd_userns_store_read(&world->store, "a", &bytes, &length));
        assert_null(bytes);
        scratch_text(world->root, "pods/a/userns", "");
        expect_ok(nd_userns_store_read(&world->store, "a", &bytes, &length));
        assert_null(bytes);
        assert_false(scratch_has(world->root, "pods/b")); /* reading creates nothing */
}

/* Deliberate difference 7. */
static void links_fifos_directories_and_large_files_are_not_read(void **state) {
        struct world *world = *state;
        static char large[64 * 1024 + 1];
        nd_autofree char *link = nd_format("%s/pods/link/userns", world->root),
                         *fifo = nd_format("%s/pods/fifo/userns", world->root);
        char *bytes = nullptr;
        size_t length;

        scratch_mkdir(world->root, "pods/link");
        scratch_mkdir(world->root, "pods/fifo");
        scratch_mkdir(world->root, "pods/large");
        scratch_mkdir(world->root, "pods/directory/userns");
        memset(large, ' ', sizeof large);
        scratch_write(world->root, "pods/large/userns", large, sizeof large);
        assert_int_equal(symlink("/etc/passwd", link), 0);
        assert_int_equal(mkfifo(fifo, 0600), 0);
        expect_error(nd_userns_store_read(&world->store, "link", &bytes, &length), ND_INTERNAL, "pod 'link': open 'userns'");
        expect_error(nd_userns_store_read(&world->store, "fifo", &bytes, &length), ND_INVALID, "not a regular file");
        expect_error(nd_userns_store_read(&world->store, "large", &bytes, &length), ND_EXHAUSTED, "more than 65536 bytes");
        expect_error(nd_userns_store_read(&world->store, "directory", &bytes, &length), ND_INVALID, "Is a directory");
        assert_null(bytes);
}

static void a_pod_s_directory_behind_a_link_is_not_entered(void **state) {
        struct world *world = *state;
        nd_autofree char *link = nd_format("%s/pods/a", world->root);
        char *bytes = nullptr;
        size_t length;

        scratch_mkdir(world->root, "pods");
        scratch_mkdir(world->root, "elsewhere");
        scratch_text(world->root, "elsewhere/userns", "keep");
        assert_int_equal(symlink("../elsewhere", link), 0);
        expect_error(nd_userns_store_read(&world->store, "a", &bytes, &length), ND_INTERNAL, "");
        expect_error(nd_userns_store_write(&world->store, "a", "text"), ND_INTERNAL, "");
        expect_error(nd_userns_store_remove(&world->store, "a"), ND_INTERNAL, "");
        expect_text(scratch_read(world->root, "elsewhere/userns"), "keep");
}

static void the_list_has_the_directories_below_pods(void **state) {
        struct world *world = *state;
        nd_cleanup(nd_strings_done) struct nd_strings names = {};

        expect_error(nd_userns_store_list(&world->store, &names), ND_NOT_FOUND, "");
        scratch_mkdir(world->root, "pods/b");
        scratch_mkdir(world->root, "pods/a");
        scratch_text(world->root, "pods/file", "");
        expect_ok(nd_userns_store_list(&world->store, &names));
        assert_int_equal(names.count, 2);
        assert_string_equal(names.items[0], "a");
        assert_string_equal(names.items[1], "b");
}

static void removing_a_missing_file_succeeds(void **state) {
        struct world *world = *state;

        expect_ok(nd_userns_store_remove(&world->store, "a"));
        expect_ok(nd_userns_store_write(&world->store, "a", "text"));
        expect_ok(nd_userns_store_remove(&world->store, "a"));
        assert_false(scratch_has(world->root, "pods/a/userns"));
        assert_true(scratch_has(world->root, "pods/a")); /* the directory belongs to the kubelet */
        expect_ok(nd_userns_store_remove(&world->store, "a"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_uid_that_cannot_name_a_directory_is_refused),
                cmocka_unit_test_setup_teardown(writing_creates_missing_directories, start, finish),
                cmocka_unit_test_setup_teardown(no_directory_no_file_and_an_empty_file_all_mean_no_namespace, start, finish),
                cmocka_unit_test_setup_teardown(links_fifos_directories_and_large_files_are_not_read, start, finish),
                cmocka_unit_test_setup_teardown(a_pod_s_directory_behind_a_link_is_not_entered, start, finish),
                cmocka_unit_test_setup_teardown(the_list_has_the_directories_below_pods, start, finish),
                cmocka_unit_test_setup_teardown(removing_a_missing_file_succeeds, start, finish),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
