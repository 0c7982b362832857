/* SPDX-License-Identifier: Apache-2.0 */
/* token.h - what was asked for by an RPC and waits for the client that streams
 *
 * Exec, Attach and PortForward answer with an address on the loopback. The token in it is all that says who may come: it is random, works once, and only
 * for a minute. */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "base/strings.h"

enum stream_kind {
        STREAM_EXEC,
        STREAM_ATTACH,
        STREAM_FORWARD,
};

enum {
        STREAM_PORTS = 64, /* most ports of a request */
};

/* A checked request. */
struct stream_request {
        enum stream_kind kind;
        char *container; /* its id; the sandbox's for STREAM_FORWARD */
        struct nd_strings command;
        bool terminal, input, output, errors;
        uint16_t ports[STREAM_PORTS]; /* of port-forward, for clients that cannot say which one they want */
        size_t port_count;
};

void stream_request_free(struct stream_request *request);

enum {
        TOKEN_LENGTH = 8,
        TOKENS_MOST = 1000,
};

struct token {
        char text[TOKEN_LENGTH + 1];
        uint64_t until_us;
        struct stream_request *request;
};

struct tokens {
        nd_vector(struct token) list; /* the oldest first */
};

void tokens_done(struct tokens *tokens);

/* Keeps a request, which is taken in any case. ND_EXHAUSTED when too many wait: the kubelet then tells its client to come back later. */
[[nodiscard]] struct nd_error *tokens_issue(struct tokens *tokens, struct stream_request *request, uint64_t now_us,
                                            char ret[static TOKEN_LENGTH + 1]);

/* The request of a token, which is worth nothing from now on; nullptr when there is no such token, or no more. */
[[nodiscard]] struct stream_request *tokens_redeem(struct tokens *tokens, const char *text, uint64_t now_us);
