/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output/field.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "cli/output/terminal.h"
#include "cli/output/width.h"

void cli_field_print(const char *label, int columns, const char *value) {
        nd_autofree char *text = cli_width_clean(value ?: "", false), *wrapped = nullptr;
        size_t beside = (size_t) columns + 1; /* where the value begins */
        struct cli_terminal terminal;

        if (!*text)
                return;
        if (strchr(text, ' ') && cli_terminal_size(&terminal) && terminal.columns > 2 * beside)
                wrapped = cli_width_wrap(text, terminal.columns - beside);
        for (const char *line = wrapped ?: text; line; label = "") {
                size_t length = strcspn(line, "\n");

                printf("%-*s %.*s\n", columns, label, (int) length, line);
                line = line[length] ? line + length + 1 : nullptr;
        }
}
