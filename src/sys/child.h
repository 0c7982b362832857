/* SPDX-License-Identifier: Apache-2.0 */
/* child.h - a program run as a child with a deadline and bounded output, on sd-event
 *
 * Runs the engines, which are programs (crun, CNI plugins, pasta). A child is watched through its
 * pidfd, its output is read up to a ceiling and the rest discarded, and at the deadline its whole
 * process group is killed. */
#pragma once

#include <stdint.h>
#include <systemd/sd-event.h>

#include "base/error.h"

struct nd_child_plan {
        /* argv[0] is looked up in PATH unless it has a slash; ends with nullptr. */
        const char *const *argv;
        const char *const *environment; /* nullptr = a copy of ours */
        const char *input;              /* standard input, nullptr = empty */
        size_t input_length;
        /* Three descriptors for stdin, stdout, stderr instead of pipes; the caller keeps them. */
        const int *streams;
        uint64_t deadline_us;  /* from start to exit; 0 = none */
        size_t output_ceiling; /* per stream: maximum that is kept of stdout and stderr */
        /* Passed to the child as 3, 4, ...; a negative one leaves its number closed. The caller
         * keeps them. */
        const int *descriptors;
        size_t descriptor_count;
        /* The directory of the cgroup it starts in, nullptr = ours. Moving it later takes much
         * longer. */
        const char *cgroup;
        bool has_oom_score_adj; /* false: the child inherits ours */
        int oom_score_adj;
        /* SIGKILL when we exit, for any reason: the work is restarted, and must not run twice. */
        bool dies_with_us;
        /* Receives stdout in pieces as they arrive; nothing of it is kept then. */
        void (*output)(const char *bytes, size_t length, void *userdata);
};

enum {
        ND_CHILD_DESCRIPTORS = 8, /* maximum in a plan */
};

struct nd_child_result {
        bool timed_out;
        int code;   /* exit status, or -1 if a signal killed it */
        int signal; /* that signal */
        char *output;
        char *errors;
        size_t output_length, errors_length; /* they may contain null bytes */
        bool truncated;                      /* one of them exceeded the ceiling */
};

void nd_child_result_done(struct nd_child_result *result);

/* nullptr if the child exited with 0 in time; otherwise an error with its name, how it ended and
 * its last line of stderr. */
[[nodiscard]] struct nd_error *nd_child_result_error(const struct nd_child_result *result, const char *name);

struct nd_child;

/* Called once, from the loop. The callback may take fields of the result; the child is freed when
 * it returns. A child that hangs in the kernel after SIGKILL counts as timed out, and the loop
 * reaps it later. */
typedef void (*nd_child_callback)(struct nd_child_result *result, void *userdata);

/* Starts a child. An error means that nothing runs; a program that cannot be executed is such an
 * error too. */
[[nodiscard]] struct nd_error *nd_child_start(sd_event *loop, const struct nd_child_plan *plan, nd_child_callback callback,
                                              void *userdata, struct nd_child **ret);

/* Kills a child whose callback has not run yet. The callback will not run; the object is freed when
 * the child was reaped. */
void nd_child_cancel(struct nd_child *child);

/* Kills a child with its process group; its callback runs as usual when it has exited. */
void nd_child_kill(struct nd_child *child);

/* The child's PID, for a record that outlives us. Valid until the callback runs. */
[[nodiscard]] pid_t nd_child_pid(const struct nd_child *child);

/* For programs without a loop: runs a child and waits for it. */
[[nodiscard]] struct nd_error *nd_child_run(const struct nd_child_plan *plan, struct nd_child_result *ret);
