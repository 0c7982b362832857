/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-cni-result.c - parses plugins' output: addresses are valid, an error always has a text */
#include <arpa/inet.h>
#include <assert.h>
#include <stdint.h>

#include "cri/network/cni-result.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_cleanup(nd_strings_done) struct nd_strings addresses = {};
        nd_autoerror struct nd_error *error = cri_cni_result_addresses((const char *) data, size, "eth0", &addresses);
        nd_autoerror struct nd_error *told = cri_cni_result_error((const char *) data, size);
        struct in6_addr binary;

        assert(told && nd_error_text(told)[0]);
        assert(!error || addresses.count == 0);
        assert(addresses.count <= CNI_ADDRESSES_MOST);
        nd_vector_each (address, &addresses) {
                assert(inet_pton(AF_INET, *address, &binary) == 1 || inet_pton(AF_INET6, *address, &binary) == 1);
        }
        return 0;
}
