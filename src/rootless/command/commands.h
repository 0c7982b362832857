/* SPDX-License-Identifier: Apache-2.0 */
/* commands.h - the program's table of commands, and what each of them runs */
#pragma once

#include "base/option.h"
#include "rootless/node/settings.h"

extern const struct nd_option_program rootless_program;

/* The node that is meant when none is named. */
#define NODE_DEFAULT_NAME "default"

int rootless_command_run(void *settings, int operand_count, char **operands);
int rootless_command_up(void *settings, int operand_count, char **operands);
int rootless_command_hold(void *settings, int operand_count, char **operands);
int rootless_command_net(void *settings, int operand_count, char **operands);
int rootless_command_forward(void *settings, int operand_count, char **operands);
int rootless_command_api(void *settings, int operand_count, char **operands);
int rootless_command_ports(void *settings, int operand_count, char **operands);
int rootless_command_logs(void *settings, int operand_count, char **operands);
int rootless_command_status(void *settings, int operand_count, char **operands);
int rootless_command_shell(void *settings, int operand_count, char **operands);
int rootless_command_purge(void *settings, int operand_count, char **operands);
int rootless_command_down(void *settings, int operand_count, char **operands);

/* Says an error to the person who typed, and gives the exit code for it. */
int rootless_command_fail(struct nd_error *error);

/* Prints what would be done: the bind plan, the network and the IDs. */
[[nodiscard]] struct nd_error *rootless_command_explain(const struct rootless_settings *settings, bool lasting);

/* The process's own environment, for rootless_config_resolve(). */
const char *rootless_command_getenv(const char *name, void *userdata);
