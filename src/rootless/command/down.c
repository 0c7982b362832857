/* SPDX-License-Identifier: Apache-2.0 */
/* down.c - `nodens-rootless down`: ends a node and everything in it */
#include "rootless/command/commands.h"
#include "rootless/node/stop.h"

static struct nd_error *down(const char *name) {
        nd_cleanup(nd_node_done) struct nd_node node = ND_NODE_NONE;
        nd_cleanup(nd_node_record_done) struct nd_node_record record = {};
        nd_autoclose int pidfd = -EBADF;

        nd_try(nd_node_open(name, false, &node));
        nd_try(nd_node_holder(&node, &record, &pidfd));
        nd_try(nd_stop_holder(&node, pidfd));
        nd_node_clear(&node);
        return nullptr;
}

int rootless_down(void *settings, [[maybe_unused]] int operand_count, [[maybe_unused]] char **operands) {
        const struct nd_settings *given = settings;
        struct nd_error *error = down(given->name ? given->name : NODE_DEFAULT_NAME);

        return error ? rootless_fail(error) : EXIT_SUCCESS;
}
