/* SPDX-License-Identifier: Apache-2.0 */
/* review-exchange.c - how every review begins and ends, whatever it is about */
#include "guard/daemon.h"

enum {
        ANSWER_BYTES = 8 << 20,
};

bool guard_webhook_receive(struct guard_daemon *guard, struct guard_exchange *exchange, struct nd_arena *arena,
                           struct guard_review *ret) {
        nd_autoerror struct nd_error *error = nullptr;
        const char *bytes;
        size_t length;

        bytes = guard_exchange_body(exchange, &length);
        error = guard_review_decode(bytes, length, arena, ret);
        if (!error)
                return true;
        guard->metrics.unreadable++;
        guard_exchange_respond(exchange, 400, "text/plain", nd_error_text(error), __builtin_strlen(nd_error_text(error)));
        return false;
}

void guard_webhook_respond(struct guard_daemon *guard, struct guard_exchange *exchange, enum guard_flow flow,
                           const struct guard_review *review, const struct guard_response *answer) {
        nd_autotext text = ND_TEXT(ANSWER_BYTES);

        guard_metrics_review(&guard->metrics, flow, answer->allowed);
        guard_response_write(answer, review->uid, &text);
        guard_exchange_respond(exchange, 200, "application/json", nd_text_get(&text), text.length);
}
