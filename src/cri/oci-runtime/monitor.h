/* SPDX-License-Identifier: Apache-2.0 */
/* monitor.h - the daemon's side of nodens-mon, which stands beside each container
 *
 * A monitor makes the container's standard streams, runs the OCI runtime's `create`, keeps the log and waits for the container's end. It lives on when
 * the daemon ends; the next daemon connects to it again. What it knows is in a record of its own (the file "exit"), and messages only say that there
 * is something to read: so nothing is lost between two daemons. */
#pragma once

#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "base/error.h"

/* Everything is copied; nothing need outlive cri_monitor_start(). */
struct cri_monitor_plan {
        const char *program; /* nodens-mon */
        const char *id;      /* the container's; shown in process lists */
        const char *
                directory; /* /run/nodens/containers/<id>, absolute; made by the caller, 0700. The monitor's files: "control", "exit" */
        const char *const *
                create; /* the OCI runtime's argv, ends with nullptr. It must write the pid to <directory>/pid and, for a terminal, send it
                                    * to the socket <directory>/console; what it says last on standard error is the reason of its failure */
        uint64_t deadline_us;      /* for that; 0 = none */
        uint64_t grace_us;         /* for the monitor, to tell how it ended after the deadline; 0 = 15 s */
        const char *log_directory; /* absolute: the sandbox's; "" = no log is kept */
        const char *log_path;      /* below it; no link is followed there. "" = none */
        bool terminal;
        bool stdin_open, stdin_once;
        uid_t uid; /* who owns the streams, as the host sees it: the process's user, who may open /dev/stdout again */
        gid_t gid;
        const char *
                cgroup; /* where the monitor and the OCI runtime live, made here: cri_monitor_home(); "" = where the daemon does */
};

struct cri_monitor_end {
        int code;          /* 0-255; 128 + signal when one ended it */
        uint64_t at;       /* nanoseconds since 1970 */
        int64_t oom_kills; /* in the container's cgroup and below; -1 = the cgroup was gone before anybody could look */
        uint64_t lost;     /* bytes of output that the log had no room for */
};

enum cri_monitor_phase {
        MONITOR_CREATING, /* the OCI runtime's `create` runs, or nobody knows how it ended */
        MONITOR_CREATED,  /* from here on there is a pid */
        MONITOR_EXITED,
        MONITOR_FAILED, /* `create` did not succeed; whatever it left is the OCI runtime's to delete */
};

struct cri_monitor_state {
        enum cri_monitor_phase phase;
        pid_t pid;
        uint64_t birth; /* that process's start time in clock ticks: /proc/<pid>/stat, field 22 */
        struct cri_monitor_end end;
};

/* All run from the loop, never from within a call. After failed, exited or lost there are no more; the object stays until cri_monitor_free(), which
 * any of them may call. */
struct cri_monitor_events {
        void (*created)(pid_t pid, uint64_t birth, void *userdata);
        void (*failed)(struct nd_error *error,
                       void *userdata); /* the error is the callee's to free; ND_DEADLINE: the monitor may still run */
        void (*exited)(const struct cri_monitor_end *end, void *userdata); /* what the container said before is in the log */
        /* The monitor died without a record of an end. The container may still run, but nobody reads its output and nobody will learn how it ends:
         * kill it and say so. */
        void (*lost)(void *userdata);
};

struct cri_monitor;

/* Starts a monitor, which creates the container. An error means that nothing runs. events must stay where they are. */
[[nodiscard]] struct nd_error *cri_monitor_start(sd_event *loop, const struct cri_monitor_plan *plan,
                                                 const struct cri_monitor_events *events, void *userdata,
                                                 struct cri_monitor **ret);

/* Connects to the monitor that an earlier daemon started, and tells what it has done so far. *ret is nullptr when it no longer runs: the state is then
 * final, and one that is neither exited nor failed is what events call lost. With a monitor the events follow that have not happened yet.
 * ND_NOT_FOUND when there never was one. */
[[nodiscard]] struct nd_error *cri_monitor_connect(sd_event *loop, const char *directory,
                                                   const struct cri_monitor_events *events, void *userdata,
                                                   struct cri_monitor_state *ret_state, struct cri_monitor **ret);

/* Opens the log file anew under the name it had at the start; never truncates one that is there. The callback runs once, from the loop. */
typedef void (*cri_monitor_callback)(struct nd_error *error, void *userdata);
void cri_monitor_reopen_log(struct cri_monitor *monitor, cri_monitor_callback callback, void *userdata);

/* A connection of its own to a monitor, for those who attach (net/monitor-wire.h); -EBADF when it no longer runs. */
[[nodiscard]] struct nd_error *cri_monitor_dial(const char *directory, int *ret_fd);

/* Disconnects; the monitor goes on. Whoever waits for a log to be opened anew is told now that it will not be; no event comes any more. nullptr is
 * fine. */
void cri_monitor_free(struct cri_monitor *monitor);

/* The cgroup of one container's monitor and of the OCI runtime while it creates the container: monitors/<id> below the daemon's own. Whatever becomes of
 * either, whoever undoes the creation finds both there and needs no process number. Below the mount, with a leading slash; "" where there is no
 * cgroup v2 of ours to write to. */
[[nodiscard]] struct nd_error *cri_monitor_home(const char *id, char **ret);
