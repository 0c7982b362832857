/* SPDX-License-Identifier: Apache-2.0 */
/* namespace-fetch.h - fetches a namespace that the watch has not reported yet into the store */
#pragma once

#include "guard/core/store.h"
#include "net/api-client.h"

/* Uses a share of the API client's queue (nd_api_request). done() is called later; the error says
 * why the namespace is missing. */
void guard_namespace_fetch(struct nd_api *api, struct guard_store *store, const char *name, uint64_t share,
                           void (*done)(const struct nd_error *error, void *userdata), void *userdata);
