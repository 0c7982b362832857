/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include "base/text.h"
#include "userns/mapping.h"

#define LINE(host, length) "[{\"hostId\":" host ",\"containerId\":0,\"length\":" length "}]"
#define WHOLE(host, length) "{\"uidMappings\":" LINE(host, length) ",\"gidMappings\":" LINE(host, length) "}"

static struct nd_error *parse(const char *text, struct nd_mapping *ret) {
        return nd_mapping_parse(text, strlen(text), ret);
}

static struct nd_error *parse_and_check(const char *text) {
        struct nd_mapping mapping = {};

        nd_try(parse(text, &mapping));
        return nd_mapping_check(&mapping);
}

static void the_file_is_byte_for_byte_the_kubelet_s([[maybe_unused]] void **state) {
        expect_text(nd_mapping_format(131072, 65536),
                    "{\"uidMappings\":[{\"hostId\":131072,\"containerId\":0,\"length\":65536}],"
                    "\"gidMappings\":[{\"hostId\":131072,\"containerId\":0,\"length\":65536}]}");
}

static void a_formatted_mapping_is_parsed_as_itself([[maybe_unused]] void **state) {
        nd_autofree char *text = nd_mapping_format(4294901760, 65536);
        struct nd_mapping mapping;

        expect_ok(parse(text, &mapping));
        expect_ok(nd_mapping_check(&mapping));
        assert_int_equal(mapping.uid.host, 4294901760);
        assert_int_equal(mapping.gid.length, 65536);
}

static void the_decoder_is_as_lenient_as_go_s([[maybe_unused]] void **state) {
        static const char *const fine[] = {
                "{\"UIDMAPPINGS\":" LINE("65536", "65536") ",\"gidmappings\":" LINE("65536", "65536") "}",
                "{\"uidMappings\":[{\"HOSTID\":65536,\"length\":65536}],\"gidMappings\":[{\"hostId\":65536,\"Length\":65536}]}",
                "{\"more\":{\"x\":[1]},\"uidMappings\":" LINE("65536", "65536") ",\"gidMappings\":" LINE("65536", "65536") "}",
                "{\"uidMappings\":[{\"hostId\":65536,\"containerId\":null,\"length\":65536,\"other\":1}],"
                "\"gidMappings\":" LINE("65536", "65536") "}\n\n",
                "{\"uidMappings\":[{\"hostId\":1,\"hostId\":65536,\"length\":65536}],\"gidMappings\":" LINE("65536",
                                                                                                            "65536") "}",
                "{\"uidMappings\":" LINE("1", "1") ",\"uidMappings\":" LINE("65536", "65536") ",\"gidMappings\":" LINE(
                        "65536", "65536") "}",
        };

        for (size_t i = 0; i < nd_count_of(fine); i++) {
                struct nd_mapping mapping = {};

                expect_ok(parse(fine[i], &mapping));
                expect_ok(nd_mapping_check(&mapping));
                assert_int_equal(mapping.uid.host, 65536);
                assert_int_equal(mapping.uid.length, 65536);
        }
}

static void input_that_go_s_decoder_rejects_is_rejected([[maybe_unused]] void **state) {
        static const char *const wrong[] = {
                "x",
                "{",
                "[]",
                "1",
                "\"a\"",
                "{\"uidMappings\":1}",
                "{\"uidMappings\":{}}",
                "{\"uidMappings\":[1]}",
                "{\"uidMappings\":[{\"hostId\":-1}]}",
                "{\"uidMappings\":[{\"hostId\":1.5}]}",
                "{\"uidMappings\":[{\"hostId\":4294967296}]}",
                "{\"uidMappings\":[{\"hostId\":\"1\"}]}",
                "{\"uidMappings\":[{\"hostId\":1e3}]}",
                WHOLE("65536", "65536") "x",
        };
        struct nd_mapping mapping = {.uid_lines = 7};

        for (size_t i = 0; i < nd_count_of(wrong); i++)
                expect_error(parse(wrong[i], &mapping), ND_INVALID, "invalid user namespace mappings file: ");
        assert_int_equal(mapping.uid_lines, 7); /* outputs are written on success only */
}

static void a_file_above_the_size_limit_is_refused([[maybe_unused]] void **state) {
        nd_autofree char *large = nd_malloc(ND_MAPPING_CEILING + 1);
        struct nd_mapping mapping;

        memset(large, ' ', ND_MAPPING_CEILING + 1);
        expect_error(nd_mapping_parse(large, ND_MAPPING_CEILING + 1, &mapping), ND_INVALID, "at most 65536 are read");
}

static void the_checks_have_the_kubelet_s_texts([[maybe_unused]] void **state) {
        static const char prefix[] = "invalid user namespace configuration: ";
        static const struct {
                const char *text;
                const char *words;
        } cases[] = {
                {"null", "no more than one mapping allowed."},
                {"{}", "no more than one mapping allowed."},
                {"{\"uidMappings\":null,\"gidMappings\":" LINE("65536", "65536") "}", "no more than one mapping allowed."},
                {"{\"uidMappings\":[{},{}],\"gidMappings\":[{},{}]}", "no more than one mapping allowed."},
                {"{\"uidMappings\":" LINE("65536", "65536") "}", "GID and UID mappings should be identical."},
                {"{\"uidMappings\":" LINE("65536", "65536") ",\"gidMappings\":" LINE("131072", "65536") "}",
                 "GID and UID mapping should be identical"},
                {"{\"uidMappings\":" LINE("65536", "65536") ",\"gidMappings\":" LINE("65536", "131072") "}",
                 "GID and UID mapping should be identical"},
                {"{\"uidMappings\":[{\"hostId\":65536,\"containerId\":1,\"length\":65536}],"
                 "\"gidMappings\":[{\"hostId\":65536,\"containerId\":1,\"length\":65536}]}",
                 "UID 0 must be mapped"},
        };

        for (size_t i = 0; i < nd_count_of(cases); i++) {
                nd_autofree char *text = nd_format("%s%s", prefix, cases[i].words);

                expect_error_text(parse_and_check(cases[i].text), text);
        }
}

static void salvage_finds_every_host_id_that_broken_bytes_still_name([[maybe_unused]] void **state) {
        static const struct {
                const char *bytes;
                size_t count;
                uint64_t first;
        } cases[] = {
                {"{\"uidMappings\":[{\"hostId\":131072,\"cont", 1, 131072},
                {"xx\"HOSTID\" : 65536,\"hostId\":196608}", 2, 65536},
                {"\"hostId\":4294967295}", 1, 4294967295},
                {"\"hostId\":4294967296}", 0, 0},
                {"\"hostId\":99999999999999999999999}", 0, 0},
                {"\"hostId\":-5}", 0, 0},
                {"\"hostId\"", 0, 0},
                {"\"hostId\":", 0, 0},
                {"", 0, 0},
        };

        for (size_t i = 0; i < nd_count_of(cases); i++) {
                nd_cleanup(nd_userns_extents_done) struct nd_userns_extents extents = {};

                nd_mapping_salvage(cases[i].bytes, strlen(cases[i].bytes), &extents);
                assert_int_equal(extents.count, cases[i].count);
                if (extents.count > 0)
                        assert_int_equal(extents.items[0].first, cases[i].first);
        }
}

static void salvage_stops_at_its_limit([[maybe_unused]] void **state) {
        nd_cleanup(nd_userns_extents_done) struct nd_userns_extents extents = {};
        nd_autotext struct nd_text bytes = ND_TEXT(ND_MAPPING_CEILING);

        while (!bytes.overflow)
                nd_text_add(&bytes, "hostId:1,");
        nd_mapping_salvage(bytes.bytes, bytes.length, &extents);
        assert_int_equal(extents.count, ND_MAPPING_SALVAGE);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_file_is_byte_for_byte_the_kubelet_s),
                cmocka_unit_test(a_formatted_mapping_is_parsed_as_itself),
                cmocka_unit_test(the_decoder_is_as_lenient_as_go_s),
                cmocka_unit_test(input_that_go_s_decoder_rejects_is_rejected),
                cmocka_unit_test(a_file_above_the_size_limit_is_refused),
                cmocka_unit_test(the_checks_have_the_kubelet_s_texts),
                cmocka_unit_test(salvage_finds_every_host_id_that_broken_bytes_still_name),
                cmocka_unit_test(salvage_stops_at_its_limit),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
