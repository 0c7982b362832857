/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/findings.h"

#include <stdio.h>

#include "base/json.h"
#include "cli/table.h"

static const struct {
        const char *name;
        const char *colour;
} verdicts[] = {
        [FINDING_OK] = {"ok", "green"},
        [FINDING_NOTE] = {"note", "cyan"},
        [FINDING_WARN] = {"warn", "yellow"},
        [FINDING_FAIL] = {"FAIL", "red"},
};

void findings_done(struct findings *findings) {
        nd_vector_each (f, &findings->list) {
                free(f->subject);
                free(f->found);
                free(f->advice);
        }
        nd_vector_done(&findings->list);
}

void findings_add(struct findings *findings, enum finding_verdict verdict, const char *subject, char *found, char *advice) {
        nd_vector_push(&findings->list, ((struct finding) {.verdict = verdict,
                                                           .group = findings->group,
                                                           .subject = nd_strdup(subject),
                                                           .found = found,
                                                           .advice = advice}));
}

const char *finding_verdict_name(enum finding_verdict verdict) {
        return verdicts[verdict].name;
}

enum finding_verdict findings_worst(const struct findings *findings) {
        enum finding_verdict worst = FINDING_OK;

        nd_vector_each (f, &findings->list) {
                if (f->verdict > worst)
                        worst = f->verdict;
        }
        return worst;
}

static const struct {
        const char *word;
        int exit_code;
} outcomes[] = {
        [FINDING_OK] = {"usable", 0},
        [FINDING_NOTE] = {"usable", 0},
        [FINDING_WARN] = {"degraded", 1},
        [FINDING_FAIL] = {"unusable", 2},
};

static void print_table(const struct findings *findings) {
        static const char *const headings[] = {"", "CHECK", "FOUND", nullptr};
        nd_cleanup(table_done) struct table table = {};
        const char *group = "";

        table_init(&table, headings);
        nd_vector_each (f, &findings->list) {
                nd_autofree char *text = f->advice ? nd_format("%s\n-> %s", f->found, f->advice) : nd_strdup(f->found);

                if (f->group != group) {
                        table_heading(&table, f->group);
                        group = f->group;
                }
                table_row(&table, (const char *[]) {verdicts[f->verdict].name, f->subject, text}, verdicts[f->verdict].colour);
        }
        table_print(&table);
        printf("\nThis node is %s for pods with user namespaces.\n", outcomes[findings_worst(findings)].word);
}

static void print_json(const struct findings *findings) {
        nd_autotext text = ND_TEXT(1 << 20);
        struct nd_json_out out = {.text = &text, .indent = 2};

        nd_json_open(&out, nullptr, '{');
        nd_json_string(&out, "verdict", outcomes[findings_worst(findings)].word);
        nd_json_open(&out, "checks", '[');
        nd_vector_each (f, &findings->list) {
                nd_json_open(&out, nullptr, '{');
                nd_json_string(&out, "group", f->group);
                nd_json_string(&out, "check", f->subject);
                nd_json_string(&out, "verdict", f->verdict == FINDING_FAIL ? "fail" : verdicts[f->verdict].name);
                nd_json_string(&out, "found", f->found);
                nd_json_string(&out, "advice", f->advice);
                nd_json_close(&out, '}');
        }
        nd_json_close(&out, ']');
        nd_json_close(&out, '}');
        puts(nd_text_get(&text));
}

int findings_report(const struct findings *findings, bool json) {
        if (json)
                print_json(findings);
        else
                print_table(findings);
        return outcomes[findings_worst(findings)].exit_code;
}
