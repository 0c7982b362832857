/* SPDX-License-Identifier: Apache-2.0 */
/* commands.h - the program's command table and the functions it calls */
#pragma once

#include "base/option.h"
#include "rootless/node/settings.h"

extern const struct nd_option_program rootless_program;

/* The node to use when no name is given. */
#define NODE_DEFAULT_NAME "default"

int rootless_command_run(void *settings, int operand_count, char **operands);
int rootless_command_up(void *settings, int operand_count, char **operands);
int rootless_command_hold(void *settings, int operand_count, char **operands);
int rootless_command_net(void *settings, int operand_count, char **operands);
int rootless_command_forward(void *settings, int operand_count, char **operands);
int rootless_command_broker(void *settings, int operand_count, char **operands);
int rootless_command_component(void *settings, int operand_count, char **operands);
int rootless_command_api(void *settings, int operand_count, char **operands);
int rootless_command_controller(void *settings, int operand_count, char **operands);
int rootless_command_token(void *settings, int operand_count, char **operands);
int rootless_command_manifest(void *settings, int operand_count, char **operands);
int rootless_command_ports(void *settings, int operand_count, char **operands);
int rootless_command_logs(void *settings, int operand_count, char **operands);
int rootless_command_status(void *settings, int operand_count, char **operands);
int rootless_command_shell(void *settings, int operand_count, char **operands);
int rootless_command_purge(void *settings, int operand_count, char **operands);
int rootless_command_down(void *settings, int operand_count, char **operands);

struct rootless_cluster;
struct rootless_ids;

/* Prints the IDs that a node would have, how many pods with user namespaces they allow, and what
 * does not work with so few. */
void rootless_command_print_ids(const struct rootless_ids *ids, const struct rootless_cluster *cluster);

/* Removes a data directory, with all files in it that belong to the node's IDs. */
[[nodiscard]] struct nd_error *rootless_purge_data(const struct rootless_config *config);

/* Prints an error to standard error and returns the exit status for it. */
int rootless_command_fail(struct nd_error *error);
/* The same for the commands that units run: the unit's status gets the error, too. */
int rootless_command_fail_service(struct nd_error *error);

/* Prints the plan of --dry-run: binds, network and IDs. */
[[nodiscard]] struct nd_error *rootless_command_explain(const struct rootless_settings *settings, bool lasting);

/* Reads the process environment, for rootless_config_resolve(). */
const char *rootless_command_getenv(const char *name, void *userdata);
