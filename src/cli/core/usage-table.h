/* SPDX-License-Identifier: Apache-2.0 */
/* usage-table.h - resource usage as a table */
#pragma once

#include "cli/core/pod-usage.h"
#include "cli/output/table.h"

/* Makes a table of the first rows, of pods or of containers. */
void cli_usage_table_fill(struct cli_table *table, const struct cli_usage_rows *rows, bool pods, size_t most);
