/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command/lint.h"

#include <stdlib.h>

#include "cli/lint/cluster.h"
#include "cli/lint/lint.h"
#include "cli/output/sanitize.h"

enum {
        LINT_FAILED = 1,     /* a pod is not as required */
        LINT_INCOMPLETE = 2, /* a file could not be read */
};

#define OPTION(long_name, member) .name = (long_name), .offset = offsetof(struct cli_lint_settings, member)

const struct nd_option cli_lint_options[] = {
        {OPTION("level", level), .kind = ND_OPTION_TEXT, .argument = "LEVEL", .values = ND_VALUES_WORDS,
         .words = "privileged baseline restricted",
         .help = "fail unless every pod meets this level: privileged, baseline or restricted"},
        {OPTION("policy-version", version), .kind = ND_OPTION_TEXT, .argument = "VERSION",
         .help = "use the standards of this version, v1.0 to v1.37 or latest (default latest)"},
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
        {OPTION("recursive", recursive), .letter = 'R', .help = "also read the directories below a directory"},
        {OPTION("host-network", host_network), .help = "assume the feature gate UserNamespacesHostNetworkSupport"},
        {OPTION("json", json), .help = "print JSON"},
        {OPTION("sarif", sarif), .help = "print SARIF 2.1.0, for code review tools"},
        {},
};

static void lint_done(struct cli_lint *lint) {
        nd_vector_each (subject, &lint->subjects) {
                nd_advice_done(&subject->advice);
                nd_vector_done(&subject->unknowns);
                nd_vector_done(&subject->broken);
        }
        nd_vector_done(&lint->subjects);
        nd_vector_done(&lint->sccs);
        nd_vector_done(&lint->unreadable);
        nd_vector_done(&lint->not_judged);
        nd_vector_done(&lint->broken);
        cli_lint_cluster_free(lint->cluster);
        nd_arena_done(&lint->arena);
}

/* Kubernetes takes any minor for the newest that it knows; here it is a typing error. */
static struct nd_error *take_version(const char *text, struct cli_lint *lint) {
        lint->version = ND_POLICY_LATEST;
        if (!text)
                return nullptr;
        if (nd_kube_version_parse(text, &lint->version) < 0 ||
            (!lint->version.latest && lint->version.minor > ND_POLICY_NEWEST))
                return nd_error_new(ND_INVALID, 0, "--policy-version %s: must be latest, or v1.0 to v1.%d", text,
                                    ND_POLICY_NEWEST);
        return nullptr;
}

/* What is wrong on the command line. */
static struct nd_error *take_settings(const struct cli_lint_settings *settings, int count, struct cli_lint *lint) {
        if (count == 0)
                return nd_error_new(ND_INVALID, 0, "missing manifest files (- for standard input)");
        if (settings->json && settings->sarif)
                return nd_error_new(ND_INVALID, 0, "--json cannot be combined with --sarif");
        if (settings->constraints && (settings->as || settings->namespace || settings->kubeconfig))
                return nd_error_new(ND_INVALID, 0, "--constraints cannot be combined with --as, --namespace or --kubeconfig");
        nd_try(take_version(settings->version, lint));
        if (settings->level && nd_podsecurity_level_parse(settings->level, &lint->level) < 0)
                return nd_error_new(ND_INVALID, 0, "--level %s: must be one of privileged, baseline, restricted",
                                    settings->level);
        lint->host_network = settings->host_network;
        lint->recursive = settings->recursive;
        lint->has_level = settings->level;
        lint->strict = settings->level || settings->expect;
        return nullptr;
}

/* Uses the constraints of a cluster instead of the built-in ones. */
static struct nd_error *open_cluster(const struct cli_lint_settings *settings, struct cli_lint *lint) {
        const struct nd_scc *scc;

        nd_try(cli_lint_cluster_open(&(struct cli_lint_cluster_settings) {.kubeconfig = settings->kubeconfig,
                                                                          .namespace = settings->namespace,
                                                                          .as = settings->as},
                                     &lint->arena, &lint->cluster));
        for (size_t i = 0; (scc = cli_lint_cluster_constraint(lint->cluster, i)); i++)
                nd_vector_push(&lint->sccs, scc);
        return nullptr;
}

static struct nd_error *find_constraints(const struct cli_lint_settings *settings, struct cli_lint *lint) {
        if (settings->as || settings->namespace || settings->kubeconfig)
                return open_cluster(settings, lint);
        if (settings->constraints)
                return cli_lint_read_constraints(lint, settings->constraints);
        for (size_t i = 0; i < nd_scc_default_count; i++)
                nd_vector_push(&lint->sccs, &nd_scc_defaults[i].scc);
        return nullptr;
}

static struct nd_error *lint_all(const struct cli_lint_settings *settings, int count, char **paths, struct cli_lint *lint) {
        nd_try(find_constraints(settings, lint));
        for (int i = 0; i < count; i++)
                cli_lint_read(lint, paths[i]);
        if (lint->cluster && cli_lint_cluster_error(lint->cluster))
                return nd_error_new(ND_UNAVAILABLE, 0, "%s", nd_error_text(cli_lint_cluster_error(lint->cluster)));
        return settings->expect ? cli_lint_expect(lint, settings->expect) : nullptr;
}

/* Consumes the error. */
static int fail(struct nd_error *error, int status) {
        nd_autoerror struct nd_error *owned = error;

        (void) cli_sanitize_print_error("lint", owned);
        return status;
}

/* Returns whether something could not be read: then the result is not complete. */
static bool print_unreadable(const struct cli_lint *lint) {
        nd_vector_each (one, &lint->unreadable)
                (void) fail(nd_error_new(ND_INVALID, 0, "%s", one->error), 0);
        if (lint->subjects.count == 0 && lint->unreadable.count == 0)
                (void) fail(nd_error_new(ND_NOT_FOUND, 0, "no pods or workload objects found in the files"), 0);
        return lint->subjects.count == 0 || lint->unreadable.count > 0;
}

static void report(const struct cli_lint_settings *settings, const struct cli_lint *lint) {
        if (settings->json)
                cli_lint_report_json(lint);
        else if (settings->sarif)
                cli_lint_report_sarif(lint);
        else
                cli_lint_report_text(lint);
}

int cli_lint_run(void *settings_pointer, int operand_count, char **operands) {
        const struct cli_lint_settings *settings = settings_pointer;
        nd_cleanup(lint_done) struct cli_lint lint = {};
        struct nd_error *error = take_settings(settings, operand_count, &lint);
        bool bad, incomplete;

        if (error)
                return fail(error, ND_EXIT_USAGE);
        error = lint_all(settings, operand_count, operands, &lint);
        if (error)
                return fail(error, LINT_INCOMPLETE);
        incomplete = print_unreadable(&lint);
        report(settings, &lint);
        bad = lint.broken.count > 0;
        nd_vector_each (subject, &lint.subjects)
                bad |= cli_lint_is_bad(&lint, subject);
        if (incomplete)
                return LINT_INCOMPLETE;
        return bad ? LINT_FAILED : EXIT_SUCCESS;
}
