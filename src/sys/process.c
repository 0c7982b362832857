/* SPDX-License-Identifier: Apache-2.0 */
/* process.c - see process.h */
#include "sys/process.h"

#include <string.h>

#include "sys/file.h"

struct nd_error *nd_process_start_time(pid_t pid, uint64_t *ret) {
        enum { BEFORE = 19 }; /* fields between the ')' after the name and the start time */
        nd_autofree char *path = nd_format("/proc/%d/stat", (int) pid), *text = nullptr;
        const char *at;

        nd_try(nd_file_read_kernel(path, 16 * 1024, &text));
        at = strrchr(text, ')');
        for (int i = 0; at && i <= BEFORE; i++)
                at = strchr(at + 1, ' ');
        if (!at)
                return nd_error_new(ND_INTERNAL, 0, "%s has too few fields", path);
        *ret = strtoull(at + 1, nullptr, 10);
        return nullptr;
}
