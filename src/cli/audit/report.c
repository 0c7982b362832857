/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cli/audit/audit.h"
#include "cli/output/format.h"
#include "cli/output/table.h"

size_t cli_audit_count(const struct cli_audit *audit, bool violations) {
        size_t count = 0;

        nd_vector_each (item, &audit->items)
                count += nd_audit_is_violation(item->topic) == violations;
        return count;
}

static const char *object_text(const struct cli_audit_item *item, struct nd_arena *arena) {
        char count[FORMAT_COUNT];

        if (item->pods == 0)
                return nd_arena_format(arena, "%s %s", item->kind, item->name);
        return nd_arena_format(arena, "%s %s (%s)", item->kind, item->name, cli_format_count(item->pods, "pod", count));
}

static void print_rest(size_t count) {
        if (count > AUDIT_ROWS)
                printf("and %zu more; --json has all\n", count - AUDIT_ROWS);
}

static void print_items(const struct cli_audit *audit) {
        static const struct cli_column columns[] = {{"FINDING", .kind = COLUMN_SHORTEN, .least = 12},
                                                    {"NAMESPACE", .kind = COLUMN_SHORTEN, .least = 8},
                                                    {"OBJECT", .kind = COLUMN_SHORTEN, .least = 16},
                                                    {"WHAT", .kind = COLUMN_WRAP, .least = 24},
                                                    {}};
        nd_cleanup(cli_table_done) struct cli_table table = {};
        nd_autoarena struct nd_arena arena = {};

        cli_table_init_columns(&table, columns);
        for (size_t i = 0; i < audit->items.count && i < AUDIT_ROWS; i++) {
                const struct cli_audit_item *item = &audit->items.items[i];

                cli_table_row(&table,
                              (const char *[]) {nd_audit_topic_name(item->topic), item->namespace, object_text(item, &arena),
                                                item->text},
                              nullptr);
        }
        cli_table_print(&table);
        print_rest(audit->items.count);
}

static const char *reason_text(const struct nd_audit_readiness *readiness, struct nd_arena *arena) {
        const char *text = readiness->reason_count > 0 ? readiness->reasons[0] : "";

        for (size_t i = 1; i < readiness->reason_count && i < ND_AUDIT_REASONS; i++)
                text = nd_arena_format(arena, "%s; %s", text, readiness->reasons[i]);
        return readiness->reason_count <= ND_AUDIT_REASONS
                       ? text
                       : nd_arena_format(arena, "%s; and %zu more", text, readiness->reason_count - ND_AUDIT_REASONS);
}

static void print_workloads(const struct cli_audit *audit) {
        static const struct cli_column columns[] = {{"NAMESPACE", .kind = COLUMN_SHORTEN, .least = 8},
                                                    {"WORKLOAD", .kind = COLUMN_SHORTEN, .least = 16},
                                                    {"READY", .kind = COLUMN_WHOLE},
                                                    {"REASON", .kind = COLUMN_WRAP, .least = 24},
                                                    {}};
        nd_cleanup(cli_table_done) struct cli_table table = {};
        nd_autoarena struct nd_arena arena = {};

        cli_table_init_columns(&table, columns);
        for (size_t i = 0; i < audit->workloads.count && i < AUDIT_ROWS; i++) {
                const struct cli_audit_workload *one = &audit->workloads.items[i];

                cli_table_row(&table,
                              (const char *[]) {one->namespace, nd_arena_format(&arena, "%s %s", one->kind, one->name),
                                                nd_audit_verdict_name(one->readiness.verdict),
                                                reason_text(&one->readiness, &arena)},
                              nullptr);
        }
        cli_table_print(&table);
        print_rest(audit->workloads.count);
}

static const char *number_text(size_t number, struct nd_arena *arena) {
        return nd_arena_format(arena, "%zu", number);
}

static const char *next_text(const struct cli_audit_namespace *one, struct nd_arena *arena) {
        if (!*one->command)
                return *one->advice ? one->advice : *one->label ? "has the label" : "";
        return *one->advice ? nd_arena_format(arena, "first: %s; then: %s", one->advice, one->command) : one->command;
}

static void print_namespaces(const struct cli_audit *audit) {
        static const struct cli_column columns[] = {{"NAMESPACE", .kind = COLUMN_SHORTEN, .least = 8},
                                                    {"READY", .kind = COLUMN_NUMBER},
                                                    {"CHECK", .kind = COLUMN_NUMBER},
                                                    {"NO", .kind = COLUMN_NUMBER},
                                                    {"ALREADY", .kind = COLUMN_NUMBER},
                                                    {"LABEL", .kind = COLUMN_WHOLE},
                                                    {"NEXT", .kind = COLUMN_WRAP, .least = 24},
                                                    {}};
        nd_cleanup(cli_table_done) struct cli_table table = {};
        nd_autoarena struct nd_arena arena = {};

        cli_table_init_columns(&table, columns);
        for (size_t i = 0; i < audit->namespaces.count && i < AUDIT_ROWS; i++) {
                const struct cli_audit_namespace *one = &audit->namespaces.items[i];

                cli_table_row(&table,
                              (const char *[]) {one->name, number_text(one->counts[ND_AUDIT_YES], &arena),
                                                number_text(one->counts[ND_AUDIT_CHECK], &arena),
                                                number_text(one->counts[ND_AUDIT_NO], &arena),
                                                number_text(one->counts[ND_AUDIT_ALREADY], &arena),
                                                *one->label ? one->label : "-", next_text(one, &arena)},
                              nullptr);
        }
        cli_table_print(&table);
        print_rest(audit->namespaces.count);
}

void cli_audit_report_text(const struct cli_audit *audit, bool workloads) {
        char findings[FORMAT_COUNT], violations[FORMAT_COUNT];
        size_t ready = 0;

        nd_vector_each (one, &audit->workloads)
                ready += one->readiness.verdict == ND_AUDIT_YES;
        print_items(audit);
        if (audit->items.count > 0)
                putchar('\n');
        print_namespaces(audit);
        if (workloads) {
                putchar('\n');
                print_workloads(audit);
        }
        printf("%s%s, %s; %zu of %zu workloads could run with hostUsers: false as they are.\n",
               audit->namespaces.count > 0 ? "\n" : "", cli_format_count(cli_audit_count(audit, false), "finding", findings),
               cli_format_count(cli_audit_count(audit, true), "violation", violations), ready, audit->workloads.count);
}
