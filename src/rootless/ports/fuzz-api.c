/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-api.c - requests to a node's API, which root of the node can send: any input, split
 * anywhere, gets exactly one complete response */
#include <string.h>

#include <unit/fuzz.h>

#include "rootless/ports/api.h"

struct fake {
        struct rootless_ports ports;
        size_t changes;
};

static void on_info([[maybe_unused]] void *userdata, struct nd_json_out *out) {
        nd_json_string(out, "apiVersion", "1.1.2");
}

static const struct rootless_ports *on_list(void *userdata, bool *ret_kept) {
        *ret_kept = false;
        return &((struct fake *) userdata)->ports;
}

static struct nd_error *on_add(void *userdata, const struct rootless_port_spec *spec, const struct rootless_port **ret) {
        struct fake *f = userdata;
        struct rootless_port port = {.id = f->ports.count + 1, .spec = *spec, .fds = {-EBADF, -EBADF}};

        fuzz_require(spec->parent_port > 0 && spec->child_port > 0);
        f->changes++;
        nd_vector_push(&f->ports, port);
        *ret = &f->ports.items[f->ports.count - 1];
        return nullptr;
}

static struct nd_error *on_remove(void *userdata, uint64_t id) {
        ((struct fake *) userdata)->changes++;
        return id % 2 == 0 ? nullptr
                           : nd_error_new(ND_NOT_FOUND, 0, "no published port with ID %llu", (unsigned long long) id);
}

static struct nd_error *on_replace(void *userdata, const char *owner, struct rootless_ports *wanted) {
        struct fake *f = userdata;

        fuzz_require(rootless_port_owner_valid(owner) && wanted->count <= PORTS_OWNED_MAX);
        f->changes++;
        nd_vector_each (port, wanted) {
                struct rootless_port added = {.id = f->ports.count + 1,
                                              .spec = port->spec,
                                              .owner = nd_strdup(owner),
                                              .object = nd_take_ptr(port->object),
                                              .fds = {-EBADF, -EBADF}};

                fuzz_require(added.spec.parent_port > 0 && (!added.object || strlen(added.object) < PORT_OBJECT_TEXT));
                nd_vector_push(&f->ports, added);
        }
        return nullptr;
}

static uint16_t on_lowest([[maybe_unused]] void *userdata) {
        return 1024;
}

static void check_answer(const struct nd_text *answer) {
        const char *length = strstr(answer->bytes, "Content-Length: "), *body = strstr(answer->bytes, "\r\n\r\n");

        fuzz_require(!answer->overflow && nd_has_prefix(answer->bytes, "HTTP/1.1 ") && length && body && length < body);
        fuzz_require(strtoull(length + strlen("Content-Length: "), nullptr, 10) == strlen(body + 4));
        if (body[4]) {
                nd_autojson yyjson_doc *doc = nullptr;
                nd_autoerror struct nd_error *error = nd_json_parse(body + 4, strlen(body + 4), API_RESPONSE_BYTES, &doc);

                fuzz_require(!error);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct fake f = {};
        struct rootless_api_backend backend = {.userdata = &f,
                                               .info = on_info,
                                               .list = on_list,
                                               .add = on_add,
                                               .remove = on_remove,
                                               .replace = on_replace,
                                               .lowest = on_lowest};
        nd_autotext struct nd_text answer = ND_TEXT(API_RESPONSE_BYTES), early = ND_TEXT(API_RESPONSE_BYTES);

        if (rootless_api_respond(&backend, (const char *) data, size, &answer)) {
                check_answer(&answer);
                fuzz_require(f.changes <= 1);
        } else {
                fuzz_require(f.changes == 0 && answer.length == 0);
                if (size > 0) /* a prefix of an incomplete request is incomplete */
                        fuzz_require(!rootless_api_respond(&backend, (const char *) data, size - 1, &early) ||
                                     early.length > 0);
        }
        rootless_ports_done(&f.ports);
        return 0;
}
