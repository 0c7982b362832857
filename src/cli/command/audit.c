/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command/audit.h"

#include <stdlib.h>

#include "cli/audit/audit.h"
#include "cli/output/sanitize.h"

enum {
        AUDIT_FOUND = 1,
        AUDIT_INCOMPLETE = 2, /* something could not be read */
        TIMEOUT_SECONDS = 600,
        TIMEOUT_MOST = 86400,
};

#define OPTION(long_name, member) .name = (long_name), .offset = offsetof(struct cli_audit_settings, member)

const struct nd_option cli_audit_options[] = {
        {OPTION("kubeconfig", kubeconfig), .kind = ND_OPTION_TEXT, .argument = "FILE", .values = ND_VALUES_FILE,
         .help = "kubeconfig of the cluster (default $KUBECONFIG or ~/.kube/config)"},
        {OPTION("workloads", workloads), .help = "list every workload with the reasons"},
        {OPTION("json", json), .help = "print JSON"},
        {OPTION("policy-report", policy_report), .help = "print PolicyReport objects (wgpolicyk8s.io/v1alpha2)"},
        {OPTION("apply", apply), .help = "with --policy-report: write them to the cluster instead"},
        {OPTION("node", node), .kind = ND_OPTION_TEXT, .argument = "NAME",
         .help = "this host is the node NAME: also check the user namespaces of its processes (as root)"},
        {OPTION("minimum-version", minimum), .kind = ND_OPTION_TEXT, .argument = "VERSION",
         .help = "oldest kubelet that is trusted with user namespaces (default " ND_FLOOR_REQUIRED ")"},
        {OPTION("image-ids", images), .kind = ND_OPTION_TEXT, .argument = "FILE", .values = ND_VALUES_FILE,
         .help = "lines 'ID IMAGE': the highest owner's ID of the files in an image"},
        {OPTION("host-network", host_network), .help = "assume the feature gate UserNamespacesHostNetworkSupport"},
        {OPTION("timeout", timeout_s), .kind = ND_OPTION_U32, .argument = "SECONDS", .least = 1,
         .help = "limit of the whole run (default 600)"},
        {},
};

/* Consumes the error. */
static int fail(struct nd_error *error, int status) {
        nd_autoerror struct nd_error *owned = error;

        (void) cli_sanitize_print_error("audit", owned);
        return status;
}

static struct nd_error *check_settings(const struct cli_audit_settings *settings, int count) {
        struct nd_floor_version least;

        if (settings->json && settings->policy_report)
                return nd_error_new(ND_INVALID, 0, "--json cannot be combined with --policy-report");
        if (settings->apply && !settings->policy_report)
                return nd_error_new(ND_INVALID, 0, "--apply needs --policy-report");
        if (settings->apply && count > 0)
                return nd_error_new(ND_INVALID, 0, "--apply needs a cluster, not files");
        if (settings->kubeconfig && count > 0)
                return nd_error_new(ND_INVALID, 0, "--kubeconfig cannot be combined with files");
        if (settings->timeout_s > TIMEOUT_MOST)
                return nd_error_new(ND_INVALID, 0, "--timeout %u: must be at most %d", settings->timeout_s, TIMEOUT_MOST);
        if (settings->minimum && (nd_floor_minimum_parse(settings->minimum, &least) < 0 || !nd_floor_version_is_set(&least)))
                return nd_error_new(ND_INVALID, 0, "--minimum-version %s: must be a version, such as " ND_FLOOR_REQUIRED,
                                    settings->minimum);
        return nullptr;
}

static struct nd_error *prepare(const struct cli_audit_settings *settings, struct cli_audit *audit) {
        audit->cluster.arena = &audit->arena;
        audit->cluster.minimum = settings->minimum ? settings->minimum : ND_FLOOR_REQUIRED;
        audit->cluster.host_network_gate = settings->host_network;
        if (settings->images)
                nd_try(cli_audit_read_images(audit, settings->images));
        if (settings->node) {
                nd_try(cli_audit_read_maps(&audit->cluster.host_mapped));
                audit->cluster.maps_known = true;
                audit->cluster.map_node = settings->node;
        }
        return nullptr;
}

static struct nd_error *run(const struct cli_audit_settings *settings, int count, char **files, struct cli_audit *audit) {
        const struct cli_audit_place place = {.kubeconfig = settings->kubeconfig,
                                              .files = files,
                                              .file_count = count,
                                              .timeout_s = settings->timeout_s ? settings->timeout_s : TIMEOUT_SECONDS};

        nd_try(prepare(settings, audit));
        nd_try(cli_audit_source_open(&place, &audit->source));
        cli_audit_collect(audit);
        cli_audit_summarize(audit);
        return settings->apply ? cli_audit_publish(audit) : nullptr;
}

static void print_errors(const struct cli_audit *audit) {
        nd_vector_each (error, &audit->errors)
                (void) fail(nd_error_new(ND_UNAVAILABLE, 0, "%s", *error), 0);
        if (audit->error_count > audit->errors.count)
                (void) fail(nd_error_new(ND_UNAVAILABLE, 0, "%zu more errors", audit->error_count - audit->errors.count), 0);
        if (audit->cut)
                (void) fail(nd_error_new(ND_EXHAUSTED, 0, "a limit was reached: the result is incomplete"), 0);
        if (audit->objects == 0 && audit->error_count == 0)
                (void) fail(nd_error_new(ND_NOT_FOUND, 0, "no objects to audit found"), 0);
}

static struct nd_error *report(const struct cli_audit_settings *settings, const struct cli_audit *audit) {
        if (settings->json)
                return cli_audit_report_json(audit);
        if (settings->policy_report && !settings->apply)
                return cli_audit_print_policy_reports(audit);
        cli_audit_report_text(audit, settings->workloads);
        return nullptr;
}

int cli_audit_run(void *settings_pointer, int operand_count, char **operands) {
        const struct cli_audit_settings *settings = settings_pointer;
        nd_cleanup(cli_audit_done) struct cli_audit audit = {};
        struct nd_error *error = check_settings(settings, operand_count);

        if (error)
                return fail(error, ND_EXIT_USAGE);
        error = run(settings, operand_count, operands, &audit);
        if (error)
                return fail(error, AUDIT_INCOMPLETE);
        print_errors(&audit);
        error = report(settings, &audit);
        if (error)
                return fail(error, AUDIT_INCOMPLETE);
        if (cli_audit_is_incomplete(&audit) || audit.objects == 0)
                return AUDIT_INCOMPLETE;
        return audit.items.count > 0 ? AUDIT_FOUND : EXIT_SUCCESS;
}
