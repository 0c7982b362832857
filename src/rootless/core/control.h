/* SPDX-License-Identifier: Apache-2.0 */
/* control.h - message format between a node's init, its forwarder and their clients
 *
 * One packet of a SOCK_SEQPACKET socket is one message: null-terminated strings. The first is
 * "nodens/1 VERB", the others are "key=value" and may repeat. Init is never upgraded in place, so
 * it may be older or newer than its peer: readers skip unknown keys and answer unknown verbs with
 * an error. */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "base/vector.h"

enum {
        /* size limit of a message; the default buffer of a unix socket is 208 KiB */
        CONTROL_BYTES = 160 * 1024,
        CONTROL_FIELDS = 8192,
        CONTROL_DESCRIPTORS = 64, /* limit per message */
};

struct rootless_control_field {
        const char *key;
        const char *value;
};

/* A received message. The pointers point into bytes, which the message owns. */
struct rootless_control {
        char *bytes;
        const char *verb;
        nd_vector(struct rootless_control_field) fields;
        int descriptors[CONTROL_DESCRIPTORS];
        size_t descriptor_count;
};

void rootless_control_done(struct rootless_control *message);

/* Parses a message; keeps a copy of the bytes. */
[[nodiscard]] struct nd_error *rootless_control_parse(const char *bytes, size_t length, struct rootless_control *ret);

/* Returns the first value of a key, or nullptr. */
const char *rootless_control_get(const struct rootless_control *message, const char *key);

/* Returns the values of a key in order, terminated by nullptr. The caller owns the array, the
 * message owns the strings. */
[[nodiscard]] const char **rootless_control_get_all(const struct rootless_control *message, const char *key);

/* Builds a message: the verb first, then the fields. */
#define CONTROL_TEXT ND_TEXT(CONTROL_BYTES)
void rootless_control_begin(struct nd_text *text, const char *verb);
void rootless_control_add(struct nd_text *text, const char *key, const char *value);
void rootless_control_add_error(struct nd_text *text, const struct nd_error *error);

[[nodiscard]] struct nd_error *rootless_control_send(int fd, const struct nd_text *text, const int *descriptors, size_t count);

/* Waits for one message, at most deadline_us (0: no timeout). ND_CANCELLED when the peer closed the
 * connection. */
[[nodiscard]] struct nd_error *rootless_control_receive(int fd, uint64_t deadline_us, struct rootless_control *ret);

/* Sends a request and waits for the reply; a reply with the verb "error" becomes that error. */
[[nodiscard]] struct nd_error *rootless_control_call(int fd, const struct nd_text *text, const int *descriptors, size_t count,
                                                     uint64_t deadline_us, struct rootless_control *ret);

/* Converts a message with the verb "error" to an error. */
[[nodiscard]] struct nd_error *rootless_control_error(const struct rootless_control *message);
