/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - nodens-cri, a container runtime for the stock kubelet */
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "base/log.h"
#include "base/option.h"
#include "base/text.h"
#include "cri/daemon.h"

struct settings {
        const char *config;
        const char *socket;
        const char *images;
        const char *fetch_helper;
        const char *unpack_helper;
        bool debug;
};

static const struct nd_option options[] = {
        {.name = "config",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct settings, config),
         .argument = "FILE",
         .values = ND_VALUES_FILE,
         .help = "configuration file (default " CRI_CONFIG_PATH ", if it exists)"},
        {.name = "socket",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct settings, socket),
         .argument = "PATH",
         .values = ND_VALUES_FILE,
         .help = "socket to listen on; overrides the configuration"},
        {.name = "images",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct settings, images),
         .argument = "DIR",
         .values = ND_VALUES_DIRECTORY,
         .help = "image store; overrides the configuration"},
        {.name = "fetch-helper",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct settings, fetch_helper),
         .argument = "FILE",
         .values = ND_VALUES_FILE,
         .help = "path of nodens-fetch; overrides the installed one"},
        {.name = "unpack-helper",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct settings, unpack_helper),
         .argument = "FILE",
         .values = ND_VALUES_FILE,
         .help = "path of nodens-unpack; overrides the installed one"},
        {.name = "debug", .offset = offsetof(struct settings, debug), .help = "log debug messages"},
        {},
};

static void override(char **field, const char *value) {
        if (value)
                nd_strset(field, value);
}

static struct nd_error *serve(const struct settings *settings) {
        nd_cleanup(cri_daemon_done) struct cri_daemon daemon = {};
        int r;

        nd_try(cri_config_read(settings->config, &daemon.parts.config));
        override(&daemon.parts.config.socket, settings->socket);
        override(&daemon.parts.config.images, settings->images);
        override(&daemon.parts.config.fetch_helper, settings->fetch_helper);
        override(&daemon.parts.config.unpack_helper, settings->unpack_helper);
        nd_try(cri_daemon_start(&daemon));
        r = sd_event_loop(daemon.parts.loop);
        (void) sd_notify(false, "STOPPING=1");
        if (r > 0)
                return nd_error_new(ND_INTERNAL, 0, "cannot open the socket; see the previous message");
        return r < 0 ? nd_error_new(ND_INTERNAL, -r, "event loop") : nullptr;
}

static int run(void *settings_pointer, [[maybe_unused]] int operand_count, [[maybe_unused]] char **operands) {
        const struct settings *settings = settings_pointer;
        nd_autoerror struct nd_error *error = nullptr;

        nd_log_open();
        if (settings->debug)
                nd_log_set_level(ND_LOG_DEBUG);
        error = serve(settings);
        if (error)
                nd_log(ND_LOG_ERROR, nd_error_text(error));
        return error ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv) {
        static const struct nd_option_command commands[] = {{.name = "",
                                                             .summary = "a container runtime for the stock kubelet",
                                                             .options = options,
                                                             .settings_size = sizeof(struct settings),
                                                             .run = run},
                                                            {}};
        static const struct nd_option_program program = {
                .name = "nodens-cri", .summary = "a container runtime for the stock kubelet", .commands = commands};

        return nd_option_run(&program, argc, argv);
}
