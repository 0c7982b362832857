/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-fuse.c - parses mount tables and descriptors: containers choose names in them */
#include <unit/fuzz.h>

#include <string.h>

#include "base/memory.h"
#include "cri/pod/fuse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_autofree char *text = nd_strndup((const char *) data, size);
        uint32_t number = 0;

        (void) !cri_fuse_parse_descriptor(text, &number);
        for (const char *line = text; *line;) {
                size_t length = strcspn(line, "\n");
                nd_autofree char *path = nullptr;

                if (cri_fuse_parse_mount(line, length, &number, &path))
                        fuzz_require(path && strlen(path) < length);
                else
                        fuzz_require(!path);
                line += length + (line[length] == '\n');
        }
        return 0;
}
