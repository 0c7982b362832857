/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/core/control.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "sys/parcel.h"

#define GREETING "nodens/1 "

void nd_control_done(struct nd_control *message) {
        for (size_t i = 0; i < message->descriptor_count; i++)
                nd_close_fd(&message->descriptors[i]);
        nd_vector_done(&message->fields);
        free(message->bytes);
        *message = (struct nd_control) {};
}

struct nd_error *nd_control_parse(const char *bytes, size_t length, struct nd_control *ret) {
        nd_cleanup(nd_control_done) struct nd_control message = {};

        if (length == 0 || length > ND_CONTROL_BYTES || bytes[length - 1] != '\0' || !nd_has_prefix(bytes, GREETING) ||
            strlen(bytes) == strlen(GREETING))
                return nd_error_new(ND_INVALID, 0, "not a message of this protocol");
        message.bytes = nd_malloc(length);
        memcpy(message.bytes, bytes, length);
        message.verb = message.bytes + strlen(GREETING);

        for (char *at = message.bytes + strlen(message.bytes) + 1; at < message.bytes + length;) {
                char *equals = strchr(at, '='), *next = at + strlen(at) + 1;

                if (!equals || message.fields.count == ND_CONTROL_FIELDS)
                        return nd_error_new(ND_INVALID, 0, "field %zu of the message '%s' %s", message.fields.count + 1,
                                            message.verb, equals ? "is one too many" : "has no '='");
                *equals = '\0';
                nd_vector_push(&message.fields, ((struct nd_control_field) {.key = at, .value = equals + 1}));
                at = next;
        }
        *ret = nd_take(message, (struct nd_control) {});
        return nullptr;
}

const char *nd_control_get(const struct nd_control *message, const char *key) {
        nd_vector_each (field, &message->fields) {
                if (nd_streq(field->key, key))
                        return field->value;
        }
        return nullptr;
}

const char **nd_control_all(const struct nd_control *message, const char *key) {
        const char **all = nd_calloc(message->fields.count + 1, sizeof *all);
        size_t count = 0;

        nd_vector_each (field, &message->fields) {
                if (nd_streq(field->key, key))
                        all[count++] = field->value;
        }
        return all;
}

void nd_control_begin(struct nd_text *text, const char *verb) {
        nd_text_add(text, GREETING);
        nd_text_append(text, verb, strlen(verb) + 1);
}

void nd_control_add(struct nd_text *text, const char *key, const char *value) {
        nd_text_add(text, key);
        nd_text_add(text, "=");
        nd_text_append(text, value, strlen(value) + 1);
}

void nd_control_add_error(struct nd_text *text, const struct nd_error *error) {
        nd_autofree char *code = nd_format("%u", (unsigned) nd_error_code(error)),
                         *number = nd_format("%d", nd_error_errno(error));

        nd_control_begin(text, "error");
        nd_control_add(text, "code", code);
        nd_control_add(text, "errno", number);
        nd_control_add(text, "text", nd_error_text(error));
}

struct nd_error *nd_control_error(const struct nd_control *message) {
        const char *code = nd_control_get(message, "code"), *number = nd_control_get(message, "errno"),
                   *text = nd_control_get(message, "text");
        uint64_t code_value = ND_INTERNAL, number_value = 0;

        if (code && (nd_parse_u64(code, ND_UNAUTHENTICATED, &code_value) < 0 || code_value == ND_OK))
                code_value = ND_INTERNAL;
        if (number && nd_parse_u64(number, 4095, &number_value) < 0)
                number_value = 0;
        return nd_error_received((enum nd_code) code_value, (int) number_value, text ? text : "an error without a text");
}

/* ---- sockets */

static_assert((int) ND_CONTROL_DESCRIPTORS <= (int) ND_PARCEL_DESCRIPTORS);

struct nd_error *nd_control_send(int fd, const struct nd_text *text, const int *descriptors, size_t count) {
        ssize_t n;

        if (text->overflow || count > ND_CONTROL_DESCRIPTORS)
                return nd_error_new(ND_INVALID, E2BIG, "a message of more than %d bytes or %d descriptors", ND_CONTROL_BYTES,
                                    ND_CONTROL_DESCRIPTORS);
        n = nd_parcel_send(fd, text->bytes, text->length, descriptors, count, 0);
        if (n < 0)
                return nd_error_new(n == -EPIPE || n == -ECONNRESET ? ND_CANCELLED : nd_code_of_errno((int) -n), (int) -n,
                                    "send a message");
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
                        return nd_error_new(ND_DEADLINE, ETIMEDOUT, "no answer within %llu ms",
                                            (unsigned long long) (deadline_us / ND_MS_US));
                if (errno != EINTR)
                        return nd_error_new(ND_INTERNAL, errno, "wait for a message");
        }
}

struct nd_error *nd_control_receive(int fd, uint64_t deadline_us, struct nd_control *ret) {
        nd_autofree char *bytes = nd_malloc(ND_CONTROL_BYTES);
        nd_cleanup(nd_control_done) struct nd_control message = {}, parsed = {};
        ssize_t n;

        nd_try(await(fd, deadline_us));
        n = nd_parcel_receive(fd, bytes, ND_CONTROL_BYTES, message.descriptors, ND_CONTROL_DESCRIPTORS, 0);
        if (n == 0 || n == -ECONNRESET)
                return nd_error_new(ND_CANCELLED, ECONNRESET, "the other side is gone");
        if (n == -EMSGSIZE)
                return nd_error_new(ND_INVALID, EMSGSIZE, "a message that is too long");
        if (n < 0)
                return nd_error_new(nd_code_of_errno((int) -n), (int) -n, "receive a message");
        while (message.descriptor_count < ND_CONTROL_DESCRIPTORS && message.descriptors[message.descriptor_count] >= 0)
                message.descriptor_count++;
        nd_try(nd_control_parse(bytes, (size_t) n, &parsed));
        memcpy(parsed.descriptors, message.descriptors, sizeof parsed.descriptors);
        parsed.descriptor_count = nd_take(message.descriptor_count, 0);
        *ret = nd_take(parsed, (struct nd_control) {});
        return nullptr;
}

struct nd_error *nd_control_ask(int fd, const struct nd_text *text, const int *descriptors, size_t count, uint64_t deadline_us,
                                struct nd_control *ret) {
        nd_cleanup(nd_control_done) struct nd_control answer = {};

        nd_try(nd_control_send(fd, text, descriptors, count));
        nd_try(nd_control_receive(fd, deadline_us, &answer));
        if (nd_streq(answer.verb, "error"))
                return nd_control_error(&answer);
        if (ret)
                *ret = nd_take(answer, (struct nd_control) {});
        return nullptr;
}
