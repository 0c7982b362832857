/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/artifact.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

enum { SHOWN = 128 }; /* bytes of a path in a message */

static struct nd_error *refuse(const char *path, const char *why) {
        nd_autofree char *shown = nd_strndup(path, strnlen(path, SHOWN)), *quoted = nd_text_quote(shown);

        return nd_error_new(ND_INVALID, 0, "the artifact has a file with the path %s%s: %s", quoted,
                            strlen(path) > SHOWN ? "..." : "", why);
}

/* ASCII's control characters, and those of Latin 1 in UTF-8. */
static bool has_control(const char *text) {
        for (; *text; text++)
                if ((unsigned char) *text < ' ' || *text == '\x7f' ||
                    (*text == '\xc2' && (unsigned char) text[1] >= 0x80 && (unsigned char) text[1] < 0xa0))
                        return true;
        return false;
}

struct nd_error *nd_artifact_path_check(const char *path) {
        size_t depth = 0;

        if (strlen(path) > ND_ARTIFACT_PATH)
                return refuse(path, "it is longer than 1023 bytes");
        if (has_control(path))
                return refuse(path, "it has control characters");
        if (path[0] == '/')
                return refuse(path, "it is not relative");
        for (const char *at = path;; at++) {
                size_t length = strcspn(at, "/");

                if (length == 0)
                        return refuse(path, "it has an empty component");
                if (length <= 2 && memcmp(at, "..", length) == 0)
                        return refuse(path, "it has a component '.' or '..'");
                if (length > ND_ARTIFACT_NAME)
                        return refuse(path, "it has a component of more than 255 bytes");
                if (nd_has_prefix(at, ".wh."))
                        return refuse(path, "the prefix '.wh.' is reserved for whiteouts");
                if (++depth > ND_ARTIFACT_DEPTH)
                        return refuse(path, "it has more than 32 components");
                at += length;
                if (*at == '\0')
                        return nullptr;
        }
}

/* Sorts the slash first, so that what is below a path follows it directly. */
static int compare_paths(const void *a, const void *b) {
        const char *first = *(const char *const *) a, *second = *(const char *const *) b;

        for (; *first && *first == *second; first++)
                second++;
        if (*first == *second)
                return 0;
        if (*first == '/' || *second == '/')
                return *first == '\0' ? -1 : *second == '\0' ? 1 : *first == '/' ? -1 : 1;
        return (unsigned char) *first < (unsigned char) *second ? -1 : 1;
}

struct nd_error *nd_artifact_paths_check(const struct nd_strings *paths) {
        nd_autofree const char **sorted = nd_calloc(paths->count + 1, sizeof *sorted);

        for (size_t i = 0; i < paths->count; i++)
                sorted[i] = paths->items[i];
        qsort(sorted, paths->count, sizeof *sorted, compare_paths);
        for (size_t i = 1; i < paths->count; i++) {
                if (nd_streq(sorted[i - 1], sorted[i]))
                        return refuse(sorted[i], "another file has the same path");
                if (nd_has_prefix(sorted[i], sorted[i - 1]) && sorted[i][strlen(sorted[i - 1])] == '/')
                        return refuse(sorted[i - 1], "it is a file and the directory of another file");
        }
        return nullptr;
}

struct nd_digest nd_artifact_file_id(const struct nd_digest *blob, const char *path) {
        struct nd_digest hashed = nd_digest_of(ND_HASH_SHA256, path, strlen(path));
        char content[ND_DIGEST_TEXT], name[ND_DIGEST_TEXT], text[2 * ND_DIGEST_TEXT + 64];
        int length = snprintf(text, sizeof text, "file of an artifact\n%s\n%s\n", nd_digest_text(blob, content),
                              nd_digest_text(&hashed, name));

        static_assert(sizeof text < 512);
        return nd_digest_of(ND_HASH_SHA256, text, (size_t) length);
}
