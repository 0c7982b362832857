/* SPDX-License-Identifier: Apache-2.0 */
/* sarif.c - findings for code review tools: SARIF 2.1.0, one result for each field that is the
 * cause of a failed check */
#include <ctype.h>
#include <stdio.h>

#include "base/json.h"
#include "cli/lint/lint.h"

enum {
        REPORT = 256 << 20,
        URI_LENGTH = 64 << 10,
};

#define STANDARDS "https://kubernetes.io/docs/concepts/security/pod-security-standards/"

static const struct {
        const char *id;
        const char *text;
        const char *help; /* nullptr = none */
} rules[] = {
        {"allowPrivilegeEscalation", "containers set allowPrivilegeEscalation: false", STANDARDS "#restricted"},
        {"appArmorProfile", "no container turns its AppArmor profile off", STANDARDS "#baseline"},
        {"capabilities_baseline", "containers add only capabilities that runtimes give by default", STANDARDS "#baseline"},
        {"capabilities_restricted", "containers drop ALL capabilities and add at most NET_BIND_SERVICE",
         STANDARDS "#restricted"},
        {"hostNamespaces", "the pod uses none of the host's network, PID and IPC namespaces", STANDARDS "#baseline"},
        {"hostPathVolumes", "the pod mounts no directory of the host", STANDARDS "#baseline"},
        {"hostPorts", "containers use no port of the host", STANDARDS "#baseline"},
        {"hostProbesAndHostLifecycle", "probes and hooks have no host of their own", STANDARDS "#baseline"},
        {"privileged", "no container is privileged", STANDARDS "#baseline"},
        {"procMount", "containers have a masked /proc, unless the pod has a user namespace", STANDARDS "#baseline"},
        {"procMount_restricted", "containers have a masked /proc", STANDARDS "#restricted"},
        {"restrictedVolumes", "volumes are of types that do not reach the host or the network", STANDARDS "#restricted"},
        {"runAsNonRoot", "containers must not run as root, unless the pod has a user namespace", STANDARDS "#restricted"},
        {"runAsUser", "no container sets runAsUser: 0, unless the pod has a user namespace", STANDARDS "#restricted"},
        {"seLinuxOptions", "SELinux types are of containers, user and role are the default", STANDARDS "#baseline"},
        {"seccompProfile_baseline", "no container turns its seccomp profile off", STANDARDS "#baseline"},
        {"seccompProfile_restricted", "containers have a seccomp profile", STANDARDS "#restricted"},
        {"sysctls", "sysctls are of the safe set", STANDARDS "#baseline"},
        {"windowsHostProcess", "no Windows container is a host process", STANDARDS "#baseline"},
        {"expectation", "the result is as the file of --expect says", nullptr},
        {"notValid", "the API server accepts the pod's containers and hostUsers", nullptr},
        {"unknownField", "all fields are fields of the Kubernetes API", nullptr},
};

static void put_message(struct nd_json_out *out, const char *key, const char *text) {
        nd_json_open(out, key, '{');
        nd_json_string(out, "text", text);
        nd_json_close(out, '}');
}

static void put_rules(struct nd_json_out *out) {
        nd_json_open(out, "rules", '[');
        for (size_t i = 0; i < nd_count_of(rules); i++) {
                nd_json_open(out, nullptr, '{');
                nd_json_string(out, "id", rules[i].id);
                put_message(out, "shortDescription", rules[i].text);
                if (rules[i].help)
                        nd_json_string(out, "helpUri", rules[i].help);
                nd_json_close(out, '}');
        }
        nd_json_close(out, ']');
}

static size_t rule_index(const char *id) {
        size_t i = 0;

        while (i < nd_count_of(rules) && !nd_streq(rules[i].id, id))
                i++;
        return i;
}

/* A path as a URI reference: what is not plain is escaped. A relative one stays relative, to the
 * root of the repository. */
static void add_uri(struct nd_text *uri, const char *file) {
        if (nd_streq(file, "-"))
                file = "stdin";
        if (*file == '/')
                nd_text_add(uri, "file://");
        while (nd_has_prefix(file, "./"))
                file += 2;
        for (; *file; file++) {
                unsigned char c = (unsigned char) *file;

                if (c < 0x80 && (isalnum(c) || strchr("-._~/", c)))
                        nd_text_append(uri, file, 1);
                else
                        nd_text_addf(uri, "%%%02X", c);
        }
}

static void put_location(struct nd_json_out *out, const char *file, size_t line) {
        nd_autotext struct nd_text uri = ND_TEXT(URI_LENGTH);

        add_uri(&uri, file);
        nd_json_open(out, "locations", '[');
        nd_json_open(out, nullptr, '{');
        nd_json_open(out, "physicalLocation", '{');
        nd_json_open(out, "artifactLocation", '{');
        nd_json_string(out, "uri", nd_text_get(&uri));
        nd_json_close(out, '}');
        if (line > 0) {
                nd_json_open(out, "region", '{');
                nd_json_number(out, "startLine", line);
                nd_json_close(out, '}');
        }
        nd_json_close(out, '}');
        nd_json_close(out, '}');
        nd_json_close(out, ']');
}

/* What every result of a subject has. */
struct result {
        const char *rule;
        const char *level;
        const char *message;
        struct cli_lint_field field; /* path "" = the object */
};

static void put_result(struct nd_json_out *out, const struct cli_lint_subject *subject, const struct result *result) {
        nd_autofree char *text = nd_format("%s %s: %s%s%s", subject->workload.kind, subject->workload.name, result->field.path,
                                           *result->field.path ? ": " : "", result->message);

        nd_json_open(out, nullptr, '{');
        nd_json_string(out, "ruleId", result->rule);
        nd_json_number(out, "ruleIndex", rule_index(result->rule));
        nd_json_string(out, "level", result->level);
        put_message(out, "message", text);
        put_location(out, subject->file, result->field.line > 0 ? result->field.line : subject->line);
        nd_json_close(out, '}');
}

static void put_finding(struct nd_json_out *out, const struct cli_lint *lint, const struct cli_lint_subject *subject,
                        size_t number) {
        const struct nd_podsecurity_finding *finding = &subject->findings.items[number];
        const struct cli_lint_fields *causes = &subject->causes[number];
        bool demanded = lint->has_level && subject->target <= lint->level;
        nd_autofree char *message = nd_format("not %s: %s%s%s", nd_podsecurity_level_name(subject->target), finding->reason,
                                              finding->detail[0] != '\0' ? ": " : "", finding->detail);
        struct result result = {.rule = finding->check, .level = demanded ? "error" : "note", .message = message};

        for (size_t i = 0; i < causes->count; i++) {
                result.field = causes->items[i];
                put_result(out, subject, &result);
        }
        result.field = (struct cli_lint_field) {.path = ""};
        if (causes->count == 0)
                put_result(out, subject, &result);
}

static void put_unknown(struct nd_json_out *out, const struct cli_lint *lint, const struct cli_lint_subject *subject,
                        const struct cli_lint_unknown *unknown) {
        nd_autofree char *message =
                nd_format("%s has no such field%s%s%s", unknown->type, *unknown->suggestion ? "; did you mean " : "",
                          unknown->suggestion, *unknown->suggestion ? "?" : "");

        put_result(out, subject,
                   &(struct result) {.rule = "unknownField",
                                     .level = lint->strict ? "error" : "warning",
                                     .message = message,
                                     .field = unknown->field});
}

static void put_results(struct nd_json_out *out, const struct cli_lint *lint, const struct cli_lint_subject *subject) {
        struct result result = {.level = "error", .field = {.path = "", .line = subject->invalid_line}};

        for (size_t i = 0; i < subject->findings.count; i++)
                put_finding(out, lint, subject, i);
        nd_vector_each (unknown, &subject->unknowns)
                put_unknown(out, lint, subject, unknown);
        result.rule = "notValid";
        result.message = subject->invalid;
        if (subject->invalid[0] != '\0')
                put_result(out, subject, &result);
        result.rule = "expectation";
        result.field.line = subject->line;
        for (size_t i = 0; i < subject->broken.count; i++) {
                result.message = subject->broken.items[i];
                put_result(out, subject, &result);
        }
}

/* Files that could not be read, and expectations without an object, are not results of a file. */
static void put_notifications(struct nd_json_out *out, const struct cli_lint *lint) {
        nd_json_open(out, "invocations", '[');
        nd_json_open(out, nullptr, '{');
        nd_json_bool(out, "executionSuccessful", lint->unreadable.count == 0);
        nd_json_open(out, "toolExecutionNotifications", '[');
        nd_vector_each (one, &lint->unreadable) {
                nd_json_open(out, nullptr, '{');
                nd_json_string(out, "level", "error");
                put_message(out, "message", one->error);
                put_location(out, one->file, 0);
                nd_json_close(out, '}');
        }
        for (size_t i = 0; i < lint->broken.count; i++) {
                nd_json_open(out, nullptr, '{');
                nd_json_string(out, "level", "error");
                put_message(out, "message", lint->broken.items[i]);
                nd_json_close(out, '}');
        }
        nd_json_close(out, ']');
        nd_json_close(out, '}');
        nd_json_close(out, ']');
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
        put_rules(&out);
        nd_json_close(&out, '}');
        nd_json_close(&out, '}');
        put_notifications(&out, lint);
        nd_json_open(&out, "results", '[');
        nd_vector_each (subject, &lint->subjects)
                put_results(&out, lint, subject);
        nd_json_close(&out, ']');
        nd_json_close(&out, '}');
        nd_json_close(&out, ']');
        nd_json_close(&out, '}');
        puts(nd_text_get(&text));
}
