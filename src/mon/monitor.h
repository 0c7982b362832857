/* SPDX-License-Identifier: Apache-2.0 */
/* monitor.h - one container, from the engine's `create` to its end */
#pragma once

#include "mon/control.h"
#include "mon/create.h"
#include "mon/log.h"
#include "mon/oom.h"
#include "mon/stream.h"

struct settings {
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

struct monitor {
        const struct settings *settings;
        int directory;
        int record;
        int signals; /* signalfd: children */
        struct control control;
        struct log log;
        struct stream out, errors;
        int in; /* where the container's input goes; the terminal itself where there is one, which is then out.fd */
        struct console console; /* the engine sends the terminal here */
        int words_fd;           /* the engine's own standard error, with a terminal */
        struct words words;
        struct oom oom;
        pid_t engine; /* runs `create`; 0 = over */
        bool late;    /* and was killed at its deadline */
        struct nd_monitor_record state;
        uint64_t deadline; /* of the phase, in microseconds of the monotonic clock; 0 = none */
        struct attach attach;
};

/* Makes what the monitor needs and a failure can still be told about: the socket and the record. first is the daemon's connection. */
[[nodiscard]] struct nd_error *monitor_prepare(const struct settings *settings, int first, struct monitor *monitor);

/* Creates the container and stays until it has gone. */
void monitor_run(struct monitor *monitor);
