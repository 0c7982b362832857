/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <stdio.h>

#include "cli/lint/lint.h"

enum {
        REPORT = 256 << 20,
};

static void put_side(struct nd_json_out *out, const struct cli_lint_subject *subject, enum cli_lint_side side) {
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

static void put_field(struct nd_json_out *out, const struct cli_lint_field *field) {
        nd_json_string(out, "path", field->path);
        nd_json_number(out, "line", field->line);
}

static void put_finding(struct nd_json_out *out, const struct nd_podsecurity_finding *finding,
                        const struct cli_lint_fields *causes) {
        nd_json_open(out, nullptr, '{');
        nd_json_string(out, "check", finding->check);
        nd_json_string(out, "reason", finding->reason);
        nd_json_string(out, "detail", finding->detail);
        nd_json_open(out, "fields", '[');
        for (size_t i = 0; i < causes->count; i++) {
                nd_json_open(out, nullptr, '{');
                put_field(out, &causes->items[i]);
                nd_json_close(out, '}');
        }
        nd_json_close(out, ']');
        nd_json_close(out, '}');
}

static void put_changes(struct nd_json_out *out, const struct cli_lint_subject *subject) {
        nd_json_open(out, "changes", '[');
        nd_vector_each (edit, &subject->advice.edits) {
                nd_autofree char *path = nd_format("%s%s", subject->workload.prefix, edit->path);

                nd_json_open(out, nullptr, '{');
                nd_json_string(out, "path", path);
                nd_json_string(out, "action", edit->value ? "set" : "remove");
                if (edit->value)
                        nd_json_raw(out, "value", edit->value);
                nd_json_close(out, '}');
        }
        nd_json_close(out, ']');
}

static void put_unknowns(struct nd_json_out *out, const struct cli_lint_subject *subject) {
        nd_json_open(out, "unknownFields", '[');
        nd_vector_each (unknown, &subject->unknowns) {
                nd_json_open(out, nullptr, '{');
                put_field(out, &unknown->field);
                nd_json_string(out, "type", unknown->type);
                if (unknown->suggestion[0] != '\0')
                        nd_json_string(out, "suggestion", unknown->suggestion);
                nd_json_close(out, '}');
        }
        nd_json_close(out, ']');
}

static void put_texts(struct nd_json_out *out, const char *key, const char *const *texts, size_t count) {
        nd_json_open(out, key, '[');
        for (size_t i = 0; i < count; i++)
                nd_json_string(out, nullptr, texts[i]);
        nd_json_close(out, ']');
}

static void put_subject(struct nd_json_out *out, const struct cli_lint *lint, const struct cli_lint_subject *subject) {
        nd_json_open(out, nullptr, '{');
        nd_json_string(out, "file", subject->file);
        nd_json_number(out, "line", subject->line);
        nd_json_string(out, "kind", subject->workload.kind);
        nd_json_string(out, "name", subject->workload.name);
        nd_json_bool(out, "ok", !cli_lint_is_bad(lint, subject));
        put_side(out, subject, LINT_HOST);
        put_side(out, subject, LINT_USERNS);
        if (subject->invalid[0] != '\0')
                nd_json_string(out, "invalid", subject->invalid);
        put_unknowns(out, subject);
        put_texts(out, "broken", subject->broken.items, subject->broken.count);
        if (cli_lint_has_containers(subject)) {
                nd_json_string(out, "target", nd_podsecurity_level_name(subject->target));
                nd_json_open(out, "findings", '[');
                for (size_t i = 0; i < subject->findings.count; i++)
                        put_finding(out, &subject->findings.items[i], &subject->causes[i]);
                nd_json_close(out, ']');
        }
        if (subject->advice.reached)
                put_changes(out, subject);
        nd_json_close(out, '}');
}

static void put_not_judged(struct nd_json_out *out, const struct cli_lint *lint) {
        nd_json_open(out, "notJudged", '[');
        nd_vector_each (kind, &lint->not_judged) {
                nd_json_open(out, nullptr, '{');
                nd_json_string(out, "kind", kind->name);
                nd_json_number(out, "count", kind->count);
                nd_json_close(out, '}');
        }
        nd_json_close(out, ']');
}

static void put_unreadable(struct nd_json_out *out, const struct cli_lint *lint) {
        nd_json_open(out, "unreadable", '[');
        nd_vector_each (one, &lint->unreadable) {
                nd_json_open(out, nullptr, '{');
                nd_json_string(out, "file", one->file);
                nd_json_string(out, "error", one->error);
                nd_json_close(out, '}');
        }
        nd_json_close(out, ']');
}

void cli_lint_report_json(const struct cli_lint *lint) {
        nd_autotext struct nd_text text = ND_TEXT(REPORT);
        struct nd_json_out out = {.text = &text, .indent = 2};
        nd_autofree char *version = nd_kube_version_text(lint->version);

        nd_json_open(&out, nullptr, '{');
        nd_json_string(&out, "policyVersion", version);
        nd_json_open(&out, "pods", '[');
        nd_vector_each (subject, &lint->subjects)
                put_subject(&out, lint, subject);
        nd_json_close(&out, ']');
        put_not_judged(&out, lint);
        put_unreadable(&out, lint);
        put_texts(&out, "broken", lint->broken.items, lint->broken.count);
        nd_json_close(&out, '}');
        puts(nd_text_get(&text));
}
