/* SPDX-License-Identifier: Apache-2.0 */
/* control.h - message format between a node's init, its forwarder and their clients
 *
 * One packet of a SOCK_SEQPACKET socket is one message: strings, each with its null byte. The first is "nodens/1 VERB", the others are
 * "key=value" and may repeat. Init is never upgraded in place, so it may be older or younger than who talks to it: keys
 * that a reader does not know are passed over, and a verb that it does not know is answered with an error. */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "base/vector.h"

enum {
        CONTROL_BYTES = 160 * 1024, /* most of a message; a unix socket's own default is 208 KiB */
        CONTROL_FIELDS = 8192,
        CONTROL_DESCRIPTORS = 64, /* most in one message */
};

struct rootless_control_field {
        const char *key;
        const char *value;
};

/* A message that came in. The pointers are into bytes, which is the message's own. */
struct rootless_control {
        char *bytes;
        const char *verb;
        nd_vector(struct rootless_control_field) fields;
        int descriptors[CONTROL_DESCRIPTORS];
        size_t descriptor_count;
};

void rootless_control_done(struct rootless_control *message);

/* Takes a message apart; a copy of the bytes is kept. */
[[nodiscard]] struct nd_error *rootless_control_parse(const char *bytes, size_t length, struct rootless_control *ret);

/* The first value of a key; nullptr when there is none. */
const char *rootless_control_get(const struct rootless_control *message, const char *key);

/* The values of a key, in their order, with a nullptr after the last. The array is the caller's, the words are the message's. */
[[nodiscard]] const char **rootless_control_get_all(const struct rootless_control *message, const char *key);

/* Building: a text that starts with the verb, then fields. */
#define CONTROL_TEXT ND_TEXT(CONTROL_BYTES)
void rootless_control_begin(struct nd_text *text, const char *verb);
void rootless_control_add(struct nd_text *text, const char *key, const char *value);
void rootless_control_add_error(struct nd_text *text, const struct nd_error *error);

[[nodiscard]] struct nd_error *rootless_control_send(int fd, const struct nd_text *text, const int *descriptors, size_t count);

/* Waits for one message, at most deadline_us (0: as long as it takes). ND_CANCELLED when the other side is gone. */
[[nodiscard]] struct nd_error *rootless_control_receive(int fd, uint64_t deadline_us, struct rootless_control *ret);

/* One question and its answer; an answer "error" becomes the error that it tells. */
[[nodiscard]] struct nd_error *rootless_control_call(int fd, const struct nd_text *text, const int *descriptors, size_t count,
                                                     uint64_t deadline_us, struct rootless_control *ret);

/* The error that a message of the verb "error" tells. */
[[nodiscard]] struct nd_error *rootless_control_error(const struct rootless_control *message);
