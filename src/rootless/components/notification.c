/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/components/notification.h"

#include <string.h>

#define STATUS "STATUS="

static void take_status(const char *line, size_t length, struct rootless_notification *ret) {
        nd_autotext struct nd_text text = ND_TEXT(NOTIFICATION_STATUS_BYTES);

        nd_text_add_printable(&text, line, length);
        memcpy(ret->status, nd_text_get(&text), text.length + 1);
        ret->has_status = true;
}

static void take_line(const char *line, size_t length, struct rootless_notification *ret) {
        if (length == strlen("READY=1") && memcmp(line, "READY=1", length) == 0)
                ret->ready = true;
        else if (length >= strlen(STATUS) && memcmp(line, STATUS, strlen(STATUS)) == 0)
                take_status(line + strlen(STATUS), length - strlen(STATUS), ret);
}

void rootless_notification_parse(const char *bytes, size_t length, struct rootless_notification *ret) {
        *ret = (struct rootless_notification) {};
        if (length > NOTIFICATION_BYTES)
                return;
        for (size_t at = 0; at < length;) {
                const char *end = memchr(bytes + at, '\n', length - at);
                size_t line = end ? (size_t) (end - (bytes + at)) : length - at;

                take_line(bytes + at, line, ret);
                at += line + 1;
        }
}
