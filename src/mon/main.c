/* SPDX-License-Identifier: Apache-2.0 */
/* nodens-mon - monitor of one container: writes its log and collects its exit status
 *
 * nodens-cri starts it with a connection as descriptor 3, a mount namespace for the OCI runtime as
 * descriptor 4 and the OCI runtime's `create` after the options. It moves to the background when
 * its socket and its record exist; later failures are reported on the connection. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/option.h"
#include "mon/monitor.h"
#include "sys/calls.h"

enum {
        FIRST_CONNECTION = 3,
        MOUNT_NAMESPACE = 4,
};

static const struct nd_option options[] = {
        {.name = "id",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct mon_settings, id),
         .argument = "ID",
         .help = "The container's ID, shown in process listings"},
        {.name = "directory",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct mon_settings, directory),
         .argument = "DIRECTORY",
         .values = ND_VALUES_DIRECTORY,
         .help = "Directory for the control socket and the exit record"},
        {.name = "log-directory",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct mon_settings, log_directory),
         .argument = "DIRECTORY",
         .values = ND_VALUES_DIRECTORY,
         .help = "The pod's log directory (default: no log)"},
        {.name = "log-path",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct mon_settings, log_path),
         .argument = "PATH",
         .help = "Path of the log file below the log directory"},
        {.name = "uid",
         .kind = ND_OPTION_U32,
         .offset = offsetof(struct mon_settings, uid),
         .argument = "UID",
         .help = "User ID that owns the streams"},
        {.name = "gid",
         .kind = ND_OPTION_U32,
         .offset = offsetof(struct mon_settings, gid),
         .argument = "GID",
         .help = "Group ID that owns the streams"},
        {.name = "deadline-ms",
         .kind = ND_OPTION_U32,
         .offset = offsetof(struct mon_settings, deadline_ms),
         .argument = "MS",
         .help = "Timeout of the OCI runtime's create"},
        {.name = "terminal",
         .kind = ND_OPTION_FLAG,
         .offset = offsetof(struct mon_settings, terminal),
         .help = "Receive a terminal from the OCI runtime at DIRECTORY/console"},
        {.name = "stdin",
         .kind = ND_OPTION_FLAG,
         .offset = offsetof(struct mon_settings, stdin_open),
         .help = "Keep standard input open for attached clients"},
        {.name = "stdin-once",
         .kind = ND_OPTION_FLAG,
         .offset = offsetof(struct mon_settings, stdin_once),
         .help = "Close standard input when the first client closes it"},
        {.name = "mount-namespace",
         .kind = ND_OPTION_FLAG,
         .offset = offsetof(struct mon_settings, mount_namespace),
         .help = "Run the OCI runtime in the mount namespace that is descriptor 4"},
        {},
};

/* The parent's exit reports to the daemon that the monitor is ready. */
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
        static struct mon_monitor monitor; /* large and mostly untouched */
        static struct mon_settings settings;
        nd_autoerror struct nd_error *error = nullptr;

        settings = *(struct mon_settings *) argument;
        if (count < 1 || !settings.id || !settings.directory) {
                (void) fprintf(stderr, "nodens-mon: --id, --directory and the OCI runtime's command are required\n");
                return ND_EXIT_USAGE;
        }
        settings.log_directory = settings.log_directory ?: "";
        settings.log_path = settings.log_path ?: "";
        operands[count] = nullptr; /* they were moved to the front */
        settings.create = operands;
        (void) close_range(FIRST_CONNECTION, UINT32_MAX, CLOSE_RANGE_CLOEXEC);
        error = mon_monitor_prepare(&settings, FIRST_CONNECTION, settings.mount_namespace ? MOUNT_NAMESPACE : -EBADF,
                                    &monitor);
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
         .summary = "write one container's log and collect its exit status",
         .operands = "-- RUNTIME ARGUMENT...",
         .options = options,
         .settings_size = sizeof(struct mon_settings),
         .run = run},
        {},
};

int main(int argc, char **argv) {
        static const struct nd_option_program program = {
                .name = "nodens-mon", .summary = "container monitor, started by nodens-cri", .commands = commands};

        return nd_option_run(&program, argc, argv);
}
