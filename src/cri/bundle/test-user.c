/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/bundle/user.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unit/expect.h>
#include <unit/scratch.h>

#include "sys/file.h"
#include "sys/own-userns.h"

static const char passwd[] = "root:x:0:0:root:/root:/bin/sh\n"
                             "# a comment: of: no: use\n"
                             "broken line\n"
                             "huge:x:4294967296:0::/:/\n"
                             "negative:x:-1:0::/:/\n"
                             "www-data:x:33:34:www:/var/www:/bin/false\n"
                             "alice:x:1000:1000::/home/alice:/bin/sh\n"
                             "twin:x:1000:2000::/home/twin:/bin/sh";
static const char group[] = "root:x:0:\n"
                            "wheel:x:10:root,alice\n"
                            "www-data:x:34:\n"
                            "predefined:x:50000:bob,alice\n"
                            "bad:x:many:alice\n"
                            "short\n"
                            "staff:x:50:ali,alice2";

static struct nd_userns_map every_id = {.count = UINT32_MAX};
static const struct nd_own_userns host = {
        .initial = true, .uids = {.items = &every_id, .count = 1}, .gids = {.items = &every_id, .count = 1}};
static const struct cri_user_scope of_host = {.node = &host};

static struct cri_container_request request_of(void) {
        return (struct cri_container_request) {.user_name = (char *) ""};
}

static struct nd_error *resolve(const struct cri_container_request *request, const char *image_user, uint32_t ids,
                                struct cri_container_user *ret) {
        nd_autofree char *users = nd_strdup(passwd), *groups = nd_strdup(group);

        return cri_user_resolve_in(&(struct cri_user_files) {.passwd = users, .group = groups}, request, image_user,
                                   &(struct cri_user_scope) {.ids = ids, .node = &host}, ret);
}

static void expect_user(const struct cri_container_request *request, const char *image_user, const char *expected) {
        nd_cleanup(cri_container_user_done) struct cri_container_user user = {};
        nd_autotext struct nd_text text = ND_TEXT(1000);

        expect_ok(resolve(request, image_user, 0, &user));
        nd_text_addf(&text, "%u:%u", user.uid, user.gid);
        nd_vector_each (id, &user.groups) {
                nd_text_addf(&text, " %u", *id);
        }
        assert_string_equal(nd_text_get(&text), expected);
}

static void the_default_user_is_root([[maybe_unused]] void **state) {
        struct cri_container_request request = request_of();

        expect_user(&request, "", "0:0 0 10");
}

static void the_images_user_may_be_a_name_or_a_number_with_or_without_a_group([[maybe_unused]] void **state) {
        struct cri_container_request request = request_of();

        expect_user(&request, "alice", "1000:1000 1000 10 50000");
        expect_user(&request, "1000", "1000:1000 1000 10 50000");
        expect_user(&request, "4711", "4711:0 0");
        expect_user(&request, "alice:staff", "1000:50 50 10 50000");
        expect_user(&request, "33:12", "33:12 12");
}

static void the_requests_user_replaces_the_images_user_and_group([[maybe_unused]] void **state) {
        struct cri_container_request request = request_of();

        request.has_user = true;
        request.user = 33;
        expect_user(&request, "alice:staff", "33:34 34");
        request.has_group = true;
        request.group = 77;
        expect_user(&request, "alice:staff", "33:77 77");
        request.user_name = (char *) "www-data";
        request.has_user = request.has_group = false;
        expect_user(&request, "alice", "33:34 34");
}

static void merged_groups_are_the_images_and_the_requests_once_each([[maybe_unused]] void **state) {
        struct cri_container_request request = request_of();

        nd_vector_push(&request.groups, 1234);
        nd_vector_push(&request.groups, 10);
        expect_user(&request, "alice", "1000:1000 1000 10 50000 1234");
        request.strict_groups = true;
        expect_user(&request, "alice", "1000:1000 1000 1234 10");
        nd_vector_done(&request.groups);
        expect_user(&request, "alice", "1000:1000 1000");
}

static void a_group_without_a_user_is_an_error([[maybe_unused]] void **state) {
        nd_cleanup(cri_container_user_done) struct cri_container_user user = {};
        struct cri_container_request request = request_of();

        request.has_group = true;
        request.group = 5;
        expect_error(resolve(&request, "alice", 0, &user), ND_INVALID, "group 5 needs a user");
}

static void unknown_names_are_refused([[maybe_unused]] void **state) {
        nd_cleanup(cri_container_user_done) struct cri_container_user user = {};
        struct cri_container_request request = request_of();

        expect_error(resolve(&request, "mallory", 0, &user), ND_INVALID,
                     "unknown user \"mallory\": not in the image's /etc/passwd");
        expect_error(resolve(&request, "alice:ghosts", 0, &user), ND_INVALID,
                     "unknown group \"ghosts\": not in the image's /etc/group");
        expect_error(resolve(&request, "huge", 0, &user), ND_INVALID, "unknown user");
        expect_error(resolve(&request, "negative", 0, &user), ND_INVALID, "unknown user");
}

/* CVE-2024-40635 and similar: no number wraps to root. */
static void numbers_out_of_range_are_refused([[maybe_unused]] void **state) {
        static const int64_t bad[] = {-1, INT64_C(2147483648), UINT32_MAX, INT64_C(4294967296), INT64_MIN};
        nd_cleanup(cri_container_user_done) struct cri_container_user user = {};

        for (size_t i = 0; i < nd_count_of(bad); i++) {
                struct cri_container_request request = request_of();

                request.has_user = true;
                request.user = bad[i];
                expect_error(resolve(&request, "", 0, &user), ND_INVALID, "is not between 0 and 2147483647");
                request.user = 1;
                nd_vector_push(&request.groups, bad[i]);
                expect_error(resolve(&request, "", 0, &user), ND_INVALID, "is not between 0 and 2147483647");
                nd_vector_done(&request.groups);
        }
        expect_error(resolve(&(struct cri_container_request) {.user_name = (char *) ""}, "4294967296", 0, &user), ND_INVALID,
                     "not below 2147483648");
}

static void an_id_outside_the_user_namespace_is_refused([[maybe_unused]] void **state) {
        nd_cleanup(cri_container_user_done) struct cri_container_user user = {};
        struct cri_container_request request = request_of();

        request.has_user = true;
        request.user = 65536;
        expect_error(resolve(&request, "", 65536, &user), ND_INVALID, "user 65536 does not exist in the pod's user namespace");
        request.user = 65535;
        expect_ok(resolve(&request, "", 65536, &user));
}

static void without_the_files_numbers_still_work([[maybe_unused]] void **state) {
        nd_cleanup(cri_container_user_done) struct cri_container_user user = {};
        scratch_directory root = scratch_make();
        struct cri_container_request request = request_of();
        nd_autoclose int fd = -EBADF;

        expect_ok(nd_dir_open(AT_FDCWD, root, &fd));
        expect_ok(cri_user_resolve(fd, &request, "1000:5", &of_host, &user));
        assert_int_equal(user.uid, 1000);
        assert_int_equal(user.gid, 5);
        expect_error(cri_user_resolve(fd, &request, "alice", &of_host, &user), ND_INVALID, "unknown user");
}

/* CVE-2022-23648's way out: a link in the image that leads to the host. */
static void links_in_the_image_stay_in_the_image([[maybe_unused]] void **state) {
        nd_cleanup(cri_container_user_done) struct cri_container_user user = {};
        scratch_directory root = scratch_make();
        struct cri_container_request request = request_of();
        nd_autofree char *link = nd_format("%s/etc", root), *inside = nd_format("%s/real", root);
        nd_autoclose int fd = -EBADF;

        scratch_mkdir(root, "real");
        scratch_text(root, "real/passwd", "me:x:12:13::/:/\n");
        assert_int_equal(symlink("/../../real", link), 0);
        expect_ok(nd_dir_open(AT_FDCWD, root, &fd));
        expect_ok(cri_user_resolve(fd, &request, "me", &of_host, &user));
        assert_int_equal(user.uid, 12);
}

/* CVE-2025-4437, and a FIFO without a writer. */
static void huge_and_strange_files_are_errors_and_not_waits([[maybe_unused]] void **state) {
        nd_cleanup(cri_container_user_done) struct cri_container_user user = {};
        scratch_directory root = scratch_make();
        struct cri_container_request request = request_of();
        nd_autofree char *path = nd_format("%s/etc/passwd", root);
        nd_autoclose int fd = -EBADF;

        scratch_mkdir(root, "etc");
        scratch_text(root, "etc/passwd", "");
        assert_int_equal(truncate(path, (off_t) 1 << 40), 0);
        expect_ok(nd_dir_open(AT_FDCWD, root, &fd));
        expect_error(cri_user_resolve(fd, &request, "", &of_host, &user), ND_INVALID, "etc/passwd");
        assert_int_equal(unlink(path), 0);
        assert_int_equal(mkfifo(path, 0600), 0);
        expect_error(cri_user_resolve(fd, &request, "", &of_host, &user), ND_INVALID, "not a regular file");
}

static void a_rootless_node_has_the_ids_of_its_maps_only([[maybe_unused]] void **state) {
        static struct nd_userns_map uids[] = {{.outside = 1000, .count = 1}, {.inside = 1, .outside = 100000, .count = 65536}};
        static struct nd_userns_map gids[] = {{.outside = 1000, .count = 1}, {.inside = 1, .outside = 100000, .count = 60000}};
        static const struct nd_own_userns node = {.uids = {.items = uids, .count = 2}, .gids = {.items = gids, .count = 2}};
        static const struct cri_user_scope scope = {.node = &node};
        struct cri_container_request request = request_of();
        int64_t more[] = {60001};
        static const struct {
                const char *user, *refusal;
        } cases[] = {
                {"65536:60000", nullptr},
                {"65537:0", "user 65537 does not exist on this rootless node, which has IDs 0 to 65536: use one of these"},
                {"0:60001", "group 60001 does not exist on this rootless node, which has IDs 0 to 60000: use one of these"},
        };

        for (size_t i = 0; i < nd_count_of(cases); i++) {
                nd_cleanup(cri_container_user_done) struct cri_container_user user = {};
                struct nd_error *error =
                        cri_user_resolve_in(&(struct cri_user_files) {}, &request, cases[i].user, &scope, &user);

                if (cases[i].refusal)
                        expect_error(error, ND_INVALID, cases[i].refusal);
                else
                        expect_ok(error);
        }
        request.groups.items = more;
        request.groups.count = 1;
        expect_error(cri_user_resolve_in(&(struct cri_user_files) {}, &request, "0", &scope, &(struct cri_container_user) {}),
                     ND_INVALID, "group 60001 does not exist on this rootless node");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_default_user_is_root),
                cmocka_unit_test(the_images_user_may_be_a_name_or_a_number_with_or_without_a_group),
                cmocka_unit_test(the_requests_user_replaces_the_images_user_and_group),
                cmocka_unit_test(merged_groups_are_the_images_and_the_requests_once_each),
                cmocka_unit_test(a_group_without_a_user_is_an_error),
                cmocka_unit_test(unknown_names_are_refused),
                cmocka_unit_test(numbers_out_of_range_are_refused),
                cmocka_unit_test(an_id_outside_the_user_namespace_is_refused),
                cmocka_unit_test(without_the_files_numbers_still_work),
                cmocka_unit_test(links_in_the_image_stay_in_the_image),
                cmocka_unit_test(huge_and_strange_files_are_errors_and_not_waits),
                cmocka_unit_test(a_rootless_node_has_the_ids_of_its_maps_only),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
