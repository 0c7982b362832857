/* SPDX-License-Identifier: Apache-2.0 */
/* base64.h - the standard alphabet, with padding */
#pragma once

#include "base/error.h"

[[nodiscard]] char *nd_base64(const char *bytes, size_t length);

/* White space is allowed anywhere, as files break lines. The bytes are NUL-terminated. */
[[nodiscard]] struct nd_error *nd_base64_decode(const char *text, size_t length, char **ret, size_t *ret_length);

/* The same as text, which ends at the first null byte: Docker's client pads with them. */
[[nodiscard]] struct nd_error *nd_base64_parse(const char *text, char **ret);
