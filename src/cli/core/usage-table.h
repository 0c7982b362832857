/* SPDX-License-Identifier: Apache-2.0 */
/* usage-table.h - resource usage as a table for people */
#pragma once

#include "cli/core/pod-usage.h"

/* The first rows, at most so many, of pods or of containers. */
void cli_usage_table_print(const struct cli_usage_rows *rows, bool pods, size_t most);
