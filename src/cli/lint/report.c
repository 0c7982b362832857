/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/json.h"
#include "cli/lint/lint.h"

enum {
        REPORT = 256 << 20,
};

/* Manifests are untrusted text: control characters must not reach the terminal. */
static void put(const char *text) {
        for (; *text; text++)
                putchar((unsigned char) *text < 0x20 || *text == 0x7f ? '?' : *text);
}

static void put_line(const char *label, const char *text) {
        printf("  %-17s ", label);
        put(text);
        putchar('\n');
}

static const char *constraint_text(const struct cli_lint_result *result, struct nd_arena *arena) {
        if (!result->constraint)
                return "no constraint admits it";
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

static void put_subject(const struct cli_lint_subject *subject, struct nd_arena *arena) {
        put(nd_arena_format(arena, "%s:%zu: %s %s", subject->file, subject->line, subject->workload.kind,
                            subject->workload.name));
        putchar('\n');
        put_side(subject, LINT_HOST, arena);
        put_side(subject, LINT_USERNS, arena);
        if (subject->invalid[0] != '\0')
                put_line("NOT VALID", subject->invalid);
        for (size_t i = 0; i < subject->broken.count; i++)
                put_line("NOT AS EXPECTED", subject->broken.items[i]);
        put_advice(subject, arena);
}

void cli_lint_report_text(const struct cli_lint *lint) {
        size_t bad = lint->broken.count;

        nd_vector_each (subject, &lint->subjects) {
                nd_autoarena struct nd_arena arena = {};

                put_subject(subject, &arena);
                bad += cli_lint_is_bad(lint, subject);
        }
        for (size_t i = 0; i < lint->broken.count; i++)
                put_line("NOT AS EXPECTED", lint->broken.items[i]);
        if (bad > 0)
                printf("%zu of %zu failed.\n", bad, lint->subjects.count + lint->broken.count);
}

static void json_side(struct nd_json_out *out, const struct cli_lint_subject *subject, enum cli_lint_side side) {
        const struct cli_lint_result *result = &subject->sides[side];

        nd_json_open(out, side == LINT_USERNS ? "withUserNamespace" : "withHostUsers", '{');
        nd_json_bool(out, "asWritten", side == subject->own);
        if (result->obstacle[0] != '\0') {
                nd_json_string(out, "obstacle", result->obstacle);
        } else {
                nd_json_string(out, "level", nd_podsecurity_level_name(result->level));
                nd_json_string(out, "constraint", result->constraint);
                nd_json_bool(out, "needsGrant", result->constraint && !result->for_all_users);
                if (result->refusal)
                        nd_json_string(out, "refusal", result->refusal);
        }
        nd_json_close(out, '}');
}

static void json_findings(struct nd_json_out *out, const struct cli_lint_subject *subject) {
        nd_json_string(out, "target", nd_podsecurity_level_name(subject->target));
        nd_json_open(out, "findings", '[');
        for (size_t i = 0; i < subject->findings.count; i++) {
                nd_json_open(out, nullptr, '{');
                nd_json_string(out, "check", subject->findings.items[i].check);
                nd_json_string(out, "reason", subject->findings.items[i].reason);
                nd_json_string(out, "detail", subject->findings.items[i].detail);
                nd_json_close(out, '}');
        }
        nd_json_close(out, ']');
        if (!subject->advice.reached)
                return;
        nd_json_open(out, "changes", '[');
        nd_vector_each (edit, &subject->advice.edits) {
                nd_autofree char *path = nd_format("%s%s", subject->workload.prefix, edit->path);

                nd_json_open(out, nullptr, '{');
                nd_json_string(out, "path", path);
                nd_json_string(out, "action", edit->value ? "set" : "remove");
                if (edit->value)
                        nd_json_string(out, "value", edit->value);
                nd_json_close(out, '}');
        }
        nd_json_close(out, ']');
}

static void json_subject(struct nd_json_out *out, const struct cli_lint *lint, const struct cli_lint_subject *subject) {
        nd_json_open(out, nullptr, '{');
        nd_json_string(out, "file", subject->file);
        nd_json_number(out, "line", subject->line);
        nd_json_string(out, "kind", subject->workload.kind);
        nd_json_string(out, "name", subject->workload.name);
        nd_json_bool(out, "ok", !cli_lint_is_bad(lint, subject));
        json_side(out, subject, LINT_HOST);
        json_side(out, subject, LINT_USERNS);
        if (subject->invalid[0] != '\0')
                nd_json_string(out, "invalid", subject->invalid);
        nd_json_open(out, "broken", '[');
        for (size_t i = 0; i < subject->broken.count; i++)
                nd_json_string(out, nullptr, subject->broken.items[i]);
        nd_json_close(out, ']');
        json_findings(out, subject);
        nd_json_close(out, '}');
}

void cli_lint_report_json(const struct cli_lint *lint) {
        nd_autotext struct nd_text text = ND_TEXT(REPORT);
        struct nd_json_out out = {.text = &text, .indent = 2};
        nd_autofree char *version = nd_kube_version_text(lint->version);

        nd_json_open(&out, nullptr, '{');
        nd_json_string(&out, "policyVersion", version);
        nd_json_open(&out, "pods", '[');
        nd_vector_each (subject, &lint->subjects)
                json_subject(&out, lint, subject);
        nd_json_close(&out, ']');
        nd_json_open(&out, "broken", '[');
        for (size_t i = 0; i < lint->broken.count; i++)
                nd_json_string(&out, nullptr, lint->broken.items[i]);
        nd_json_close(&out, ']');
        nd_json_close(&out, '}');
        puts(nd_text_get(&text));
}
