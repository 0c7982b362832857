/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <stdio.h>

#include "cli/audit/audit.h"

static void put_item(struct nd_json_out *out, const struct cli_audit_item *item) {
        nd_json_open(out, nullptr, '{');
        nd_json_string(out, "finding", nd_audit_topic_name(item->topic));
        nd_json_string(out, "type", nd_audit_is_violation(item->topic) ? "violation" : "exposure");
        nd_json_string(out, "severity", item->severe ? "high" : "medium");
        nd_json_string(out, "namespace", item->namespace);
        nd_json_string(out, "kind", item->kind);
        nd_json_string(out, "name", item->name);
        if (item->pods > 0) {
                nd_json_number(out, "pods", item->pods);
                nd_json_string(out, "firstPod", item->pod);
        }
        nd_json_string(out, "message", item->text);
        nd_json_close(out, '}');
}

static void put_workload(struct nd_json_out *out, const struct cli_audit_workload *workload) {
        const struct nd_audit_readiness *readiness = &workload->readiness;

        nd_json_open(out, nullptr, '{');
        nd_json_string(out, "namespace", workload->namespace);
        nd_json_string(out, "kind", workload->kind);
        nd_json_string(out, "name", workload->name);
        nd_json_string(out, "ready", nd_audit_verdict_name(readiness->verdict));
        nd_json_open(out, "reasons", '[');
        for (size_t i = 0; i < readiness->reason_count && i < ND_AUDIT_REASONS; i++)
                nd_json_string(out, nullptr, readiness->reasons[i]);
        nd_json_close(out, ']');
        if (readiness->constraint)
                nd_json_string(out, "constraint", readiness->constraint);
        if (readiness->grant)
                nd_json_string(out, "needsGrant", readiness->grant);
        if (readiness->user >= 0)
                nd_json_number(out, "chosenUser", (uint64_t) readiness->user);
        nd_json_close(out, '}');
}

static void put_namespace(struct nd_json_out *out, const struct cli_audit_namespace *namespace) {
        nd_json_open(out, nullptr, '{');
        nd_json_string(out, "name", namespace->name);
        for (enum nd_audit_verdict verdict = 0; verdict < ND_AUDIT_VERDICTS; verdict++)
                nd_json_number(out, nd_audit_verdict_name(verdict), namespace->counts[verdict]);
        nd_json_string(out, "label", namespace->label);
        nd_json_string(out, "before", namespace->advice);
        nd_json_string(out, "command", namespace->command);
        nd_json_close(out, '}');
}

struct nd_error *cli_audit_report_json(const struct cli_audit *audit) {
        nd_autotext struct nd_text text = ND_TEXT(AUDIT_REPORT);
        struct nd_json_out out = {.text = &text, .indent = 2};

        nd_json_open(&out, nullptr, '{');
        nd_json_bool(&out, "complete", !cli_audit_is_incomplete(audit));
        nd_json_string(&out, "minimumKubeletVersion", audit->cluster.minimum);
        nd_json_number(&out, "objects", audit->objects);
        nd_json_open(&out, "findings", '[');
        nd_vector_each (item, &audit->items)
                put_item(&out, item);
        nd_json_close(&out, ']');
        nd_json_open(&out, "namespaces", '[');
        nd_vector_each (namespace, &audit->namespaces)
                put_namespace(&out, namespace);
        nd_json_close(&out, ']');
        nd_json_open(&out, "workloads", '[');
        nd_vector_each (workload, &audit->workloads)
                put_workload(&out, workload);
        nd_json_close(&out, ']');
        nd_json_open(&out, "errors", '[');
        nd_vector_each (error, &audit->errors)
                nd_json_string(&out, nullptr, *error);
        nd_json_close(&out, ']');
        nd_json_close(&out, '}');
        if (text.overflow)
                return nd_error_new(ND_EXHAUSTED, 0, "the output exceeds %d bytes", AUDIT_REPORT);
        puts(nd_text_get(&text));
        return nullptr;
}
