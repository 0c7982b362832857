/* SPDX-License-Identifier: Apache-2.0 */
/* usage.c - output generated from the option table: help, man page sections */
#include <string.h>

#include "base/option.h"
#include "base/text.h"

static const struct nd_option help_option = {.name = "help", .letter = 'h', .help = "print this help"};

/* "-d, --dir PATH" */
static char *spelling(const struct nd_option *option) {
        nd_autotext struct nd_text text = ND_TEXT(256);

        if (option->letter)
                nd_text_addf(&text, "-%c, ", option->letter);
        else
                nd_text_add(&text, "    ");
        nd_text_addf(&text, "--%s", option->name);
        if (option->argument)
                nd_text_addf(&text, " %s", option->argument);
        return nd_text_steal(&text);
}

/* The longest name, for the column; at least 10. */
static int name_width(const struct nd_option_program *program) {
        size_t width = 10;

        for (const struct nd_option_command *c = program->commands; c->name; c++)
                if (!c->hidden && strlen(c->name) > width)
                        width = strlen(c->name);
        return (int) width;
}

void nd_option_usage_program(const struct nd_option_program *program, FILE *to) {
        fprintf(to, "%s - %s\n\nUsage: %s COMMAND [OPTION...]\n\nCommands:\n", program->name, program->summary, program->name);
        for (const struct nd_option_command *c = program->commands; c->name; c++)
                if (!c->hidden)
                        fprintf(to, "  %-*s %s\n", name_width(program), c->name, c->summary);
        fprintf(to, "\n'%s help COMMAND' shows a command's options, '%s --version' the version.\n", program->name,
                program->name);
}

static void print_option(const struct nd_option *option, FILE *to) {
        nd_autofree char *left = spelling(option);

        fprintf(to, "  %-28s %s\n", left, option->help);
}

void nd_option_usage_command(const struct nd_option_program *program, const struct nd_option_command *command, FILE *to) {
        const char *blank = command->name[0] ? " " : "";

        fprintf(to, "%s%s%s - %s\n\nUsage: %s%s%s [OPTION...]%s%s\n\nOptions:\n", program->name, blank, command->name,
                command->summary, program->name, blank, command->name, command->operands ? " " : "", command->operands ?: "");
        for (const struct nd_option *o = command->options; o && o->name; o++)
                print_option(o, to);
        print_option(&help_option, to);
}

/* scdoc reads '_', '*' and '\' as markup. */
static void print_scdoc_text(const char *text, FILE *to) {
        for (const char *c = text; *c; c++) {
                if (strchr("_*\\[]", *c))
                        fputc('\\', to);
                fputc(*c, to);
        }
}

static void print_scdoc_option(const struct nd_option *option, FILE *to) {
        if (option->letter)
                fprintf(to, "*-%c*, ", option->letter);
        fprintf(to, "*--%s*", option->name);
        if (option->argument)
                fprintf(to, " _%s_", option->argument);
        fputs("\n\t", to);
        print_scdoc_text(option->help, to);
        fputs(".\n\n", to);
}

void nd_option_usage_scdoc(const struct nd_option_program *program, const struct nd_option_command *command, FILE *to) {
        fprintf(to, "# SYNOPSIS\n\n*%s%s%s* [_OPTION_...]", program->name, command->name[0] ? " " : "", command->name);
        if (command->operands) {
                fputc(' ', to);
                print_scdoc_text(command->operands, to);
        }
        fputs("\n\n# OPTIONS\n\n", to);
        for (const struct nd_option *o = command->options; o && o->name; o++)
                print_scdoc_option(o, to);
        print_scdoc_option(&help_option, to);
}
