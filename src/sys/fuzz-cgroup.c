/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-cgroup.c - the text of /proc/self/cgroup: a path that is found is the rest of a line that begins with "0::" */
#include <string.h>

#include <unit/fuzz.h>

#include "base/text.h"
#include "sys/cgroup.h"

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

        /* Every word of a list is in it, and with one more letter it is not the same word. */
        for (const char *word = text + strspn(text, " \n"); *word; word += strcspn(word, " \n"), word += strspn(word, " \n")) {
                nd_autofree char *name = nd_strndup(word, strcspn(word, " \n"));

                fuzz_require(nd_cgroup_has(text, name));
        }
        fuzz_require(!nd_cgroup_has(text, "a word\nthat no list has"));
        return 0;
}
