/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-protobuf.c - decodes our own service's messages; a decoded message encodes to bytes that
 * decode to the same message */
#include <assert.h>
#include <nodens.pb-c.h>
#include <stdint.h>
#include <string.h>

#include "net/protobuf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static const ProtobufCMessageDescriptor *const types[] = {&nodens__v1__pull_progress__descriptor,
                                                                  &nodens__v1__pull_request__descriptor};

        for (size_t i = 0; i < nd_count_of(types); i++) {
                ProtobufCMessage *message = nullptr, *again = nullptr;
                nd_autoerror struct nd_error *error = nd_protobuf_unpack(types[i], (const char *) data, size, &message);
                nd_autotext struct nd_text once = {}, twice = {};

                if (error)
                        continue;
                nd_protobuf_pack(message, &once);
                assert(!nd_protobuf_unpack(types[i], nd_text_get(&once), once.length, &again));
                nd_protobuf_pack(again, &twice);
                assert(once.length == twice.length && memcmp(nd_text_get(&once), nd_text_get(&twice), once.length) == 0);
                nd_protobuf_free(message);
                nd_protobuf_free(again);
        }
        return 0;
}
