/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/input.h"

#include <stdio.h>

#include "base/text.h"
#include "sys/file.h"

struct nd_error *cli_input_read(const char *path, size_t most, char **ret, size_t *ret_length) {
        nd_autotext struct nd_text text = ND_TEXT(most);
        char buffer[8192];
        size_t count;

        if (!nd_streq(path, "-"))
                return nd_file_read_any(path, most, ret, ret_length);
        while (!text.overflow && (count = fread(buffer, 1, sizeof buffer, stdin)) > 0)
                nd_text_append(&text, buffer, count);
        if (ferror(stdin))
                return nd_error_new(ND_UNAVAILABLE, errno, "read standard input");
        if (text.overflow)
                return nd_error_new(ND_INVALID, 0, "standard input exceeds %zu bytes", most);
        *ret_length = text.length;
        *ret = nd_text_steal(&text);
        return nullptr;
}
