/* SPDX-License-Identifier: Apache-2.0 */
/* monitor.h - one container, from the OCI runtime's `create` to its exit */
#pragma once

#include "mon/control.h"
#include "mon/create.h"
#include "mon/log.h"
#include "mon/oom.h"
#include "mon/stream.h"

struct mon_settings {
        const char *id;
        const char *directory;
        const char *log_directory;
        const char *log_path;
        uint32_t uid, gid;
        uint32_t deadline_ms;
        bool terminal;
        bool stdin_open, stdin_once;
        bool mount_namespace;
        char *const *create; /* terminated by nullptr */
};

struct mon_monitor {
        const struct mon_settings *settings;
        int directory;
        int record;
        int signals; /* signalfd for SIGCHLD */
        struct mon_control control;
        struct mon_log log;
        struct mon_stream out, errors;
        int in;                     /* the container's input; with a terminal the same as out.fd */
        struct mon_console console; /* receives the terminal from the OCI runtime */
        /* the OCI runtime's own standard error, if there is a terminal */
        int stderr_fd;
        struct mon_stderr_tail stderr_tail;
        struct mon_oom oom;
        int mount_namespace; /* for the OCI runtime, until it runs; -EBADF = ours */
        pid_t runtime_pid;   /* runs `create`; 0 = exited */
        bool timed_out;      /* `create` was killed at its timeout */
        struct nd_monitor_record state;
        uint64_t deadline; /* of the phase, in microseconds of the monotonic clock; 0 = none */
        struct mon_attach attach;
};

/* Creates the socket and the record while failures can still be reported to the caller. first is
 * the daemon's connection, mount_namespace the one for the OCI runtime (-EBADF = ours); the monitor
 * owns both. */
[[nodiscard]] struct nd_error *mon_monitor_prepare(const struct mon_settings *settings, int first, int mount_namespace,
                                                   struct mon_monitor *monitor);

/* Creates the container and runs until it has exited. */
void mon_monitor_run(struct mon_monitor *monitor);
