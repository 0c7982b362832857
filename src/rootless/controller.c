/* SPDX-License-Identifier: Apache-2.0 */
/* controller.c - nodens-rootless-controller: publishes the ports of a cluster's Services and pods,
 * for a node of an ordinary user. `nodens-rootless controller` executes it. */
#include "base/log.h"
#include "base/option.h"
#include "rootless/controller/daemon.h"
#include "sys/notify.h"

static int run(void *settings, [[maybe_unused]] int operand_count, [[maybe_unused]] char **operands) {
        nd_autoerror struct nd_error *error = rootless_controller_run(settings);

        if (!error)
                return EXIT_SUCCESS;
        nd_notify_failure(error);
        nd_log_last(ND_LOG_ERROR, "cannot start", nd_field("error", nd_error_text(error)));
        return nd_error_code(error) == ND_INVALID ? ND_EXIT_USAGE : EXIT_FAILURE;
}

static const struct nd_option_command commands[] = {
        {.name = "",
         .summary = "publish the ports of a cluster's Services and pods",
         .options = rootless_controller_options,
         .settings_size = sizeof(struct rootless_controller_settings),
         .run = run},
        {},
};

static const struct nd_option_program program = {
        .name = "nodens-rootless-controller",
        .summary = "publish the ports of a cluster's Services and pods",
        .commands = commands,
};

int main(int argc, char **argv) {
        nd_log_open();
        return nd_option_run(&program, argc, argv);
}
