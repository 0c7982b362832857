/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-cluster-info.c - the object that an unknown server sends, and certificates in it */
#include <string.h>

#include <unit/fuzz.h>

#include "rootless/plane/cluster-info.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_cleanup(rootless_cluster_info_done) struct rootless_cluster_info info = {};
        nd_autofree char *text = fuzz_text(data, size), *pinned = nullptr;
        nd_autoerror struct nd_error *error =
                                             rootless_cluster_info_parse(text, strlen(text), "abcdef.0123456789abcdef", &info),
                                     *refused = nullptr;

        fuzz_require(error || (info.kubeconfig && info.ca));
        refused = rootless_cluster_info_pin(text, "sha256:0000000000000000000000000000000000000000000000000000000000000000",
                                            &pinned);
        fuzz_require(refused);
        return 0;
}
