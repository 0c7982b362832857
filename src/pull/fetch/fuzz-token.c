/* SPDX-License-Identifier: Apache-2.0 */
/* Any response of a token server gives an error, or a token that is safe in a header and valid for
 * at most a day. */
#include <string.h>

#include <unit/fuzz.h>

#include "pull/fetch/auth.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_autofree char *token = nullptr;
        uint64_t seconds = 0;
        nd_autoerror struct nd_error *error = pull_token_parse((const char *) data, size, &token, &seconds);

        if (error)
                return 0;
        fuzz_require(*token && strlen(token) <= TOKEN_TEXT);
        for (const char *at = token; *at; at++)
                fuzz_require(*at > ' ' && *at < 0x7f);
        fuzz_require(seconds > 0 && seconds <= 86400);
        return 0;
}
