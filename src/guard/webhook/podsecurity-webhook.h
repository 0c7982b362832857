/* SPDX-License-Identifier: Apache-2.0 */
/* podsecurity-webhook.h - reviews of pod security */
#pragma once

#include "guard/webhook/webhook.h"

/* Handles one review, from its bytes to its response. enforces: the API server called the path for
 * namespaces with a label that enforces. */
void guard_podsecurity_webhook_handle(const struct guard_webhook *webhook, struct guard_exchange *exchange, bool enforces);
