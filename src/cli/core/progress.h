/* SPDX-License-Identifier: Apache-2.0 */
/* progress.h - how far a pull is: bars on a terminal, plain lines in a pipe */
#pragma once

#include <stdint.h>

#include "base/vector.h"

struct cli_progress_item {
        char *name; /* a digest, shown short */
        char *state;
        uint64_t size, done;
};

struct cli_progress {
        nd_vector(struct cli_progress_item) items;
        bool terminal;
        size_t drawn; /* lines on the screen that belong to us */
        uint64_t drawn_us;
};

void cli_progress_init(struct cli_progress *progress);
void cli_progress_done(struct cli_progress *progress); /* leaves the last picture on the screen */

void cli_progress_update(struct cli_progress *progress, const char *name, const char *state, uint64_t size, uint64_t done);
void cli_progress_show(struct cli_progress *progress, bool last); /* draws, at most ten times a second unless it is the last */
