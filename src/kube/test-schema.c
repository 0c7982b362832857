/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/schema.h"

#include <unit/expect.h>

/* The unknown fields, as "path type suggestion" in lines. */
static void expect_unknown(const char *kind, const char *json, const char *lines) {
        nd_autoarena struct nd_arena arena = {};
        nd_autotext struct nd_text text = ND_TEXT(1 << 16);
        nd_autojson yyjson_doc *doc = nullptr;
        struct nd_schema_unknowns unknowns = {};
        size_t count;

        expect_ok(nd_json_parse(json, strlen(json), 1 << 20, &doc));
        count = nd_schema_check(kind, yyjson_doc_get_root(doc), &arena, &unknowns);
        assert_int_equal(count, unknowns.items.count);
        nd_vector_each (unknown, &unknowns.items)
                nd_text_addf(&text, "%s %s %s\n", unknown->path, unknown->type, unknown->suggestion);
        nd_vector_done(&unknowns.items);
        assert_string_equal(nd_text_get(&text), lines);
}

static void misspelled_fields_are_found_with_the_nearest_one([[maybe_unused]] void **state) {
        expect_unknown("Pod", "{\"spec\": {\"container\": []}}", "spec.container PodSpec containers\n");
        expect_unknown("Pod", "{\"spec\": {\"hostusers\": false, \"hsotPID\": true}}",
                       "spec.hostusers PodSpec hostUsers\nspec.hsotPID PodSpec hostPID\n");
        expect_unknown("Deployment",
                       "{\"spec\": {\"template\": {\"spec\": {\"initContainers\": [{}, {\"securityContext\": {\"privilegd\": "
                       "true}}]}}}}",
                       "spec.template.spec.initContainers[1].securityContext.privilegd SecurityContext privileged\n");
        expect_unknown("CronJob", "{\"spec\": {\"jobTemplat\": {}}, \"Kind\": \"x\"}",
                       "spec.jobTemplat CronJobSpec jobTemplate\nKind CronJob kind\n");
}

static void a_field_at_the_wrong_place_is_suggested_below([[maybe_unused]] void **state) {
        expect_unknown("Pod",
                       "{\"spec\": {\"containers\": [{\"privileged\": true, \"runAsUser\": 0}], \"runAsNonRoot\": true}}",
                       "spec.containers[0].privileged Container securityContext.privileged\n"
                       "spec.containers[0].runAsUser Container securityContext.runAsUser\n"
                       "spec.runAsNonRoot PodSpec securityContext.runAsNonRoot\n");
        expect_unknown("Pod", "{\"spec\": {\"zzzzzzzz\": 1, \"\": 2}}", "spec.zzzzzzzz PodSpec \nspec. PodSpec \n");
        expect_unknown("Pod", "{\"spec\": {\"containers\": [{\"privilegd\": true}]}}",
                       "spec.containers[0].privilegd Container securityContext.privileged\n");
}

static void maps_and_statuses_and_wrong_types_are_not_looked_into([[maybe_unused]] void **state) {
        expect_unknown(
                "Pod",
                "{\"metadata\": {\"labels\": {\"x\": \"y\"}, \"annotations\": {\"z\": \"\"}}, \"status\": {\"foo\": 1},"
                "\"spec\": {\"nodeSelector\": {\"a\": \"b\"}, \"containers\": [{\"resources\": {\"limits\": {\"x.io/y\": 1}}}, 5],"
                "\"volumes\": 7, \"securityContext\": null}}",
                "");
        expect_unknown("Rollout", "{\"foo\": 1}", "");
        expect_unknown("", "{\"foo\": 1}", "");
        expect_unknown("Pod", "[]", "");
}

static void only_some_of_many_are_listed([[maybe_unused]] void **state) {
        nd_autotext struct nd_text json = ND_TEXT(1 << 20);
        nd_autoarena struct nd_arena arena = {};
        nd_autojson yyjson_doc *doc = nullptr;
        struct nd_schema_unknowns unknowns = {};

        nd_text_add(&json, "{\"a\": 1");
        for (int i = 1; i < 1000; i++)
                nd_text_addf(&json, ", \"a%d\": 1", i);
        nd_text_add(&json, "}");
        expect_ok(nd_json_parse(nd_text_get(&json), json.length, 1 << 20, &doc));
        assert_int_equal(nd_schema_check("Pod", yyjson_doc_get_root(doc), &arena, &unknowns), 1000);
        assert_int_equal(unknowns.items.count, ND_SCHEMA_UNKNOWN);
        nd_vector_done(&unknowns.items);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(misspelled_fields_are_found_with_the_nearest_one),
                cmocka_unit_test(a_field_at_the_wrong_place_is_suggested_below),
                cmocka_unit_test(maps_and_statuses_and_wrong_types_are_not_looked_into),
                cmocka_unit_test(only_some_of_many_are_listed),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
