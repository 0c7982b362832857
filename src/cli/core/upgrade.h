/* SPDX-License-Identifier: Apache-2.0 */
/* upgrade.h - opens a WebSocket connection at a URL from nodens-cri; the caller polls the socket */
#pragma once

#include "base/text.h"
#include "net/channel.h"

enum {
        UPGRADE_PIECE = 16 << 10, /* of input, at most */
};

/* The beginning of a connection. Owns the socket. */
struct cli_upgrade {
        int fd; /* non-blocking */
        char *url;
        const char *protocol;
        char key[ND_WEBSOCKET_KEY];
        struct nd_text request; /* unsent part */
        struct nd_text head;    /* of the response, so far; then the bytes after it */
};

#define UPGRADE_NONE ((struct cli_upgrade) {.fd = -EBADF})

void cli_upgrade_done(struct cli_upgrade *upgrade);

/* Connects to http://ADDRESS:PORT/PATH and queues the request. The protocol must outlive it. */
[[nodiscard]] struct nd_error *cli_upgrade_begin(const char *url, const char *protocol, struct cli_upgrade *ret);

/* Sends the unsent part of the request, then the queue of the channels (may be nullptr). Returns
 * the events to poll for. A lost connection shows when it is read. */
[[nodiscard]] uint32_t cli_upgrade_flush(struct cli_upgrade *upgrade, struct nd_channel_mux *channels);

/* Takes bytes of the response. True when the head is complete and correct: @head then has the bytes
 * after it, which belong to the channels. At most UPGRADE_PIECE bytes. */
[[nodiscard]] struct nd_error *cli_upgrade_take(struct cli_upgrade *upgrade, const char *bytes, size_t length, bool *ret);
