/* SPDX-License-Identifier: Apache-2.0 */
/* credentials.h - the guard's credentials for the API server; their problems are part of its
 * health */
#pragma once

#include "guard/cluster/health.h"
#include "net/api-credentials.h"

/* Reads the kubeconfig and creates the client; see nd_api_credentials_start(). */
[[nodiscard]] struct nd_error *guard_credentials_start(struct nd_api_credentials *credentials, const char *kubeconfig,
                                                       sd_event *loop, struct guard_health *health, struct nd_api **ret);
