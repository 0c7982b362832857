/* SPDX-License-Identifier: Apache-2.0 */
/* scc-webhook.h - reviews of security context constraints */
#pragma once

#include "guard/webhook/webhook.h"

/* Handles one review, from its bytes to its response. mode comes from the hook's path;
 * GUARD_MODE_OFF: the path carries none. */
void guard_scc_webhook_handle(const struct guard_webhook *webhook, struct guard_exchange *exchange, bool validating,
                              enum guard_mode mode);
