/* SPDX-License-Identifier: Apache-2.0 */
/* exec.h - kubectl exec: a command's streams over a connection */
#pragma once

#include "cri/stream/connection.h"

extern const struct cri_stream_session_type cri_stream_exec;
