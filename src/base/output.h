/* SPDX-License-Identifier: Apache-2.0 */
/* output.h - reports that standard output could not be written
 *
 * stdio buffers output and remembers an error, but a program that ignores the result of printf()
 * exits with success although a full disk has cut its output off. So every program checks once, at
 * its end. */
#pragma once

enum {
        ND_EXIT_OUTPUT = 74, /* sysexits' EX_IOERR */
};

/* Opens /dev/null for each standard descriptor that is closed. Otherwise the next file or socket
 * would get its number, and the program's output would go there. Writing to it fails. */
void nd_output_open(void);

/* Flushes standard output. Returns status if everything was written, else ND_EXIT_OUTPUT after a
 * message with this prefix. A reader that has closed its pipe gets no message: it has seen
 * enough. */
[[nodiscard]] int nd_output_close(const char *prefix, int status);
