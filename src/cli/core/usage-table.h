/* SPDX-License-Identifier: Apache-2.0 */
/* usage-table.h - prints resource usage as a table */
#pragma once

#include "cli/core/pod-usage.h"

/* Prints the first rows, of pods or of containers. */
void cli_usage_table_print(const struct cli_usage_rows *rows, bool pods, size_t most);
