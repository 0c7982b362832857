/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/program.h"

#include <string.h>

char *nd_program_find(const char *directories, const char *name) {
        nd_autofree char *list = nd_strdup(directories);

        for (char *directory = list, *end; directory; directory = end) {
                nd_autofree char *candidate = nullptr;

                end = strchr(directory, ':');
                if (end)
                        *end++ = '\0';
                candidate = nd_format("%s/%s", directory, name);
                if (*directory && access(candidate, X_OK) == 0)
                        return nd_take_ptr(candidate);
        }
        return nullptr;
}
