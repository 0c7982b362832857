/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/artifact.h"

#include <string.h>

#include <unit/expect.h>

static void plain_paths_are_accepted([[maybe_unused]] void **state) {
        static const char *const paths[] = {"a",     "model.safetensors", "a/b/c", ".hidden", "..a",     "a..", "...",
                                            "a b c", "sch\xc3\xb6n",      "a\\b",  "-rf",     "wh.name", ".wh", "a/x.wh.y"};
        char longest[ND_ARTIFACT_NAME + 1] = {}, deep[2 * ND_ARTIFACT_DEPTH] = {};

        for (size_t i = 0; i < nd_count_of(paths); i++)
                expect_ok(nd_artifact_path_check(paths[i]));
        memset(longest, 'x', sizeof longest - 1);
        expect_ok(nd_artifact_path_check(longest));
        for (size_t i = 0; i + 1 < sizeof deep; i++)
                deep[i] = i % 2 == 0 ? 'a' : '/';
        expect_ok(nd_artifact_path_check(deep));
}

static void paths_that_could_leave_or_confuse_are_refused([[maybe_unused]] void **state) {
        static const struct {
                const char *path, *words;
        } cases[] = {{"", "an empty component"},
                     {"/", "not relative"},
                     {"/etc/passwd", "not relative"},
                     {"..", "'.' or '..'"},
                     {".", "'.' or '..'"},
                     {"./a", "'.' or '..'"},
                     {"../a", "'.' or '..'"},
                     {"a/..", "'.' or '..'"},
                     {"a/../b", "'.' or '..'"},
                     {"a/./b", "'.' or '..'"},
                     {"a//b", "an empty component"},
                     {"a/", "an empty component"},
                     {"a\nb", "control characters"},
                     {"a\x7f", "control characters"},
                     {"a\x1b[2J", "control characters"},
                     {"a\xc2\x9b", "control characters"},
                     {".wh.a", "reserved"},
                     {".wh.", "reserved"},
                     {".wh..wh..opq", "reserved"},
                     {"a/.wh.b", "reserved"},
                     {".wh.a/b", "reserved"}};
        char name[ND_ARTIFACT_NAME + 2] = {}, path[ND_ARTIFACT_PATH + 2] = {}, deep[2 * ND_ARTIFACT_DEPTH + 2] = {};

        for (size_t i = 0; i < nd_count_of(cases); i++)
                expect_error(nd_artifact_path_check(cases[i].path), ND_INVALID, cases[i].words);
        memset(name, 'x', sizeof name - 1);
        expect_error(nd_artifact_path_check(name), ND_INVALID, "255 bytes");
        for (size_t i = 0; i + 1 < sizeof path; i++)
                path[i] = i % 200 == 199 ? '/' : 'x';
        expect_error(nd_artifact_path_check(path), ND_INVALID, "1023 bytes");
        for (size_t i = 0; i + 1 < sizeof deep; i++)
                deep[i] = i % 2 == 0 ? 'a' : '/';
        expect_error(nd_artifact_path_check(deep), ND_INVALID, "32 components");
}

static void refused_together(const char *words, const char *const *paths, size_t count) {
        nd_cleanup(nd_strings_done) struct nd_strings list = {};

        for (size_t i = 0; i < count; i++)
                nd_strings_add(&list, paths[i]);
        if (words)
                expect_error(nd_artifact_paths_check(&list), ND_INVALID, words);
        else
                expect_ok(nd_artifact_paths_check(&list));
}

static void two_files_cannot_have_one_place([[maybe_unused]] void **state) {
        /* "a.b" and "a-" sort between "a" and "a/b" in a plain order. */
        refused_together("same path", (const char *const[]) {"b", "a", "c", "a"}, 4);
        refused_together("directory of another", (const char *const[]) {"a/b", "a.b", "a-", "a"}, 4);
        refused_together("directory of another", (const char *const[]) {"x/y/z", "x/y"}, 2);
        refused_together(nullptr, (const char *const[]) {"a/b", "a/c", "ab", "a.b", "b"}, 5);
        refused_together(nullptr, nullptr, 0);
}

static void the_identity_of_a_file_has_its_content_and_its_path([[maybe_unused]] void **state) {
        struct nd_digest one = nd_digest_of(ND_HASH_SHA256, "1", 1), two = nd_digest_of(ND_HASH_SHA256, "2", 1);
        struct nd_digest ids[] = {nd_artifact_file_id(&one, "a"), nd_artifact_file_id(&one, "b"),
                                  nd_artifact_file_id(&two, "a"), one};
        struct nd_digest again = nd_artifact_file_id(&one, "a");
        char text[ND_DIGEST_TEXT];

        for (size_t i = 0; i < nd_count_of(ids); i++)
                for (size_t other = i + 1; other < nd_count_of(ids); other++)
                        assert_false(nd_digest_equal(&ids[i], &ids[other]));
        assert_true(nd_digest_equal(&ids[0], &again));
        /* It is on the disks of nodes: a change makes them fetch every artifact again. */
        assert_string_equal(nd_digest_text(&ids[0], text),
                            "sha256:f9a47a63106e82c2f5ab1125edfffde7eafb2851994e34376274ece6b270bd76");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(plain_paths_are_accepted),
                cmocka_unit_test(paths_that_could_leave_or_confuse_are_refused),
                cmocka_unit_test(two_files_cannot_have_one_place),
                cmocka_unit_test(the_identity_of_a_file_has_its_content_and_its_path),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
