/* SPDX-License-Identifier: Apache-2.0 */
/* token.h - pending streaming requests, by token
 *
 * Exec, Attach and PortForward return a URL on loopback. The token in it is the only authorization:
 * it is random, valid once, and for one minute. */
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
        STREAM_PORTS = 64, /* maximum per request */
};

/* A validated request. */
struct cri_stream_request {
        enum cri_stream_kind kind;
        char *container; /* its ID; the sandbox's for STREAM_FORWARD */
        struct nd_strings command;
        bool terminal, input, output, errors;
        /* of port-forward, for WebSocket clients, which cannot choose */
        uint16_t ports[STREAM_PORTS];
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
        nd_vector(struct cri_stream_token) list; /* oldest first */
};

void cri_stream_tokens_done(struct cri_stream_tokens *tokens);

/* Stores a request; takes it in any case. ND_EXHAUSTED if there are too many: the kubelet then
 * returns an error to its client, which may retry. */
[[nodiscard]] struct nd_error *cri_stream_tokens_issue(struct cri_stream_tokens *tokens, struct cri_stream_request *request,
                                                       uint64_t now_us, char ret[static TOKEN_LENGTH + 1]);

/* Returns the request of a token and invalidates it; nullptr if the token is unknown or expired. */
[[nodiscard]] struct cri_stream_request *cri_stream_tokens_take(struct cri_stream_tokens *tokens, const char *text,
                                                                uint64_t now_us);
