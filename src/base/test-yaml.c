/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include "base/clock.h"
#include "base/yaml.h"

static struct nd_error *parse(const char *text, yyjson_doc **ret) {
        return nd_yaml_parse(text, strlen(text), 1 << 20, ret);
}

/* Parses YAML and compares it with the expected JSON. */
static void reads_as(const char *yaml, const char *json) {
        nd_autojson yyjson_doc *doc = nullptr;
        nd_autofree char *written = nullptr;

        expect_ok(parse(yaml, &doc));
        written = yyjson_write(doc, YYJSON_WRITE_NOFLAG, nullptr);
        assert_non_null(written);
        assert_string_equal(written, json);
}

static void kubernetes_yaml_reads_as_its_json([[maybe_unused]] void **state) {
        reads_as("apiVersion: kubelet.config.k8s.io/v1beta1\n"
                 "kind: KubeletConfiguration\n"
                 "maxPods: 110 # the default\n"
                 "userNamespaces:\n  idsPerPod: 65536\n"
                 "list:\n- a\n- {b: c}\n"
                 "text: |\n  two\n  lines\n",
                 "{\"apiVersion\":\"kubelet.config.k8s.io/v1beta1\",\"kind\":\"KubeletConfiguration\",\"maxPods\":110,"
                 "\"userNamespaces\":{\"idsPerPod\":65536},\"list\":[\"a\",{\"b\":\"c\"}],\"text\":\"two\\nlines\\n\"}");
}

static void an_empty_document_is_null([[maybe_unused]] void **state) {
        reads_as("", "null");
        reads_as("# nothing\n", "null");
        reads_as("---\n", "null");
}

static void json_is_yaml_too([[maybe_unused]] void **state) {
        reads_as("{\"a\": [1, -2, 1.5, true, null, \"x\\ny\"]}", "{\"a\":[1,-2,1.5,true,null,\"x\\ny\"]}");
}

static void numbers_and_booleans_are_those_of_yaml_1_2([[maybe_unused]] void **state) {
        reads_as("[no, yes, on, off, y, n]", "[\"no\",\"yes\",\"on\",\"off\",\"y\",\"n\"]");
        reads_as("[0o7, 012, 0x1f, 1_000, +1, .5, 12:30, 1e]",
                 "[\"0o7\",\"012\",\"0x1f\",\"1_000\",\"+1\",\".5\",\"12:30\",\"1e\"]");
        reads_as("[~, Null, TRUE, False, -0, 18446744073709551615]", "[null,null,true,false,0,18446744073709551615]");
        reads_as("['true', \"1\", 'null']", "[\"true\",\"1\",\"null\"]");
}

static void dangerous_yaml_is_refused_with_its_line([[maybe_unused]] void **state) {
        static const struct {
                const char *yaml;
                const char *words;
        } cases[] = {
                {"a: &x 1\n", "line 1: anchors"},
                {"- &x [1]\n", "line 1: anchors"},
                {"a: 1\nb: &x {c: 1}\n", "line 2: anchors"},
                {"a: !!str 5\n", "line 1: tags"},
                {"- !x [5]\n", "line 1: tags"},
                {"a: 1\nb: *a\n", "line 2: aliases"},
                {"a: 1\n<<: {b: 1}\n", "line 2: merge keys"},
                {"a: 1\nb: 2\na: 3\n", "line 3: key 'a' appears a second time"},
                {"--- 1\n--- 2\n", "line 2: a second document"},
                {"? [a]\n: b\n", "line 1: a key must be plain text"},
                {"? {a: b}\n: b\n", "line 1: a key must be plain text"},
                {"a: [1\n", "line 2: "},
                {"a: b: c\n", "line 1: "},
                {"\tx: 1\n", "line 1: "},
                {"a: \"\xff\"\n", "line 1: "},
                {"a: 1\nb: 2\nc: \x01\n", "line 3: control characters"},
        };
        yyjson_doc *doc = nullptr;

        for (size_t i = 0; i < nd_count_of(cases); i++)
                expect_error(parse(cases[i].yaml, &doc), ND_INVALID, cases[i].words);
        assert_null(doc);
}

static void a_quoted_merge_key_is_an_ordinary_key([[maybe_unused]] void **state) {
        reads_as("'<<': 1\n", "{\"<<\":1}");
}

static void the_size_and_the_nesting_have_ceilings([[maybe_unused]] void **state) {
        nd_autofree char *deep = nd_calloc(2 * ND_JSON_DEPTH + 3, 1);
        nd_autojson yyjson_doc *fits = nullptr;
        yyjson_doc *doc = nullptr;

        expect_error(nd_yaml_parse("a: b\n", 5, 4, &doc), ND_INVALID, "5 bytes of YAML, at most 4");
        memset(deep, '[', ND_JSON_DEPTH);
        memset(deep + ND_JSON_DEPTH, ']', ND_JSON_DEPTH);
        expect_ok(parse(deep, &fits));
        memset(deep, '[', ND_JSON_DEPTH + 1);
        memset(deep + ND_JSON_DEPTH + 1, ']', ND_JSON_DEPTH + 1);
        expect_error(parse(deep, &doc), ND_INVALID, "nested too deep");
}

static void the_number_of_values_has_a_ceiling([[maybe_unused]] void **state) {
        nd_autotext struct nd_text text = ND_TEXT(1 << 20);
        yyjson_doc *doc = nullptr;

        for (int i = 0; i <= ND_YAML_NODES; i++)
                nd_text_add(&text, "- 1\n");
        expect_error(parse(nd_text_get(&text), &doc), ND_INVALID, "too many values");
}

/* Looking for duplicate keys must not be quadratic, or a megabyte of YAML stops a daemon for many
 * seconds. */
static void a_mapping_of_fifty_thousand_keys_is_read_in_seconds([[maybe_unused]] void **state) {
        nd_autotext struct nd_text text = ND_TEXT(1 << 20);
        nd_autojson yyjson_doc *doc = nullptr;
        uint64_t start = nd_clock_us();

        for (int i = 0; i < 50000; i++)
                nd_text_addf(&text, "key%05d: 1\n", i);
        expect_ok(parse(nd_text_get(&text), &doc));
        assert_int_equal(yyjson_obj_size(yyjson_doc_get_root(doc)), 50000);
        expect_figure(nd_clock_us() - start < 3 * ND_SECOND_US);
}

static struct nd_error *note_document(yyjson_doc *doc, size_t line, void *userdata) {
        yyjson_val *name = yyjson_obj_get(yyjson_doc_get_root(doc), "name");

        nd_text_addf(userdata, "%zu:%s ", line, yyjson_is_str(name) ? yyjson_get_str(name) : "-");
        return yyjson_equals_str(name, "stop") ? nd_error_new(ND_ABORTED, 0, "stopped") : nullptr;
}

static void a_stream_has_many_documents([[maybe_unused]] void **state) {
        static const char stream[] = "name: a\n---\nname: b\n# nothing\n---\n---\nname: d\n...\n";
        static const char stopped[] = "---\nname: a\n---\nname: stop\n---\nname: c\n";
        nd_autotext struct nd_text seen = ND_TEXT(1000), seen_stopped = ND_TEXT(1000);

        expect_ok(nd_yaml_each(stream, strlen(stream), 1000, note_document, &seen));
        assert_string_equal(nd_text_get(&seen), "1:a 3:b 6:- 7:d ");
        expect_error(nd_yaml_each(stopped, strlen(stopped), 1000, note_document, &seen_stopped), ND_ABORTED, "stopped");
        assert_string_equal(nd_text_get(&seen_stopped), "2:a 4:stop ");
        expect_error(nd_yaml_each("a: 1\n---\na: [", 14, 1000, note_document, &seen), ND_INVALID, "line");
}

/* ---- manifests ---- */

static struct nd_error *note_manifest(const struct nd_yaml_manifest *manifest, void *userdata) {
        nd_autofree char *json = yyjson_write(manifest->doc, YYJSON_WRITE_NOFLAG, nullptr);

        assert_int_equal(manifest->lines->lines.count, yyjson_doc_get_val_count(manifest->doc));
        nd_text_addf(userdata, "%s\n", json);
        for (size_t i = 0; i < manifest->lines->lines.count; i++)
                nd_text_addf(userdata, "%u ", (unsigned) manifest->lines->lines.items[i]);
        return nullptr;
}

/* The JSON, then the line of every value and key, in the order of the JSON. */
static void expands_to(const char *yaml, const char *json_and_lines) {
        nd_autotext struct nd_text seen = ND_TEXT(1 << 20);

        expect_ok(nd_yaml_manifests(yaml, strlen(yaml), 1 << 20, note_manifest, &seen));
        assert_string_equal(nd_text_get(&seen), json_and_lines);
}

static void manifests_have_anchors_and_the_lines_of_all_values([[maybe_unused]] void **state) {
        expands_to("a: &x\n  b: 1\n  c: [2,\n   3]\nd: *x\ne: [*x]\nf: &s text\n*s : *s\n",
                   "{\"a\":{\"b\":1,\"c\":[2,3]},\"d\":{\"b\":1,\"c\":[2,3]},\"e\":[{\"b\":1,\"c\":[2,3]}],\"f\":\"text\","
                   "\"text\":\"text\"}\n"
                   "1 1 1 2 2 3 3 3 4 5 5 2 2 3 3 3 4 6 6 6 2 2 3 3 3 4 7 7 8 8 ");
        /* the last anchor of a name counts */
        expands_to("[&x 1, *x, &x 2, *x]", "[1,1,2,2]\n1 1 1 1 1 ");
}

/* tests/component/policy compares these with the library that kubectl uses. */
static void manifests_are_merged_as_kubectl_does_it([[maybe_unused]] void **state) {
        expands_to("- &x {a: 1, b: 2}\n- {<<: *x, b: 3, c: 4}\n- {b: 3, <<: *x}\n",
                   "[{\"a\":1,\"b\":2},{\"a\":1,\"b\":3,\"c\":4},{\"b\":2,\"a\":1}]\n"
                   "1 1 1 1 1 1 2 1 1 2 2 2 2 3 1 1 1 1 ");
        expands_to("- &x {a: 1}\n- &y {a: 2, b: 2}\n- {<<: [*x, *y]}\n- {<<: {z: &z {<<: *y, a: 3}}, <<: *z}\n",
                   "[{\"a\":1},{\"a\":2,\"b\":2},{\"a\":1,\"b\":2},{\"z\":{\"a\":3,\"b\":2},\"a\":3,\"b\":2}]\n"
                   "1 1 1 1 2 2 2 2 2 3 1 1 2 2 4 4 4 4 4 2 2 4 4 2 2 ");
}

static void refuses(const char *yaml, const char *words) {
        nd_autotext struct nd_text seen = ND_TEXT(1 << 20);

        expect_error(nd_yaml_manifests(yaml, strlen(yaml), 1 << 20, note_manifest, &seen), ND_INVALID, words);
}

static void aliases_without_a_finished_anchor_are_refused([[maybe_unused]] void **state) {
        refuses("a: 1\nb: *nothing\n", "line 2: alias 'nothing' has no anchor above it");
        refuses("&x [*x]", "line 1: alias 'x' is inside of its own anchor");
        refuses("- &x 1\n- &x\n  a: *x\n", "line 3: alias 'x' is inside of its own anchor");
        refuses("--- &x 1\n--- *x\n", "line 2: alias 'x' has no anchor above it");
        refuses("a: 1\n<<: 1\n", "line 2: a merge key");
        refuses("a: 1\n<<: [[]]\n", "line 2: a merge key");
        refuses("a: &a [{}]\nb:\n  <<: *a\n", "line 3: a merge key");
        refuses("- &x {a: 1}\n- a: {<<: 1}\n  <<: *x\n", "line 2: a merge key");
        refuses("a: &a 1\n? *b\n: 1\n", "line 2: alias 'b'");
        refuses("a: !!str 5\n", "line 1: tags");
        refuses("a: 1\na: 1\n", "line 2: key 'a' appears a second time");
}

/* Each level has ten aliases of the one above: ten lines for ten thousand million values. */
static void add_bomb(struct nd_text *text, const char *first, const char *before, const char *around) {
        nd_text_addf(text, "a0: &a0 %s\n", first);
        for (int level = 1; level < 12; level++) {
                nd_text_addf(text, "a%d: &a%d %c", level, level, around[0]);
                for (int i = 0; i < 10; i++)
                        nd_text_addf(text, "%s%s*a%d", i > 0 ? ", " : "", before, level - 1);
                nd_text_addf(text, "%c\n", around[1]);
        }
}

static void a_billion_laughs_are_refused_before_they_are_made([[maybe_unused]] void **state) {
        nd_autotext struct nd_text values = ND_TEXT(1 << 20), empty = ND_TEXT(1 << 20), merges = ND_TEXT(1 << 20),
                                   bytes = ND_TEXT(1 << 20);
        nd_autofree char *kilobytes = nd_calloc(10001, 1);

        add_bomb(&values, "[lol, lol]", "", "[]");
        refuses(nd_text_get(&values), "too many values");
        add_bomb(&empty, "[]", "", "[]");
        refuses(nd_text_get(&empty), "too many values");
        /* what is merged makes no values, but work */
        add_bomb(&merges, "{}", "<<: ", "{}");
        refuses(nd_text_get(&merges), "too many values");
        memset(kilobytes, 'x', 10000);
        nd_text_addf(&bytes, "a: &x %s\nb: [", kilobytes);
        for (int i = 0; i < 200; i++)
                nd_text_add(&bytes, "*x, ");
        nd_text_add(&bytes, "]\n");
        refuses(nd_text_get(&bytes), "line 2: too much text in one document");
        /* the same of keys, which are no values */
        nd_text_done(&bytes);
        bytes = ND_TEXT(1 << 20);
        nd_text_addf(&bytes, "a: &x\n  ? %s\n  : 1\nb: [", kilobytes);
        for (int i = 0; i < 200; i++)
                nd_text_add(&bytes, "*x, ");
        nd_text_add(&bytes, "]\n");
        refuses(nd_text_get(&bytes), "too much text in one document");
}

static void aliases_count_for_the_nesting([[maybe_unused]] void **state) {
        nd_autotext struct nd_text text = ND_TEXT(1 << 20), merges = ND_TEXT(1 << 20);

        nd_text_add(&text, "- &x0 []\n");
        for (int i = 1; i <= ND_JSON_DEPTH; i++)
                nd_text_addf(&text, "- &x%d [*x%d]\n", i, i - 1);
        refuses(nd_text_get(&text), "nested too deep");
        nd_text_add(&merges, "- &x0 {}\n");
        for (int i = 1; i <= 2 * ND_JSON_DEPTH; i++)
                nd_text_addf(&merges, "- &x%d {<<: *x%d}\n", i, i - 1);
        refuses(nd_text_get(&merges), "nested too deep");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(kubernetes_yaml_reads_as_its_json),
                cmocka_unit_test(an_empty_document_is_null),
                cmocka_unit_test(json_is_yaml_too),
                cmocka_unit_test(numbers_and_booleans_are_those_of_yaml_1_2),
                cmocka_unit_test(dangerous_yaml_is_refused_with_its_line),
                cmocka_unit_test(a_quoted_merge_key_is_an_ordinary_key),
                cmocka_unit_test(the_size_and_the_nesting_have_ceilings),
                cmocka_unit_test(the_number_of_values_has_a_ceiling),
                cmocka_unit_test(a_mapping_of_fifty_thousand_keys_is_read_in_seconds),
                cmocka_unit_test(a_stream_has_many_documents),
                cmocka_unit_test(manifests_have_anchors_and_the_lines_of_all_values),
                cmocka_unit_test(manifests_are_merged_as_kubectl_does_it),
                cmocka_unit_test(aliases_without_a_finished_anchor_are_refused),
                cmocka_unit_test(a_billion_laughs_are_refused_before_they_are_made),
                cmocka_unit_test(aliases_count_for_the_nesting),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
