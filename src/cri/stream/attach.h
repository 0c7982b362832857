/* SPDX-License-Identifier: Apache-2.0 */
/* attach.h - kubectl attach: a running container's own streams over a connection */
#pragma once

#include "cri/stream/connection.h"

extern const struct session_type stream_attach;
