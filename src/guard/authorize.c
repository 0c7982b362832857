/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/authorize.h"

#include "guard/core/config.h"
#include "guard/serve.h"

const struct nd_option guard_authorize_options[] = {
        {.name = "config",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct guard_serve_settings, config),
         .argument = "FILE",
         .values = ND_VALUES_FILE,
         .help = "configuration (default " GUARD_AUTHORIZER_CONFIG_PATH ", if it exists)"},
        {.name = "check-config",
         .offset = offsetof(struct guard_serve_settings, check_config),
         .help = "check FILE, or the configuration that would be used, and exit"},
        {.name = "debug", .offset = offsetof(struct guard_serve_settings, debug), .help = "log debug messages"},
        {},
};

int guard_authorize_run(void *settings, int operand_count, char **operands) {
        return guard_serve_as(GUARD_ROLE_AUTHORIZER, settings, operand_count, operands);
}
