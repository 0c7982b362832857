/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/tree-copy.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unit/expect.h>
#include <unit/resources.h>
#include <unit/scratch.h>
#include <unit/torture.h>

#include "base/text.h"

struct place {
        char *root;
        int from, to;
};

static void place_make(struct place *ret) {
        nd_autofree char *from = nullptr, *to = nullptr;

        ret->root = scratch_make();
        scratch_mkdir(ret->root, "from");
        scratch_mkdir(ret->root, "to");
        from = nd_format("%s/from", ret->root);
        to = nd_format("%s/to", ret->root);
        ret->from = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        ret->to = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(ret->from >= 0 && ret->to >= 0);
}

static void place_done(struct place *place) {
        nd_close_fd(&place->from);
        nd_close_fd(&place->to);
        scratch_remove(&place->root);
}

static struct stat look(int dir_fd, const char *name) {
        struct stat st = {};

        assert_int_equal(fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
        return st;
}

static void a_copy_has_contents_modes_times_links_and_attributes([[maybe_unused]] void **state) {
        const struct timespec times[2] = {{.tv_sec = 1000, .tv_nsec = 7}, {.tv_sec = 2000, .tv_nsec = 9}};
        nd_cleanup(place_done) struct place place = {};
        size_t descriptors = resources_descriptors();
        nd_autoclose int fd = -EBADF;
        char target[16] = {};

        place_make(&place);
        scratch_mkdir(place.root, "from/a/b");
        scratch_text(place.root, "from/a/file", "contents");
        scratch_text(place.root, "from/a/b/empty", "");
        assert_int_equal(symlinkat("../../outside", place.from, "a/link"), 0);
        assert_int_equal(mkfifoat(place.from, "pipe", 0640), 0);
        assert_int_equal(fchmodat(place.from, "a/file", 04711, 0), 0);
        assert_int_equal(fchmodat(place.from, "a", 02750, 0), 0);
        assert_int_equal(utimensat(place.from, "a/file", times, 0), 0);
        assert_int_equal(utimensat(place.from, "a", times, 0), 0);
        fd = openat(place.from, "a/file", O_RDONLY | O_CLOEXEC);
        assert_int_equal(fsetxattr(fd, "user.test", "value", 5, 0), 0);
        nd_close_fd(&fd);

        expect_ok(nd_tree_copy(place.from, place.to));
        expect_text(scratch_read(place.root, "to/a/file"), "contents");
        assert_int_equal(look(place.to, "a/file").st_mode, S_IFREG | 04711);
        assert_int_equal(look(place.to, "a/file").st_mtim.tv_nsec, 9);
        assert_int_equal(look(place.to, "a").st_mode, S_IFDIR | 02750);
        assert_int_equal(look(place.to, "a").st_mtim.tv_sec, 2000);
        assert_int_equal(look(place.to, "a/b/empty").st_size, 0);
        assert_int_equal(look(place.to, "pipe").st_mode, S_IFIFO | 0640);
        assert_true(readlinkat(place.to, "a/link", target, sizeof target) == 13 && nd_streq(target, "../../outside"));
        fd = openat(place.to, "a/file", O_RDONLY | O_CLOEXEC);
        assert_int_equal(fgetxattr(fd, "user.test", target, sizeof target), 5);
        nd_close_fd(&fd);
        place_done(&place);
        place = (struct place) {.from = -EBADF, .to = -EBADF};
        assert_int_equal(resources_descriptors(), descriptors);
}

static void owners_come_over([[maybe_unused]] void **state) {
        nd_cleanup(place_done) struct place place = {.from = -EBADF, .to = -EBADF};

        if (geteuid() != 0)
                skip_because("files are given away by root only");
        place_make(&place);
        scratch_text(place.root, "from/file", "x");
        assert_int_equal(symlinkat("file", place.from, "link"), 0);
        assert_int_equal(fchownat(place.from, "file", 1000, 1001, 0), 0);
        assert_int_equal(fchownat(place.from, "link", 1002, 1003, AT_SYMLINK_NOFOLLOW), 0);
        assert_int_equal(fchmodat(place.from, "file", 06755, 0), 0);
        assert_int_equal(fchown(place.from, 7, 8), 0);
        expect_ok(nd_tree_copy(place.from, place.to));
        assert_int_equal(look(place.to, "file").st_uid, 1000);
        assert_int_equal(look(place.to, "file").st_gid, 1001);
        assert_int_equal(look(place.to, "file").st_mode & 07777, 06755);
        assert_int_equal(look(place.to, "link").st_uid, 1002);
        assert_int_equal(look(place.to, ".").st_uid, 7);
}

static void holes_stay_holes([[maybe_unused]] void **state) {
        nd_cleanup(place_done) struct place place = {};
        nd_autoclose int fd = -EBADF;
        char byte = 0;

        place_make(&place);
        fd = openat(place.from, "sparse", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        assert_true(pwrite(fd, "x", 1, 0) == 1 && pwrite(fd, "y", 1, 1 << 30) == 1 && ftruncate(fd, 4096LL << 20) == 0);
        nd_close_fd(&fd);
        expect_ok(nd_tree_copy(place.from, place.to));
        assert_true(look(place.to, "sparse").st_size == 4096LL << 20);
        assert_true(look(place.to, "sparse").st_blocks < 1000);
        fd = openat(place.to, "sparse", O_RDONLY | O_CLOEXEC);
        assert_true(pread(fd, &byte, 1, 1 << 30) == 1 && byte == 'y');
}

static void a_tree_that_is_too_deep_is_refused([[maybe_unused]] void **state) {
        nd_cleanup(place_done) struct place place = {};
        nd_autoclose int fd = -EBADF;

        place_make(&place);
        fd = dup(place.from);
        for (int i = 0; i < ND_COPY_DEPTH + 10; i++) {
                int next;

                assert_int_equal(mkdirat(fd, "d", 0700), 0);
                next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                (void) close(fd);
                fd = next;
        }
        expect_error(nd_tree_copy(place.from, place.to), ND_EXHAUSTED, "deeper than 256 directories");
}

static struct nd_error *torture_copy(void *world) {
        const struct place *place = world;
        nd_autofree char *to = nd_format("%s/to", place->root);
        nd_autoclose int fd = -EBADF;

        fd = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return fd < 0 ? nd_error_new(ND_INTERNAL, errno, "open '%s'", to) : nd_tree_copy(place->from, fd);
}

static void torture_prepare(void *world) {
        const struct place *place = world;
        nd_autofree char *command = nd_format("rm -rf '%s/to' && mkdir '%s/to'", place->root, place->root);

        assert_int_equal(system(command), 0);
}

static void every_failed_call_is_reported([[maybe_unused]] void **state) {
        nd_cleanup(place_done) struct place place = {};

        place_make(&place);
        scratch_mkdir(place.root, "from/a");
        scratch_text(place.root, "from/a/file", "contents");
        assert_int_equal(symlinkat("file", place.from, "a/link"), 0);
        torture(&(struct torture) {.name = "copy a tree",
                                   .noun = "",
                                   .calls = 1u << FAULT_OPENAT | 1u << FAULT_MKDIRAT | 1u << FAULT_PWRITE |
                                            1u << FAULT_FTRUNCATE | 1u << FAULT_FCHMOD | 1u << FAULT_FCHOWN |
                                            1u << FAULT_FCHOWNAT | 1u << FAULT_UTIMENSAT | 1u << FAULT_SYMLINKAT,
                                   .prepare = torture_prepare,
                                   .run = torture_copy},
                &place);
}

/* ---- shifted ---- */

enum { FIRST = 1 << 20 };

static const struct nd_tree_shift shift = {.uid = FIRST, .gid = FIRST + 65536, .count = 65536};

static void needs_privilege(void) {
        if (geteuid() != 0)
                skip_because("changing owners needs privilege");
}

static void give(int dir_fd, const char *name, uid_t uid, gid_t gid, mode_t mode) {
        assert_int_equal(fchownat(dir_fd, name, uid, gid, AT_SYMLINK_NOFOLLOW), 0);
        if (mode)
                assert_int_equal(fchmodat(dir_fd, name, mode, 0), 0);
}

static void a_shifted_copy_has_the_namespaces_owners([[maybe_unused]] void **state) {
        nd_cleanup(place_done) struct place place = {};

        needs_privilege();
        place_make(&place);
        scratch_mkdir(place.root, "from/home");
        scratch_text(place.root, "from/home/sudo", "#!");
        scratch_text(place.root, "from/beyond", "#!");
        assert_int_equal(symlinkat("sudo", place.from, "home/link"), 0);
        give(place.from, "home", 1000, 65535, 02775);
        give(place.from, "home/sudo", 0, 12, 06755);
        give(place.from, "home/link", 7, 8, 0);
        give(place.from, "beyond", 65536, 0, 06755);
        expect_ok(nd_tree_copy_shifted(place.from, place.to, &shift));
        assert_int_equal(look(place.to, ".").st_uid, FIRST);
        assert_int_equal(look(place.to, "home").st_uid, FIRST + 1000);
        assert_int_equal(look(place.to, "home").st_gid, FIRST + 65536 + 65535);
        assert_int_equal(look(place.to, "home").st_mode & 07777, 02775);
        assert_int_equal(look(place.to, "home/sudo").st_uid, FIRST);
        assert_int_equal(look(place.to, "home/sudo").st_mode & 07777, 06755);
        assert_int_equal(look(place.to, "home/link").st_gid, FIRST + 65536 + 8);
        /* it would be root of the node, and set-user-ID */
        assert_int_equal(look(place.to, "beyond").st_uid, 0);
        assert_int_equal(look(place.to, "beyond").st_mode & 07777, 0755);
}

static void a_shifted_copy_keeps_hard_links_and_whiteouts([[maybe_unused]] void **state) {
        nd_cleanup(place_done) struct place place = {};

        needs_privilege();
        place_make(&place);
        scratch_mkdir(place.root, "from/a/b");
        scratch_text(place.root, "from/a/b/first", "contents");
        assert_int_equal(linkat(place.from, "a/b/first", place.from, "second", 0), 0);
        assert_int_equal(linkat(place.from, "a/b/first", place.from, "a/third", 0), 0);
        assert_int_equal(mknodat(place.from, "a/removed", S_IFCHR, makedev(0, 0)), 0);
        assert_int_equal(mknodat(place.from, "a/device", S_IFCHR, makedev(1, 3)), 0);
        expect_ok(nd_tree_copy_shifted(place.from, place.to, &shift));
        assert_int_equal(look(place.to, "second").st_nlink, 3);
        assert_int_equal(look(place.to, "second").st_ino, look(place.to, "a/b/first").st_ino);
        assert_int_equal(look(place.to, "a/third").st_ino, look(place.to, "a/b/first").st_ino);
        assert_int_equal(look(place.to, "second").st_uid, FIRST);
        assert_true(S_ISCHR(look(place.to, "a/removed").st_mode));
        assert_int_equal(faccessat(place.to, "a/device", F_OK, AT_SYMLINK_NOFOLLOW), -1);
}

static void file_capabilities_get_the_root_of_the_namespace([[maybe_unused]] void **state) {
        static const unsigned char version2[20] = {1, 0, 0, 2, 0, 4};
        nd_cleanup(place_done) struct place place = {};
        unsigned char found[24];
        nd_autofree char *path = nullptr, *copy = nullptr;

        needs_privilege();
        place_make(&place);
        scratch_text(place.root, "from/ping", "");
        path = nd_format("%s/from/ping", place.root);
        copy = nd_format("%s/to/ping", place.root);
        assert_int_equal(setxattr(path, "security.capability", version2, sizeof version2, 0), 0);
        expect_ok(nd_tree_copy_shifted(place.from, place.to, &shift));
        assert_int_equal(getxattr(copy, "security.capability", found, sizeof found), 24);
        assert_int_equal(found[3], 3);
        assert_int_equal(found[20] | found[21] << 8 | found[22] << 16 | found[23] << 24, FIRST);
        assert_memory_equal(found + 4, version2 + 4, 16);
}

static void entries_of_acls_are_shifted([[maybe_unused]] void **state) {
        /* user::rw-, user:1000:r--, group::r--, group:70000:r--, mask::r--, other::--- */
        static const unsigned char acl[] = {2,  0, 0, 0, 1,   0,   6,   0,   255, 255, 255, 255, 2,   0,   4,   0,  232, 3,
                                            0,  0, 4, 0, 4,   0,   255, 255, 255, 255, 8,   0,   4,   0,   112, 17, 1,   0,
                                            16, 0, 4, 0, 255, 255, 255, 255, 32,  0,   0,   0,   255, 255, 255, 255};
        nd_cleanup(place_done) struct place place = {};
        nd_autofree char *path = nullptr, *copy = nullptr;
        unsigned char found[sizeof acl];

        needs_privilege();
        place_make(&place);
        scratch_text(place.root, "from/file", "");
        path = nd_format("%s/from/file", place.root);
        copy = nd_format("%s/to/file", place.root);
        if (setxattr(path, "system.posix_acl_access", acl, sizeof acl, 0) < 0 && errno == ENOTSUP)
                skip_because("the filesystem has no ACLs");
        expect_ok(nd_tree_copy_shifted(place.from, place.to, &shift));
        assert_int_equal(getxattr(copy, "system.posix_acl_access", found, sizeof found), sizeof acl);
        assert_int_equal(found[16] | found[17] << 8 | found[18] << 16, FIRST + 1000);
        /* 70000 is beyond the range */
        assert_int_equal(found[32] | found[33] << 8 | found[34] << 16, 0);
}

static void owners_of_a_tree_are_shifted_once([[maybe_unused]] void **state) {
        nd_cleanup(place_done) struct place place = {};

        needs_privilege();
        place_make(&place);
        scratch_mkdir(place.root, "from/data");
        scratch_text(place.root, "from/data/file", "");
        assert_int_equal(symlinkat("/etc/passwd", place.from, "data/link"), 0);
        give(place.from, "data", 0, 2000, 02770);
        give(place.from, "data/file", FIRST + 5, 3 * 65536 + FIRST, 0);
        for (int i = 0; i < 2; i++) {
                expect_ok(nd_tree_shift(place.from, &shift));
                assert_int_equal(look(place.from, ".").st_uid, FIRST);
                assert_int_equal(look(place.from, "data").st_gid, FIRST + 65536 + 2000);
                assert_int_equal(look(place.from, "data").st_mode & 07777, 02770);
                assert_int_equal(look(place.from, "data/link").st_uid, FIRST);
                /* shifted already, and of another namespace */
                assert_int_equal(look(place.from, "data/file").st_uid, FIRST + 5);
                assert_int_equal(look(place.from, "data/file").st_gid, 3 * 65536 + FIRST);
        }
        assert_int_equal(look(AT_FDCWD, "/etc/passwd").st_uid, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_shifted_copy_has_the_namespaces_owners),
                cmocka_unit_test(a_shifted_copy_keeps_hard_links_and_whiteouts),
                cmocka_unit_test(file_capabilities_get_the_root_of_the_namespace),
                cmocka_unit_test(entries_of_acls_are_shifted),
                cmocka_unit_test(owners_of_a_tree_are_shifted_once),
                cmocka_unit_test(a_copy_has_contents_modes_times_links_and_attributes),
                cmocka_unit_test(owners_come_over),
                cmocka_unit_test(holes_stay_holes),
                cmocka_unit_test(a_tree_that_is_too_deep_is_refused),
                cmocka_unit_test(every_failed_call_is_reported),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
