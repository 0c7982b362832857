/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-control.c - messages to init: parsing and formatting gives the same bytes, and a network
 * message never gives a plan that init must not apply */
#include <string.h>

#include <unit/fuzz.h>

#include "rootless/network/network.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_cleanup(rootless_control_done) struct rootless_control message = {};
        nd_autoerror struct nd_error *error = rootless_control_parse((const char *) data, size, &message), *refused = nullptr,
                                     *received = nullptr;
        nd_autotext struct nd_text text = CONTROL_TEXT;
        struct rootless_netplan plan = {};

        if (error)
                return 0;
        rootless_control_begin(&text, message.verb);
        nd_vector_each (field, &message.fields) {
                rootless_control_add(&text, field->key, field->value);
        }
        fuzz_require(text.length == size && memcmp(text.bytes, data, size) == 0);
        received = rootless_control_error(&message);
        fuzz_require(nd_error_code(received) != ND_OK);

        refused = rootless_network_parse(&message, &plan);
        if (!refused) {
                fuzz_require(plan.mtu >= NET_MTU_MIN && plan.mtu <= NET_MTU_MAX);
                fuzz_require(plan.addresses[0].family != AF_INET6 && plan.addresses[1].family != AF_INET);
                fuzz_require(plan.addresses[0].prefix <= 32 && plan.addresses[1].prefix <= 128);
        }
        return 0;
}
