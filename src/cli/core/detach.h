/* SPDX-License-Identifier: Apache-2.0 */
/* detach.h - finds the keys that leave `nodens attach`, Ctrl-P Ctrl-Q, in typed input */
#pragma once

#include <stddef.h>

struct cli_detach {
        bool held; /* a Ctrl-P was typed; the next key decides */
};

/* Copies the input that belongs to the container to out, which has room for length + 1 bytes, and
 * returns its length. *ret_detached: the keys were typed; bytes after them are dropped. */
[[nodiscard]] size_t cli_detach_filter(struct cli_detach *detach, const char *bytes, size_t length, char *out,
                                       bool *ret_detached);
