/* SPDX-License-Identifier: Apache-2.0 */
/* floor-webhook.h - reviews of the version floor and of certificate signing requests */
#pragma once

#include "guard/webhook/webhook.h"

/* Handles one review, from its bytes to its response. */
void guard_floor_webhook_handle(const struct guard_webhook *webhook, struct guard_exchange *exchange);
