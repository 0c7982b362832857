/* SPDX-License-Identifier: Apache-2.0 */
#include "net/grpc.h"

#include <string.h>

#include "base/clock.h"

void nd_grpc_reader_done(struct nd_grpc_reader *reader) {
        nd_text_done(&reader->body);
        *reader = (struct nd_grpc_reader) {};
}

static struct nd_error *take_prefix(struct nd_grpc_reader *reader) {
        const unsigned char *p = reader->prefix;

        reader->expected = (uint32_t) p[1] << 24 | (uint32_t) p[2] << 16 | (uint32_t) p[3] << 8 | p[4];
        if (p[0] != 0)
                return nd_error_new(ND_UNIMPLEMENTED, 0, "compressed messages are not supported");
        if (reader->expected > ND_GRPC_MESSAGE)
                return nd_error_new(ND_EXHAUSTED, 0, "message of %u bytes exceeds the maximum of %d", reader->expected,
                                    ND_GRPC_MESSAGE);
        reader->body.ceiling = reader->expected;
        return nullptr;
}

struct nd_error *nd_grpc_reader_feed(struct nd_grpc_reader *reader, const char *bytes, size_t length, size_t *ret_used,
                                     bool *ret_complete) {
        size_t used = 0, n;

        *ret_complete = false;
        while (reader->prefix_length < ND_GRPC_PREFIX && used < length) {
                reader->prefix[reader->prefix_length++] = (unsigned char) bytes[used++];
                if (reader->prefix_length == ND_GRPC_PREFIX)
                        nd_try(take_prefix(reader));
        }
        if (reader->prefix_length == ND_GRPC_PREFIX) {
                n = reader->expected - reader->body.length;
                n = n < length - used ? n : length - used;
                nd_text_append(&reader->body, bytes + used, n);
                used += n;
                *ret_complete = reader->body.length == reader->expected;
        }
        *ret_used = used;
        return nullptr;
}

void nd_grpc_reader_next(struct nd_grpc_reader *reader) {
        reader->prefix_length = 0;
        nd_text_done(&reader->body);
}

bool nd_grpc_reader_idle(const struct nd_grpc_reader *reader) {
        return reader->prefix_length == 0;
}

void nd_grpc_write_prefix(unsigned char prefix[ND_GRPC_PREFIX], size_t length) {
        prefix[0] = 0;
        for (int i = 0; i < 4; i++)
                prefix[1 + i] = (unsigned char) (length >> (24 - 8 * i));
}

/* Eight digits times the largest unit fit 64 bits; in nanoseconds they would not. */
static const struct {
        char unit;
        uint64_t us;
} units[] = {{'H', 3600 * ND_SECOND_US}, {'M', 60 * ND_SECOND_US}, {'S', ND_SECOND_US}, {'m', ND_MS_US}, {'u', 1}};

struct nd_error *nd_grpc_parse_timeout(const char *text, size_t length, uint64_t *ret_us) {
        char digits[9] = {};
        uint64_t value;

        if (length < 2 || length > sizeof digits)
                return nd_error_new(ND_INVALID, 0, "invalid grpc-timeout: expected 1 to 8 digits and a unit");
        memcpy(digits, text, length - 1);
        if (nd_text_parse_u64(digits, 99999999, &value) < 0)
                return nd_error_new(ND_INVALID, 0, "invalid grpc-timeout: expected 1 to 8 digits and a unit");
        for (size_t i = 0; i < nd_count_of(units); i++)
                if (units[i].unit == text[length - 1]) {
                        *ret_us = value * units[i].us;
                        return nullptr;
                }
        if (text[length - 1] == 'n') {
                *ret_us = (value + 999) / 1000;
                return nullptr;
        }
        return nd_error_new(ND_INVALID, 0, "invalid grpc-timeout: unknown unit");
}

char *nd_grpc_format_timeout(uint64_t timeout_us) {
        if (timeout_us < 100000000)
                return nd_format("%lluu", (unsigned long long) timeout_us);
        if (timeout_us / 1000 < 100000000)
                return nd_format("%llum", (unsigned long long) (timeout_us / 1000));
        return nd_format("%lluS", (unsigned long long) (timeout_us / 1000000 < 99999999 ? timeout_us / 1000000 : 99999999));
}

char *nd_grpc_encode_text(const char *text) {
        nd_autotext struct nd_text clean = ND_TEXT(ND_GRPC_STATUS_TEXT), encoded = ND_TEXT(3 * ND_GRPC_STATUS_TEXT);

        nd_text_add_utf8(&clean, text, strlen(text));
        for (size_t i = 0; i < clean.length; i++) {
                unsigned char c = (unsigned char) clean.bytes[i];

                if (c >= 0x20 && c < 0x7f && c != '%')
                        nd_text_append(&encoded, clean.bytes + i, 1);
                else
                        nd_text_addf(&encoded, "%%%02X", c);
        }
        return nd_text_steal(&encoded);
}

static int hex_value(char c) {
        if (c >= '0' && c <= '9')
                return c - '0';
        if (c >= 'a' && c <= 'f')
                return c - 'a' + 10;
        if (c >= 'A' && c <= 'F')
                return c - 'A' + 10;
        return -1;
}

char *nd_grpc_decode_text(const char *bytes, size_t length) {
        nd_autotext struct nd_text decoded = ND_TEXT(length);

        for (size_t i = 0; i < length; i++) {
                int high = -1, low = -1;

                if (bytes[i] == '%' && i + 2 < length) {
                        high = hex_value(bytes[i + 1]);
                        low = hex_value(bytes[i + 2]);
                }
                if (high >= 0 && low >= 0 && (high | low) != 0) {
                        nd_text_append(&decoded, &(char) {(char) (high << 4 | low)}, 1);
                        i += 2;
                } else {
                        nd_text_append(&decoded, bytes + i, 1);
                }
        }
        return nd_text_steal(&decoded);
}
