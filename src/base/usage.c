/* SPDX-License-Identifier: Apache-2.0 */
/* usage.c - output generated from the option table: help, man page sections, completions */
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

void nd_option_usage_program(const struct nd_option_program *program, FILE *to) {
        fprintf(to, "%s - %s\n\nUsage: %s COMMAND [OPTION...]\n\nCommands:\n", program->name, program->summary, program->name);
        for (const struct nd_option_command *c = program->commands; c->name; c++)
                fprintf(to, "  %-10s %s\n", c->name, c->summary);
        fprintf(to, "\n'%s COMMAND --help' shows a command's options, '%s --version' the version.\n", program->name,
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

static void print_bash_words(const struct nd_option_command *command, FILE *to) {
        for (const struct nd_option *o = command->options; o && o->name; o++)
                fprintf(to, "--%s ", o->name);
        fputs("--help", to);
}

/* One case branch per command for the words that a value of this kind follows: "check--dir|check-d)
 * ..." */
static void print_bash_values(const struct nd_option_program *program, enum nd_option_values values, const char *action,
                              FILE *to) {
        for (const struct nd_option_command *c = program->commands; c->name; c++) {
                nd_autotext struct nd_text pattern = ND_TEXT(4096);

                for (const struct nd_option *o = c->options; o && o->name; o++) {
                        if (!o->argument || o->values != values)
                                continue;
                        nd_text_addf(&pattern, "%s%s--%s", pattern.length > 0 ? "|" : "", c->name, o->name);
                        if (o->letter)
                                nd_text_addf(&pattern, "|%s-%c", c->name, o->letter);
                }
                if (pattern.length > 0)
                        fprintf(to, "        %s) %sreturn;;\n", nd_text_get(&pattern), action);
        }
}

void nd_option_usage_bash(const struct nd_option_program *program, FILE *to) {
        fprintf(to, "# bash completion of %s, made from its option table\n_%s() {\n", program->name, program->name);
        fputs("    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} cmd=${COMP_WORDS[1]}\n"
              "    COMPREPLY=()\n"
              "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        COMPREPLY=($(compgen -W '",
              to);
        for (const struct nd_option_command *c = program->commands; c->name; c++)
                fprintf(to, "%s ", c->name);
        fputs("--help --version' -- \"$cur\"))\n        return\n    fi\n    case $cmd$prev in\n", to);
        print_bash_values(program, ND_VALUES_DIRECTORY, "COMPREPLY=($(compgen -d -- \"$cur\")); ", to);
        print_bash_values(program, ND_VALUES_FILE, "COMPREPLY=($(compgen -f -- \"$cur\")); ", to);
        print_bash_values(program, ND_VALUES_ANY, "", to);
        fputs("    esac\n    case $cmd in\n", to);
        for (const struct nd_option_command *c = program->commands; c->name; c++) {
                fprintf(to, "        %s) COMPREPLY=($(compgen -W '", c->name);
                print_bash_words(c, to);
                fputs("' -- \"$cur\"));;\n", to);
        }
        fprintf(to, "    esac\n}\ncomplete -F _%s %s\n", program->name, program->name);
}

/* Within single quotes, where a bracket or a backslash would end or change the description. */
static void print_zsh_text(const char *text, FILE *to) {
        for (const char *c = text; *c; c++) {
                if (*c == '\'')
                        fputs("'\\'", to);
                else if (strchr("[]\\", *c))
                        fputc('\\', to);
                fputc(*c, to);
        }
}

static void print_zsh_option(const struct nd_option *option, FILE *to) {
        static const char *const actions[] = {
                [ND_VALUES_ANY] = "",
                [ND_VALUES_FILE] = "_files",
                [ND_VALUES_DIRECTORY] = "_files -/",
        };
        static_assert(nd_count_of(actions) == ND_VALUES_DIRECTORY + 1);

        fprintf(to, "                '--%s[", option->name);
        print_zsh_text(option->help, to);
        fputc(']', to);
        if (option->argument)
                fprintf(to, ":%s:%s", option->argument, actions[option->values]);
        fputs("' \\\n", to);
}

void nd_option_usage_zsh(const struct nd_option_program *program, FILE *to) {
        fprintf(to,
                "#compdef %s\n# made from its option table\n_%s() {\n    if (( CURRENT == 2 )); then\n        local -a commands=(\n",
                program->name, program->name);
        for (const struct nd_option_command *c = program->commands; c->name; c++) {
                fprintf(to, "            '%s:", c->name);
                print_zsh_text(c->summary, to);
                fputs("'\n", to);
        }
        fputs("        )\n        _describe command commands\n        return\n    fi\n    local command=$words[2]\n"
              "    shift words\n    (( CURRENT-- ))\n    case $command in\n",
              to);
        for (const struct nd_option_command *c = program->commands; c->name; c++) {
                fprintf(to, "        %s)\n            _arguments \\\n", c->name);
                for (const struct nd_option *o = c->options; o && o->name; o++)
                        print_zsh_option(o, to);
                print_zsh_option(&help_option, to);
                fprintf(to, "                %s;;\n", c->operands ? "'*:file:_files'" : "");
        }
        fprintf(to, "    esac\n}\n_%s \"$@\"\n", program->name);
}

static void print_fish_text(const char *text, FILE *to) {
        fputc('\'', to);
        for (const char *c = text; *c; c++) {
                if (*c == '\'' || *c == '\\')
                        fputc('\\', to);
                fputc(*c, to);
        }
        fputc('\'', to);
}

void nd_option_usage_fish(const struct nd_option_program *program, FILE *to) {
        fprintf(to, "# fish completion of %s, made from its option table\ncomplete -c %s -f\n", program->name, program->name);
        for (const struct nd_option_command *c = program->commands; c->name; c++) {
                fprintf(to, "complete -c %s -n __fish_use_subcommand -a %s -d ", program->name, c->name);
                print_fish_text(c->summary, to);
                fputc('\n', to);
                for (const struct nd_option *o = c->options; o && o->name; o++) {
                        fprintf(to, "complete -c %s -n '__fish_seen_subcommand_from %s' -l %s%s%s -d ", program->name, c->name,
                                o->name, o->argument ? " -r" : "", o->argument && o->values != ND_VALUES_ANY ? " -F" : "");
                        print_fish_text(o->help, to);
                        fputc('\n', to);
                }
        }
}
