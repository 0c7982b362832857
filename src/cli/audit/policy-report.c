/* SPDX-License-Identifier: Apache-2.0 */
/* policy-report.c - findings as objects of wgpolicyk8s.io/v1alpha2
 *
 * One object per namespace, of limited size: an object for every result has filled clusters'
 * etcd. */
#include <stdio.h>

#include "base/json.h"
#include "cli/audit/audit.h"

enum {
        REPORT_BYTES = 4 << 20,
};

#define REPORT_NAME "nodens-audit"

/* The results of one namespace, from its first item to the one before the next namespace's. */
struct part {
        const char *namespace;
        size_t failed, warned, written;
};

static bool is_ready(const struct cli_audit_workload *workload) {
        return workload->readiness.verdict == ND_AUDIT_YES;
}

static const char *api_version_of(const char *kind) {
        for (enum nd_audit_kind i = 0; i < ND_AUDIT_KINDS; i++)
                if (nd_streq(nd_audit_resources[i].kind, kind) && i != ND_AUDIT_CONSTRAINT_OPENSHIFT)
                        return nd_audit_resources[i].group;
        return nullptr;
}

static void put_resource(struct nd_json_out *out, const char *namespace, const char *kind, const char *name) {
        const char *group = api_version_of(kind);
        nd_autofree char *version = nd_format("%s%sv1", group ? group : "", group && *group ? "/" : "");

        nd_json_open(out, "resources", '[');
        nd_json_open(out, nullptr, '{');
        if (group)
                nd_json_string(out, "apiVersion", version);
        nd_json_string(out, "kind", kind);
        if (*namespace)
                nd_json_string(out, "namespace", namespace);
        nd_json_string(out, "name", name);
        nd_json_close(out, '}');
        nd_json_close(out, ']');
}

static void put_item(struct nd_json_out *out, const struct cli_audit_item *item) {
        nd_json_open(out, nullptr, '{');
        nd_json_string(out, "source", REPORT_NAME);
        nd_json_string(out, "policy", nd_audit_is_violation(item->topic) ? "violations" : "user-namespace-exposure");
        nd_json_string(out, "rule", nd_audit_topic_name(item->topic));
        nd_json_string(out, "result", "fail");
        nd_json_string(out, "severity", item->severe ? "high" : "medium");
        nd_json_string(out, "message", item->text);
        put_resource(out, item->namespace, item->kind, item->name);
        nd_json_close(out, '}');
}

static void put_ready(struct nd_json_out *out, const struct cli_audit_workload *workload) {
        nd_json_open(out, nullptr, '{');
        nd_json_string(out, "source", REPORT_NAME);
        nd_json_string(out, "policy", "user-namespaces");
        nd_json_string(out, "rule", "could-have-user-namespace");
        nd_json_string(out, "result", "warn");
        nd_json_string(out, "severity", "low");
        nd_json_string(out, "message", "could run with hostUsers: false as it is");
        put_resource(out, workload->namespace, workload->kind, workload->name);
        nd_json_close(out, '}');
}

static void put_results(const struct cli_audit *audit, struct part *part, struct nd_json_out *out) {
        nd_json_open(out, "results", '[');
        nd_vector_each (item, &audit->items) {
                if (!nd_streq(item->namespace, part->namespace))
                        continue;
                part->failed++;
                if (part->written < AUDIT_REPORT_RESULTS) {
                        put_item(out, item);
                        part->written++;
                }
        }
        nd_vector_each (workload, &audit->workloads) {
                if (!nd_streq(workload->namespace, part->namespace) || !is_ready(workload))
                        continue;
                part->warned++;
                if (part->written < AUDIT_REPORT_RESULTS) {
                        put_ready(out, workload);
                        part->written++;
                }
        }
        nd_json_close(out, ']');
}

static void put_head(const struct part *part, struct nd_json_out *out) {
        nd_json_string(out, "apiVersion", "wgpolicyk8s.io/v1alpha2");
        nd_json_string(out, "kind", *part->namespace ? "PolicyReport" : "ClusterPolicyReport");
        nd_json_open(out, "metadata", '{');
        nd_json_string(out, "name", REPORT_NAME);
        if (*part->namespace)
                nd_json_string(out, "namespace", part->namespace);
        nd_json_open(out, "labels", '{');
        nd_json_string(out, "app.kubernetes.io/managed-by", REPORT_NAME);
        nd_json_close(out, '}');
        nd_json_close(out, '}');
}

/* The summary counts everything, also what the object has no room for. */
static void put_report(const struct cli_audit *audit, struct part *part, struct nd_text *text) {
        struct nd_json_out out = {.text = text};

        nd_json_open(&out, nullptr, '{');
        put_head(part, &out);
        put_results(audit, part, &out);
        nd_json_open(&out, "summary", '{');
        nd_json_number(&out, "pass", 0);
        nd_json_number(&out, "fail", part->failed);
        nd_json_number(&out, "warn", part->warned);
        nd_json_number(&out, "error", 0);
        nd_json_number(&out, "skip", 0);
        nd_json_close(&out, '}');
        nd_json_close(&out, '}');
}

static void collect_namespaces(const struct cli_audit *audit, struct nd_map *ret) {
        nd_vector_each (item, &audit->items)
                (void) nd_map_put(ret, item->namespace, (void *) item->namespace);
        nd_vector_each (workload, &audit->workloads)
                if (is_ready(workload))
                        (void) nd_map_put(ret, workload->namespace, (void *) workload->namespace);
}

struct nd_error *cli_audit_policy_reports(const struct cli_audit *audit,
                                          void (*take)(const char *namespace, const char *json, void *userdata),
                                          void *userdata) {
        nd_cleanup(nd_map_done) struct nd_map namespaces = {};
        const struct nd_map_slot *slot;
        size_t large = 0;

        collect_namespaces(audit, &namespaces);
        for (size_t at = 0; (slot = nd_map_next(&namespaces, &at));) {
                nd_autotext struct nd_text text = ND_TEXT(REPORT_BYTES);
                struct part part = {.namespace = slot->value};

                put_report(audit, &part, &text);
                if (text.overflow)
                        large++;
                else
                        take(part.namespace, nd_text_get(&text), userdata);
        }
        return large > 0 ? nd_error_new(ND_EXHAUSTED, 0, "%zu reports exceed %d bytes", large, REPORT_BYTES) : nullptr;
}

static void put_one([[maybe_unused]] const char *namespace, const char *json, void *userdata) {
        bool *first = userdata;

        printf("%s\n%s", *first ? "" : ",", json);
        *first = false;
}

struct nd_error *cli_audit_print_policy_reports(const struct cli_audit *audit) {
        struct nd_error *error;
        bool first = true;

        printf("{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [");
        error = cli_audit_policy_reports(audit, put_one, &first);
        printf("\n]}\n");
        return error;
}
