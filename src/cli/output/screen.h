/* SPDX-License-Identifier: Apache-2.0 */
/* screen.h - the whole terminal, for a view that is updated until a key is typed */
#pragma once

#include <stdint.h>

/* Standard output is a terminal with a cursor: switches to the alternate screen, without echo and
 * line buffering of keys. There is one screen; a signal that ends the program restores it. */
void cli_screen_open(void);
void cli_screen_close(void);

/* Replaces the contents. Lines that do not fit are left out, and each is clipped to the width. */
void cli_screen_draw(const char *text);

enum cli_screen_event {
        SCREEN_TIMEOUT,
        SCREEN_RESIZED,
        SCREEN_QUIT, /* 'q', or the end of the terminal */
};

[[nodiscard]] enum cli_screen_event cli_screen_wait(uint64_t until_us); /* nd_clock_us() */
