/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/serve.h"

#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "guard/daemon.h"
#include "sys/notify.h"

const struct nd_option guard_serve_options[] = {
        {.name = "config",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct guard_serve_settings, config),
         .argument = "FILE",
         .values = ND_VALUES_FILE,
         .help = "configuration (default " GUARD_CONFIG_PATH ", if it exists)"},
        {.name = "check-config",
         .offset = offsetof(struct guard_serve_settings, check_config),
         .help = "check FILE, or the configuration that would be used, and exit"},
        {.name = "debug", .offset = offsetof(struct guard_serve_settings, debug), .help = "log debug messages"},
        {},
};

/* Pages of lists and bodies of reviews are short-lived, and some are large. Allocations above 64 kB
 * are mapped, so that they return to the system when they are freed; so does the top of the heap.
 * Long-lived objects are small and stay close together. */
static void tune_memory(void) {
        (void) mallopt(M_MMAP_THRESHOLD, 64 << 10);
        (void) mallopt(M_TRIM_THRESHOLD, 256 << 10);
        (void) mallopt(M_TOP_PAD, 64 << 10);
        (void) mallopt(M_ARENA_MAX, 1);
}

static struct nd_error *serve(enum guard_role role, const struct guard_serve_settings *settings) {
        nd_cleanup(guard_daemon_done) struct guard_daemon guard = {.role = role};
        int r;

        tune_memory();
        nd_try(guard_config_read(role, settings->config, &guard.config));
        nd_try(guard_daemon_start(&guard));
        r = sd_event_loop(guard.loop);
        return r < 0 ? nd_error_new(ND_INTERNAL, -r, "create the event loop") : nullptr;
}

static int check_config(enum guard_role role, const char *path) {
        nd_cleanup(guard_config_done) struct guard_config config = {};
        nd_autoerror struct nd_error *error = guard_config_read(role, path, &config);

        if (error)
                nd_log(ND_LOG_ERROR, nd_error_text(error));
        else if (!path && access(guard_config_path(role), F_OK) < 0)
                printf("%s does not exist: all settings have their defaults\n", guard_config_path(role));
        else
                printf("%s is valid\n", path ?: guard_config_path(role));
        return error || fflush(stdout) != 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int guard_serve_run(void *settings, int operand_count, char **operands) {
        return guard_serve_as(GUARD_ROLE_ADMISSION, settings, operand_count, operands);
}

int guard_serve_as(enum guard_role role, const struct guard_serve_settings *settings, int operand_count, char **operands) {
        nd_autoerror struct nd_error *error = nullptr;

        if (operand_count > (settings->check_config && !settings->config)) {
                (void) fprintf(stderr, "nodens-guard: unexpected operand '%s'; see nodens-guard %s --help\n",
                               operands[operand_count - 1], role == GUARD_ROLE_AUTHORIZER ? "authorize" : "serve");
                return ND_EXIT_USAGE;
        }
        if (settings->check_config)
                return check_config(role, operand_count > 0 ? operands[0] : settings->config);
        if (settings->debug)
                nd_log_set_level(ND_LOG_DEBUG);
        error = serve(role, settings);
        if (error) {
                nd_log_last(ND_LOG_ERROR, "cannot start", nd_field("error", nd_error_text(error)));
                nd_notify_failure(error);
        }
        return error ? EXIT_FAILURE : EXIT_SUCCESS;
}
