/* SPDX-License-Identifier: Apache-2.0 */
/* notification.h - parses the datagrams that a component sends to NOTIFY_SOCKET, see sd_notify(3)
 *
 * Every process of the node that is root can send them, so they are hostile: a message is at most
 * NOTIFICATION_BYTES long, only two assignments are used, and the text of a status becomes one
 * printable line. */
#pragma once

#include "base/text.h"

enum {
        NOTIFICATION_BYTES = 4096,
        NOTIFICATION_STATUS_BYTES = 512,
};

struct rootless_notification {
        bool ready;      /* READY=1 */
        bool has_status; /* STATUS=... */
        char status[NOTIFICATION_STATUS_BYTES + 1];
};

/* Never fails: what is not understood is ignored. */
void rootless_notification_parse(const char *bytes, size_t length, struct rootless_notification *ret);
