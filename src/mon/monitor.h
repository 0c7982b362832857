/* SPDX-License-Identifier: Apache-2.0 */
/* monitor.h - one container, from the OCI runtime's `create` to its end */
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
        char *const *create; /* ends with nullptr */
};

struct mon_monitor {
        const struct mon_settings *settings;
        int directory;
        int record;
        int signals; /* signalfd: children */
        struct mon_control control;
        struct mon_log log;
        struct mon_stream out, errors;
        int in; /* where the container's input goes; the terminal itself where there is one, which is then out.fd */
        struct mon_console console; /* the OCI runtime sends the terminal here */
        int stderr_fd;              /* the OCI runtime's own standard error, with a terminal */
        struct mon_stderr_tail stderr_tail;
        struct mon_oom oom;
        pid_t runtime_pid; /* runs `create`; 0 = it has exited */
        bool timed_out;    /* `create` was killed at its deadline */
        struct nd_monitor_record state;
        uint64_t deadline; /* of the phase, in microseconds of the monotonic clock; 0 = none */
        struct mon_attach attach;
};

/* Makes what the monitor needs and a failure can still be told about: the socket and the record. first is the daemon's connection. */
[[nodiscard]] struct nd_error *mon_monitor_prepare(const struct mon_settings *settings, int first,
                                                   struct mon_monitor *monitor);

/* Creates the container and stays until it has gone. */
void mon_monitor_run(struct mon_monitor *monitor);
