/* SPDX-License-Identifier: Apache-2.0 */
/* attach.h - kubectl attach: the streams of a running container over a connection */
#pragma once

#include "cri/stream/connection.h"

extern const struct cri_stream_session_type cri_stream_attach;
