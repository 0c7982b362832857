/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/usage-table.h"

#include <stdio.h>

#include "cli/output/format.h"
#include "cli/output/table.h"

static const char *size_cell(bool known, uint64_t bytes, char text[static FORMAT_SIZE]) {
        return known ? cli_format_size(bytes, text) : "-";
}

/* Thousandths of a CPU, as in Kubernetes. */
static const char *cpu_cell(const struct cli_usage_row *row, char text[static FORMAT_SIZE]) {
        if (!row->has_rate)
                return "-";
        (void) snprintf(text, FORMAT_SIZE, "%llum", (unsigned long long) (row->nano_cores + 500000) / 1000000);
        return text;
}

static const char *pids_cell(const struct cli_usage_row *row, char text[static FORMAT_SIZE]) {
        if (!row->usage->has_pids)
                return "-";
        (void) snprintf(text, FORMAT_SIZE, "%llu", (unsigned long long) row->usage->pids);
        return text;
}

static void add_container(struct cli_table *table, const struct cli_usage_row *row) {
        const Nodens__V1__Usage *usage = row->usage;
        char cpu[FORMAT_SIZE], memory[FORMAT_SIZE], limit[FORMAT_SIZE], disk[FORMAT_SIZE], pids[FORMAT_SIZE];

        cli_table_row(table,
                      (const char *[]) {row->pod->namespace_, row->pod->name, row->container->name, cpu_cell(row, cpu),
                                        size_cell(usage->has_memory, usage->working_set, memory),
                                        size_cell(usage->memory_limit > 0, usage->memory_limit, limit),
                                        size_cell(row->has_disk, row->disk, disk), pids_cell(row, pids)},
                      nullptr);
}

static void add_pod(struct cli_table *table, const struct cli_usage_row *row) {
        const Nodens__V1__Usage *usage = row->usage;
        char cpu[FORMAT_SIZE], memory[FORMAT_SIZE], limit[FORMAT_SIZE], received[FORMAT_SIZE], sent[FORMAT_SIZE],
                pids[FORMAT_SIZE];

        cli_table_row(table,
                      (const char *[]) {row->pod->namespace_, row->pod->name, cpu_cell(row, cpu),
                                        size_cell(usage->has_memory, usage->working_set, memory),
                                        size_cell(usage->memory_limit > 0, usage->memory_limit, limit),
                                        size_cell(row->has_network, row->received, received),
                                        size_cell(row->has_network, row->sent, sent), pids_cell(row, pids)},
                      nullptr);
}

void cli_usage_table_fill(struct cli_table *table, const struct cli_usage_rows *rows, bool pods, size_t most) {
        static const struct cli_column of_containers[] = {
                {"NAMESPACE", .kind = COLUMN_SHORTEN, .drop = 4},
                {"POD", .kind = COLUMN_SHORTEN, .least = 12},
                {"CONTAINER", .kind = COLUMN_SHORTEN},
                {"CPU", .kind = COLUMN_NUMBER},
                {"MEMORY", .kind = COLUMN_NUMBER},
                {"LIMIT", .kind = COLUMN_NUMBER, .drop = 5},
                {"DISK", .kind = COLUMN_NUMBER, .drop = 6},
                {"PIDS", .kind = COLUMN_NUMBER, .drop = 3},
                {},
        };
        static const struct cli_column of_pods[] = {
                {"NAMESPACE", .kind = COLUMN_SHORTEN, .drop = 4},
                {"POD", .kind = COLUMN_SHORTEN, .least = 12},
                {"CPU", .kind = COLUMN_NUMBER},
                {"MEMORY", .kind = COLUMN_NUMBER},
                {"LIMIT", .kind = COLUMN_NUMBER, .drop = 5},
                {"RECEIVED", .kind = COLUMN_NUMBER, .drop = 2},
                {"SENT", .kind = COLUMN_NUMBER, .drop = 1},
                {"PIDS", .kind = COLUMN_NUMBER, .drop = 3},
                {},
        };

        cli_table_init_columns(table, pods ? of_pods : of_containers);
        for (size_t i = 0; i < rows->count && i < most; i++)
                (pods ? add_pod : add_container)(table, &rows->items[i]);
}
