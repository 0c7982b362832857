/* SPDX-License-Identifier: Apache-2.0 */
/* progress.h - progress of a pull: bars on a terminal, plain lines in a pipe */
#pragma once

#include <stdint.h>

#include "base/vector.h"

struct cli_progress_item {
        char *name; /* a digest, abbreviated */
        char *state;
        uint64_t size, done;
};

struct cli_progress {
        nd_vector(struct cli_progress_item) items;
        bool terminal;
        size_t drawn; /* lines on the screen to redraw */
        uint64_t drawn_us;
};

void cli_progress_init(struct cli_progress *progress);
void cli_progress_done(struct cli_progress *progress); /* leaves the last state on the screen */

void cli_progress_update(struct cli_progress *progress, const char *name, const char *state, uint64_t size, uint64_t done);
/* Returns the line of an item in at most so many columns: with a bar if there is room for one. The
 * caller frees it. */
[[nodiscard]] char *cli_progress_line(const struct cli_progress_item *item, size_t columns);
/* at most ten times per second unless it is the last */
void cli_progress_show(struct cli_progress *progress, bool last);
