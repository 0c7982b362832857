/* SPDX-License-Identifier: Apache-2.0 */
/* broker.c - `nodens-rootless broker`: connects pulls of a running node to registries */
#include "rootless/broker/broker.h"
#include "rootless/command/commands.h"
#include "rootless/core/node.h"

int rootless_command_broker(void *settings, [[maybe_unused]] int operand_count, [[maybe_unused]] char **operands) {
        const struct rootless_settings *given = settings;
        struct nd_error *error = rootless_broker_run(given->name ? given->name : NODE_DEFAULT_NAME);

        return error ? rootless_command_fail_service(error) : EXIT_SUCCESS;
}
