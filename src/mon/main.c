/* SPDX-License-Identifier: Apache-2.0 */
/* nodens-mon - stands beside one container: its log, its end
 *
 * Started by nodens-cri with a connection as descriptor 3 and the OCI runtime's `create` after the options. It goes to the background when its socket and its
 * record are there; what fails later is told on the connection. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/option.h"
#include "mon/monitor.h"
#include "sys/calls.h"

enum {
        FIRST_CONNECTION = 3,
};

static const struct nd_option options[] = {
        {.name = "id",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct mon_settings, id),
         .argument = "ID",
         .help = "The container's id, for people who look at processes"},
        {.name = "directory",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct mon_settings, directory),
         .argument = "DIRECTORY",
         .values = ND_VALUES_DIRECTORY,
         .help = "Where the control socket and the exit record are made"},
        {.name = "log-directory",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct mon_settings, log_directory),
         .argument = "DIRECTORY",
         .values = ND_VALUES_DIRECTORY,
         .help = "The pod's log directory; without it no log is kept"},
        {.name = "log-path",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct mon_settings, log_path),
         .argument = "PATH",
         .help = "The log's path below it"},
        {.name = "uid",
         .kind = ND_OPTION_U32,
         .offset = offsetof(struct mon_settings, uid),
         .argument = "UID",
         .help = "Who owns the streams"},
        {.name = "gid",
         .kind = ND_OPTION_U32,
         .offset = offsetof(struct mon_settings, gid),
         .argument = "GID",
         .help = "Their group"},
        {.name = "deadline-ms",
         .kind = ND_OPTION_U32,
         .offset = offsetof(struct mon_settings, deadline_ms),
         .argument = "MS",
         .help = "How long the engine may take"},
        {.name = "terminal",
         .kind = ND_OPTION_FLAG,
         .offset = offsetof(struct mon_settings, terminal),
         .help = "The engine sends a terminal to DIRECTORY/console"},
        {.name = "stdin",
         .kind = ND_OPTION_FLAG,
         .offset = offsetof(struct mon_settings, stdin_open),
         .help = "Standard input stays open for those who attach"},
        {.name = "stdin-once",
         .kind = ND_OPTION_FLAG,
         .offset = offsetof(struct mon_settings, stdin_once),
         .help = "It ends with the first of them"},
        {},
};

/* The parent's end tells whoever started us that all is prepared. */
static struct nd_error *go_to_background(void) {
        struct clone_args arguments = {.exit_signal = SIGCHLD};
        nd_autoclose int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        pid_t pid = nd_sys->clone3(&arguments, sizeof arguments);

        if (pid < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "start the monitor");
        if (pid > 0)
                _exit(EXIT_SUCCESS);
        (void) setsid();
        for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
                (void) dup2(null, fd);
        (void) !chdir("/");
        (void) umask(022);
        return nullptr;
}

static int run(void *argument, int count, char **operands) {
        static struct mon_monitor monitor; /* large, and mostly never touched */
        static struct mon_settings settings;
        nd_autoerror struct nd_error *error = nullptr;

        settings = *(struct mon_settings *) argument;
        if (count < 1 || !settings.id || !settings.directory) {
                (void) fprintf(stderr, "nodens-mon: --id, --directory and the engine's command are needed\n");
                return ND_EXIT_USAGE;
        }
        settings.log_directory = settings.log_directory ?: "";
        settings.log_path = settings.log_path ?: "";
        operands[count] = nullptr; /* they were moved to the front */
        settings.create = operands;
        (void) close_range(FIRST_CONNECTION, UINT32_MAX, CLOSE_RANGE_CLOEXEC);
        error = mon_monitor_prepare(&settings, FIRST_CONNECTION, &monitor);
        if (!error)
                error = go_to_background();
        if (error) {
                (void) fprintf(stderr, "nodens-mon: %s\n", nd_error_text(error));
                return EXIT_FAILURE;
        }
        mon_monitor_run(&monitor);
        return EXIT_SUCCESS;
}

static const struct nd_option_command commands[] = {
        {.name = "",
         .summary = "keeps one container's log and learns of its end",
         .operands = "-- ENGINE ARGUMENT...",
         .options = options,
         .settings_size = sizeof(struct mon_settings),
         .run = run},
        {},
};

int main(int argc, char **argv) {
        static const struct nd_option_program program = {
                .name = "nodens-mon", .summary = "nodens' container monitor; started by nodens-cri", .commands = commands};

        return nd_option_run(&program, argc, argv);
}
