/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output/terminal.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/text.h"

enum {
        ROWS_DEFAULT = 24,
        COLUMNS_DEFAULT = 80,
        SIZE_MOST = 10000, /* no terminal is larger */
};

static size_t from_environment(const char *name, size_t otherwise) {
        const char *text = getenv(name);
        uint64_t value = 0;

        return text && nd_text_parse_u64(text, SIZE_MOST, &value) == 0 && value > 0 ? value : otherwise;
}

bool cli_terminal_size(struct cli_terminal *ret) {
        struct winsize window = {};

        if (!isatty(STDOUT_FILENO))
                return false;
        (void) ioctl(STDOUT_FILENO, TIOCGWINSZ, &window);
        ret->rows = window.ws_row > 0 ? window.ws_row : from_environment("LINES", ROWS_DEFAULT);
        ret->columns = window.ws_col > 0 ? window.ws_col : from_environment("COLUMNS", COLUMNS_DEFAULT);
        return true;
}

bool cli_terminal_has_cursor(void) {
        const char *kind = getenv("TERM");

        return isatty(STDOUT_FILENO) && kind && *kind && !nd_streq(kind, "dumb");
}

bool cli_terminal_has_colour(void) {
        const char *refused = getenv("NO_COLOR");

        return cli_terminal_has_cursor() && !(refused && *refused);
}
