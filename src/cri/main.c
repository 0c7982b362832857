/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - nodens-cri, a container runtime for the stock kubelet */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/option.h"
#include "base/text.h"
#include "cri/core/remedy.h"
#include "cri/daemon.h"
#include "sys/notify.h"

struct settings {
        const char *config;
        const char *socket;
        const char *images;
        const char *fetch_helper;
        const char *unpack_helper;
        bool check_config;
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
        {.name = "check-config",
         .offset = offsetof(struct settings, check_config),
         .help = "check FILE, or the configuration that would be used, and exit"},
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
        if (daemon.failure)
                return nd_take_ptr(daemon.failure);
        nd_notify_stopping();
        return r < 0 ? nd_error_new(ND_INTERNAL, -r, "event loop") : nullptr;
}

/* systemctl status shows the reason also when messages about processes that stay alive have
 * displaced the log line. */
static int serve_or_report(const struct settings *settings) {
        nd_autoerror struct nd_error *error = serve(settings);

        if (!error)
                return EXIT_SUCCESS;
        nd_log_last(ND_LOG_ERROR, "cannot start", nd_field("error", nd_error_text(error)),
                    nd_field("remedy", cri_remedy_of(nd_error_text(error))));
        nd_notify_failure(error);
        return EXIT_FAILURE;
}

/* Prints to standard output, also in a unit: a person asks. */
static int check_config(const char *path) {
        nd_cleanup(cri_config_done) struct cri_config config = {};
        nd_autoerror struct nd_error *error = cri_config_read(path, &config);

        if (error)
                nd_log(ND_LOG_ERROR, nd_error_text(error));
        else if (!path && access(CRI_CONFIG_PATH, F_OK) < 0)
                printf("%s does not exist: all settings have their defaults\n", CRI_CONFIG_PATH);
        else
                printf("%s is valid\n", path ?: CRI_CONFIG_PATH);
        return error || fflush(stdout) != 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int run(void *settings_pointer, int operand_count, char **operands) {
        const struct settings *settings = settings_pointer;

        if (operand_count > (settings->check_config && !settings->config)) {
                (void) fprintf(stderr, "nodens-cri: unexpected operand '%s'; see nodens-cri --help\n",
                               operands[operand_count - 1]);
                return ND_EXIT_USAGE;
        }
        if (settings->check_config)
                return check_config(operand_count > 0 ? operands[0] : settings->config);
        nd_log_open();
        if (settings->debug)
                nd_log_set_level(ND_LOG_DEBUG);
        return serve_or_report(settings);
}

int main(int argc, char **argv) {
        static const struct nd_option_command commands[] = {{.name = "",
                                                             .summary = "a container runtime for the stock kubelet",
                                                             .operands = "[FILE]",
                                                             .options = options,
                                                             .settings_size = sizeof(struct settings),
                                                             .run = run},
                                                            {}};
        static const struct nd_option_program program = {
                .name = "nodens-cri", .summary = "a container runtime for the stock kubelet", .commands = commands};

        return nd_option_run(&program, argc, argv);
}
