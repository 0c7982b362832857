/* SPDX-License-Identifier: Apache-2.0 */
/* input.h - reads operands that are files, or "-" for standard input */
#pragma once

#include "base/error.h"

/* Reads a whole file, pipe or device, or standard input. Links are followed. */
[[nodiscard]] struct nd_error *cli_input_read(const char *path, size_t most, char **ret, size_t *ret_length);
