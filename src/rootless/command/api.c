/* SPDX-License-Identifier: Apache-2.0 */
/* api.c - `nodens-rootless api`: manages the published ports of a running node and serves its
 * API */
#include "rootless/command/commands.h"
#include "rootless/ports/controller.h"

int rootless_command_api(void *settings, [[maybe_unused]] int operand_count, [[maybe_unused]] char **operands) {
        const struct rootless_settings *given = settings;
        struct nd_error *error = rootless_port_controller_run(given->name ? given->name : NODE_DEFAULT_NAME);

        return error ? rootless_command_fail_service(error) : EXIT_SUCCESS;
}
