/* SPDX-License-Identifier: Apache-2.0 */
/* completion.c - completions of the shells, generated from the option table
 *
 * Names that the program prints for ND_VALUES_ASK come from other parties. bash would expand them
 * in a list of words (compgen -W), also $(commands): so they are only compared and copied. */
#include <string.h>

#include "base/option.h"
#include "base/text.h"

#define each_command(command, program)                                                                                        \
        for (const struct nd_option_command *command = (program)->commands; command->name; command++)                         \
                if (!command->hidden)

static const struct nd_option help_option = {.name = "help", .letter = 'h', .help = "print this help"};

/* A name for a shell's function. */
static char *function_name(const struct nd_option_program *program) {
        char *name = nd_format("_%s", program->name);

        for (char *c = name; *c; c++)
                if (*c == '-')
                        *c = '_';
        return name;
}

static void print_commands(const struct nd_option_program *program, FILE *to) {
        each_command(c, program) fprintf(to, " %s", c->name);
}

/* ---- bash ---- */

static void print_bash_options(const struct nd_option_command *command, FILE *to) {
        for (const struct nd_option *o = command->options; o && o->name; o++)
                fprintf(to, " --%s", o->name);
        fputs(" --help", to);
}

/* What completes a value. */
static void print_bash_action(const char *function, enum nd_option_values values, const char *words, FILE *to) {
        switch (values) {
        case ND_VALUES_FILE:
                fputs("compopt -o default", to);
                return;
        case ND_VALUES_DIRECTORY:
                fputs("compopt -o dirnames -o filenames", to);
                return;
        case ND_VALUES_WORDS:
                fprintf(to, "%s_offer %s", function, words);
                return;
        case ND_VALUES_ASK:
                fprintf(to, "%s_ask %s", function, words);
                return;
        case ND_VALUES_ANY:
        case ND_VALUES_KINDS:
                fputs(":", to);
        }
}

/* "check--dir|check-d": the command and the word before a value. */
static void print_bash_pattern(const struct nd_option_command *command, const struct nd_option *option, FILE *to) {
        fprintf(to, "%s--%s", command->name, option->name);
        if (option->letter)
                fprintf(to, "|%s-%c", command->name, option->letter);
}

static void print_bash_values(const struct nd_option_program *program, const char *function, FILE *to) {
        fputs("    case $cmd$prev in\n", to);
        each_command(c, program) for (const struct nd_option *o = c->options; o && o->name; o++) {
                if (!o->argument)
                        continue;
                fputs("        ", to);
                print_bash_pattern(c, o, to);
                fputs(") ", to);
                print_bash_action(function, o->values, o->words, to);
                fputs("; return;;\n", to);
        }
        fputs("    esac\n", to);
}

/* Counts the operands before the current word: options and their values are none. */
static void print_bash_count(const struct nd_option_program *program, FILE *to) {
        fputs("    for ((i = 2; i < ${#words[@]} - 1; i++)); do\n        case $cmd${words[i]} in\n", to);
        each_command(c, program) for (const struct nd_option *o = c->options; o && o->name; o++) {
                if (!o->argument)
                        continue;
                fputs("            ", to);
                print_bash_pattern(c, o, to);
                fputs(") ((i++));;\n", to);
        }
        fputs("            \"$cmd\"-*) ;;\n            *) ((count++));;\n        esac\n    done\n", to);
}

static void print_bash_operands(const struct nd_option_program *program, const char *function, FILE *to) {
        fputs("    case $cmd in\n", to);
        each_command(c, program) {
                fprintf(to, "        %s) ", c->name);
                if (c->operand_last > 0)
                        fprintf(to, "((count < %u)) && ", c->operand_last);
                if (c->operands) {
                        print_bash_action(function, c->operand_values, c->operand_words, to);
                } else {
                        fprintf(to, "%s_offer", function);
                        print_bash_options(c, to);
                }
                fputs(";;\n", to);
        }
        fprintf(to, "        help) %s_offer", function);
        print_commands(program, to);
        fputs(";;\n    esac\n", to);
}

/* The line is split at spaces alone: bash would split at colons, too, of which images have many.
 * The part up to the last colon is on the line already and must not be in the replies. */
static void print_bash_head(const struct nd_option_program *program, const char *function, FILE *to) {
        fprintf(to,
                "# bash completion of %s, made from its option table\n"
                "%s_offer() {\n"
                "    local word\n"
                "    for word; do\n"
                "        [[ $word == \"$cur\"* ]] && COMPREPLY+=(\"${word#\"$cut\"}\")\n"
                "    done\n"
                "}\n"
                "%s_ask() {\n"
                "    local name\n"
                "    while IFS= read -r name; do\n"
                "        %s_offer \"$name\"\n"
                "    done < <(%s complete \"$1\" -- \"${words[@]:1}\" 2>/dev/null)\n"
                "}\n",
                program->name, function, function, function, program->name);
        fprintf(to,
                "%s() {\n"
                "    local line=${COMP_LINE:0:COMP_POINT} words cur prev cmd cut count=0 i\n"
                "    read -ra words <<<\"$line\"\n"
                "    [[ $line == *[[:space:]] ]] && words+=('')\n"
                "    cur=${words[-1]} prev=${words[-2]} cmd=${words[1]} COMPREPLY=()\n"
                "    [[ $cur == --*=* ]] && prev=${cur%%%%=*} cur=${cur#*=}\n"
                "    cut=${cur%%\"${cur##*:}\"}\n",
                function);
}

void nd_option_usage_bash(const struct nd_option_program *program, FILE *to) {
        nd_autofree char *function = function_name(program);

        print_bash_head(program, function, to);
        fprintf(to, "    if ((${#words[@]} == 2)); then\n        %s_offer", function);
        print_commands(program, to);
        fputs(" help --help --version\n        return\n    fi\n", to);
        print_bash_values(program, function, to);
        fputs("    if [[ $cur == -* ]]; then\n        case $cmd in\n", to);
        each_command(c, program) {
                fprintf(to, "            %s) %s_offer", c->name, function);
                print_bash_options(c, to);
                fputs(";;\n", to);
        }
        fputs("        esac\n        return\n    fi\n", to);
        print_bash_count(program, to);
        print_bash_operands(program, function, to);
        fprintf(to, "}\ncomplete -F %s %s\n", function, program->name);
}

/* ---- zsh ---- */

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

static void print_zsh_action(const char *function, enum nd_option_values values, const char *words, FILE *to) {
        switch (values) {
        case ND_VALUES_FILE:
                fputs("_files", to);
                return;
        case ND_VALUES_DIRECTORY:
                fputs("_files -/", to);
                return;
        case ND_VALUES_WORDS:
                fprintf(to, "(%s)", words);
                return;
        case ND_VALUES_ASK:
                fprintf(to, "%s_ask %s", function, words);
                return;
        case ND_VALUES_ANY:
        case ND_VALUES_KINDS:
                return;
        }
}

static void print_zsh_option(const char *function, const struct nd_option *option, FILE *to) {
        fprintf(to, "                '--%s[", option->name);
        print_zsh_text(option->help, to);
        fputc(']', to);
        if (option->argument) {
                /* a colon would end the message */
                fprintf(to, ":%.*s:", (int) strcspn(option->argument, ":"), option->argument);
                print_zsh_action(function, option->values, option->words, to);
        }
        fputs("' \\\n", to);
}

static void print_zsh_operands(const char *function, const struct nd_option_command *command, FILE *to) {
        if (!command->operands)
                fputs("                ;;\n", to);
        for (unsigned i = 1; command->operands && i <= command->operand_last; i++) {
                fprintf(to, "                '%u:operand:", i);
                print_zsh_action(function, command->operand_values, command->operand_words, to);
                fputs(i == command->operand_last ? "' ;;\n" : "' \\\n", to);
        }
        if (command->operands && command->operand_last == 0) {
                fputs("                '*:operand:", to);
                print_zsh_action(function, command->operand_values, command->operand_words, to);
                fputs("' ;;\n", to);
        }
}

void nd_option_usage_zsh(const struct nd_option_program *program, FILE *to) {
        nd_autofree char *function = function_name(program);

        fprintf(to,
                "#compdef %s\n# made from its option table\n"
                "%s_ask() {\n"
                "    local -a names=(${(f)\"$(%s complete $1 -- $line 2>/dev/null)\"})\n"
                "    compadd -a names\n"
                "}\n"
                "%s() {\n    local -a line=($words)\n    if (( CURRENT == 2 )); then\n        local -a commands=(\n",
                program->name, function, program->name, function);
        each_command(c, program) {
                fprintf(to, "            '%s:", c->name);
                print_zsh_text(c->summary, to);
                fputs("'\n", to);
        }
        fputs("            'help:show the options of a command'\n        )\n        _describe command commands\n        return\n"
              "    fi\n    local command=$words[2]\n    shift words\n    (( CURRENT-- ))\n    case $command in\n        help) compadd",
              to);
        print_commands(program, to);
        fputs(";;\n", to);
        each_command(c, program) {
                fprintf(to, "        %s)\n            _arguments \\\n", c->name);
                for (const struct nd_option *o = c->options; o && o->name; o++)
                        print_zsh_option(function, o, to);
                print_zsh_option(function, &help_option, to);
                print_zsh_operands(function, c, to);
        }
        fprintf(to, "    esac\n}\n%s \"$@\"\n", function);
}

/* ---- fish ---- */

static void print_fish_text(const char *text, FILE *to) {
        fputc('\'', to);
        for (const char *c = text; *c; c++) {
                if (*c == '\'' || *c == '\\')
                        fputc('\\', to);
                fputc(*c, to);
        }
        fputc('\'', to);
}

/* " -F", " -a 'WORDS'" or nothing. */
static void print_fish_values(const struct nd_option_program *program, enum nd_option_values values, const char *words,
                              FILE *to) {
        if (values == ND_VALUES_FILE || values == ND_VALUES_DIRECTORY)
                fputs(" -F", to);
        else if (values == ND_VALUES_WORDS)
                fprintf(to, " -a '%s'", words);
        else if (values == ND_VALUES_ASK)
                fprintf(to, " -a '(%s complete %s -- (commandline -opc)[2..-1] 2>/dev/null)'", program->name, words);
}

static void print_fish_command(const struct nd_option_program *program, const struct nd_option_command *command, FILE *to) {
        fprintf(to, "complete -c %s -n __fish_use_subcommand -a %s -d ", program->name, command->name);
        print_fish_text(command->summary, to);
        fputc('\n', to);
        if (command->operands && command->operand_values != ND_VALUES_ANY) {
                fprintf(to, "complete -c %s -n '__fish_seen_subcommand_from %s'", program->name, command->name);
                print_fish_values(program, command->operand_values, command->operand_words, to);
                fputc('\n', to);
        }
        for (const struct nd_option *o = command->options; o && o->name; o++) {
                fprintf(to, "complete -c %s -n '__fish_seen_subcommand_from %s' -l %s", program->name, command->name, o->name);
                if (o->argument) {
                        fputs(" -r", to);
                        print_fish_values(program, o->values, o->words, to);
                }
                fputs(" -d ", to);
                print_fish_text(o->help, to);
                fputc('\n', to);
        }
}

void nd_option_usage_fish(const struct nd_option_program *program, FILE *to) {
        fprintf(to, "# fish completion of %s, made from its option table\ncomplete -c %s -f\n", program->name, program->name);
        each_command(c, program) print_fish_command(program, c, to);
        fprintf(to, "complete -c %s -n __fish_use_subcommand -a help -d 'show the options of a command'\n", program->name);
        fprintf(to, "complete -c %s -n '__fish_seen_subcommand_from help' -a '", program->name);
        print_commands(program, to);
        fputs("'\n", to);
}
