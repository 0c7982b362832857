/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-cgroup.c - /proc/self/cgroup: a path that is found is the rest of a line that begins with
 * "0::"; files of a cgroup: a value that is found occurs in the text */
#include <string.h>

#include <unit/fuzz.h>

#include "base/text.h"
#include "sys/cgroup.h"

/* The first word of a line is a key, unless an earlier line has the same. */
static void keys(const char *text) {
        uint64_t value, again;

        for (const char *line = text; *line;) {
                size_t length = strcspn(line, "\n"), word = strcspn(line, " \n");
                nd_autofree char *key = nd_strndup(line, word), *written = nullptr;

                if (nd_cgroup_key(text, key, &value)) {
                        written = nd_format("%s %llu\n", key, (unsigned long long) value);
                        fuzz_require(nd_cgroup_key(written, key, &again) && again == value);
                }
                line += length + (line[length] == '\n');
        }
}

static void numbers(const char *text) {
        uint64_t value, again;

        if (nd_cgroup_number(text, &value)) {
                nd_autofree char *written = nd_format("%llu", (unsigned long long) value);

                fuzz_require(nd_cgroup_number(written, &again) && again == value);
        }
        if (nd_cgroup_sum(text, "rbytes", &value))
                fuzz_require(strstr(text, "rbytes="));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_autofree char *text = fuzz_text(data, size), *path = nd_cgroup_path_of(text), *line = nullptr;
        const char *at;

        if (!path) {
                fuzz_require(strncmp(text, "0::/", 4) != 0 && !strstr(text, "\n0::/"));
        } else {
                fuzz_require(path[0] == '/' && !strchr(path, '\n'));
                line = nd_format("0::%s", path);
                at = strstr(text, line);
                fuzz_require(at && (at == text || at[-1] == '\n' || strstr(at + 1, line)));
        }

        keys(text);
        numbers(text);

        /* Every word of a list is in it, and with one more letter it is another word. */
        for (const char *word = text + strspn(text, " \n"); *word; word += strcspn(word, " \n"), word += strspn(word, " \n")) {
                nd_autofree char *name = nd_strndup(word, strcspn(word, " \n"));

                fuzz_require(nd_cgroup_has(text, name));
        }
        fuzz_require(!nd_cgroup_has(text, "a word\nthat no list has"));
        return 0;
}
