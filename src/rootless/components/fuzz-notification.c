/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-notification.c - datagrams of a hostile component, and its output: what gets out is one
 * printable line of bounded length */
#include <unit/fuzz.h>

#include "rootless/components/notification.h"
#include "rootless/components/output.h"

static void require_printable(const char *text, size_t length) {
        fuzz_require(nd_text_utf8_valid(text, length));
        for (size_t i = 0; i < length; i++)
                fuzz_require((unsigned char) text[i] >= ' ' && text[i] != 0x7f);
}

static void take_line(const char *line, size_t length, [[maybe_unused]] void *userdata) {
        fuzz_require(length >= 3 && length <= OUTPUT_PRINTED_BYTES && nd_has_prefix(line, "c: "));
        fuzz_require(line[length - 1] == '\n');
        require_printable(line, length - 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct rootless_output output = {.name = "c", .write = take_line};
        struct rootless_notification n;

        rootless_notification_parse((const char *) data, size, &n);
        fuzz_require(n.has_status || n.status[0] == '\0');
        fuzz_require(size <= NOTIFICATION_BYTES || (!n.ready && !n.has_status));
        fuzz_require(strlen(n.status) <= NOTIFICATION_STATUS_BYTES);
        require_printable(n.status, strlen(n.status));
        for (size_t at = 0; at < size; at += 7)
                rootless_output_add(&output, (const char *) data + at, size - at < 7 ? size - at : 7);
        rootless_output_end(&output);
        fuzz_require(output.length == 0);
        return 0;
}
