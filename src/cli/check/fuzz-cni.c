/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-cni.c - any bytes as a network configuration give a description or an error. */
#include <unit/fuzz.h>

#include "cli/check/cni.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_autoerror struct nd_error *error = nullptr;
        nd_autofree char *text = nullptr;

        error = cli_cni_describe("10-pods.conflist", (const char *) data, size, "/nonexistent:/bin", &text);
        fuzz_require(error ? !text : text != nullptr);
        return 0;
}
