/* SPDX-License-Identifier: Apache-2.0 */
/* sarif.c - findings for code review tools: SARIF 2.1.0, one result per failed check of a pod */
#include <stdio.h>

#include "base/json.h"
#include "cli/lint/lint.h"

enum {
        REPORT = 256 << 20,
};

static void put_location(struct nd_json_out *out, const struct cli_lint_subject *subject) {
        nd_json_open(out, "locations", '[');
        nd_json_open(out, nullptr, '{');
        nd_json_open(out, "physicalLocation", '{');
        nd_json_open(out, "artifactLocation", '{');
        nd_json_string(out, "uri", nd_streq(subject->file, "-") ? "stdin" : subject->file);
        nd_json_close(out, '}');
        nd_json_open(out, "region", '{');
        nd_json_number(out, "startLine", subject->line);
        nd_json_close(out, '}');
        nd_json_close(out, '}');
        nd_json_close(out, '}');
        nd_json_close(out, ']');
}

static void put_result(struct nd_json_out *out, const struct cli_lint_subject *subject, const char *rule, const char *level,
                       const char *message) {
        nd_autofree char *text = nd_format("%s %s: %s", subject->workload.kind, subject->workload.name, message);

        nd_json_open(out, nullptr, '{');
        nd_json_string(out, "ruleId", rule);
        nd_json_string(out, "level", level);
        nd_json_open(out, "message", '{');
        nd_json_string(out, "text", text);
        nd_json_close(out, '}');
        put_location(out, subject);
        nd_json_close(out, '}');
}

static void put_results(struct nd_json_out *out, const struct cli_lint *lint, const struct cli_lint_subject *subject) {
        bool demanded = lint->has_level && subject->target <= lint->level;

        for (size_t i = 0; i < subject->findings.count; i++) {
                const struct nd_podsecurity_finding *finding = &subject->findings.items[i];
                nd_autofree char *message =
                        nd_format("not %s: %s%s%s", nd_podsecurity_level_name(subject->target), finding->reason,
                                  finding->detail[0] != '\0' ? ": " : "", finding->detail);

                put_result(out, subject, finding->check, demanded ? "error" : "note", message);
        }
        if (subject->invalid[0] != '\0')
                put_result(out, subject, "hostUsers", "error", subject->invalid);
        for (size_t i = 0; i < subject->broken.count; i++)
                put_result(out, subject, "expectation", "error", subject->broken.items[i]);
}

void cli_lint_report_sarif(const struct cli_lint *lint) {
        nd_autotext struct nd_text text = ND_TEXT(REPORT);
        struct nd_json_out out = {.text = &text, .indent = 2};

        nd_json_open(&out, nullptr, '{');
        nd_json_string(&out, "$schema", "https://json.schemastore.org/sarif-2.1.0.json");
        nd_json_string(&out, "version", "2.1.0");
        nd_json_open(&out, "runs", '[');
        nd_json_open(&out, nullptr, '{');
        nd_json_open(&out, "tool", '{');
        nd_json_open(&out, "driver", '{');
        nd_json_string(&out, "name", "nodens lint");
        nd_json_string(&out, "version", ND_VERSION);
        nd_json_close(&out, '}');
        nd_json_close(&out, '}');
        nd_json_open(&out, "results", '[');
        nd_vector_each (subject, &lint->subjects)
                put_results(&out, lint, subject);
        nd_json_close(&out, ']');
        nd_json_close(&out, '}');
        nd_json_close(&out, ']');
        nd_json_close(&out, '}');
        puts(nd_text_get(&text));
}
