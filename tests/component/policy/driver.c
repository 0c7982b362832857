/* SPDX-License-Identifier: Apache-2.0 */
/* driver.c - src/kube and src/policy behind JSON lines
 *
 * Uses the protocol of tests/peers/policy, which answers the same queries with Kubernetes' own
 * code; compare.py compares. The answers to "fields" and "manifests" are compared with
 * tests/peers/api-* and tests/peers/manifests, by compare_fields.py and compare_yaml.py. */
#include <stdio.h>
#include <string.h>

#include "base/yaml.h"
#include "kube/schema.h"
#include "kube/selector.h"
#include "policy/hostusers.h"
#include "policy/podsecurity.h"

enum {
        NEWEST = ND_POLICY_NEWEST, /* the last minor version in queries */
        LINE = 8 << 20,
        ANSWER = 64 << 20,
};

/* One query while it is answered. */
struct answering {
        yyjson_val *question;
        struct nd_arena arena;
        struct nd_json_out out;
};

static void verdict(struct answering *a, enum nd_podsecurity_level level, struct nd_kube_version version,
                    const struct nd_pod *pod, struct nd_text *text) {
        struct nd_podsecurity_findings findings;

        nd_podsecurity_evaluate(&(struct nd_podsecurity_rule) {.level = level, .version = version}, pod, &a->arena, &findings);
        text->length = 0;
        nd_podsecurity_details(&findings, text);
}

static void put_run(struct answering *a, enum nd_podsecurity_level level, uint32_t first, uint32_t last, const char *said) {
        nd_json_open(&a->out, nullptr, '[');
        nd_json_string(&a->out, nullptr, nd_podsecurity_level_name(level));
        nd_json_number(&a->out, nullptr, first);
        nd_json_number(&a->out, nullptr, last);
        nd_json_string(&a->out, nullptr, said);
        nd_json_close(&a->out, ']');
}

static void put_level(struct answering *a, enum nd_podsecurity_level level, const struct nd_pod *pod) {
        nd_autotext struct nd_text said = ND_TEXT(ANSWER), now = ND_TEXT(ANSWER);
        uint32_t first = 0;

        verdict(a, level, (struct nd_kube_version) {}, pod, &said);
        for (uint32_t minor = 1; minor <= NEWEST; minor++) {
                verdict(a, level, (struct nd_kube_version) {.minor = minor}, pod, &now);
                if (now.length == said.length && memcmp(nd_text_get(&now), nd_text_get(&said), now.length) == 0)
                        continue;
                put_run(a, level, first, minor - 1, said.length > 0 ? nd_text_get(&said) : "");
                first = minor;
                said.length = 0;
                nd_text_append(&said, nd_text_get(&now), now.length);
        }
        verdict(a, level, ND_POLICY_LATEST, pod, &now);
        if (now.length != said.length || memcmp(nd_text_get(&now), nd_text_get(&said), now.length) != 0)
                abort(); /* latest differs from the newest version */
        put_run(a, level, first, NEWEST, said.length > 0 ? nd_text_get(&said) : "");
}

/* Sends an error and returns false if the pod cannot be decoded. An absent pod is an empty one. */
static bool read_pod(struct answering *a, const char *key, struct nd_pod *ret) {
        nd_autoerror struct nd_error *error = nullptr;
        yyjson_val *value = yyjson_obj_get(a->question, key);

        error = value ? nd_shape_decode(&nd_pod_shape, value, &a->arena, ret) : nullptr;
        if (error)
                nd_json_string(&a->out, nullptr, "undecodable");
        return !error;
}

static void pod_security(struct answering *a) {
        struct nd_pod pod = {};

        if (!read_pod(a, "pod", &pod))
                return;
        nd_json_open(&a->out, nullptr, '[');
        for (enum nd_podsecurity_level level = ND_LEVEL_PRIVILEGED; level <= ND_LEVEL_RESTRICTED; level++)
                put_level(a, level, &pod);
        nd_json_close(&a->out, ']');
}

static void put_errors(struct answering *a, const struct nd_field_errors *errors) {
        nd_vector_each (error, &errors->items) {
                nd_autotext struct nd_text text = ND_TEXT(ANSWER);

                nd_field_error_print(error, &text);
                nd_json_string(&a->out, nullptr, nd_text_get(&text));
        }
}

static void host_users(struct answering *a) {
        nd_cleanup(nd_field_errors_done) struct nd_field_errors errors = {.arena = &a->arena};
        struct nd_hostusers_options options = {.host_network = yyjson_get_bool(yyjson_obj_get(a->question, "gate"))};
        yyjson_val *old = yyjson_obj_get(a->question, "old");
        struct nd_pod pod = {}, old_pod = {};

        if (!read_pod(a, "pod", &pod) || !read_pod(a, "old", &old_pod))
                return;
        if (old && !yyjson_is_null(old))
                options.old = &old_pod;
        nd_hostusers_validate(&pod, &options, &errors);
        nd_json_open(&a->out, nullptr, '[');
        put_errors(a, &errors);
        nd_json_close(&a->out, ']');
}

static const struct nd_shape_field labels_fields[] = {
        {.name = "labels", .kind = ND_SHAPE_PAIRS},
        {},
};
static const struct nd_shape labels_shape = {.size = sizeof(struct nd_shape_pairs), .fields = labels_fields};

static void put_rule(struct answering *a, const struct nd_podsecurity_rule *rule) {
        nd_autofree char *version = nd_kube_version_text(rule->version);
        nd_autofree char *text = nd_format("%s:%s", nd_podsecurity_level_name(rule->level), version);

        nd_json_string(&a->out, nullptr, text);
}

static bool read_labels(struct answering *a, struct nd_shape_pairs *ret) {
        nd_autoerror struct nd_error *error = nd_shape_decode(&labels_shape, a->question, &a->arena, ret);

        if (error)
                nd_json_string(&a->out, nullptr, "undecodable");
        return !error;
}

static void namespace_labels(struct answering *a) {
        nd_cleanup(nd_field_errors_done) struct nd_field_errors errors = {.arena = &a->arena};
        const struct nd_podsecurity_rule lax = {.version = ND_POLICY_LATEST};
        struct nd_podsecurity_policy policy;
        struct nd_shape_pairs labels = {};

        if (!read_labels(a, &labels))
                return;
        nd_podsecurity_of_labels(&labels, ND_PODSECURITY_PREFIX, &(struct nd_podsecurity_policy) {lax, lax, lax}, &policy,
                                 &errors);
        nd_json_open(&a->out, nullptr, '[');
        put_rule(a, &policy.enforce);
        put_rule(a, &policy.audit);
        put_rule(a, &policy.warn);
        put_errors(a, &errors);
        nd_json_close(&a->out, ']');
}

static void selector(struct answering *a) {
        yyjson_val *value = yyjson_obj_get(a->question, "selector");
        struct nd_selector selector = {};
        struct nd_shape_pairs labels = {};
        nd_autoerror struct nd_error *error = nd_shape_decode(&nd_selector_shape, value, &a->arena, &selector),
                                     *invalid = nullptr;

        if (error) {
                nd_json_string(&a->out, nullptr, "undecodable");
                return;
        }
        if (!read_labels(a, &labels))
                return;
        invalid = nd_selector_validate(&selector);
        nd_json_open(&a->out, nullptr, '[');
        if (invalid)
                nd_json_string(&a->out, nullptr, "invalid");
        else
                nd_json_bool(&a->out, nullptr, nd_selector_matches(yyjson_is_null(value) ? nullptr : &selector, &labels));
        nd_json_close(&a->out, ']');
}

static void fields(struct answering *a) {
        nd_schema_print(&a->out);
}

static struct nd_error *put_manifest(const struct nd_yaml_manifest *manifest, void *userdata) {
        nd_autofree char *json = yyjson_write(manifest->doc, YYJSON_WRITE_NOFLAG, nullptr);

        nd_json_raw(userdata, nullptr, json);
        return nullptr;
}

static void manifests(struct answering *a) {
        yyjson_val *value = yyjson_obj_get(a->question, "text");
        nd_autotext struct nd_text text = ND_TEXT(ANSWER);
        struct nd_json_out out = {.text = &text};
        nd_autoerror struct nd_error *error = nullptr;

        nd_json_open(&out, nullptr, '[');
        error = nd_yaml_manifests(yyjson_get_str(value), yyjson_get_len(value), LINE, put_manifest, &out);
        nd_json_close(&out, ']');
        if (error)
                nd_json_string(&a->out, nullptr, "refused");
        else
                nd_json_raw(&a->out, nullptr, nd_text_get(&text));
}

static const struct {
        const char *name;
        void (*answer)(struct answering *a);
} operations[] = {
        {"podsecurity", pod_security}, {"hostusers", host_users}, {"labels", namespace_labels},
        {"selector", selector},        {"fields", fields},        {"manifests", manifests},
};

static void answer_line(const char *line, size_t length) {
        nd_autotext struct nd_text text = ND_TEXT(ANSWER);
        struct answering a = {.out = {.text = &text}};
        nd_autojson yyjson_doc *doc = nullptr;
        nd_autoerror struct nd_error *error = nd_json_parse(line, length, LINE, &doc);
        const char *name = error ? nullptr : yyjson_get_str(yyjson_obj_get(yyjson_doc_get_root(doc), "op"));

        a.question = error ? nullptr : yyjson_doc_get_root(doc);
        for (size_t i = 0; name && i < nd_count_of(operations); i++)
                if (nd_streq(name, operations[i].name))
                        operations[i].answer(&a);
        if (text.length == 0) {
                fprintf(stderr, "driver: invalid query: %.*s (%s)\n", (int) length, line,
                        error ? nd_error_text(error) : "unknown op");
                exit(1);
        }
        puts(nd_text_get(&text));
        nd_arena_done(&a.arena);
}

int main(void) {
        nd_autofree char *line = nullptr;
        size_t capacity = 0;
        ssize_t length;

        while ((length = getline(&line, &capacity, stdin)) > 0)
                answer_line(line, (size_t) length);
        return EXIT_SUCCESS;
}
