/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command/lint.h"

#include <stdio.h>

#include "cli/lint/cluster.h"
#include "cli/lint/lint.h"

#define OPTION(long_name, member) .name = (long_name), .offset = offsetof(struct cli_lint_settings, member)

const struct nd_option cli_lint_options[] = {
        {OPTION("level", level), .kind = ND_OPTION_TEXT, .argument = "LEVEL",
         .help = "fail unless every pod meets this level: privileged, baseline or restricted"},
        {OPTION("policy-version", version), .kind = ND_OPTION_TEXT, .argument = "VERSION",
         .help = "use the standards of this version, v1.0 to v1.36 or latest (default latest)"},
        {OPTION("constraints", constraints), .kind = ND_OPTION_TEXT, .argument = "FILE", .values = ND_VALUES_FILE,
         .help = "security context constraints to use instead of the defaults"},
        {OPTION("expect", expect), .kind = ND_OPTION_TEXT, .argument = "FILE", .values = ND_VALUES_FILE,
         .help = "fail unless the results match this file"},
        {OPTION("as", as), .kind = ND_OPTION_TEXT, .argument = "USER",
         .help = "query a cluster: which constraints would admit pods of this user"},
        {OPTION("namespace", namespace), .kind = ND_OPTION_TEXT, .argument = "NAMESPACE",
         .help = "namespace in the cluster (user: --as, else the kubeconfig's)"},
        {OPTION("kubeconfig", kubeconfig), .kind = ND_OPTION_TEXT, .argument = "FILE", .values = ND_VALUES_FILE,
         .help = "kubeconfig of the cluster (default $KUBECONFIG or ~/.kube/config)"},
        {OPTION("host-network", host_network), .help = "assume the feature gate UserNamespacesHostNetworkSupport"},
        {OPTION("json", json), .help = "print JSON"},
        {OPTION("sarif", sarif), .help = "print SARIF 2.1.0, for code review tools"},
        {},
};

static void lint_done(struct cli_lint *lint) {
        nd_vector_each (subject, &lint->subjects) {
                nd_advice_done(&subject->advice);
                nd_vector_done(&subject->broken);
        }
        nd_vector_done(&lint->subjects);
        nd_vector_done(&lint->sccs);
        nd_vector_done(&lint->broken);
        cli_lint_cluster_free(lint->cluster);
        nd_arena_done(&lint->arena);
}

/* Uses the constraints of a cluster instead of the built-in ones. */
static struct nd_error *open_cluster(const struct cli_lint_settings *settings, struct cli_lint *lint) {
        const struct nd_scc *scc;

        if (settings->constraints)
                return nd_error_new(ND_INVALID, 0, "--constraints cannot be combined with --as, --namespace or --kubeconfig");
        nd_try(cli_lint_cluster_open(&(struct cli_lint_cluster_settings) {.kubeconfig = settings->kubeconfig,
                                                                          .namespace = settings->namespace,
                                                                          .as = settings->as},
                                     &lint->arena, &lint->cluster));
        for (size_t i = 0; (scc = cli_lint_cluster_constraint(lint->cluster, i)); i++)
                nd_vector_push(&lint->sccs, scc);
        return nullptr;
}

static struct nd_error *take_settings(const struct cli_lint_settings *settings, struct cli_lint *lint) {
        lint->version = ND_POLICY_LATEST;
        lint->host_network = settings->host_network;
        lint->has_level = settings->level;
        if (settings->json && settings->sarif)
                return nd_error_new(ND_INVALID, 0, "--json cannot be combined with --sarif");
        if (settings->version && nd_kube_version_parse(settings->version, &lint->version) < 0)
                return nd_error_new(ND_INVALID, 0, "--policy-version %s: must be \"latest\" or \"v1.x\"", settings->version);
        if (settings->level && nd_podsecurity_level_parse(settings->level, &lint->level) < 0)
                return nd_error_new(ND_INVALID, 0, "--level %s: must be one of privileged, baseline, restricted",
                                    settings->level);
        if (settings->as || settings->namespace || settings->kubeconfig)
                return open_cluster(settings, lint);
        if (settings->constraints)
                return cli_lint_read_constraints(lint, settings->constraints);
        for (size_t i = 0; i < nd_scc_default_count; i++)
                nd_vector_push(&lint->sccs, &nd_scc_defaults[i].scc);
        return nullptr;
}

static struct nd_error *lint_all(const struct cli_lint_settings *settings, int count, char **paths, struct cli_lint *lint) {
        if (count == 0)
                return nd_error_new(ND_INVALID, 0, "missing manifest files (- for standard input)");
        nd_try(take_settings(settings, lint));
        for (int i = 0; i < count; i++)
                nd_try(cli_lint_read(lint, paths[i]));
        if (lint->subjects.count == 0)
                return nd_error_new(ND_NOT_FOUND, 0, "no pods or workload objects found in the files");
        nd_vector_each (subject, &lint->subjects)
                cli_lint_evaluate(lint, subject);
        if (lint->cluster && cli_lint_cluster_error(lint->cluster))
                return nd_error_new(ND_UNAVAILABLE, 0, "%s", nd_error_text(cli_lint_cluster_error(lint->cluster)));
        return settings->expect ? cli_lint_expect(lint, settings->expect) : nullptr;
}

int cli_lint_run(void *settings_pointer, int operand_count, char **operands) {
        const struct cli_lint_settings *settings = settings_pointer;
        nd_cleanup(lint_done) struct cli_lint lint = {};
        nd_autoerror struct nd_error *error = lint_all(settings, operand_count, operands, &lint);
        bool bad = lint.broken.count > 0;

        if (error) {
                fprintf(stderr, "nodens lint: %s\n", nd_error_text(error));
                return 2;
        }
        if (settings->json)
                cli_lint_report_json(&lint);
        else if (settings->sarif)
                cli_lint_report_sarif(&lint);
        else
                cli_lint_report_text(&lint);
        nd_vector_each (subject, &lint.subjects)
                bad |= cli_lint_is_bad(&lint, subject);
        return bad ? 1 : 0;
}
