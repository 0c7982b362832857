/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/core/container-path.h"

#include <string.h>

#include "base/text.h"

char *cri_container_path_clean(const char *path) {
        nd_autotext struct nd_text text = ND_TEXT(SIZE_MAX);
        const char *part = path;

        while (*part) {
                size_t length = strcspn(part, "/");

                if (length == 2 && memcmp(part, "..", 2) == 0) {
                        while (text.length > 0 && text.bytes[--text.length] != '/')
                                ;
                } else if (length > 0 && !(length == 1 && *part == '.')) {
                        nd_text_add(&text, "/");
                        nd_text_append(&text, part, length);
                }
                part += length + (part[length] == '/');
        }
        if (text.length == 0)
                return nd_strdup("/");
        return nd_strndup(text.bytes, text.length);
}

bool cri_container_path_within(const char *path, const char *directory) {
        size_t length = strlen(directory);

        return nd_has_prefix(path, directory) && (path[length] == '/' || path[length] == '\0');
}
