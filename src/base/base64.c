/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base64.h"

#include <stdint.h>
#include <string.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

char *nd_base64(const char *bytes, size_t length) {
        const uint8_t *in = (const uint8_t *) bytes;
        char *text = nd_malloc((length + 2) / 3 * 4 + 1), *out = text;

        for (size_t i = 0; i < length; i += 3) {
                size_t left = length - i;
                uint32_t word =
                        (uint32_t) in[i] << 16 | (left > 1 ? (uint32_t) in[i + 1] << 8 : 0) | (left > 2 ? in[i + 2] : 0);

                *out++ = alphabet[word >> 18];
                *out++ = alphabet[word >> 12 & 63];
                *out++ = (char) (left > 1 ? alphabet[word >> 6 & 63] : '=');
                *out++ = (char) (left > 2 ? alphabet[word & 63] : '=');
        }
        *out = '\0';
        return text;
}

static int value_of(char c) {
        if (c >= 'A' && c <= 'Z')
                return c - 'A';
        if (c >= 'a' && c <= 'z')
                return c - 'a' + 26;
        if (c >= '0' && c <= '9')
                return c - '0' + 52;
        return c == '+' ? 62 : c == '/' ? 63 : -1;
}

static bool is_blank(char c) {
        return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

struct nd_error *nd_base64_decode(const char *text, size_t length, char **ret, size_t *ret_length) {
        nd_autofree char *bytes = nd_malloc(length / 4 * 3 + 4);
        size_t count = 0, digits = 0, padding = 0;
        uint32_t word = 0;

        for (size_t i = 0; i < length; i++) {
                int value = value_of(text[i]);

                if (is_blank(text[i]))
                        continue;
                if (text[i] == '=')
                        padding++;
                else if (value < 0 || padding > 0)
                        return nd_error_new(ND_INVALID, 0, "not base64");
                else {
                        word = word << 6 | (uint32_t) value;
                        if (++digits % 4 != 0)
                                continue;
                        bytes[count++] = (char) (word >> 16);
                        bytes[count++] = (char) (word >> 8);
                        bytes[count++] = (char) word;
                }
        }
        if (digits % 4 == 1 || (digits + padding) % 4 != 0 || padding > 2)
                return nd_error_new(ND_INVALID, 0, "not base64");
        if (digits % 4 == 2)
                bytes[count++] = (char) (word >> 4);
        if (digits % 4 == 3) {
                bytes[count++] = (char) (word >> 10);
                bytes[count++] = (char) (word >> 2);
        }
        bytes[count] = '\0';
        *ret = nd_take_ptr(bytes);
        *ret_length = count;
        return nullptr;
}

struct nd_error *nd_base64_parse(const char *text, char **ret) {
        size_t length;

        return nd_base64_decode(text, strlen(text), ret, &length);
}
