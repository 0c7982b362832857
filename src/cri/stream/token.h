/* SPDX-License-Identifier: Apache-2.0 */
/* token.h - what was asked for by an RPC and waits for the client that streams
 *
 * Exec, Attach and PortForward answer with an address on the loopback. The token in it is all that says who may come: it is random, works once, and only
 * for a minute. */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "base/strings.h"

enum cri_stream_kind {
        STREAM_EXEC,
        STREAM_ATTACH,
        STREAM_FORWARD,
};

enum {
        STREAM_PORTS = 64, /* most ports of a request */
};

/* A checked request. */
struct cri_stream_request {
        enum cri_stream_kind kind;
        char *container; /* its id; the sandbox's for STREAM_FORWARD */
        struct nd_strings command;
        bool terminal, input, output, errors;
        uint16_t ports[STREAM_PORTS]; /* of port-forward, for clients that cannot say which one they want */
        size_t port_count;
};

void cri_stream_request_free(struct cri_stream_request *request);

enum {
        TOKEN_LENGTH = 8,
        TOKENS_MOST = 1000,
};

struct cri_stream_token {
        char text[TOKEN_LENGTH + 1];
        uint64_t until_us;
        struct cri_stream_request *request;
};

struct cri_stream_tokens {
        nd_vector(struct cri_stream_token) list; /* the oldest first */
};

void cri_stream_tokens_done(struct cri_stream_tokens *tokens);

/* Keeps a request, which is taken in any case. ND_EXHAUSTED when too many wait: the kubelet then tells its client to come back later. */
[[nodiscard]] struct nd_error *cri_stream_tokens_issue(struct cri_stream_tokens *tokens, struct cri_stream_request *request,
                                                       uint64_t now_us, char ret[static TOKEN_LENGTH + 1]);

/* The request of a token, which is worth nothing from now on; nullptr when there is no such token, or no more. */
[[nodiscard]] struct cri_stream_request *cri_stream_tokens_take(struct cri_stream_tokens *tokens, const char *text,
                                                                uint64_t now_us);
