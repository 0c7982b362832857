/* SPDX-License-Identifier: Apache-2.0 */
/* advice.c - which label of a namespace would give its workloads user namespaces
 *
 * The label `default` sets hostUsers: false on every pod that leaves it open and may have it, so a
 * workload that would break must say hostUsers: true first. `require` refuses pods without a user
 * namespace: it fits when all workloads are ready or have one. */
#include <stdarg.h>
#include <string.h>

#include "cli/audit/audit.h"
#include "cli/output/format.h"

enum {
        ADVICE_BYTES = 4096,
        NAME_LENGTH = 63,
};

static struct cli_audit_namespace *namespace_of(struct cli_audit *audit, const char *name) {
        size_t count = audit->namespaces.count;

        /* workloads are sorted by namespace */
        if (count == 0 || !nd_streq(audit->namespaces.items[count - 1].name, name)) {
                nd_vector_push(&audit->namespaces,
                               ((struct cli_audit_namespace) {.name = name,
                                                              .facts = nd_map_get(&audit->cluster.namespaces, name),
                                                              .label = "",
                                                              .command = "",
                                                              .advice = ""}));
                count++;
        }
        return &audit->namespaces.items[count - 1];
}

static void count_workload(struct cli_audit_namespace *namespace, const struct nd_audit_readiness *readiness) {
        bool ready = readiness->verdict == ND_AUDIT_YES;

        namespace->counts[readiness->verdict]++;
        if (!ready && readiness->verdict != ND_AUDIT_ALREADY) {
                namespace->pinned += !readiness->left_alone;
                namespace->left_alone += readiness->left_alone;
        }
        if (ready && !readiness->constraint) {
                namespace->refused++;
                if (readiness->grant && !namespace->grant) {
                        namespace->grant = readiness->grant;
                        namespace->account = readiness->account;
                }
        }
        namespace->moved += ready && readiness->constraint && readiness->user >= 0;
}

static const char *label_for(const struct cli_audit_namespace *namespace) {
        if (namespace->pinned + namespace->left_alone == 0)
                return "require";
        return namespace->counts[ND_AUDIT_YES] > 0 ? "default" : "";
}

/* Names in a file may be anything; only a name valid in the API goes into a command for a
 * shell. */
static bool is_name(const char *text) {
        size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-.");

        return length > 0 && text[length] == '\0' && length <= NAME_LENGTH && text[0] != '-';
}

static bool has_label(const struct nd_audit_namespace *facts, const char *label) {
        if (!facts || !nd_streq(facts->constraints, "enforce"))
                return false;
        return nd_streq(facts->user_namespaces, "require") || nd_streq(facts->user_namespaces, label);
}

static const char *command_for(struct cli_audit *audit, const struct cli_audit_namespace *namespace) {
        const char *enforce = ND_AUDIT_LABEL_CONSTRAINTS "=enforce ";

        if (has_label(namespace->facts, namespace->label) || !is_name(namespace->name))
                return "";
        if (namespace->facts && nd_streq(namespace->facts->constraints, "enforce"))
                enforce = "";
        return nd_arena_format(&audit->arena, "kubectl label --overwrite namespace %s %s" ND_AUDIT_LABEL_USER_NAMESPACES "=%s",
                               namespace->name, enforce, namespace->label);
}

/* Sentences that are joined by semicolons. */
[[gnu::format(printf, 2, 3)]] static void add_sentence(struct nd_text *text, const char *format, ...) {
        nd_autofree char *sentence = nullptr;
        va_list arguments;

        va_start(arguments, format);
        sentence = nd_format_va(format, arguments);
        va_end(arguments);
        nd_text_addf(text, "%s%s", text->length > 0 ? "; " : "", sentence);
}

static void advise_grant(const struct cli_audit_namespace *namespace, struct nd_text *text) {
        char count[FORMAT_COUNT];

        if (namespace->refused == 0)
                return;
        (void) cli_format_count(namespace->refused, "workload", count);
        if (namespace->grant && is_name(namespace->name) && is_name(namespace->account) && is_name(namespace->grant))
                add_sentence(text,
                             "kubectl create rolebinding %s-%s -n %s --clusterrole nodens:scc:%s --serviceaccount %s:%s, "
                             "or change %s that no constraint admits",
                             namespace->grant, namespace->account, namespace->name, namespace->grant, namespace->name,
                             namespace->account, count);
        else
                add_sentence(text, "change %s that no constraint admits", count);
}

static const char *advice_for(struct cli_audit *audit, const struct cli_audit_namespace *namespace) {
        nd_autotext struct nd_text text = ND_TEXT(ADVICE_BYTES);
        char count[FORMAT_COUNT];

        if (audit->cluster.constraints.count == 0)
                add_sentence(&text, "install nodens-guard");
        if (namespace->pinned > 0)
                add_sentence(&text, "set hostUsers: true in %s not ready",
                             cli_format_count(namespace->pinned, "workload", count));
        if (audit->cluster.constraints.count > 0)
                advise_grant(namespace, &text);
        if (namespace->moved > 0)
                add_sentence(&text, "set runAsUser in %s, or the constraint chooses the user",
                             cli_format_count(namespace->moved, "workload", count));
        return nd_arena_strdup(&audit->arena, nd_text_get(&text));
}

static void advise(struct cli_audit *audit, struct cli_audit_namespace *namespace) {
        if (nd_audit_is_left_out(namespace->name)) {
                namespace->advice = namespace->counts[ND_AUDIT_YES] > 0
                                            ? "labels have no effect here: set hostUsers: false in the manifests"
                                            : "";
                return;
        }
        namespace->label = label_for(namespace);
        if (!*namespace->label)
                return;
        namespace->command = command_for(audit, namespace);
        if (*namespace->command)
        namespace->advice = advice_for(audit, namespace);
}

void cli_audit_summarize(struct cli_audit *audit) {
        nd_vector_each (workload, &audit->workloads)
                count_workload(namespace_of(audit, workload->namespace), &workload->readiness);
        nd_vector_each (namespace, &audit->namespaces)
                advise(audit, namespace);
}
