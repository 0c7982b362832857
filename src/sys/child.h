/* SPDX-License-Identifier: Apache-2.0 */
/* child.h - a program run as a child with a deadline and bounded output, on sd-event
 *
 * The engines (crun, CNI plugins, pasta) are programs; this is how they are driven. A child is followed by its pidfd, its
 * output is read up to a ceiling and the rest thrown away, and at the deadline its whole process group is killed. */
#pragma once

#include <stdint.h>
#include <systemd/sd-event.h>

#include "base/error.h"

struct nd_child_plan {
        const char *const *argv;        /* argv[0] is looked up in PATH unless it has a slash; ends with nullptr */
        const char *const *environment; /* nullptr = a copy of ours */
        const char *input;              /* standard input, nullptr = empty */
        size_t input_length;
        const int *
                streams; /* three descriptors to be its standard input, output and errors, instead of ours; they stay the caller's */
        uint64_t deadline_us;   /* from start to exit; 0 = none */
        size_t output_ceiling;  /* per stream, what is kept of standard output and of standard error */
        const int *descriptors; /* given to the child as 3, 4, ...; a negative one leaves its number closed. They stay ours */
        size_t descriptor_count;
        const char
                *cgroup; /* the directory of the cgroup it is born in, nullptr = ours. To move there later takes much longer */
        bool has_oom_score_adj; /* otherwise the child has ours */
        int oom_score_adj;
        bool dies_with_us; /* killed when we end, however that is: its work is begun anew, and must not meet what is left of it */
        /* Gets standard output piece by piece as it comes; nothing of it is kept then. */
        void (*output)(const char *bytes, size_t length, void *userdata);
};

enum {
        ND_CHILD_DESCRIPTORS = 8, /* most that a plan may name */
};

struct nd_child_result {
        bool timed_out;
        int code;   /* exit code, or -1 when a signal ended it */
        int signal; /* that signal */
        char *output;
        char *errors;
        size_t output_length, errors_length; /* they may hold null bytes */
        bool truncated;                      /* one of them was longer than the ceiling */
};

void nd_child_result_done(struct nd_child_result *result);

/* nullptr when the child exited with 0 in time; otherwise an error with its name, its end and what it said last. */
[[nodiscard]] struct nd_error *nd_child_result_error(const struct nd_child_result *result, const char *name);

struct nd_child;

/* Called once, from the loop; the result is the callback's to take or leave, the child is gone when it returns. A child that hangs in the kernel past SIGKILL
 * has timed out and is left to the loop. */
typedef void (*nd_child_callback)(struct nd_child_result *result, void *userdata);

/* Starts a child. An error means that nothing runs; a program that cannot be executed is such an error too. */
[[nodiscard]] struct nd_error *nd_child_start(sd_event *loop, const struct nd_child_plan *plan, nd_child_callback callback,
                                              void *userdata, struct nd_child **ret);

/* Kills a child whose callback has not run yet. The callback will not run; the object goes when the kernel has reaped it. */
void nd_child_cancel(struct nd_child *child);

/* Kills a child, with its process group; its callback runs as ever when it has ended. */
void nd_child_kill(struct nd_child *child);

/* The child's number, for a record that outlives us. Valid until the callback runs. */
[[nodiscard]] pid_t nd_child_pid(const struct nd_child *child);

/* For programs that have nothing else to do: runs a child on a loop of its own and waits. */
[[nodiscard]] struct nd_error *nd_child_run(const struct nd_child_plan *plan, struct nd_child_result *ret);
