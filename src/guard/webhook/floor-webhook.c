/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/webhook/floor-webhook.h"

#include "guard/admission/floor-admission.h"

void guard_floor_webhook_handle(const struct guard_webhook *webhook, struct guard_exchange *exchange) {
        nd_autoarena struct nd_arena arena = {};
        struct guard_response response;
        struct guard_review review;

        if (!guard_webhook_receive(webhook, exchange, &arena, &review))
                return;
        guard_floor_decide(webhook->store, &review, &arena, &response);
        guard_webhook_respond(webhook, exchange, GUARD_FLOW_FLOOR, &review, &response);
}
