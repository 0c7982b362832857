/* SPDX-License-Identifier: Apache-2.0 */
/* logs.c - `nodens-rootless logs`: shows the journal of a node's units, with journalctl */
#include <stdio.h>

#include "rootless/command/commands.h"
#include "rootless/core/node.h"

int rootless_command_logs(void *settings, int operand_count, char **operands) {
        const struct rootless_settings *given = settings;
        const char *name = given->name ? given->name : NODE_DEFAULT_NAME;
        nd_autofree char *node = nd_format("--unit=nodens-node@%s.service", name),
                         *parts = nd_format("--unit=nodens-node-*@%s.service", name);
        nd_autofree const char **words = nd_calloc((size_t) operand_count + 5, sizeof *words);
        size_t count = 0;

        if (!rootless_node_name_valid(name))
                return rootless_command_fail(nd_error_new(ND_INVALID, 0, "invalid node name '%s'", name));
        words[count++] = "journalctl";
        words[count++] = "--user";
        words[count++] = node;
        words[count++] = parts;
        for (int i = 0; i < operand_count; i++)
                words[count++] = operands[i];
        (void) execvp(words[0], (char *const *) words);
        return rootless_command_fail(
                nd_error_new(ND_UNAVAILABLE, errno, "run journalctl ('up --foreground' logs to its own standard error)"));
}
