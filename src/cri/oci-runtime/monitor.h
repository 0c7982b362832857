/* SPDX-License-Identifier: Apache-2.0 */
/* monitor.h - the daemon's side of nodens-mon, one process per container
 *
 * A monitor creates the container's standard streams, runs the OCI runtime's `create`, writes the
 * log and waits for the container to exit. It survives the daemon; the next daemon reconnects to
 * it. Its state is in a record of its own (the file "exit"), and a message only means that the
 * record has changed: so nothing is lost between two daemons. */
#pragma once

#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "base/error.h"

/* cri_monitor_start() copies everything. */
struct cri_monitor_plan {
        const char *program; /* nodens-mon */
        const char *id;      /* the container's ID, shown in process lists */
        /* /run/nodens/containers/<id>, absolute; created by the caller, 0700. The monitor's files:
         * "control", "exit" */
        const char *directory;
        /* the OCI runtime's argv, ends with nullptr. It must write the pid to <directory>/pid and,
         * for a terminal, send it to the socket <directory>/console. The last line of its standard
         * error is the reason of a failure */
        const char *const *create;
        uint64_t deadline_us;      /* of create; 0 = none */
        uint64_t grace_us;         /* after the deadline, to report the result; 0 = 15 s */
        const char *log_directory; /* the sandbox's, absolute; "" = no log */
        const char *log_path;      /* below it; symbolic links are not followed. "" = none */
        bool terminal;
        bool stdin_open, stdin_once;
        /* owner of the streams, as the host sees it: the process's user, who may reopen
         * /dev/stdout */
        uid_t uid;
        gid_t gid;
        /* cgroup of the monitor and the OCI runtime, created here: cri_monitor_home(); "" = the
         * daemon's own */
        const char *cgroup;
        /* in which `create` runs; 0 or negative = the daemon's own. The caller keeps it */
        int mount_namespace;
};

struct cri_monitor_end {
        int code;    /* 0-255; 128 + signal number if killed */
        uint64_t at; /* nanoseconds since 1970 */
        /* in the container's cgroup and below; -1 = the cgroup was removed before it could be
         * read */
        int64_t oom_kills;
        uint64_t lost; /* bytes of output dropped because the log was full */
};

enum cri_monitor_phase {
        MONITOR_CREATING, /* the OCI runtime's `create` runs, or its result is unknown */
        MONITOR_CREATED,  /* from here on the pid is set */
        MONITOR_EXITED,
        MONITOR_FAILED, /* `create` failed; the caller must run the OCI runtime's `delete` */
};

struct cri_monitor_state {
        enum cri_monitor_phase phase;
        pid_t pid;
        uint64_t birth; /* start time of that process in clock ticks: /proc/<pid>/stat, field 22 */
        struct cri_monitor_end end;
};

/* All run from the loop, never from within a call. failed, exited and lost are final; the object
 * stays until cri_monitor_free(), which any of them may call. */
struct cri_monitor_events {
        void (*created)(pid_t pid, uint64_t birth, void *userdata);
        /* the callee frees the error; ND_DEADLINE: the monitor may still run */
        void (*failed)(struct nd_error *error, void *userdata);
        /* all output of the container is in the log */
        void (*exited)(const struct cri_monitor_end *end, void *userdata);
        /* The monitor died without recording an exit. The container may still run, but its output
         * is not read and its exit status cannot be known: kill it and report that. */
        void (*lost)(void *userdata);
};

struct cri_monitor;

/* Starts a monitor, which creates the container. On error nothing runs. events must outlive the
 * monitor. */
[[nodiscard]] struct nd_error *cri_monitor_start(sd_event *loop, const struct cri_monitor_plan *plan,
                                                 const struct cri_monitor_events *events, void *userdata,
                                                 struct cri_monitor **ret);

/* Connects to the monitor that an earlier daemon started, and returns its state. *ret is nullptr if
 * it no longer runs: the state is then final, and one that is neither exited nor failed corresponds
 * to the event lost. Otherwise the events that have not happened yet follow. ND_NOT_FOUND if no
 * monitor was ever started there. */
[[nodiscard]] struct nd_error *cri_monitor_connect(sd_event *loop, const char *directory,
                                                   const struct cri_monitor_events *events, void *userdata,
                                                   struct cri_monitor_state *ret_state, struct cri_monitor **ret);

/* Reopens the log file under its original name; never truncates an existing file. The callback runs
 * once, from the loop. */
typedef void (*cri_monitor_callback)(struct nd_error *error, void *userdata);
void cri_monitor_reopen_log(struct cri_monitor *monitor, cri_monitor_callback callback, void *userdata);

/* Opens a separate connection to a monitor, for attach (net/monitor-wire.h); -EBADF if it no longer
 * runs. */
[[nodiscard]] struct nd_error *cri_monitor_dial(const char *directory, int *ret_fd);

/* Disconnects; the monitor keeps running. Pending reopen requests fail now; no more events are
 * delivered. nullptr is allowed. */
void cri_monitor_free(struct cri_monitor *monitor);

/* The cgroup of one container's monitor, and of the OCI runtime while it creates the container:
 * monitors/mon-<id> below the daemon's own. If its name was the ID alone, monitoring agents would
 * take it for the container. The cleanup of a failed creation finds both there and needs no pid.
 * Relative to the mount, with a leading slash; "" if we have no writable cgroup v2. */
[[nodiscard]] struct nd_error *cri_monitor_home(const char *id, char **ret);
