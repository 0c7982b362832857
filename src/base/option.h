/* SPDX-License-Identifier: Apache-2.0 */
/* option.h - one table of commands and options
 *
 * The same table parses the command line, prints --help, and generates the man pages' OPTIONS and
 * the shells' completions, so they cannot disagree. A command's options are written into its own
 * struct by offset. */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

enum nd_option_kind {
        ND_OPTION_FLAG, /* bool */
        ND_OPTION_TEXT, /* const char *, pointing into argv */
        ND_OPTION_U32,  /* uint32_t, decimal */
};

/* How a shell may complete a value or an operand. */
enum nd_option_values {
        ND_VALUES_ANY,
        ND_VALUES_FILE,
        ND_VALUES_DIRECTORY,
        ND_VALUES_WORDS, /* one of the words */
        /* The program is asked, by `PROGRAM complete WORDS`: a hidden command that prints one name
         * per line and never waits long. */
        ND_VALUES_ASK,
        ND_VALUES_KINDS,
};

struct nd_option {
        const char *name; /* without dashes; nullptr ends a table */
        char letter;      /* 0 = none */
        enum nd_option_kind kind;
        size_t offset;        /* of the field in the command's struct */
        const char *argument; /* the value's name in help, nullptr for a flag */
        uint32_t least;       /* smallest value of a number */
        enum nd_option_values values;
        const char *words; /* of ND_VALUES_WORDS, separated by spaces; the kind of ND_VALUES_ASK */
        const char *help;  /* one sentence, without a full stop */
};

struct nd_option_command {
        /* Nullptr ends a table; "" is the program itself, which then has no commands. */
        const char *name;
        const char *summary;
        const char *operands; /* "[FILE...]", nullptr = none are taken */
        /* This operand and all after it are the command line of another program; 0 = none. */
        unsigned verbatim_from;
        /* How a shell completes an operand, and up to which one; 0 = all. */
        enum nd_option_values operand_values;
        const char *operand_words;
        unsigned operand_last;
        bool hidden; /* neither in the help nor in completions */
        const struct nd_option *options;
        size_t settings_size; /* of the struct that the options write into */
        int (*run)(void *settings, int operand_count, char **operands);
};

struct nd_option_program {
        const char *name;
        const char *summary;
        const struct nd_option_command *commands;
};

/* Options every program and command has. */
enum nd_option_parsed {
        ND_PARSED_RUN,
        ND_PARSED_HELP,
};

/* Parses argv[1..] of a command into settings. Options and operands may be mixed; "--" ends the
 * options. On success the operands are moved to the front of argv[1..] and counted. */
[[nodiscard]] struct nd_error *nd_option_parse(const struct nd_option_command *command, int argc, char **argv, void *settings,
                                               int *ret_operands, enum nd_option_parsed *ret);

/* A whole program: selects the command, parses, runs. "help COMMAND" is the same as "COMMAND
 * --help". Returns the exit status; 64 for an invalid command line, 74 for output that could not be
 * written (output.h). */
int nd_option_run(const struct nd_option_program *program, int argc, char **argv);

/* Generated from the table (usage.c). */
void nd_option_usage_program(const struct nd_option_program *program, FILE *to);
void nd_option_usage_command(const struct nd_option_program *program, const struct nd_option_command *command, FILE *to);
void nd_option_usage_scdoc(const struct nd_option_program *program, const struct nd_option_command *command,
                           FILE *to); /* SYNOPSIS, OPTIONS */

/* Generated from the table (completion.c). */
void nd_option_usage_bash(const struct nd_option_program *program, FILE *to);
void nd_option_usage_zsh(const struct nd_option_program *program, FILE *to);
void nd_option_usage_fish(const struct nd_option_program *program, FILE *to);

enum {
        ND_EXIT_USAGE = 64, /* sysexits' EX_USAGE */
};
