/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cli/lint/lint.h"
#include "cli/output/sanitize.h"

/* Manifests are untrusted text: control characters must not reach the terminal. */
static void put(const char *text) {
        nd_autofree char *safe = cli_sanitize_text(text);

        (void) fputs(safe, stdout);
}

static void put_line(const char *label, const char *text) {
        printf("  %-17s ", label);
        put(text);
        putchar('\n');
}

static const char *constraint_text(const struct cli_lint_result *result, struct nd_arena *arena) {
        if (!result->constraint)
                return "no constraint";
        return result->for_all_users ? result->constraint : nd_arena_format(arena, "%s, if granted", result->constraint);
}

static void put_side(const struct cli_lint_subject *subject, enum cli_lint_side side, struct nd_arena *arena) {
        const struct cli_lint_result *result = &subject->sides[side];
        const char *label = side == LINT_USERNS ? "user namespace" : "host's users";

        if (result->obstacle[0] != '\0')
                put_line(label, nd_arena_format(arena, "not with %s", result->obstacle));
        else
                put_line(label, nd_arena_format(arena, "%-11s %s%s", nd_podsecurity_level_name(result->level),
                                                constraint_text(result, arena), side == subject->own ? "   (as it is)" : ""));
}

static void put_advice(const struct cli_lint_subject *subject, struct nd_arena *arena) {
        const char *label = nd_arena_format(arena, "for %s", nd_podsecurity_level_name(subject->target));

        if (subject->findings.count > 0 && !subject->advice.reached)
                put_line(label, "no small change is sufficient");
        for (size_t i = 0; subject->advice.reached && i < subject->advice.edits.count; i++) {
                const struct nd_advice_edit *edit = &subject->advice.edits.items[i];
                const char *what =
                        edit->value ? nd_arena_format(arena, "set %s%s: %s", subject->workload.prefix, edit->path, edit->value)
                                    : nd_arena_format(arena, "remove %s%s", subject->workload.prefix, edit->path);

                put_line(i == 0 ? label : "", what);
        }
}

static void put_unknown(const struct cli_lint *lint, const struct cli_lint_subject *subject, struct nd_arena *arena) {
        const char *label = lint->strict ? "UNKNOWN FIELD" : "unknown field";

        nd_vector_each (unknown, &subject->unknowns) {
                const char *what = nd_arena_format(arena, "%s (line %zu)", unknown->field.path, unknown->field.line);

                if (unknown->suggestion[0] != '\0')
                        what = nd_arena_format(arena, "%s; did you mean %s?", what, unknown->suggestion);
                put_line(label, what);
        }
        if (subject->unknown_count > subject->unknowns.count)
                put_line(label, nd_arena_format(arena, "%zu more", subject->unknown_count - subject->unknowns.count));
}

static void put_subject(const struct cli_lint *lint, const struct cli_lint_subject *subject, struct nd_arena *arena) {
        put(nd_arena_format(arena, "%s:%zu: %s %s", subject->file, subject->line, subject->workload.kind,
                            subject->workload.name));
        putchar('\n');
        if (cli_lint_has_containers(subject)) {
                put_line("USERS", "LEVEL       ADMITTED BY");
                put_side(subject, LINT_HOST, arena);
                put_side(subject, LINT_USERNS, arena);
        }
        if (subject->invalid[0] != '\0')
                put_line("NOT VALID", subject->invalid);
        put_unknown(lint, subject, arena);
        for (size_t i = 0; i < subject->broken.count; i++)
                put_line("NOT AS EXPECTED", subject->broken.items[i]);
        put_advice(subject, arena);
}

static void put_not_judged(const struct cli_lint *lint) {
        if (lint->not_judged.count == 0)
                return;
        printf("not judged: ");
        nd_vector_each (kind, &lint->not_judged) {
                if (kind != lint->not_judged.items)
                        printf(", ");
                put(kind->name);
                printf(" %zu", kind->count);
        }
        putchar('\n');
}

void cli_lint_report_text(const struct cli_lint *lint) {
        size_t bad = lint->broken.count;

        nd_vector_each (subject, &lint->subjects) {
                nd_autoarena struct nd_arena arena = {};

                put_subject(lint, subject, &arena);
                bad += cli_lint_is_bad(lint, subject);
        }
        for (size_t i = 0; i < lint->broken.count; i++)
                put_line("NOT AS EXPECTED", lint->broken.items[i]);
        put_not_judged(lint);
        if (bad > 0)
                printf("%zu of %zu failed.\n", bad, lint->subjects.count + lint->broken.count);
}
