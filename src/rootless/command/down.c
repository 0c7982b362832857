/* SPDX-License-Identifier: Apache-2.0 */
/* down.c - `nodens-rootless down`: stops a node and every process in it */
#include "rootless/command/commands.h"
#include "rootless/node/stop.h"

static struct nd_error *down(const char *name) {
        nd_cleanup(rootless_node_done) struct rootless_node node = NODE_NONE;
        nd_cleanup(rootless_node_record_done) struct rootless_node_record record = {};
        nd_autoclose int pidfd = -EBADF;

        nd_try(rootless_node_open(name, false, &node));
        nd_try(rootless_node_open_init(&node, &record, &pidfd));
        nd_try(rootless_node_stop(&node, pidfd));
        rootless_node_clear(&node);
        return nullptr;
}

int rootless_command_down(void *settings, [[maybe_unused]] int operand_count, [[maybe_unused]] char **operands) {
        const struct rootless_settings *given = settings;
        struct nd_error *error = down(given->name ? given->name : NODE_DEFAULT_NAME);

        return error ? rootless_command_fail(error) : EXIT_SUCCESS;
}
