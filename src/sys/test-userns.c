/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <sched.h>
#include <stdio.h>
#include <sys/ioctl.h>

#include <linux/nsfs.h>

#include <unit/faults.h>
#include <unit/resources.h>

#include "base/clock.h"
#include "base/text.h"
#include "sys/file.h"
#include "sys/userns.h"
#include "sys/worker.h"

enum { HOST = 1 << 20, COUNT = 65536 };

static const struct nd_userns_map block = {.inside = 0, .outside = HOST, .count = COUNT};

static bool privileged(void) {
        nd_autofree char *text = nullptr;

        expect_ok(nd_file_read_kernel("/proc/self/uid_map", 4096, &text));
        return geteuid() == 0 && strstr(text, "4294967295");
}

#define needs_privilege()                                                                                                     \
        do {                                                                                                                  \
                if (!privileged())                                                                                            \
                        skip_because("mapping a range of IDs needs root in the initial user namespace");                      \
        } while (0)

/* Joins the namespace and returns its maps. */
static struct nd_error *read_maps(void *userns, [[maybe_unused]] int *ret_fd) {
        nd_cleanup(nd_userns_maps_done) struct nd_userns_maps uids = {}, gids = {};

        if (setns(*(int *) userns, CLONE_NEWUSER) < 0)
                return nd_error_new(ND_INTERNAL, errno, "join");
        nd_try(nd_userns_maps_own("uid", &uids));
        nd_try(nd_userns_maps_own("gid", &gids));
        return nd_error_new(ND_ABORTED, 0, "%zu %u %u %u, %zu %u %u %u", uids.count, uids.items[0].inside,
                            uids.items[0].outside, uids.items[0].count, gids.count, gids.items[0].inside,
                            gids.items[0].outside, gids.items[0].count);
}

static void a_namespace_has_the_given_maps_and_lives_as_long_as_its_descriptor([[maybe_unused]] void **state) {
        const struct nd_userns_plan plan = {.uids = &block, .uid_count = 1, .gids = &block, .gid_count = 1};
        nd_autoclose int fd = -EBADF;
        size_t before = resources_descriptors();

        needs_privilege();
        expect_ok(nd_userns_make(&plan, &fd));
        assert_int_equal(resources_descriptors(), before + 1);
        assert_int_equal(resources_children(), 0); /* the child that made it has exited */
        expect_error(nd_worker_run("maps", read_maps, &fd, 60 * ND_SECOND_US, nullptr), ND_ABORTED,
                     "1 0 1048576 65536, 1 0 1048576 65536");
}

static void several_lines_are_written_in_one_piece([[maybe_unused]] void **state) {
        const struct nd_userns_map lines[] = {{0, HOST, 10}, {10, HOST + 100, 10}, {100, HOST + 1000, 1}};
        const struct nd_userns_plan plan = {.uids = lines, .uid_count = 3, .gids = lines, .gid_count = 3};
        nd_autoclose int fd = -EBADF;

        needs_privilege();
        expect_ok(nd_userns_make(&plan, &fd));
        expect_error(nd_worker_run("maps", read_maps, &fd, 60 * ND_SECOND_US, nullptr), ND_ABORTED, "3 0 1048576 10, 3 0");
}

static void charged_to_the_mapped_root_the_namespace_belongs_to_it([[maybe_unused]] void **state) {
        struct nd_userns_plan plan = {.uids = &block, .uid_count = 1, .gids = &block, .gid_count = 1, .charge_to_root = true};
        nd_autoclose int charged = -EBADF, ours = -EBADF;
        uid_t owner = 1;

        needs_privilege();
        expect_ok(nd_userns_make(&plan, &charged));
        assert_int_equal(ioctl(charged, NS_GET_OWNER_UID, &owner), 0);
        assert_int_equal(owner, HOST);
        plan.charge_to_root = false;
        expect_ok(nd_userns_make(&plan, &ours));
        assert_int_equal(ioctl(ours, NS_GET_OWNER_UID, &owner), 0);
        assert_int_equal(owner, 0);
}

static void a_map_that_the_kernel_refuses_is_named_in_the_error([[maybe_unused]] void **state) {
        /* Ends at 2^32. */
        const struct nd_userns_map last = {.outside = UINT32_MAX - COUNT + 1, .count = COUNT};
        const struct nd_userns_plan plan = {.uids = &last, .uid_count = 1, .gids = &block, .gid_count = 1};
        size_t before = resources_descriptors();
        int fd = -EBADF;

        needs_privilege();
        expect_error(nd_userns_make(&plan, &fd), ND_INTERNAL,
                     "write uid_map of a new user namespace ('0 4294901760 65536'): Invalid argument");
        assert_int_equal(fd, -EBADF);
        assert_int_equal(resources_descriptors(), before);
        assert_int_equal(resources_children(), 0);
}

static void a_namespace_without_maps_or_with_too_many_is_not_made([[maybe_unused]] void **state) {
        static struct nd_userns_map many[ND_ID_MAP_LINES];
        const struct nd_userns_plan none = {},
                                    large = {.uids = many, .uid_count = ND_ID_MAP_LINES, .gids = many, .gid_count = 1};
        struct nd_error *error;
        int fd = -EBADF;

        for (uint32_t i = 0; i < ND_ID_MAP_LINES; i++)
                many[i] = (struct nd_userns_map) {.inside = 4000000000 + i, .outside = 4000000000 + i + i, .count = 1};
        expect_error(nd_userns_make(&none, &fd), ND_INVALID, "needs a uid and a gid map");
        error = nd_userns_make(&large, &fd);
        assert_int_equal(resources_children(), 0);
        if (!privileged() && nd_error_code(error) == ND_DENIED) {
                nd_error_free(error);
                skip_because("this kernel lets no ordinary user make a user namespace");
        }
        expect_error(error, ND_INVALID, "uid_map of 340 lines exceeds the kernel's limit");
}

/* An ordinary user may map only itself. */
static struct nd_error *make_unprivileged([[maybe_unused]] void *argument, int *ret_fd) {
        enum { NOBODY = 65534 };
        const struct nd_userns_map self = {.inside = 0, .outside = NOBODY, .count = 1};
        const struct nd_userns_plan plan = {
                .uids = &self, .uid_count = 1, .gids = &self, .gid_count = 1, .deny_setgroups = true};

        if (geteuid() == 0 && (setresgid(NOBODY, NOBODY, NOBODY) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0))
                return nd_error_new(ND_INTERNAL, errno, "become nobody");
        return nd_userns_make(&plan, ret_fd);
}

static void an_ordinary_user_may_map_itself([[maybe_unused]] void **state) {
        nd_autoclose int fd = -EBADF;
        struct nd_error *error;

        needs_privilege();
        error = nd_worker_run("unprivileged", make_unprivileged, nullptr, 60 * ND_SECOND_US, &fd);
        if (nd_error_code(error) == ND_DENIED) {
                nd_error_free(error);
                skip_because("this kernel lets no ordinary user make a user namespace");
        }
        expect_ok(error);
        expect_error(nd_worker_run("maps", read_maps, &fd, 60 * ND_SECOND_US, nullptr), ND_ABORTED,
                     "1 0 65534 1, 1 0 65534 1");
}

static struct nd_error *parse(const char *text, struct nd_userns_maps *ret) {
        return nd_userns_maps_parse(text, ret);
}

static void the_kernel_s_maps_are_read([[maybe_unused]] void **state) {
        nd_cleanup(nd_userns_maps_done) struct nd_userns_maps maps = {}, none = {};

        expect_ok(parse("         0     100000      65536\n     65536  4294967295 1\n", &maps));
        assert_int_equal(maps.count, 2);
        assert_int_equal(maps.items[0].outside, 100000);
        assert_int_equal(maps.items[1].outside, UINT32_MAX);
        assert_false(nd_userns_maps_identity(&maps));
        expect_ok(parse("", &none)); /* a namespace whose map was not written yet */
        assert_int_equal(none.count, 0);
}

static void an_invalid_map_is_refused_with_its_line([[maybe_unused]] void **state) {
        static const char *const wrong[] = {"0 0",       "0 0 0\n",          "a 0 1\n",
                                            "0 0 1 1\n", "0 0 4294967296\n", "0 -1 1\n",
                                            "\n",        "0\n0 1\n",         "00000000000000000001 0 1"};
        nd_autotext struct nd_text long_text = ND_TEXT(1 << 16);
        struct nd_userns_maps maps = {};

        for (size_t i = 0; i < nd_count_of(wrong); i++)
                expect_error(parse(wrong[i], &maps), ND_INVALID, "invalid ID map line 1");
        expect_error(parse("0 0 1\n1 1\n", &maps), ND_INVALID, "invalid ID map line 2");
        for (int i = 0; i <= ND_ID_MAP_LINES; i++)
                nd_text_addf(&long_text, "%d %d 1\n", i, i);
        expect_error(parse(nd_text_get(&long_text), &maps), ND_INVALID, "more than 340 lines");
        assert_null(maps.items);
}

static void the_initial_namespace_is_recognized_by_its_map([[maybe_unused]] void **state) {
        nd_cleanup(nd_userns_maps_done) struct nd_userns_maps own = {}, all = {}, shifted = {}, two = {};

        expect_ok(nd_userns_maps_own("uid", &own));
        assert_true(own.count > 0);
        expect_ok(parse("0 0 4294967295\n", &all));
        assert_true(nd_userns_maps_identity(&all));
        expect_ok(parse("0 1 4294967294\n", &shifted));
        assert_false(nd_userns_maps_identity(&shifted));
        expect_ok(parse("0 0 1\n1 1 4294967294\n", &two));
        assert_false(nd_userns_maps_identity(&two));
        expect_error(nd_userns_maps_own("nonsense", &own), ND_NOT_FOUND, "/proc/self/nonsense_map");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_namespace_has_the_given_maps_and_lives_as_long_as_its_descriptor),
                cmocka_unit_test(several_lines_are_written_in_one_piece),
                cmocka_unit_test(charged_to_the_mapped_root_the_namespace_belongs_to_it),
                cmocka_unit_test(a_map_that_the_kernel_refuses_is_named_in_the_error),
                cmocka_unit_test(a_namespace_without_maps_or_with_too_many_is_not_made),
                cmocka_unit_test(an_ordinary_user_may_map_itself),
                cmocka_unit_test(the_kernel_s_maps_are_read),
                cmocka_unit_test(an_invalid_map_is_refused_with_its_line),
                cmocka_unit_test(the_initial_namespace_is_recognized_by_its_map),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
