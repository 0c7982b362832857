/* SPDX-License-Identifier: Apache-2.0 */
#include "base/option.h"

#include <string.h>

#include "base/output.h"
#include "base/text.h"

#ifndef ND_VERSION
#define ND_VERSION "0"
#endif

static const struct nd_option *find_by_name(const struct nd_option_command *command, const char *name, size_t length) {
        for (const struct nd_option *o = command->options; o && o->name; o++)
                if (strlen(o->name) == length && strncmp(o->name, name, length) == 0)
                        return o;
        return nullptr;
}

static const struct nd_option *find_by_letter(const struct nd_option_command *command, char letter) {
        for (const struct nd_option *o = command->options; o && o->name; o++)
                if (o->letter == letter)
                        return o;
        return nullptr;
}

static void set_flag(const struct nd_option *option, void *settings) {
        *(bool *) ((char *) settings + option->offset) = true;
}

static struct nd_error *store_number(const struct nd_option *option, const char *value, uint32_t *field) {
        uint32_t number;

        if (nd_text_parse_u32(value, &number) < 0 || number < option->least)
                return nd_error_new(ND_INVALID, 0, "--%s needs a number from %u to 4294967295, not '%s'", option->name,
                                    option->least, value);
        *field = number;
        return nullptr;
}

static struct nd_error *store(const struct nd_option *option, const char *value, void *settings) {
        void *field = (char *) settings + option->offset;

        switch (option->kind) {
        case ND_OPTION_FLAG: /* takes no value */
                break;
        case ND_OPTION_TEXT:
                *(const char **) field = value;
                return nullptr;
        case ND_OPTION_U32:
                return store_number(option, value, field);
        }
        return nd_error_new(ND_INTERNAL, 0, "option --%s has an unknown kind", option->name);
}

/* An option's value: the rest of its own argument, else the next argument. *position advances in
 * the second case. */
static struct nd_error *take_value(const struct nd_option *option, const char *value, int argc, char **argv, int *position,
                                   void *settings) {
        if (!value && *position + 1 >= argc)
                return nd_error_new(ND_INVALID, 0, "--%s needs a value (%s)", option->name, option->argument);
        return store(option, value ?: argv[++*position], settings);
}

static struct nd_error *take_long(const struct nd_option_command *command, int argc, char **argv, int *position,
                                  void *settings) {
        const char *word = argv[*position] + 2;
        size_t length = strcspn(word, "=");
        const char *value = word[length] == '=' ? word + length + 1 : nullptr;
        const struct nd_option *option = find_by_name(command, word, length);

        if (!option)
                return nd_error_new(ND_INVALID, 0, "unknown option '%s'", argv[*position]);
        if (!option->argument && value)
                return nd_error_new(ND_INVALID, 0, "--%s takes no value", option->name);
        if (option->argument)
                return take_value(option, value, argc, argv, position, settings);
        set_flag(option, settings);
        return nullptr;
}

/* Flags may be combined ("-it"); an option with a value must be the last. */
static struct nd_error *take_letters(const struct nd_option_command *command, int argc, char **argv, int *position,
                                     void *settings) {
        for (const char *letter = argv[*position] + 1; *letter; letter++) {
                const struct nd_option *option = find_by_letter(command, *letter);

                if (!option)
                        return nd_error_new(ND_INVALID, 0, "unknown option '%s'", argv[*position]);
                if (option->argument)
                        return take_value(option, letter[1] ? letter + 1 + (letter[1] == '=') : nullptr, argc, argv, position,
                                          settings);
                set_flag(option, settings);
        }
        return nullptr;
}

struct nd_error *nd_option_parse(const struct nd_option_command *command, int argc, char **argv, void *settings,
                                 int *ret_operands, enum nd_option_parsed *ret) {
        int operands = 0;
        bool options_end = false;

        *ret_operands = 0;
        for (int i = 1; i < argc; i++) {
                char *word = argv[i];

                if (!options_end && nd_streq(word, "--")) {
                        options_end = true;
                } else if (!options_end && (nd_streq(word, "--help") || nd_streq(word, "-h"))) {
                        *ret = ND_PARSED_HELP;
                        return nullptr;
                } else if (!options_end && word[0] == '-' && word[1]) {
                        nd_try(word[1] == '-' ? take_long(command, argc, argv, &i, settings)
                                              : take_letters(command, argc, argv, &i, settings));
                } else if (!command->operands) {
                        return nd_error_new(ND_INVALID, 0, "unexpected argument '%s'", word);
                } else {
                        argv[1 + operands++] = word;
                        options_end = options_end || (command->verbatim_from > 0 && operands >= (int) command->verbatim_from);
                }
        }
        *ret_operands = operands;
        *ret = ND_PARSED_RUN;
        return nullptr;
}

static int complain(const struct nd_option_program *program, const char *command, const char *text) {
        const char *blank = *command ? " " : "";

        fprintf(stderr, "%s%s%s: %s\nTry '%s%s%s --help'.\n", program->name, blank, command, text, program->name, blank,
                command);
        return ND_EXIT_USAGE;
}

static int run_command(const struct nd_option_program *program, const struct nd_option_command *command, int argc,
                       char **argv) {
        nd_autofree void *settings = nd_calloc(1, command->settings_size);
        nd_autoerror struct nd_error *error = nullptr;
        enum nd_option_parsed parsed = ND_PARSED_RUN;
        int operands = 0;

        error = nd_option_parse(command, argc, argv, settings, &operands, &parsed);
        if (error)
                return complain(program, command->name, nd_error_text(error));
        if (parsed == ND_PARSED_HELP) {
                nd_option_usage_command(program, command, stdout);
                return EXIT_SUCCESS;
        }
        return command->run(settings, operands, argv + 1);
}

static const struct nd_option_command *find_command(const struct nd_option_program *program, const char *name) {
        for (const struct nd_option_command *c = program->commands; c->name; c++)
                if (nd_streq(c->name, name))
                        return c;
        return nullptr;
}

static int unknown_command(const struct nd_option_program *program, const char *name) {
        nd_autofree char *text = nd_format("unknown command '%s'", name);

        return complain(program, "", text);
}

static int help(const struct nd_option_program *program, const char *name) {
        const struct nd_option_command *command = name ? find_command(program, name) : nullptr;

        if (name && !command)
                return unknown_command(program, name);
        if (command)
                nd_option_usage_command(program, command, stdout);
        else
                nd_option_usage_program(program, stdout);
        return EXIT_SUCCESS;
}

static int run_program(const struct nd_option_program *program, int argc, char **argv) {
        const char *word = argc > 1 ? argv[1] : "--help";
        const struct nd_option_command *command;

        if (!program->commands->name[0] && !nd_streq(word, "--version"))
                return run_command(program, program->commands, argc, argv);
        if (argc > 3 && nd_streq(word, "help"))
                return complain(program, "", "'help' takes one command");
        if (nd_streq(word, "help"))
                return help(program, argc > 2 ? argv[2] : nullptr);
        if (nd_streq(word, "--help") || nd_streq(word, "-h")) {
                nd_option_usage_program(program, stdout);
                return argc > 1 ? EXIT_SUCCESS : ND_EXIT_USAGE;
        }
        if (nd_streq(word, "--version")) {
                printf("%s %s\n", program->name, ND_VERSION);
                return EXIT_SUCCESS;
        }
        command = find_command(program, word);
        return command ? run_command(program, command, argc - 1, argv + 1) : unknown_command(program, word);
}

int nd_option_run(const struct nd_option_program *program, int argc, char **argv) {
        nd_output_open();
        return nd_output_close(program->name, run_program(program, argc, argv));
}
