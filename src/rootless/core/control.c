/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/core/control.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "sys/fd-passing.h"

#define GREETING "nodens/1 "

void rootless_control_done(struct rootless_control *message) {
        for (size_t i = 0; i < message->descriptor_count; i++)
                nd_close_fd(&message->descriptors[i]);
        nd_vector_done(&message->fields);
        free(message->bytes);
        *message = (struct rootless_control) {};
}

struct nd_error *rootless_control_parse(const char *bytes, size_t length, struct rootless_control *ret) {
        nd_cleanup(rootless_control_done) struct rootless_control message = {};

        if (length == 0 || length > CONTROL_BYTES || bytes[length - 1] != '\0' || !nd_has_prefix(bytes, GREETING) ||
            strlen(bytes) == strlen(GREETING))
                return nd_error_new(ND_INVALID, 0, "invalid control message");
        message.bytes = nd_malloc(length);
        memcpy(message.bytes, bytes, length);
        message.verb = message.bytes + strlen(GREETING);

        for (char *at = message.bytes + strlen(message.bytes) + 1; at < message.bytes + length;) {
                char *equals = strchr(at, '='), *next = at + strlen(at) + 1;

                if (!equals || message.fields.count == CONTROL_FIELDS)
                        return nd_error_new(ND_INVALID, 0, "field %zu of message '%s' %s", message.fields.count + 1,
                                            message.verb, equals ? "exceeds the limit" : "has no '='");
                *equals = '\0';
                nd_vector_push(&message.fields, ((struct rootless_control_field) {.key = at, .value = equals + 1}));
                at = next;
        }
        *ret = nd_take(message, (struct rootless_control) {});
        return nullptr;
}

const char *rootless_control_get(const struct rootless_control *message, const char *key) {
        nd_vector_each (field, &message->fields) {
                if (nd_streq(field->key, key))
                        return field->value;
        }
        return nullptr;
}

const char **rootless_control_get_all(const struct rootless_control *message, const char *key) {
        const char **all = nd_calloc(message->fields.count + 1, sizeof *all);
        size_t count = 0;

        nd_vector_each (field, &message->fields) {
                if (nd_streq(field->key, key))
                        all[count++] = field->value;
        }
        return all;
}

void rootless_control_begin(struct nd_text *text, const char *verb) {
        nd_text_add(text, GREETING);
        nd_text_append(text, verb, strlen(verb) + 1);
}

void rootless_control_add(struct nd_text *text, const char *key, const char *value) {
        nd_text_add(text, key);
        nd_text_add(text, "=");
        nd_text_append(text, value, strlen(value) + 1);
}

void rootless_control_add_error(struct nd_text *text, const struct nd_error *error) {
        nd_autofree char *code = nd_format("%u", (unsigned) nd_error_code(error)),
                         *number = nd_format("%d", nd_error_errno(error));

        rootless_control_begin(text, "error");
        rootless_control_add(text, "code", code);
        rootless_control_add(text, "errno", number);
        rootless_control_add(text, "text", nd_error_text(error));
}

struct nd_error *rootless_control_error(const struct rootless_control *message) {
        const char *code = rootless_control_get(message, "code"), *number = rootless_control_get(message, "errno"),
                   *text = rootless_control_get(message, "text");
        uint64_t code_value = ND_INTERNAL, number_value = 0;

        if (code && (nd_text_parse_u64(code, ND_UNAUTHENTICATED, &code_value) < 0 || code_value == ND_OK))
                code_value = ND_INTERNAL;
        if (number && nd_text_parse_u64(number, 4095, &number_value) < 0)
                number_value = 0;
        return nd_error_received((enum nd_error_code) code_value, (int) number_value, text ? text : "error without a message");
}

/* ---- sockets ---- */

static_assert((int) CONTROL_DESCRIPTORS <= (int) ND_FD_PASSING_MOST);

struct nd_error *rootless_control_send(int fd, const struct nd_text *text, const int *descriptors, size_t count) {
        ssize_t n;

        if (text->overflow || count > CONTROL_DESCRIPTORS)
                return nd_error_new(ND_INVALID, E2BIG, "control message exceeds %d bytes or %d descriptors", CONTROL_BYTES,
                                    CONTROL_DESCRIPTORS);
        n = nd_fd_passing_send(fd, text->bytes, text->length, descriptors, count, 0);
        if (n < 0)
                return nd_error_new(n == -EPIPE || n == -ECONNRESET ? ND_CANCELLED : nd_error_code_of((int) -n), (int) -n,
                                    "send a control message");
        return nullptr;
}

static struct nd_error *await(int fd, uint64_t deadline_us) {
        uint64_t end = nd_clock_us() + deadline_us;

        for (;;) {
                struct pollfd wait = {.fd = fd, .events = POLLIN};
                uint64_t now = nd_clock_us(), left = now < end ? end - now : 0;
                int n = poll(&wait, 1, deadline_us == 0 ? -1 : (int) (left / ND_MS_US) + (left > 0));

                if (n > 0)
                        return nullptr;
                if (n == 0)
                        return nd_error_new(ND_DEADLINE, ETIMEDOUT, "no reply within %llu ms",
                                            (unsigned long long) (deadline_us / ND_MS_US));
                if (errno != EINTR)
                        return nd_error_new(ND_INTERNAL, errno, "wait for a control message");
        }
}

struct nd_error *rootless_control_receive(int fd, uint64_t deadline_us, struct rootless_control *ret) {
        nd_autofree char *bytes = nd_malloc(CONTROL_BYTES);
        nd_cleanup(rootless_control_done) struct rootless_control message = {}, parsed = {};
        ssize_t n;

        nd_try(await(fd, deadline_us));
        n = nd_fd_passing_receive(fd, bytes, CONTROL_BYTES, message.descriptors, CONTROL_DESCRIPTORS, 0);
        if (n == 0 || n == -ECONNRESET)
                return nd_error_new(ND_CANCELLED, ECONNRESET, "connection closed by the peer");
        if (n == -EMSGSIZE)
                return nd_error_new(ND_INVALID, EMSGSIZE, "control message too long");
        if (n < 0)
                return nd_error_new(nd_error_code_of((int) -n), (int) -n, "receive a control message");
        while (message.descriptor_count < CONTROL_DESCRIPTORS && message.descriptors[message.descriptor_count] >= 0)
                message.descriptor_count++;
        nd_try(rootless_control_parse(bytes, (size_t) n, &parsed));
        memcpy(parsed.descriptors, message.descriptors, sizeof parsed.descriptors);
        parsed.descriptor_count = nd_take(message.descriptor_count, 0);
        *ret = nd_take(parsed, (struct rootless_control) {});
        return nullptr;
}

struct nd_error *rootless_control_call(int fd, const struct nd_text *text, const int *descriptors, size_t count,
                                       uint64_t deadline_us, struct rootless_control *ret) {
        nd_cleanup(rootless_control_done) struct rootless_control answer = {};

        nd_try(rootless_control_send(fd, text, descriptors, count));
        nd_try(rootless_control_receive(fd, deadline_us, &answer));
        if (nd_streq(answer.verb, "error"))
                return rootless_control_error(&answer);
        if (ret)
                *ret = nd_take(answer, (struct rootless_control) {});
        return nullptr;
}
