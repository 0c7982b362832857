/* SPDX-License-Identifier: Apache-2.0 */
#include "net/protobuf.h"

#include <nodens.pb-c.h>
#include <unit/expect.h>

static void invalid_strings_are_replaced_in_the_encoding_and_kept_in_the_message([[maybe_unused]] void **state) {
        char dirty[] = "a\xff"
                       "b";
        char *ids[] = {dirty};
        Nodens__V1__PullProgress progress = NODENS__V1__PULL_PROGRESS__INIT;
        ProtobufCMessage *read = nullptr;
        nd_autotext struct nd_text bytes = {};

        progress.n_image_ids = 1;
        progress.image_ids = ids;
        nd_protobuf_pack(&progress.base, &bytes);
        expect_ok(nd_protobuf_unpack(&nodens__v1__pull_progress__descriptor, nd_text_get(&bytes), bytes.length, &read));
        assert_string_equal(((Nodens__V1__PullProgress *) read)->image_ids[0], "a\xef\xbf\xbd"
                                                                               "b");
        assert_ptr_equal(progress.image_ids[0], dirty);
        nd_protobuf_free(read);
}

static void a_message_that_would_take_too_much_memory_is_refused([[maybe_unused]] void **state) {
        /* Repeated empty messages: two bytes on the wire, some fifty in memory. */
        size_t length = 8 << 20;
        nd_autofree char *bytes = nd_malloc(length);
        ProtobufCMessage *read = nullptr;

        for (size_t i = 0; i < length; i += 2) {
                bytes[i] = 1 << 3 | 2;
                bytes[i + 1] = 0;
        }
        expect_error(nd_protobuf_unpack(&nodens__v1__pull_progress__descriptor, bytes, length, &read), ND_INVALID,
                     "PullProgress");
}

static void decoding_a_string_that_is_not_utf8_fails([[maybe_unused]] void **state) {
        ProtobufCMessage *read = nullptr;

        expect_error(nd_protobuf_unpack(&nodens__v1__pull_request__descriptor, "\x0a\x02\xff\xfe", 4, &read), ND_INVALID,
                     "UTF-8");
}

static void a_field_without_a_number_is_refused([[maybe_unused]] void **state) {
        ProtobufCMessage *read = nullptr;

        expect_error(nd_protobuf_unpack(&nodens__v1__pull_progress__descriptor, "\x80\x00\x09", 3, &read), ND_INVALID,
                     "without a number");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(invalid_strings_are_replaced_in_the_encoding_and_kept_in_the_message),
                cmocka_unit_test(a_message_that_would_take_too_much_memory_is_refused),
                cmocka_unit_test(decoding_a_string_that_is_not_utf8_fails),
                cmocka_unit_test(a_field_without_a_number_is_refused),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
