/* SPDX-License-Identifier: Apache-2.0 */
/* output.h - copies a component's output to our standard error, line by line
 *
 * Standard error may be a terminal or the journal, and the output is hostile: control characters
 * are removed, long lines are split, and each line begins with the component's name, so that it
 * cannot begin with a priority ("<0>") that journald would broadcast. */
#pragma once

#include "base/text.h"

enum {
        OUTPUT_LINE_BYTES = 2048, /* longer lines are split */
        /* Limit of a written line: less than PIPE_BUF, so that a write to a pipe that has room does
         * not block. Only lines that are not text can exceed it; they are cut. */
        OUTPUT_PRINTED_BYTES = 4000,
        OUTPUT_NAME_BYTES = 64,
};

struct rootless_output {
        const char *name; /* of the component */
        void (*write)(const char *line, size_t length, void *userdata);
        void *userdata;
        char pending[OUTPUT_LINE_BYTES]; /* of an incomplete line */
        size_t length;
};

/* Takes bytes of the output; writes the lines that are complete. */
void rootless_output_add(struct rootless_output *output, const char *bytes, size_t length);

/* Writes the last line if it has no end. */
void rootless_output_end(struct rootless_output *output);
