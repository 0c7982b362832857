/* SPDX-License-Identifier: Apache-2.0 */
/* option.h - one table of commands and options
 *
 * The same table parses the command line, prints --help, and gives the man pages' OPTIONS and the shells' completions, so
 * they cannot disagree. A command's options are written into a struct of its own by offset. */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

enum nd_option_kind {
        ND_OPTION_FLAG, /* bool */
        ND_OPTION_TEXT, /* const char *, pointing into argv */
        ND_OPTION_U32,  /* uint32_t, decimal */
};

/* How a shell may complete a value. */
enum nd_option_values {
        ND_VALUES_ANY,
        ND_VALUES_FILE,
        ND_VALUES_DIRECTORY,
};

struct nd_option {
        const char *name; /* without dashes; nullptr ends a table */
        char letter;      /* 0 = none */
        enum nd_option_kind kind;
        size_t offset;        /* of the field in the command's struct */
        const char *argument; /* the value's name in help, nullptr for a flag */
        enum nd_option_values values;
        const char *help; /* one sentence, without a full stop */
};

struct nd_option_command {
        const char *name; /* nullptr ends a table; "" is the program itself, which then has no other command */
        const char *summary;
        const char *operands;   /* "[FILE...]", nullptr = none are taken */
        unsigned verbatim_from; /* this operand and all after it are somebody else's command line; 0 = none is */
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

/* Parses argv[1..] of a command into settings. Options and operands may be mixed; "--" ends the options. On success the
 * operands are moved to the front of argv[1..] and counted. */
[[nodiscard]] struct nd_error *nd_option_parse(const struct nd_option_command *command, int argc, char **argv, void *settings,
                                               int *ret_operands, enum nd_option_parsed *ret);

/* A whole program: picks the command, parses, runs. Returns the exit code; 64 for a wrong command line. */
int nd_option_run(const struct nd_option_program *program, int argc, char **argv);

/* What the table gives besides (usage.c). */
void nd_option_usage_program(const struct nd_option_program *program, FILE *to);
void nd_option_usage_command(const struct nd_option_program *program, const struct nd_option_command *command, FILE *to);
void nd_option_usage_scdoc(const struct nd_option_program *program, const struct nd_option_command *command,
                           FILE *to); /* SYNOPSIS, OPTIONS */
void nd_option_usage_bash(const struct nd_option_program *program, FILE *to);
void nd_option_usage_zsh(const struct nd_option_program *program, FILE *to);
void nd_option_usage_fish(const struct nd_option_program *program, FILE *to);

enum {
        ND_EXIT_USAGE = 64, /* sysexits' EX_USAGE */
};
