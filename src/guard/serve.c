/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/serve.h"

#include <malloc.h>
#include <systemd/sd-daemon.h>

#include "base/log.h"
#include "guard/daemon.h"

const struct nd_option guard_serve_options[] = {
        {.name = "config",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct guard_serve_settings, config),
         .argument = "FILE",
         .values = ND_VALUES_FILE,
         .help = "configuration (default " GUARD_CONFIG_PATH ", if it exists)"},
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

static struct nd_error *serve(const struct guard_serve_settings *settings) {
        nd_cleanup(guard_daemon_done) struct guard_daemon guard = {};
        int r;

        tune_memory();
        nd_try(guard_config_read(settings->config, &guard.config));
        nd_try(guard_daemon_start(&guard));
        r = sd_event_loop(guard.loop);
        (void) sd_notify(false, "STOPPING=1");
        return r < 0 ? nd_error_new(ND_INTERNAL, -r, "create the event loop") : nullptr;
}

int guard_serve_run(void *settings, [[maybe_unused]] int operand_count, [[maybe_unused]] char **operands) {
        nd_autoerror struct nd_error *error = nullptr;

        if (((const struct guard_serve_settings *) settings)->debug)
                nd_log_set_level(ND_LOG_DEBUG);
        error = serve(settings);
        if (error)
                nd_log(ND_LOG_ERROR, nd_error_text(error));
        return error ? EXIT_FAILURE : EXIT_SUCCESS;
}
