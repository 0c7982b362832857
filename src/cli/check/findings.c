/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/check/findings.h"

#include <stdio.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/output/sanitize.h"
#include "cli/output/table.h"

static const struct {
        const char *name;
        const char *colour;
} levels[] = {
        [FINDING_OK] = {"ok", "green"},
        [FINDING_NOTE] = {"note", "cyan"},
        [FINDING_WARN] = {"warn", "yellow"},
        [FINDING_FAIL] = {"FAIL", "red"},
};
static_assert(nd_count_of(levels) == FINDING_FAIL + 1);

void cli_findings_done(struct cli_findings *findings) {
        nd_vector_each (f, &findings->list) {
                free(f->subject);
                free(f->found);
                free(f->advice);
        }
        nd_vector_done(&findings->list);
}

void cli_findings_add(struct cli_findings *findings, enum cli_finding_level level, const char *subject, char *found,
                      char *advice) {
        nd_vector_push(&findings->list, ((struct cli_finding) {.level = level,
                                                               .group = findings->group,
                                                               .subject = nd_strdup(subject),
                                                               .found = found,
                                                               .advice = advice}));
}

void cli_findings_add_probe(struct cli_findings *findings, enum cli_finding_level when_bad, const char *subject,
                            struct nd_error *error, char *good, const char *advice) {
        nd_autofree char *text = good;
        nd_autoerror struct nd_error *taken = error;

        if (nd_error_code(taken) == ND_DENIED && geteuid() != 0)
                cli_findings_add(findings, FINDING_NOTE, subject, nd_format("not checked: %s", nd_error_text(taken)),
                                 nd_strdup("run nodens check as root"));
        else if (taken)
                cli_findings_add(findings, when_bad, subject, nd_strdup(nd_error_text(taken)), nd_strdup(advice));
        else
                cli_findings_add(findings, FINDING_OK, subject, nd_take_ptr(text), nullptr);
}

enum cli_finding_level cli_findings_worst(const struct cli_findings *findings) {
        enum cli_finding_level worst = FINDING_OK;

        nd_vector_each (f, &findings->list) {
                if (f->level > worst)
                        worst = f->level;
        }
        return worst;
}

/* The worst finding about the host alone: without a runtime it cannot run pods, but it need not be
 * replaced. */
static enum cli_finding_level worst_of_host(const struct cli_findings *findings) {
        enum cli_finding_level worst = FINDING_OK;

        nd_vector_each (f, &findings->list) {
                if (f->level > worst && !nd_streq(f->group, FINDINGS_RUNTIME))
                        worst = f->level;
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
static_assert(nd_count_of(outcomes) == FINDING_FAIL + 1);

static void print_outcome(const struct cli_findings *findings) {
        enum cli_finding_level worst = cli_findings_worst(findings), host = worst_of_host(findings);

        printf("\n%s is %s for %s.\n", findings->subject ?: "This node", outcomes[worst].word,
               findings->purpose ?: "pods with user namespaces");
        if (!nd_streq(outcomes[worst].word, outcomes[host].word))
                printf("The host itself is %s: see " FINDINGS_RUNTIME ".\n", outcomes[host].word);
}

static void print_table(const struct cli_findings *findings) {
        static const char *const headings[] = {"", "CHECK", "FOUND", nullptr};
        nd_cleanup(cli_table_done) struct cli_table table = {};
        const char *group = "";

        cli_table_init(&table, headings);
        nd_vector_each (f, &findings->list) {
                nd_autofree char *found = cli_sanitize_text(f->found), *advice = cli_sanitize_text(f->advice),
                                 *text = f->advice ? nd_format("%s\n-> %s", found, advice) : nd_strdup(found);

                if (f->group != group) {
                        cli_table_heading(&table, f->group);
                        group = f->group;
                }
                cli_table_row(&table, (const char *[]) {levels[f->level].name, f->subject, text}, levels[f->level].colour);
        }
        cli_table_print(&table);
        print_outcome(findings);
}

static void print_json(const struct cli_findings *findings) {
        nd_autotext struct nd_text text = ND_TEXT(1 << 20);
        struct nd_json_out out = {.text = &text, .indent = 2};

        nd_json_open(&out, nullptr, '{');
        nd_json_string(&out, "verdict", outcomes[cli_findings_worst(findings)].word);
        nd_json_open(&out, "checks", '[');
        nd_vector_each (f, &findings->list) {
                nd_json_open(&out, nullptr, '{');
                nd_json_string(&out, "group", f->group);
                nd_json_string(&out, "check", f->subject);
                nd_json_string(&out, "verdict", f->level == FINDING_FAIL ? "fail" : levels[f->level].name);
                nd_json_string(&out, "found", f->found);
                nd_json_string(&out, "advice", f->advice);
                nd_json_close(&out, '}');
        }
        nd_json_close(&out, ']');
        nd_json_close(&out, '}');
        puts(nd_text_get(&text));
}

int cli_findings_report(const struct cli_findings *findings, bool json) {
        if (json)
                print_json(findings);
        else
                print_table(findings);
        return outcomes[cli_findings_worst(findings)].exit_code;
}
