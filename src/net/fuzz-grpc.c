/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-grpc.c - message framing in pieces of any size, timeouts, status texts */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "net/grpc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads all messages in steps of one size and hashes them; the result must not depend on the
 * steps. */
static uint64_t read_in_steps(const char *bytes, size_t length, size_t step) {
        nd_cleanup(nd_grpc_reader_done) struct nd_grpc_reader reader = {};
        uint64_t sum = 0;

        for (size_t at = 0; at < length;) {
                size_t n = step < length - at ? step : length - at, used = 0;
                bool complete = false;
                nd_autoerror struct nd_error *error = nd_grpc_reader_feed(&reader, bytes + at, n, &used, &complete);

                if (error)
                        return sum * 31 + (uint64_t) nd_error_code(error);
                assert(used <= n);
                if (complete) {
                        sum = sum * 31 + reader.body.length + 1;
                        nd_grpc_reader_next(&reader);
                }
                at += used;
        }
        return sum * 31 + nd_grpc_reader_idle(&reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        const char *bytes = (const char *) data;
        nd_autofree char *decoded = nd_grpc_decode_text(bytes, size), *encoded = nd_grpc_encode_text(decoded);
        nd_autofree char *again = nd_grpc_decode_text(encoded, strlen(encoded)), *canonical = nd_grpc_encode_text(again);
        nd_autoerror struct nd_error *error = nullptr;
        uint64_t timeout = 0, same = 0;

        assert(nd_text_utf8_valid(again, strlen(again)));
        assert(nd_streq(canonical, encoded)); /* encoding is idempotent */
        assert(read_in_steps(bytes, size, 1) == read_in_steps(bytes, size, size > 0 ? size : 1));
        assert(read_in_steps(bytes, size, 7) == read_in_steps(bytes, size, 4096));

        error = nd_grpc_parse_timeout(bytes, size, &timeout);
        if (!error && timeout > 0 && timeout < 100000000) {
                nd_autofree char *text = nd_grpc_format_timeout(timeout);

                assert(!nd_grpc_parse_timeout(text, strlen(text), &same) && same == timeout);
        }
        return 0;
}
