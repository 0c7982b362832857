/* SPDX-License-Identifier: Apache-2.0 */
/* progress.h - how far a pull is: bars on a terminal, plain lines in a pipe */
#pragma once

#include <stdint.h>

#include "base/vector.h"

struct progress_item {
        char *name; /* a digest, shown short */
        char *state;
        uint64_t size, done;
};

struct progress {
        nd_vector(struct progress_item) items;
        bool terminal;
        size_t drawn; /* lines on the screen that belong to us */
        uint64_t drawn_us;
};

void progress_init(struct progress *progress);
void progress_done(struct progress *progress); /* leaves the last picture on the screen */

void progress_update(struct progress *progress, const char *name, const char *state, uint64_t size, uint64_t done);
void progress_show(struct progress *progress, bool last); /* draws, at most ten times a second unless it is the last */

/* "12.3 MB"; the buffer is the caller's. */
enum { PROGRESS_SIZE_TEXT = 16 };
const char *progress_size(uint64_t bytes, char text[static PROGRESS_SIZE_TEXT]);
