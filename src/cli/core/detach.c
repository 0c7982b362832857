/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/detach.h"

enum {
        CTRL_P = 0x10,
        CTRL_Q = 0x11,
};

size_t cli_detach_filter(struct cli_detach *detach, const char *bytes, size_t length, char *out, bool *ret_detached) {
        size_t used = 0;

        *ret_detached = false;
        for (size_t i = 0; i < length; i++) {
                if (detach->held && bytes[i] == CTRL_Q) {
                        *ret_detached = true;
                        return used;
                }
                if (detach->held)
                        out[used++] = CTRL_P;
                detach->held = bytes[i] == CTRL_P;
                if (!detach->held)
                        out[used++] = bytes[i];
        }
        return used;
}
