/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-pasta-version.c - the output of `pasta --version`: only its first line matters */
#include <string.h>

#include <unit/fuzz.h>

#include "base/text.h"
#include "net/pasta.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_autofree char *said = fuzz_text(data, size), *line = nullptr;
        size_t start = strspn(said, " \n");

        line = nd_strndup(said + start, strcspn(said + start, "\n"));
        fuzz_require(nd_pasta_version_stalls(said) == nd_pasta_version_stalls(line));
        return 0;
}
