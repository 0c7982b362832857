/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <string.h>

#include "bridge/fuse-request.h"

/* A request being written. */
struct message {
        alignas(8) unsigned char bytes[512];
        size_t length;
};

static struct message begin(uint32_t opcode) {
        struct message m = {.length = sizeof(struct fuse_in_header)};
        struct fuse_in_header head = {.opcode = opcode, .unique = 2, .nodeid = 1};

        memcpy(m.bytes, &head, sizeof head);
        return m;
}

static void add(struct message *m, const void *bytes, size_t length) {
        memcpy(m->bytes + m->length, bytes, length);
        m->length += length;
}

static int decode(struct message *m, struct bridge_request *ret) {
        struct fuse_in_header *head = (void *) m->bytes;

        head->len = (uint32_t) m->length;
        return bridge_request_decode(m->bytes, m->length, true, ret);
}

static int decode_name(const char *name) {
        struct message m = begin(FUSE_LOOKUP);
        struct bridge_request request;

        add(&m, name, strlen(name) + 1);
        return decode(&m, &request);
}

static void a_name_is_one_path_component([[maybe_unused]] void **state) {
        char longest[257];

        assert_int_equal(decode_name("file"), 0);
        assert_int_equal(decode_name("..."), 0);
        assert_int_equal(decode_name("."), -EINVAL);
        assert_int_equal(decode_name(".."), -EINVAL);
        assert_int_equal(decode_name(""), -EINVAL);
        assert_int_equal(decode_name("a/b"), -EINVAL);
        assert_int_equal(decode_name("/"), -EINVAL);
        memset(longest, 'n', 256);
        longest[256] = '\0';
        assert_int_equal(decode_name(longest), -ENAMETOOLONG);
        assert_int_equal(decode_name(longest + 1), 0);
}

static void a_name_must_be_terminated([[maybe_unused]] void **state) {
        struct message m = begin(FUSE_LOOKUP);
        struct bridge_request request;

        add(&m, "file", 4);
        assert_int_equal(decode(&m, &request), -EIO);
}

static void a_request_must_be_complete([[maybe_unused]] void **state) {
        static const uint32_t opcodes[] = {FUSE_FORGET,  FUSE_GETATTR, FUSE_SETATTR, FUSE_MKNOD,
                                           FUSE_RENAME2, FUSE_OPEN,    FUSE_READ,    FUSE_WRITE,
                                           FUSE_SETLK,   FUSE_INIT,    FUSE_CREATE,  FUSE_COPY_FILE_RANGE};
        struct bridge_request request;

        for (size_t i = 0; i < nd_count_of(opcodes); i++) {
                struct message m = begin(opcodes[i]);

                assert_int_equal(decode(&m, &request), -EIO);
                assert_non_null(request.head);
        }
        assert_int_equal(bridge_request_decode("", 0, true, &request), -EIO);
        assert_null(request.head);
}

static void a_wrong_length_in_the_head_is_refused([[maybe_unused]] void **state) {
        struct message m = begin(FUSE_STATFS);
        struct fuse_in_header *head = (void *) m.bytes;
        struct bridge_request request;

        head->len = (uint32_t) m.length + 1;
        assert_int_equal(bridge_request_decode(m.bytes, m.length, true, &request), -EIO);
}

static void unknown_opcodes_are_not_implemented([[maybe_unused]] void **state) {
        static const uint32_t opcodes[] = {0, 7, 19, FUSE_IOCTL, FUSE_POLL, FUSE_BMAP, FUSE_STATX, 53, 4096, UINT32_MAX};
        struct bridge_request request;

        for (size_t i = 0; i < nd_count_of(opcodes); i++) {
                struct message m = begin(opcodes[i]);

                assert_int_equal(decode(&m, &request), -ENOSYS);
        }
}

static void data_is_bounded_by_the_request([[maybe_unused]] void **state) {
        struct message m = begin(FUSE_WRITE), more = begin(FUSE_BATCH_FORGET);
        struct fuse_write_in write = {.size = 5};
        struct fuse_batch_forget_in forget = {.count = UINT32_MAX};
        struct bridge_request request;

        add(&m, &write, sizeof write);
        add(&m, "hello", 5);
        assert_int_equal(decode(&m, &request), 0);
        assert_int_equal(request.data_length, 5);
        assert_memory_equal(request.data, "hello", 5);
        m.length--;
        assert_int_equal(decode(&m, &request), -EIO);
        add(&more, &forget, sizeof forget);
        assert_int_equal(decode(&more, &request), -EIO);
}

static void both_names_of_a_rename_are_checked([[maybe_unused]] void **state) {
        struct message m = begin(FUSE_RENAME), bad = begin(FUSE_RENAME);
        struct fuse_rename_in to = {.newdir = 1};
        struct bridge_request request;

        add(&m, &to, sizeof to);
        add(&m, "a\0b", 4);
        assert_int_equal(decode(&m, &request), 0);
        assert_string_equal(request.name, "a");
        assert_string_equal(request.second, "b");
        add(&bad, &to, sizeof to);
        add(&bad, "a\0..", 5);
        assert_int_equal(decode(&bad, &request), -EINVAL);
}

static void the_target_of_a_link_may_be_any_text([[maybe_unused]] void **state) {
        struct message m = begin(FUSE_SYMLINK);
        struct bridge_request request;

        add(&m, "name\0../../etc", 15);
        assert_int_equal(decode(&m, &request), 0);
        assert_string_equal(request.second, "../../etc");
}

static void a_supplementary_group_is_read_from_the_extension([[maybe_unused]] void **state) {
        struct message m = begin(FUSE_MKDIR);
        struct fuse_mkdir_in argument = {.mode = 0755};
        const struct {
                struct fuse_ext_header head;
                uint32_t count, group;
        } extension = {.head = {.size = 16, .type = FUSE_EXT_GROUPS}, .count = 1, .group = 7};
        struct fuse_in_header *head = (void *) m.bytes;
        struct bridge_request request;

        add(&m, &argument, sizeof argument);
        add(&m, "abc", 4); /* so that the extension is not aligned */
        add(&m, &extension, sizeof extension);
        head->total_extlen = 2;
        assert_int_equal(decode(&m, &request), 0);
        assert_string_equal(request.name, "abc");
        assert_int_equal(request.group, 7);
        head->total_extlen = 200;
        assert_int_equal(decode(&m, &request), -EIO);
}

static void an_old_setxattr_is_shorter([[maybe_unused]] void **state) {
        struct message m = begin(FUSE_SETXATTR);
        const uint32_t old[] = {3, 0};
        struct bridge_request request;
        struct fuse_in_header *head = (void *) m.bytes;

        add(&m, old, sizeof old);
        add(&m, "user.a\0val", 10);
        head->len = (uint32_t) m.length;
        assert_int_equal(bridge_request_decode(m.bytes, m.length, false, &request), 0);
        assert_string_equal(request.name, "user.a");
        assert_memory_equal(request.data, "val", 3);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_name_is_one_path_component),
                cmocka_unit_test(a_name_must_be_terminated),
                cmocka_unit_test(a_request_must_be_complete),
                cmocka_unit_test(a_wrong_length_in_the_head_is_refused),
                cmocka_unit_test(unknown_opcodes_are_not_implemented),
                cmocka_unit_test(data_is_bounded_by_the_request),
                cmocka_unit_test(both_names_of_a_rename_are_checked),
                cmocka_unit_test(the_target_of_a_link_may_be_any_text),
                cmocka_unit_test(a_supplementary_group_is_read_from_the_extension),
                cmocka_unit_test(an_old_setxattr_is_shorter),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
