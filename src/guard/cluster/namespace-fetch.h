/* SPDX-License-Identifier: Apache-2.0 */
/* namespaces.h - a namespace that the watch has not told yet, fetched into the store */
#pragma once

#include "guard/daemon.h"

/* On behalf of a share (nd_api_request). done() is called later; the error says why it is not there. */
void guard_namespace_fetch(struct guard_daemon *guard, const char *name, uint64_t share,
                           void (*done)(const struct nd_error *error, void *userdata), void *userdata);
