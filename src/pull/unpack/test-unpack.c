/* SPDX-License-Identifier: Apache-2.0 */
/* Unpacks layers from bytes to a tree: tar, decompress, tree, unpack and finalize together, on a
 * real directory. */
#include "pull/unpack/unpack.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <zlib.h>

#include <unit/expect.h>
#include <unit/scratch.h>

#include "pull/archive/decompress.h"
#include "pull/unpack/finalize.h"
#include "sys/own-userns.h"

/* ---- a minimal tar writer ---- */

static void add(struct nd_text *tar, char type, const char *path, const char *link, const char *data, mode_t mode) {
        char header[512] = {};
        unsigned sum = 0;
        size_t length = strlen(data);

        memcpy(header, path, strlen(path));
        (void) snprintf(header + 100, 8, "%07o", mode & 07777);
        (void) snprintf(header + 108, 8, "%07o", geteuid() & 07777777);
        (void) snprintf(header + 116, 8, "%07o", getegid() & 07777777);
        (void) snprintf(header + 124, 12, "%011o", (unsigned) length);
        (void) snprintf(header + 136, 12, "%011o", 1700000000u);
        memset(header + 148, ' ', 8);
        header[156] = type;
        memcpy(header + 157, link, strlen(link));
        memcpy(header + 257, "ustar\00000", 8);
        for (size_t i = 0; i < sizeof header; i++)
                sum += (unsigned char) header[i];
        (void) snprintf(header + 148, 8, "%06o", sum & 0777777);
        nd_text_append(tar, header, sizeof header);
        nd_text_append(tar, data, length);
        for (size_t i = length; i % 512 != 0; i++)
                nd_text_append(tar, "", 1);
}

static void file(struct nd_text *tar, const char *path, const char *data) {
        add(tar, '0', path, "", data, 0644);
}

/* ---- unpacking in one call ---- */

struct layer {
        char *path;
        int fd;
        struct nd_text marks;
        struct pull_unpack_result result;
};

static void layer_done(struct layer *layer) {
        free(layer->path);
        nd_close_fd(&layer->fd);
        nd_text_done(&layer->marks);
}

static struct nd_error *feed(void *userdata, const char *bytes, size_t length) {
        return pull_tar_feed(userdata, bytes, length);
}

/* The node whose missing owners become root; nullptr = all owners exist. */
static const struct nd_own_userns *squash;

static struct nd_error *unpack(const struct nd_text *tar, const char *directory, const char *name, bool lowest,
                               struct layer *ret) {
        nd_cleanup(pull_unpack_done) struct pull_unpack *u = nullptr;
        nd_cleanup(pull_tar_done) struct pull_tar *reader = nullptr;
        nd_cleanup(pull_decompressor_done) struct pull_decompressor *decompressor = nullptr;
        struct pull_tar_sink sink;

        scratch_mkdir(directory, name);
        ret->path = nd_format("%s/%s", directory, name);
        ret->fd = open(ret->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        ret->marks = ND_TEXT(1 << 20);
        u = pull_unpack_new(ret->fd, lowest);
        pull_unpack_squash_owners(u, squash);
        sink = pull_unpack_sink(u);
        reader = pull_tar_new(&sink);
        decompressor = pull_decompressor_new(ND_COMPRESSION_DETECT, 1 << 20, feed, reader);
        for (size_t at = 0; at < tar->length; at += 100) /* pieces that are not aligned to blocks */
                nd_try(pull_decompressor_feed(decompressor, tar->bytes + at, tar->length - at < 100 ? tar->length - at : 100));
        nd_try(pull_decompressor_finish(decompressor));
        nd_try(pull_tar_finish(reader));
        return pull_unpack_finish(u, &ret->marks, &ret->result);
}

static struct stat lookup(const struct layer *layer, const char *name) {
        struct stat st = {};

        if (fstatat(layer->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                st.st_mode = 0;
        return st;
}

#define LAYER nd_cleanup(layer_done) struct layer

static void entries_become_files([[maybe_unused]] void **state) {
        scratch_directory path = scratch_make();
        nd_autotext struct nd_text tar = ND_TEXT(1 << 20);
        LAYER layer = {.fd = -EBADF};
        struct stat st;

        add(&tar, '5', "d/", "", "", 01777);
        file(&tar, "d/f", "contents");
        add(&tar, '1', "d/hard", "d/f", "", 0644);
        add(&tar, '2', "soft", "/d/f", "", 0777);
        add(&tar, '6', "fifo", "", "", 0600);
        add(&tar, '0', "setuid", "", "x", 04755);
        expect_ok(unpack(&tar, path, "l", true, &layer));
        st = lookup(&layer, "d");
        assert_int_equal(st.st_mode, S_IFDIR | 01777);
        assert_int_equal(st.st_mtime, 1700000000);
        assert_int_equal(lookup(&layer, "d/f").st_nlink, 2);
        assert_true(S_ISLNK(lookup(&layer, "soft").st_mode) && S_ISFIFO(lookup(&layer, "fifo").st_mode));
        assert_int_equal(lookup(&layer, "setuid").st_mode, S_IFREG | 04755);
        assert_int_equal(layer.result.inodes, 6);
        assert_int_equal(layer.marks.length, 0);
        expect_text(scratch_read(layer.path, "d/f"), "contents");
}

static void nothing_leaves_the_tree([[maybe_unused]] void **state) {
        scratch_directory path = scratch_make();
        nd_autotext struct nd_text tar = ND_TEXT(1 << 20);
        LAYER layer = {.fd = -EBADF};

        scratch_mkdir(path, "outside");
        file(&tar, "../../../climbed", "x");
        add(&tar, '2', "out", "../outside", "", 0777);
        file(&tar, "out/file", "x");
        add(&tar, '2', "abs", path, "", 0777);
        file(&tar, "abs/file", "x");
        expect_ok(unpack(&tar, path, "l", true, &layer));
        assert_true(S_ISREG(lookup(&layer, "climbed").st_mode));
        assert_true(S_ISREG(lookup(&layer, "outside/file").st_mode));
        assert_int_equal(scratch_entries(path, "outside"), 0);
        assert_int_equal(scratch_entries(path, "."), 2);
}

static void whiteouts_are_converted_for_overlayfs([[maybe_unused]] void **state) {
        scratch_directory path = scratch_make();
        nd_autotext struct nd_text tar = ND_TEXT(1 << 20);
        LAYER layer = {.fd = -EBADF};
        char value;

        file(&tar, "d/.wh.gone", "");
        file(&tar, "o/.wh..wh..opq", "");
        file(&tar, ".wh.replaced", "");
        add(&tar, '5', "replaced", "", "", 0755);
        add(&tar, '5', "own", "", "", 0755);
        file(&tar, ".wh.own", "");
        expect_ok(unpack(&tar, path, "l", false, &layer));
        assert_true(S_ISCHR(lookup(&layer, "d/gone").st_mode) && lookup(&layer, "d/gone").st_rdev == 0);
        assert_true(S_ISDIR(lookup(&layer, "replaced").st_mode));
        for (size_t i = 0; i < 3; i++) {
                nd_autofree char *dir = nd_format("%s/%s", layer.path, ((const char *[]) {"o", "replaced", "own"})[i]);

                assert_int_equal(getxattr(dir, "user.overlay.opaque", &value, 1), 1);
        }
        assert_int_equal(layer.marks.length, sizeof "dd" + sizeof "wd/gone" + sizeof "do" + sizeof "wreplaced");
}

static void the_lowest_layer_has_no_whiteouts([[maybe_unused]] void **state) {
        scratch_directory path = scratch_make();
        nd_autotext struct nd_text tar = ND_TEXT(1 << 20);
        LAYER layer = {.fd = -EBADF};

        file(&tar, "d/.wh.gone", "");
        file(&tar, "d/.wh..wh..opq", "");
        expect_ok(unpack(&tar, path, "l", true, &layer));
        assert_int_equal(lookup(&layer, "d/gone").st_mode, 0);
        assert_int_equal(scratch_entries(layer.path, "d"), 0);
}

struct lower {
        const struct layer *layers[4];
};

static int open_lower(void *userdata, size_t index) {
        const struct lower *lower = userdata;

        return fcntl(lower->layers[index]->fd, F_DUPFD_CLOEXEC, 3);
}

static void a_layer_is_finalized_on_lower_layers([[maybe_unused]] void **state) {
        scratch_directory path = scratch_make();
        nd_autotext struct nd_text low = ND_TEXT(1 << 20), middle = ND_TEXT(1 << 20), high = ND_TEXT(1 << 20);
        LAYER a = {.fd = -EBADF}, b = {.fd = -EBADF}, c = {.fd = -EBADF};
        struct lower lower;

        add(&low, '5', "kept", "", "", 0710);
        file(&low, "kept/seen", "x");
        add(&low, '5', "gone", "", "", 0700);
        expect_ok(unpack(&low, path, "a", true, &a));
        file(&middle, ".wh.gone", "");
        expect_ok(unpack(&middle, path, "b", false, &b));
        file(&high, "kept/new", "x");
        file(&high, "gone/new", "x");
        file(&high, "kept/.wh.seen", "");
        file(&high, "kept/.wh.unseen", "");
        file(&high, "gone/.wh.thing", "");
        expect_ok(unpack(&high, path, "c", false, &c));

        lower = (struct lower) {{&a}};
        expect_ok(pull_finalize(b.fd, b.marks.bytes, b.marks.length, &(struct pull_finalize_lower) {1, open_lower, &lower}));
        lower = (struct lower) {{&b, &a}};
        expect_ok(pull_finalize(c.fd, c.marks.bytes, c.marks.length, &(struct pull_finalize_lower) {2, open_lower, &lower}));
        assert_true(S_ISCHR(lookup(&b, "gone").st_mode));
        assert_int_equal(lookup(&c, "kept").st_mode, S_IFDIR | 0710);
        assert_int_equal(lookup(&c, "kept").st_mtime, 1700000000);
        /* the lower one is whited out */
        assert_int_equal(lookup(&c, "gone").st_mode, S_IFDIR | 0755);
        assert_true(S_ISCHR(lookup(&c, "kept/seen").st_mode));
        assert_int_equal(lookup(&c, "kept/unseen").st_mode, 0);
        assert_int_equal(lookup(&c, "gone/thing").st_mode, 0);
}

static void invalid_marks_are_rejected([[maybe_unused]] void **state) {
        scratch_directory path = scratch_make();
        nd_autoclose int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        const struct pull_finalize_lower none = {};

        expect_error(pull_finalize(fd, "dno end", 7, &none), ND_INVALID, "marks");
        expect_error(pull_finalize(fd, "\0", 1, &none), ND_INVALID, "marks");
        expect_ok(pull_finalize(fd, "d../../etc\0w../../etc/passwd\0", 29, &none));
}

static void errors_name_the_reason([[maybe_unused]] void **state) {
        static const struct {
                char type;
                const char *path, *link, *words;
        } cases[] = {
                {'1', "l", "nothing", "does not contain"},
                {'1', "l", "/", "hard link"},
                {'3', "c", "", "would be a whiteout"},
                {'2', "s", "", "target"},
                {'0', "d/.wh.", "", "whiteout"},
                {'0', ".wh.x/y", "", "whiteout"},
                {'S', "s", "", "sparse"},
                {'Z', "z", "", "unknown type"},
        };

        for (size_t i = 0; i < nd_count_of(cases); i++) {
                scratch_directory path = scratch_make();
                nd_autotext struct nd_text tar = ND_TEXT(1 << 20);
                LAYER layer = {.fd = -EBADF};
                nd_autoerror struct nd_error *error = nullptr;

                add(&tar, cases[i].type, cases[i].path, cases[i].link, "", 0644);
                error = unpack(&tar, path, "l", false, &layer);
                assert_non_null(error);
                expect_contains(nd_error_text(error), cases[i].words);
        }
}

static void gzip_may_have_members_and_a_ceiling_holds([[maybe_unused]] void **state) {
        static char packed[1 << 16];
        static char plain[4096];
        nd_cleanup(pull_tar_done) struct pull_tar *reader = pull_tar_new(&(struct pull_tar_sink) {});
        size_t length = 0;

        for (int member = 0; member < 2; member++) {
                z_stream stream = {.next_in = (Bytef *) plain,
                                   .avail_in = sizeof plain,
                                   .next_out = (Bytef *) packed + length,
                                   .avail_out = (uInt) (sizeof packed - length)};

                assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, 31, 8, 0), Z_OK);
                assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
                length += stream.total_out;
                (void) deflateEnd(&stream);
        }
        for (uint64_t ceiling = 8191; ceiling <= 8192; ceiling++) {
                nd_cleanup(pull_decompressor_done) struct pull_decompressor *decompressor =
                        pull_decompressor_new(ND_COMPRESSION_GZIP, ceiling, feed, reader);
                nd_autoerror struct nd_error *error = pull_decompressor_feed(decompressor, packed, length);

                assert_int_equal(nd_error_code(error), ceiling == 8191 ? ND_EXHAUSTED : ND_OK);
                if (!error)
                        expect_ok(pull_decompressor_finish(decompressor));
        }
}

/* The archive's files belong to the user of the test, which this node has, or does not. */
static void owners_that_a_small_node_does_not_have_become_root([[maybe_unused]] void **state) {
        struct nd_userns_map own = {geteuid(), geteuid(), 1}, other = {geteuid() + 1, geteuid() + 1, 1};
        struct nd_own_userns nodes[] = {{.uids = {.items = &own, .count = 1}, .gids = {.items = &own, .count = 1}},
                                        {.uids = {.items = &other, .count = 1}, .gids = {.items = &other, .count = 1}}};

        if (geteuid() != 0)
                skip_because("changing owners needs privilege");
        for (size_t i = 0; i < nd_count_of(nodes); i++) {
                nd_autotext struct nd_text tar = ND_TEXT(1 << 20);
                nd_cleanup(layer_done) struct layer layer = {};
                scratch_directory root = scratch_make();
                struct nd_error *error;

                add(&tar, '0', "setuid", "", "x", 06755);
                add(&tar, '5', "directory", "", "", 02755);
                squash = &nodes[i];
                error = unpack(&tar, root, "fs", true, &layer);
                squash = nullptr;
                expect_ok(error);
                assert_int_equal(lookup(&layer, "setuid").st_uid, 0);
                /* set-user-ID of a user that does not exist must not be that of root */
                assert_int_equal(lookup(&layer, "setuid").st_mode & 07777, i == 0 ? 06755 : 0755);
                assert_int_equal(lookup(&layer, "directory").st_mode & 07777, i == 0 ? 02755 : 0755);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(entries_become_files),
                cmocka_unit_test(nothing_leaves_the_tree),
                cmocka_unit_test(whiteouts_are_converted_for_overlayfs),
                cmocka_unit_test(the_lowest_layer_has_no_whiteouts),
                cmocka_unit_test(owners_that_a_small_node_does_not_have_become_root),
                cmocka_unit_test(a_layer_is_finalized_on_lower_layers),
                cmocka_unit_test(invalid_marks_are_rejected),
                cmocka_unit_test(errors_name_the_reason),
                cmocka_unit_test(gzip_may_have_members_and_a_ceiling_holds),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
