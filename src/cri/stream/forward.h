/* SPDX-License-Identifier: Apache-2.0 */
/* forward.h - kubectl port-forward: connections into a pod's network, multiplexed over one
 * connection */
#pragma once

#include "cri/stream/connection.h"

extern const struct cri_stream_session_type cri_stream_forward;
