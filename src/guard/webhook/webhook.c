/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/webhook/webhook.h"

#include <string.h>

enum {
        RESPONSE_BYTES = 8 << 20,
};

bool guard_webhook_receive(const struct guard_webhook *webhook, struct guard_exchange *exchange, struct nd_arena *arena,
                           struct guard_review *ret) {
        nd_autoerror struct nd_error *error = nullptr;
        const char *bytes;
        size_t length;

        bytes = guard_exchange_body(exchange, &length);
        error = guard_review_decode(bytes, length, arena, ret);
        if (!error)
                return true;
        webhook->metrics->unreadable++;
        guard_exchange_respond(exchange, 400, "text/plain", nd_error_text(error), strlen(nd_error_text(error)));
        return false;
}

void guard_webhook_respond(const struct guard_webhook *webhook, struct guard_exchange *exchange, enum guard_flow flow,
                           const struct guard_review *review, const struct guard_response *response) {
        nd_autotext struct nd_text text = ND_TEXT(RESPONSE_BYTES);

        guard_metrics_review(webhook->metrics, flow, response->allowed);
        guard_response_write(response, review->uid, &text);
        guard_exchange_respond(exchange, 200, "application/json", nd_text_get(&text), text.length);
}
