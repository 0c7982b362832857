/* SPDX-License-Identifier: Apache-2.0 */
/* usage-tool.c - generates man page sections and completions from a program's option table at build
 * time; the build makes one per program, with the table's name as USAGE_PROGRAM
 *
 *      usage-tool bash|zsh|fish > completion
 *      usage-tool scdoc check < page.scd.in > page.scd
 *
 * The line @USAGE@ of a page becomes SYNOPSIS and OPTIONS. */
#include <stdio.h>
#include <string.h>

#include "base/option.h"
#include "base/text.h"

extern const struct nd_option_program USAGE_PROGRAM;

static const struct nd_option_command *find_command(const char *name) {
        for (const struct nd_option_command *c = USAGE_PROGRAM.commands; c->name; c++)
                if (nd_streq(c->name, name))
                        return c;
        return nullptr;
}

static int fill_page(const char *name) {
        const struct nd_option_command *command = find_command(name);
        char line[4096];

        if (!command)
                return EXIT_FAILURE;
        while (fgets(line, sizeof line, stdin)) {
                if (nd_streq(line, "@USAGE@\n"))
                        nd_option_usage_scdoc(&USAGE_PROGRAM, command, stdout);
                else
                        fputs(line, stdout);
        }
        return EXIT_SUCCESS;
}

int main(int argc, char **argv) {
        static const struct {
                const char *name;
                void (*print)(const struct nd_option_program *program, FILE *to);
        } shells[] = {{"bash", nd_option_usage_bash}, {"zsh", nd_option_usage_zsh}, {"fish", nd_option_usage_fish}};

        if (argc == 3 && nd_streq(argv[1], "scdoc"))
                return fill_page(argv[2]);
        for (size_t i = 0; argc == 2 && i < nd_count_of(shells); i++)
                if (nd_streq(argv[1], shells[i].name)) {
                        shells[i].print(&USAGE_PROGRAM, stdout);
                        return EXIT_SUCCESS;
                }
        fputs("usage: usage-tool bash|zsh|fish|scdoc COMMAND\n", stderr);
        return EXIT_FAILURE;
}
