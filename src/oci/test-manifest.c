/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/manifest.h"

#include <unit/expect.h>

#include "base/text.h"
#include "oci/artifact.h"

#define HEX "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define OCI "application/vnd.oci.image."
#define CONFIG "{\"mediaType\":\"" OCI "config.v1+json\",\"digest\":\"sha256:" HEX "\",\"size\":7}"
#define LAYER(type) "{\"mediaType\":\"" type "\",\"digest\":\"sha256:" HEX "\",\"size\":3}"
#define MANIFEST(layers) "{\"schemaVersion\":2,\"config\":" CONFIG ",\"layers\":[" layers "]}"
#define ENTRY(platform) "{\"mediaType\":\"" OCI "manifest.v1+json\",\"digest\":\"sha256:" HEX "\",\"size\":1" platform "}"
#define INDEX(entries) "{\"schemaVersion\":2,\"manifests\":[" entries "]}"
#define PLATFORM(os, architecture) ",\"platform\":{\"os\":\"" os "\",\"architecture\":\"" architecture "\"}"

static struct nd_error *parse(const char *text, const char *media_type, struct nd_manifest *ret) {
        return nd_manifest_parse(text, strlen(text), media_type, ret);
}

static void refused(const char *text, const char *media_type, const char *words) {
        struct nd_manifest manifest = {};

        expect_error(parse(text, media_type, &manifest), ND_INVALID, words);
}

static void a_manifest_gives_its_config_and_layers_in_order([[maybe_unused]] void **state) {
        static const struct {
                const char *type;
                enum nd_oci_compression compression;
                bool foreign;
        } cases[] = {
                {OCI "layer.v1.tar", ND_COMPRESSION_NONE, false},
                {OCI "layer.v1.tar+gzip", ND_COMPRESSION_GZIP, false},
                {OCI "layer.v1.tar+zstd", ND_COMPRESSION_ZSTD, false},
                {OCI "layer.nondistributable.v1.tar+gzip", ND_COMPRESSION_GZIP, true},
                {"application/vnd.docker.image.rootfs.diff.tar", ND_COMPRESSION_DETECT, false},
                {"application/vnd.docker.image.rootfs.diff.tar.gzip", ND_COMPRESSION_GZIP, false},
                {"application/vnd.docker.image.rootfs.diff.tar.zstd", ND_COMPRESSION_ZSTD, false},
                {"application/vnd.docker.image.rootfs.foreign.diff.tar.gzip", ND_COMPRESSION_GZIP, true},
        };
        nd_cleanup(nd_manifest_done) struct nd_manifest manifest = {};
        nd_autotext struct nd_text layers = ND_TEXT(8192), text = ND_TEXT(8192);

        for (size_t i = 0; i < nd_count_of(cases); i++)
                nd_text_addf(&layers, "%s{\"mediaType\":\"%s\",\"digest\":\"sha256:" HEX "\",\"size\":%zu}", i > 0 ? "," : "",
                             cases[i].type, i);
        nd_text_addf(&text, "{\"schemaVersion\":2,\"config\":" CONFIG ",\"layers\":[%s]}", nd_text_get(&layers));
        expect_ok(parse(nd_text_get(&text), OCI "manifest.v1+json", &manifest));
        assert_int_equal(manifest.media, ND_MEDIA_MANIFEST);
        assert_int_equal(manifest.config.size, 7);
        assert_int_equal(manifest.entries.count, nd_count_of(cases));
        for (size_t i = 0; i < nd_count_of(cases); i++) {
                assert_int_equal(manifest.entries.items[i].compression, cases[i].compression);
                assert_int_equal(manifest.entries.items[i].foreign, cases[i].foreign);
                assert_int_equal(manifest.entries.items[i].size, i);
                assert_string_equal(manifest.entries.items[i].media_type, cases[i].type);
        }
}

static void a_document_may_leave_its_type_to_others_but_not_contradict_them([[maybe_unused]] void **state) {
        static const char *const ok[] = {nullptr,
                                         "",
                                         "application/json",
                                         "application/octet-stream",
                                         OCI "manifest.v1+json",
                                         OCI "manifest.v1+json; charset=utf-8",
                                         "application/vnd.docker.distribution.manifest.v2+json"};

        for (size_t i = 0; i < nd_count_of(ok); i++) {
                nd_cleanup(nd_manifest_done) struct nd_manifest manifest = {};

                expect_ok(parse(MANIFEST(""), ok[i], &manifest));
                assert_int_equal(manifest.media, ND_MEDIA_MANIFEST);
        }
        refused(MANIFEST(""), OCI "index.v1+json", "another media type");
        refused(INDEX(""), OCI "manifest.v1+json", "another media type");
        refused("{\"mediaType\":\"" OCI "index.v1+json\",\"config\":" CONFIG ",\"layers\":[]}", nullptr, "another media type");
        refused("{\"config\":" CONFIG ",\"layers\":[],\"manifests\":[]}", nullptr, "at once");
        refused("{}", nullptr, "neither");
        refused("[]", nullptr, "not a JSON object");
        refused("", nullptr, "");
}

static void schema_1_is_refused_with_advice([[maybe_unused]] void **state) {
        refused("{\"schemaVersion\":1,\"fsLayers\":[]}", nullptr, "push the image again");
        refused(MANIFEST(""), "application/vnd.docker.distribution.manifest.v1+prettyjws", "schema 1");
        refused(MANIFEST(""), "application/vnd.docker.distribution.manifest.v1+json", "schema 1");
}

static void invalid_descriptors_are_refused([[maybe_unused]] void **state) {
        refused(MANIFEST("{\"mediaType\":\"" OCI "layer.v1.tar\",\"digest\":\"sha256:" HEX "\",\"size\":-1}"), nullptr,
                "'layers': entry 0: 'size' is negative");
        refused(MANIFEST("{\"mediaType\":\"" OCI "layer.v1.tar\",\"digest\":\"sha256:" HEX "\",\"size\":1.5}"), nullptr,
                "whole number");
        refused(MANIFEST("{\"mediaType\":\"" OCI "layer.v1.tar\",\"digest\":\"sha256:" HEX
                         "\",\"size\":99999999999999999999}"),
                nullptr, "whole number");
        refused(MANIFEST("{\"mediaType\":\"" OCI "layer.v1.tar\",\"digest\":\"sha256:" HEX
                         "\",\"size\":18446744073709551615}"),
                nullptr, "larger than");
        refused(MANIFEST("{\"mediaType\":\"" OCI "layer.v1.tar\",\"digest\":\"sha256:../../x\",\"size\":1}"), nullptr,
                "invalid digest");
        refused(MANIFEST("{\"mediaType\":\"" OCI "layer.v1.tar\",\"digest\":\"sha256:" HEX "\\u0000\",\"size\":1}"), nullptr,
                "null byte");
        refused(MANIFEST("{\"mediaType\":\"" OCI "layer.v1.tar\",\"size\":1}"), nullptr, "no digest");
        refused(MANIFEST("{\"mediaType\":\"" OCI "layer.v1.tar\",\"digest\":\"sha256:" HEX "\",\"size\":1,\"size\":2}"),
                nullptr, "given twice");
        refused(MANIFEST("7"), nullptr, "not an object");
        refused("{\"config\":[],\"layers\":[]}", nullptr, "'config' is");
        refused("{\"layers\":[]}", nullptr, "no config");
}

static void the_media_type_of_other_artifacts_is_in_the_error([[maybe_unused]] void **state) {
        refused(MANIFEST(LAYER("application/vnd.cncf.helm.chart.content.v1.tar+gzip")), nullptr,
                "\"application/vnd.cncf.helm.chart.content.v1.tar+gzip\"");
        refused(MANIFEST(LAYER(OCI "layer.v1.tar+gzip+encrypted")), nullptr, "not a container image that can be run");
        refused("{\"config\":{\"digest\":\"sha256:" HEX "\",\"size\":2},\"layers\":[]}", nullptr, "its config");
}

#define EMPTY "{\"mediaType\":\"application/vnd.oci.empty.v1+json\",\"digest\":\"sha256:" HEX "\",\"size\":2}"
#define FILE(annotations)                                                                                                     \
        "{\"mediaType\":\"text/plain\",\"digest\":\"sha256:" HEX "\",\"size\":3,\"annotations\":{" annotations "}}"
#define TITLE(title) "\"org.opencontainers.image.title\":\"" title "\""
#define ARTIFACT(layers) "{\"artifactType\":\"application/x-model\",\"config\":" EMPTY ",\"layers\":[" layers "]}"

static void the_layers_of_an_artifact_are_files_named_by_their_titles([[maybe_unused]] void **state) {
        /* "plain" has the type that tools give to all files. */
        static const char *const files[] = {"a", "b/c", "model.bin", "plain", HEX};
        nd_cleanup(nd_manifest_done) struct nd_manifest artifact = {};
        struct nd_digest blob;

        expect_ok(nd_digest_parse("sha256:" HEX, &blob));
        expect_ok(parse(
                ARTIFACT(FILE(TITLE("a")) "," FILE(TITLE("b/c")) "," FILE(
                        "\"org.cncf.model.filepath\":\"model.bin\"") ","

                                                                     "{\"mediaType\":\"" OCI
                                                                     "layer.v1.tar\",\"digest\":\"sha256:" HEX
                                                                     "\",\"size\":3,\"annotations\":{" TITLE(
                                                                             "plain") "}}," LAYER("text/plain") "," EMPTY),
                nullptr, &artifact));
        assert_string_equal(artifact.artifact_type, "application/x-model");
        assert_int_equal(artifact.entries.count, nd_count_of(files)); /* without the placeholder */
        for (size_t i = 0; i < nd_count_of(files); i++) {
                struct nd_digest id = nd_artifact_file_id(&blob, files[i]);

                assert_string_equal(artifact.entries.items[i].file, files[i]);
                assert_true(nd_digest_equal(&artifact.entries.items[i].diff_id, &id));
        }
}

static void the_config_names_the_type_of_an_artifact_without_one([[maybe_unused]] void **state) {
        nd_cleanup(nd_manifest_done) struct nd_manifest chart = {}, image = {}, mixed = {};

        expect_ok(parse("{\"config\":{\"mediaType\":\"application/vnd.cncf.helm.config.v1+json\",\"digest\":\"sha256:" HEX
                        "\",\"size\":2},\"layers\":[]}",
                        nullptr, &chart));
        assert_string_equal(chart.artifact_type, "application/vnd.cncf.helm.config.v1+json");
        expect_ok(parse("{\"artifactType\":\"a/b\",\"config\":" CONFIG ",\"layers\":[" LAYER(OCI "layer.v1.tar") "]}", nullptr,
                        &image));
        assert_null(image.artifact_type); /* it has all of an image */
        expect_ok(
                parse("{\"artifactType\":\"a/b\",\"config\":" CONFIG ",\"layers\":[" FILE(TITLE("x")) "]}", nullptr, &mixed));
        assert_string_equal(mixed.artifact_type, "a/b");
}

static void a_directory_that_was_packed_is_unpacked([[maybe_unused]] void **state) {
#define PACKED(digest)                                                                                                        \
        "{\"mediaType\":\"" OCI "layer.v1.tar+gzip\",\"digest\":\"sha256:" HEX                                                \
        "\",\"size\":3,\"annotations\":{" TITLE("dir") ",\"io.deis.oras.content.unpack\":\"true\"" digest "}}"
        nd_cleanup(nd_manifest_done) struct nd_manifest artifact = {}, without = {};
        char text[ND_DIGEST_TEXT];

        expect_ok(parse(ARTIFACT(PACKED(",\"io.deis.oras.content.digest\":\"sha256:" HEX "\"")), nullptr, &artifact));
        assert_null(artifact.entries.items[0].file);
        assert_int_equal(artifact.entries.items[0].compression, ND_COMPRESSION_GZIP);
        assert_string_equal(nd_digest_text(&artifact.entries.items[0].diff_id, text), "sha256:" HEX);
        expect_ok(parse(ARTIFACT(PACKED("")), nullptr, &without));
        assert_string_equal(without.entries.items[0].file, "dir");
        refused(ARTIFACT(PACKED(",\"io.deis.oras.content.digest\":\"md5:1\"")), nullptr, "invalid digest");
}

static void hostile_titles_are_refused_with_the_file([[maybe_unused]] void **state) {
        refused(ARTIFACT(FILE(TITLE("../x"))), nullptr, "'layers': entry 0: the artifact has a file with the path \"../x\"");
        refused(ARTIFACT(FILE(TITLE("a\\u0000b"))), nullptr, "null byte");
        refused(ARTIFACT(FILE(TITLE("a")) "," FILE(TITLE("a"))), nullptr, "another file has the same path");
        refused(ARTIFACT(FILE(TITLE("a/b")) "," FILE(TITLE("a"))), nullptr, "directory of another file");
        refused(ARTIFACT(FILE(TITLE("a") "," TITLE("b"))), nullptr, "given twice");
        refused(ARTIFACT("{\"mediaType\":\"x\",\"digest\":\"sha256:" HEX
                         "\",\"size\":1,\"annotations\":{\"org.opencontainers.image.title\":7}}"),
                nullptr, "title");
}

static void counts_and_sizes_are_bounded([[maybe_unused]] void **state) {
        nd_autotext struct nd_text layers = ND_TEXT(1 << 20), manifest = ND_TEXT(1 << 20), index = ND_TEXT(1 << 20);
        nd_autofree char *large = nd_calloc(1, ND_MANIFEST_CEILING + 2);
        struct nd_manifest ignored = {};

        for (int i = 0; i <= ND_MANIFEST_DESCRIPTORS; i++)
                nd_text_addf(&layers, "%s" LAYER(OCI "layer.v1.tar"), i > 0 ? "," : "");
        nd_text_addf(&manifest, "{\"config\":" CONFIG ",\"layers\":[%s]}", nd_text_get(&layers));
        nd_text_addf(&index, "{\"manifests\":[%s]}", nd_text_get(&layers));
        refused(nd_text_get(&manifest), nullptr, "at most 500");
        refused(nd_text_get(&index), nullptr, "at most 1000");
        memset(large, ' ', ND_MANIFEST_CEILING + 1);
        expect_error(nd_manifest_parse(large, ND_MANIFEST_CEILING + 1, nullptr, &ignored), ND_INVALID, "at most");
}

static const char *selected(const char *text, const char *architecture) {
        static char chosen[ND_PLATFORM_FIELD];
        nd_cleanup(nd_manifest_done) struct nd_manifest index = {};
        const struct nd_oci_descriptor *entry;
        struct nd_platform wanted;

        assert_true(nd_platform_make("linux", architecture, "", &wanted));
        expect_ok(parse(text, nullptr, &index));
        expect_ok(nd_manifest_select(&index, &wanted, &entry));
        return strcpy(chosen, entry->has_platform ? entry->platform.architecture : "none");
}

static void the_best_entry_of_an_index_is_taken([[maybe_unused]] void **state) {
        assert_string_equal(selected(INDEX(ENTRY(PLATFORM("linux", "386")) "," ENTRY(PLATFORM("linux", "amd64"))), "amd64"),
                            "amd64");
        assert_string_equal(selected(INDEX(ENTRY(PLATFORM("linux", "386")) "," ENTRY(PLATFORM("linux", "arm64"))), "amd64"),
                            "386");
        assert_string_equal(selected(INDEX(ENTRY("") "," ENTRY(PLATFORM("linux", "x86_64"))), "amd64"), "amd64");
        assert_string_equal(selected(INDEX(ENTRY(PLATFORM("windows", "amd64")) "," ENTRY("")), "amd64"), "none");
}

static void an_index_without_a_match_lists_its_platforms([[maybe_unused]] void **state) {
        nd_cleanup(nd_manifest_done) struct nd_manifest index = {};
        const struct nd_oci_descriptor *entry;
        struct nd_platform wanted;

        assert_true(nd_platform_make("linux", "s390x", "", &wanted));
        expect_ok(parse(INDEX(ENTRY(PLATFORM("linux", "amd64")) "," ENTRY(PLATFORM("windows", "arm64")) "," ENTRY(
                                PLATFORM("unknown", "unknown")) "," LAYER(OCI "layer.v1.tar")),
                        nullptr, &index));
        expect_error(nd_manifest_select(&index, &wanted, &entry), ND_NOT_FOUND,
                     "no image for platform linux/s390x, only for: linux/amd64, windows/arm64");
}

static void an_archive_may_name_its_images([[maybe_unused]] void **state) {
        nd_cleanup(nd_manifest_done) struct nd_manifest index = {};

        expect_ok(parse(INDEX(ENTRY(",\"annotations\":{\"org.opencontainers.image.ref.name\":\"1.0\","
                                    "\"io.containerd.image.name\":\"docker.io/library/a:1.0\"}")),
                        nullptr, &index));
        assert_string_equal(index.entries.items[0].ref_name, "1.0");
        assert_string_equal(index.entries.items[0].image_name, "docker.io/library/a:1.0");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_manifest_gives_its_config_and_layers_in_order),
                cmocka_unit_test(a_document_may_leave_its_type_to_others_but_not_contradict_them),
                cmocka_unit_test(schema_1_is_refused_with_advice),
                cmocka_unit_test(invalid_descriptors_are_refused),
                cmocka_unit_test(the_media_type_of_other_artifacts_is_in_the_error),
                cmocka_unit_test(the_layers_of_an_artifact_are_files_named_by_their_titles),
                cmocka_unit_test(the_config_names_the_type_of_an_artifact_without_one),
                cmocka_unit_test(a_directory_that_was_packed_is_unpacked),
                cmocka_unit_test(hostile_titles_are_refused_with_the_file),
                cmocka_unit_test(counts_and_sizes_are_bounded),
                cmocka_unit_test(the_best_entry_of_an_index_is_taken),
                cmocka_unit_test(an_index_without_a_match_lists_its_platforms),
                cmocka_unit_test(an_archive_may_name_its_images),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
