/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <string.h>

#include "rootless/controller/ingress.h"
#include "rootless/controller/labels.h"
#include "rootless/controller/objects.h"

static yyjson_doc *parse(const char *text) {
        yyjson_doc *doc = nullptr;

        expect_ok(nd_json_parse(text, strlen(text), 1 << 20, &doc));
        return doc;
}

static struct rootless_service *service_of(const char *text) {
        nd_autojson yyjson_doc *doc = parse(text);

        return rootless_service_read(yyjson_doc_get_root(doc));
}

/* ---- names ---- */

static void test_objects_with_invalid_names_are_ignored([[maybe_unused]] void **state) {
        static const char *const names[] = {"",   "a/b", "A",         "a b",         "a\\nb",     "../x",
                                            ".x", "-x",  "a\\u0000b", "\\u001b[31m", "a\\\"b:c{}"};

        for (size_t i = 0; i < nd_count_of(names); i++) {
                nd_autofree char *text = nd_format(
                        "{\"metadata\": {\"name\": \"%s\", \"namespace\": \"n\"}, \"spec\": {\"type\": \"NodePort\"}}",
                        names[i]);

                if (service_of(text))
                        fail_msg("'%s' is taken", names[i]);
        }
        assert_null(
                service_of("{\"metadata\": {\"name\": \"a\", \"namespace\": \"n/m\"}, \"spec\": {\"type\": \"NodePort\"}}"));
        assert_null(
                service_of("{\"metadata\": {\"name\": \"a\", \"namespace\": \"n\", \"uid\": \"a b\"}, \"spec\": {\"type\": "
                           "\"NodePort\"}}"));
        assert_null(service_of("[]"));
        assert_null(service_of("{}"));
}

/* ---- labels ---- */

static const char *label_of(const char *name, const char *labels, const char *info, enum rootless_label_scope scope) {
        nd_autofree char *text = nd_format(
                "{\"metadata\": {\"name\": \"%s\", \"labels\": {%s}}, \"status\": {\"nodeInfo\": {%s}}}", name, labels, info);
        nd_autojson yyjson_doc *doc = parse(text);
        struct rootless_node_info *node = rootless_node_info_read(yyjson_doc_get_root(doc));
        const char *label;

        assert_non_null(node);
        label = rootless_labels_wanted(node, "own", scope);
        rootless_node_info_free(node);
        return label ? label : "";
}

static void test_every_node_gets_the_label_once([[maybe_unused]] void **state) {
        static const struct {
                const char *name, *labels, *info;
                enum rootless_label_scope scope;
                const char *label;
        } rows[] = {
                {"own", "", "", LABEL_ALL, "true"},
                {"own", "\"" CLUSTER_LABEL "\": \"false\"", "", LABEL_ALL, "true"},
                {"own", "\"" CLUSTER_LABEL "\": \"true\"", "", LABEL_ALL, ""},
                {"own", "", "", LABEL_OWN, "true"},
                {"own", "", "", LABEL_NONE, ""},
                {"other", "", "", LABEL_ALL, "false"},
                {"other", "", "\"runningInUserNamespace\": false", LABEL_ALL, "false"},
                {"other", "", "\"runningInUserNamespace\": true", LABEL_ALL, "true"},
                {"other", "\"" CLUSTER_LABEL "\": \"true\"", "", LABEL_ALL, ""},
                {"other", "\"" CLUSTER_LABEL "\": \"\"", "", LABEL_ALL, ""},
                {"other", "", "", LABEL_OWN, ""},
        };

        for (size_t i = 0; i < nd_count_of(rows); i++)
                assert_string_equal(label_of(rows[i].name, rows[i].labels, rows[i].info, rows[i].scope), rows[i].label);
}

/* ---- addresses of load balancers ---- */

#define BALANCER(ingress)                                                                                                     \
        "{\"metadata\": {\"name\": \"a\", \"namespace\": \"n\", \"resourceVersion\": \"7\"}, \"spec\": {\"type\": "           \
        "\"LoadBalancer\"}, \"status\": {\"loadBalancer\": {\"ingress\": [" ingress "]}}}"

static void expect_patch(const char *service, bool is_published, const char *patch) {
        struct rootless_service *read = service_of(service);
        nd_autofree char *text = nullptr;

        assert_non_null(read);
        text = rootless_ingress_patch(read, "10.0.0.1", is_published);
        rootless_service_free(read);
        assert_string_equal(text ? text : "", patch);
}

static void test_addresses_of_other_nodes_stay_in_the_status([[maybe_unused]] void **state) {
        expect_patch(BALANCER(""), false, "");
        expect_patch(BALANCER("{\"ip\":\"10.0.0.1\"}"), true, "");
        expect_patch(BALANCER("{\"ip\":\"10.0.0.2\"},{\"hostname\":\"h\"}"), true,
                     "{\"metadata\": {\"resourceVersion\": \"7\"}, \"status\": {\"loadBalancer\": {\"ingress\": "
                     "[{\"ip\":\"10.0.0.2\"}, {\"hostname\":\"h\"}, {\"ip\": \"10.0.0.1\", \"ipMode\": \"Proxy\"}]}}}");
        expect_patch(BALANCER("{\"ip\":\"10.0.0.1\"},{\"ip\":\"10.0.0.2\"}"), false,
                     "{\"metadata\": {\"resourceVersion\": \"7\"}, \"status\": {\"loadBalancer\": {\"ingress\": "
                     "[{\"ip\":\"10.0.0.2\"}]}}}");
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_objects_with_invalid_names_are_ignored),
                cmocka_unit_test(test_every_node_gets_the_label_once),
                cmocka_unit_test(test_addresses_of_other_nodes_stay_in_the_status),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
