/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-exec-status.c - any bytes as the last message of a command's streams give a valid exit
 * status or an error. */
#include <unit/fuzz.h>

#include "cli/core/exec-status.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_autoerror struct nd_error *error = nullptr;
        int code = -1;

        error = cli_exec_status_parse((const char *) data, size, &code);
        fuzz_require(error ? code == -1 || code == EXEC_STATUS_NOT_EXECUTABLE || code == EXEC_STATUS_NOT_FOUND
                           : code >= 0 && code <= 255);
        return 0;
}
