/* SPDX-License-Identifier: Apache-2.0 */
/* exec.h - runs a command in a running container, with captured output (ExecSync) or with streams
 * of the caller (stream/exec.h) */
#pragma once

#include <stdint.h>
#include <systemd/sd-event.h>

#include "base/error.h"
#include "base/strings.h"

struct cri_container;
struct cri_config;
struct cri_exec;

struct cri_exec_result {
        int code; /* 0-255; 128 + signal number if killed */
        char *output, *errors;
        /* together at most one response; the rest is discarded */
        size_t output_length, errors_length;
};

/* Runs once, from the loop. With an error (the callback frees it) there is no result. ND_DEADLINE:
 * the timeout expired and everything that the command started was killed. The result is freed when
 * the callback returns. */
typedef void (*cri_exec_callback)(struct nd_error *error, struct cri_exec_result *result, void *userdata);

struct cri_exec_streams {
        /* standard input, output and error; crun's own if there is a terminal. The caller keeps
         * them */
        int fds[3];
        bool terminal; /* crun allocates a terminal and sends its master over the console socket */
        /* that socket, opened with O_PATH. Never a directory: the container's working directory may
         * resolve through it */
        int console;
};

struct cri_exec_plan {
        const struct cri_container *container;
        const struct nd_strings *command;
        /* nullptr: the output is captured in the result. With streams the result has only the exit
         * code. */
        const struct cri_exec_streams *streams;
        uint64_t timeout_us; /* 0 = none */
};

/* ND_PRECONDITION if the container is not running. On error nothing runs and the callback is not
 * called. */
[[nodiscard]] struct nd_error *cri_exec_start(sd_event *loop, const struct cri_config *config,
                                              const struct cri_exec_plan *plan, cri_exec_callback callback, void *userdata,
                                              struct cri_exec **ret);

/* Kills the command and everything it started; the callback is not called. nullptr is allowed. */
void cri_exec_cancel(struct cri_exec *exec);

/* After a restart: kills the commands that an earlier daemon left running in a container. Their
 * clients are gone. */
void cri_exec_forget(sd_event *loop, const struct cri_config *config, const struct cri_container *container);

/* The exit status that a shell gives a command that cannot be started: 127 if the error says that
 * it does not exist, 126 if it is not executable; 0 for any other error. Reads the messages of
 * crun and runc, which have no other sign. */
[[nodiscard]] int cri_exec_start_code(const char *message);

/* Builds the OCI process of a command: the container's own (from its config.json) with other
 * arguments, with or without a terminal. crun does not apply oomScoreAdj, so the caller must:
 * ret_oom_score_adj, 0 if the spec has none. */
[[nodiscard]] struct nd_error *cri_exec_process(const char *config, size_t length, const struct nd_strings *command,
                                                bool terminal, char **ret, size_t *ret_length, int *ret_oom_score_adj);
