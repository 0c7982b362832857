/* SPDX-License-Identifier: Apache-2.0 */
/* exec.h - a command in a running container: waited for (ExecSync), or with streams that somebody else carries (stream/exec.h) */
#pragma once

#include <stdint.h>
#include <systemd/sd-event.h>

#include "base/error.h"
#include "base/strings.h"

struct cri_container;
struct cri_config;
struct cri_exec;

struct cri_exec_result {
        int code; /* 0-255; 128 + signal when one ended it */
        char *output, *errors;
        size_t output_length, errors_length; /* together they fit into one answer; what was more is gone */
};

/* Runs once, from the loop. With an error (the callback's to free) there is no result: ND_DEADLINE when the time was over, in which case everything that
 * the command had started is killed. The result is freed when the callback returns. */
typedef void (*cri_exec_callback)(struct nd_error *error, struct cri_exec_result *result, void *userdata);

/* The command's streams. */
struct cri_exec_streams {
        int fds[3];    /* standard input, output and errors; of crun alone when there is a terminal. They stay the caller's */
        bool terminal; /* the command gets one, and its other end comes over the socket */
        int console; /* that socket, as a path: O_PATH. Never a directory, since a container's working directory may lead through it */
};

struct cri_exec_plan {
        const struct cri_container *container;
        const struct nd_strings *command;
        /* nullptr: the result has the output. With streams it has nothing but the exit code. */
        const struct cri_exec_streams *streams;
        uint64_t timeout_us; /* 0 = none */
};

/* ND_PRECONDITION when the container does not run. An error means that nothing runs and the callback will not. */
[[nodiscard]] struct nd_error *cri_exec_start(sd_event *loop, const struct cri_config *config,
                                              const struct cri_exec_plan *plan, cri_exec_callback callback, void *userdata,
                                              struct cri_exec **ret);

/* Kills it with all it has started; the callback will not run. nullptr is fine. */
void cri_exec_cancel(struct cri_exec *exec);

/* After a restart: commands that were under way in a container when the last daemon ended have nobody to answer to. They are killed. */
void cri_exec_forget(sd_event *loop, const struct cri_config *config, const struct cri_container *container);

/* The OCI process of a command: the container's own (from its config.json) with other arguments, and with a terminal or without. ret_oom_score_adj is
 * what crun leaves to its caller; 0 where the spec says nothing. */
[[nodiscard]] struct nd_error *cri_exec_process(const char *config, size_t length, const struct nd_strings *command,
                                                bool terminal, char **ret, size_t *ret_length, int *ret_oom_score_adj);
