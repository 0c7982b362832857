/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/stream/token.h"

#include <string.h>
#include <sys/random.h>

#include "base/clock.h"

static constexpr uint64_t life_us = 60 * ND_SECOND_US;

void cri_stream_request_free(struct cri_stream_request *request) {
        if (!request)
                return;
        nd_strings_done(&request->command);
        free(request->container);
        free(request);
}

static void stream_request_done(struct cri_stream_request **request) {
        cri_stream_request_free(*request);
}

void cri_stream_tokens_done(struct cri_stream_tokens *tokens) {
        nd_vector_each (token, &tokens->list)
                cri_stream_request_free(token->request);
        nd_vector_done(&tokens->list);
}

static void drop(struct cri_stream_tokens *tokens, size_t first, size_t count) {
        memmove(tokens->list.items + first, tokens->list.items + first + count,
                (tokens->list.count - first - count) * sizeof *tokens->list.items);
        tokens->list.count -= count;
}

/* All tokens have the same lifetime, so expired ones are at the beginning. */
static void forget(struct cri_stream_tokens *tokens, uint64_t now_us) {
        size_t count = 0;

        for (; count < tokens->list.count && tokens->list.items[count].until_us <= now_us; count++)
                cri_stream_request_free(tokens->list.items[count].request);
        if (count > 0)
                drop(tokens, 0, count);
}

/* Compares in constant time, so that the duration reveals nothing about the token. */
static bool same(const char *a, const char *b) {
        unsigned char difference = 0;

        for (size_t i = 0; i < TOKEN_LENGTH; i++)
                difference |= (unsigned char) (a[i] ^ b[i]);
        return difference == 0;
}

static struct cri_stream_token *find(struct cri_stream_tokens *tokens, const char *text) {
        struct cri_stream_token *found = nullptr;

        nd_vector_each (token, &tokens->list)
                if (same(token->text, text))
                        found = token;
        return found;
}

static struct nd_error *draw(char ret[static TOKEN_LENGTH + 1]) {
        static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        unsigned char bytes[TOKEN_LENGTH];

        if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
                return nd_error_new(ND_INTERNAL, errno, "get random bytes for a token");
        for (size_t i = 0; i < TOKEN_LENGTH; i++)
                ret[i] = digits[bytes[i] % 64];
        ret[TOKEN_LENGTH] = '\0';
        return nullptr;
}

struct nd_error *cri_stream_tokens_issue(struct cri_stream_tokens *tokens, struct cri_stream_request *request, uint64_t now_us,
                                         char ret[static TOKEN_LENGTH + 1]) {
        nd_cleanup(stream_request_done) struct cri_stream_request *owned = request;
        struct cri_stream_token token = {.until_us = now_us + life_us};

        forget(tokens, now_us);
        if (tokens->list.count >= TOKENS_MOST)
                return nd_error_new(ND_EXHAUSTED, 0, "maximum number of in-flight requests exceeded");
        do {
                nd_try(draw(token.text));
        } while (find(tokens, token.text));
        token.request = nd_take_ptr(owned);
        nd_vector_push(&tokens->list, token);
        memcpy(ret, token.text, sizeof token.text);
        return nullptr;
}

struct cri_stream_request *cri_stream_tokens_take(struct cri_stream_tokens *tokens, const char *text, uint64_t now_us) {
        struct cri_stream_request *request;
        struct cri_stream_token *token;

        forget(tokens, now_us);
        token = strlen(text) == TOKEN_LENGTH ? find(tokens, text) : nullptr;
        if (!token)
                return nullptr;
        request = token->request;
        drop(tokens, (size_t) (token - tokens->list.items), 1);
        return request;
}
