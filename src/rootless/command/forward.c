/* SPDX-License-Identifier: Apache-2.0 */
/* forward.c - `nodens-rootless forward`: forwards connections to a running node */
#include "rootless/command/commands.h"
#include "rootless/forward/forwarder.h"

int rootless_command_forward(void *settings, [[maybe_unused]] int operand_count, [[maybe_unused]] char **operands) {
        const struct rootless_settings *given = settings;
        struct nd_error *error = rootless_forwarder_run(given->name ? given->name : NODE_DEFAULT_NAME);

        return error ? rootless_command_fail_service(error) : EXIT_SUCCESS;
}
