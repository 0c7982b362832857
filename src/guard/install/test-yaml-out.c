/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/install/yaml-out.h"

#include <unit/expect.h>

#include "base/yaml.h"
#include "guard/install/install-manifest.h"

static void expect_yaml(const char *json, const char *yaml) {
        nd_autotext struct nd_text text = ND_TEXT(1 << 20);

        guard_yaml_out_write(json, &text);
        assert_string_equal(nd_text_get(&text), yaml);
}

static void mappings_are_blocks_and_short_lists_are_lines([[maybe_unused]] void **state) {
        expect_yaml("{\"a\": {\"b\": 1, \"c\": {}}, \"l\": [\"x\", 2, true], \"e\": [], \"x\": null}",
                    "a:\n  b: 1\n  c: {}\nl: [x, 2, true]\ne: []\nx: null\n");
        expect_yaml("{\"rules\": [{\"verbs\": [\"get\"], \"m\": -1}]}", "rules:\n- {verbs: [get], m: -1}\n");
}

static void long_items_are_blocks([[maybe_unused]] void **state) {
        nd_autofree char *json = nullptr, *yaml = nullptr;
        char name[161] = "";

        memset(name, 'x', sizeof name - 1);
        json = nd_format("{\"l\": [{\"a\": \"%s\", \"b\": {\"c\": [\"%s\", \"z\"]}}]}", name, name);
        yaml = nd_format("l:\n- a: %s\n  b:\n    c:\n    - %s\n    - z\n", name, name);
        expect_yaml(json, yaml);
}

/* kubectl reads YAML 1.1: "off" is false there, and "1e3" a number. */
static void strings_that_look_like_other_types_are_quoted([[maybe_unused]] void **state) {
        expect_yaml(
                "{\"k\": [\"off\", \"Yes\", \"n\", \"1.30\", \"0x1\", \"\", \"a: b\", \"a#\", \"- a\", \"*\", \"v1\", \"a\\nb\"]}",
                "k: [\"off\", \"Yes\", \"n\", \"1.30\", \"0x1\", \"\", \"a: b\", \"a#\", \"- a\", \"*\", v1, \"a\\u000ab\"]\n");
        expect_yaml("{\"on\": [\"nodens:guard\", \"/etc/x-1.crt\", \"~\"]}",
                    "\"on\": [\"nodens:guard\", /etc/x-1.crt, \"~\"]\n");
}

static void texts_of_several_lines_are_blocks_if_they_are_plain([[maybe_unused]] void **state) {
        expect_yaml("{\"a\": {\"f\": \"x: 1\\n\\n  y\\n\"}, \"b\": 1}", "a:\n  f: |\n    x: 1\n\n      y\nb: 1\n");
        expect_yaml("{\"a\": \"x\\ny\"}", "a: \"x\\u000ay\"\n");
        expect_yaml("{\"a\": \" x\\n\"}", "a: \" x\\u000a\"\n");
        expect_yaml("{\"a\": \"x\\n\\n\"}", "a: \"x\\u000a\\u000a\"\n");
        expect_yaml("{\"a\": \"x\\u001b\\n\"}", "a: \"x\\u001b\\u000a\"\n");
}

/* ---- all manifests ---- */

struct documents {
        yyjson_doc *items[64];
        size_t count;
};

static void documents_done(struct documents *documents) {
        for (size_t i = 0; i < documents->count; i++)
                yyjson_doc_free(documents->items[i]);
}

static struct nd_error *keep(yyjson_doc *doc, [[maybe_unused]] size_t line, void *userdata) {
        struct documents *documents = userdata;

        size_t length = 0;
        nd_autofree char *text = yyjson_write(doc, 0, &length);

        assert_true(documents->count < nd_count_of(documents->items));
        documents->items[documents->count++] = yyjson_read(text, length, 0);
        return nullptr;
}

static void every_manifest_means_the_same_in_both_formats([[maybe_unused]] void **state) {
        nd_cleanup(guard_standards_done) struct guard_standards standards = {};
        struct guard_install_settings settings = {.group = "security.nodens.io",
                                                  .namespace = "nodens-system",
                                                  .service = "nodens-guard",
                                                  .ca = "-----BEGIN CERTIFICATE-----\nMII=\n-----END CERTIFICATE-----\n",
                                                  .default_mode = "warn",
                                                  .standards = &standards,
                                                  .kubeconfig = "/k",
                                                  .client_certificate = "/c",
                                                  .client_key = "/k",
                                                  .api_servers = "10.0.0.1/32,fd00::1/128",
                                                  .port = 9443,
                                                  .user = "nodens-guard",
                                                  .server = "https://10.0.0.1:6443",
                                                  .cluster_ca = "/ca",
                                                  .token_file = "/t",
                                                  .image = "registry.example/guard:1",
                                                  .client_ca = "a\nb\n",
                                                  .config = "port: 9443\n"};

        guard_standards_init(&standards);
        for (enum guard_install_part part = 0; part < GUARD_INSTALL_PARTS; part++) {
                nd_autotext struct nd_text json = ND_TEXT(4 << 20), yaml = ND_TEXT(4 << 20);
                nd_cleanup(documents_done) struct documents of_json = {}, of_yaml = {};

                guard_install_manifest_write(part, &settings, &json);
                guard_yaml_out_write(nd_text_get(&json), &yaml);
                expect_ok(nd_yaml_each(nd_text_get(&json), json.length, 4 << 20, keep, &of_json));
                expect_ok(nd_yaml_each(nd_text_get(&yaml), yaml.length, 4 << 20, keep, &of_yaml));
                assert_true(of_json.count > 0);
                assert_int_equal(of_json.count, of_yaml.count);
                for (size_t i = 0; i < of_json.count; i++)
                        assert_true(
                                yyjson_equals(yyjson_doc_get_root(of_json.items[i]), yyjson_doc_get_root(of_yaml.items[i])));
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(mappings_are_blocks_and_short_lists_are_lines),
                cmocka_unit_test(long_items_are_blocks),
                cmocka_unit_test(strings_that_look_like_other_types_are_quoted),
                cmocka_unit_test(texts_of_several_lines_are_blocks_if_they_are_plain),
                cmocka_unit_test(every_manifest_means_the_same_in_both_formats),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
