/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/ports/api.h"

#include <string.h>

#include "net/http-head.h"

static const char *reason(unsigned status) {
        switch (status) {
        case 200:
                return "OK";
        case 201:
                return "Created";
        case 400:
                return "Bad Request";
        case 404:
                return "Not Found";
        case 405:
                return "Method Not Allowed";
        default:
                return "Internal Server Error";
        }
}

static void write_answer(struct nd_text *ret, unsigned status, const struct nd_text *body) {
        nd_text_addf(ret,
                     "HTTP/1.1 %u %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s",
                     status, reason(status), body->length, nd_text_get(body));
}

static void write_error(struct nd_text *ret, unsigned status, const char *words) {
        nd_autotext struct nd_text body = ND_TEXT(API_BODY_BYTES);
        struct nd_json_out out = {.text = &body};

        nd_json_open(&out, nullptr, '{');
        nd_json_string(&out, "message", words);
        nd_json_close(&out, '}');
        write_answer(ret, status, &body);
}

/* ---- resources ---- */

static void write_owner(struct nd_json_out *out, const struct rootless_port *port) {
        if (port->owner)
                nd_json_string(out, "owner", port->owner);
        if (port->object)
                nd_json_string(out, "object", port->object);
        if (port->filter)
                nd_json_string(out, "filter", port->filter);
        if (port->why)
                nd_json_string(out, "error", port->why);
}

static void write_counters(struct nd_json_out *out, const struct rootless_port *port, bool kept) {
        nd_json_bool(out, "clientAddressKept", kept);
        nd_json_open(out, "counters", '{');
        nd_json_number(out, "connections", port->connections);
        nd_json_number(out, "active", port->active);
        nd_json_number(out, "refused", port->refused);
        nd_json_number(out, "bytesIn", port->bytes_in);
        nd_json_number(out, "bytesOut", port->bytes_out);
        nd_json_close(out, '}');
}

static unsigned get_ports(const struct rootless_api_backend *backend, struct nd_text *body) {
        struct nd_json_out out = {.text = body};
        bool kept = false;
        const struct rootless_ports *ports = backend->list(backend->userdata, &kept);

        nd_json_open(&out, nullptr, '[');
        nd_vector_each (port, ports) {
                nd_json_open(&out, nullptr, '{');
                nd_json_number(&out, "id", port->id);
                rootless_port_write_json(&out, "spec", &port->spec);
                write_counters(&out, port, kept);
                write_owner(&out, port);
                nd_json_close(&out, '}');
        }
        nd_json_close(&out, ']');
        return 200;
}

static struct nd_error *post_port(const struct rootless_api_backend *backend, const char *bytes, size_t length,
                                  struct nd_text *body) {
        struct nd_json_out out = {.text = body};
        nd_autojson yyjson_doc *doc = nullptr;
        struct rootless_port_spec spec;
        const struct rootless_port *port;

        nd_try(nd_json_parse(bytes, length, API_BODY_BYTES, &doc));
        nd_try(rootless_port_read_json(yyjson_doc_get_root(doc), &spec));
        nd_try(backend->add(backend->userdata, &spec, &port));
        nd_json_open(&out, nullptr, '{');
        nd_json_number(&out, "id", port->id);
        rootless_port_write_json(&out, "spec", &port->spec);
        nd_json_close(&out, '}');
        return nullptr;
}

/* ---- ports of an owner ---- */

static struct nd_error *read_wanted(const char *bytes, size_t length, struct rootless_ports *wanted) {
        nd_autojson yyjson_doc *doc = nullptr;
        yyjson_arr_iter each;
        yyjson_val *item, *list;

        nd_try(nd_json_parse(bytes, length, API_BODY_BYTES, &doc));
        list = yyjson_obj_get(yyjson_doc_get_root(doc), "ports");
        if (!yyjson_is_arr(list) || yyjson_arr_size(list) > PORTS_OWNED_MAX)
                return nd_error_new(ND_INVALID, 0, "'ports' must be a list of at most %d ports", PORTS_OWNED_MAX);
        each = yyjson_arr_iter_with(list);
        while ((item = yyjson_arr_iter_next(&each))) {
                struct rootless_port port = {.fds = {-EBADF, -EBADF}};

                nd_try(rootless_port_read_json(yyjson_obj_get(item, "spec"), &port.spec));
                nd_vector_push(wanted, port);
                nd_try(rootless_port_read_object(item, &wanted->items[wanted->count - 1].object));
                nd_try(rootless_port_read_filter(item, &wanted->items[wanted->count - 1].filter));
                if (wanted->items[wanted->count - 1].filter && port.spec.stream)
                        return nd_error_new(ND_INVALID, 0, "a port with a filter must be a UDP port");
        }
        return nullptr;
}

static void write_owned(const struct rootless_api_backend *backend, const char *owner, struct nd_text *body) {
        struct nd_json_out out = {.text = body};
        bool kept = false;
        const struct rootless_ports *ports = backend->list(backend->userdata, &kept);

        nd_json_open(&out, nullptr, '{');
        nd_json_number(&out, "lowestPort", backend->lowest(backend->userdata));
        nd_json_open(&out, "ports", '[');
        nd_vector_each (port, ports) {
                if (!port->owner || !nd_streq(port->owner, owner))
                        continue;
                nd_json_open(&out, nullptr, '{');
                nd_json_number(&out, "id", port->id);
                rootless_port_write_json(&out, "spec", &port->spec);
                write_owner(&out, port);
                nd_json_close(&out, '}');
        }
        nd_json_close(&out, ']');
        nd_json_close(&out, '}');
}

/* The owner's name in /v1/owners/NAME/ports; nullptr: another path. */
static char *owner_of(const char *path) {
        static const char before[] = "/v1/owners/";
        const char *name = path + strlen(before), *end = nd_has_prefix(path, before) ? strchr(name, '/') : nullptr;

        return end && nd_streq(end, "/ports") ? nd_strndup(name, (size_t) (end - name)) : nullptr;
}

static struct nd_error *put_ports(const struct rootless_api_backend *backend, const char *owner, const char *bytes,
                                  size_t length, struct nd_text *body) {
        nd_cleanup(rootless_ports_done) struct rootless_ports wanted = {};

        if (!rootless_port_owner_valid(owner))
                return nd_error_new(ND_INVALID, 0, "invalid owner '%.32s': use lower case letters, digits and '-'", owner);
        nd_try(read_wanted(bytes, length, &wanted));
        nd_try(backend->replace(backend->userdata, owner, &wanted));
        write_owned(backend, owner, body);
        return nullptr;
}

static void get_info(const struct rootless_api_backend *backend, struct nd_text *body) {
        struct nd_json_out out = {.text = body};

        nd_json_open(&out, nullptr, '{');
        backend->info(backend->userdata, &out);
        nd_json_close(&out, '}');
}

static struct nd_error *delete_port(const struct rootless_api_backend *backend, const char *text) {
        uint64_t id;

        if (nd_text_parse_u64(text, UINT32_MAX, &id) < 0)
                return nd_error_new(ND_INVALID, 0, "invalid port ID '%.32s'", text);
        return backend->remove(backend->userdata, id);
}

/* Sets the status. RootlessKit answers every rejected request with 400. */
static struct nd_error *route(const struct rootless_api_backend *backend, const struct nd_http_head *head, const char *bytes,
                              size_t length, struct nd_text *body, unsigned *status) {
        nd_autofree char *owner = owner_of(head->path);
        bool get = nd_streq(head->method, "GET");

        *status = 200;
        if (nd_streq(head->path, "/v1/info") && get) {
                get_info(backend, body);
                return nullptr;
        }
        if (nd_streq(head->path, "/v1/ports") && get) {
                *status = get_ports(backend, body);
                return nullptr;
        }
        if (nd_streq(head->path, "/v1/ports") && nd_streq(head->method, "POST")) {
                *status = 201;
                return post_port(backend, bytes, length, body);
        }
        if (nd_has_prefix(head->path, "/v1/ports/") && nd_streq(head->method, "DELETE"))
                return delete_port(backend, head->path + strlen("/v1/ports/"));
        if (owner && nd_streq(head->method, "PUT"))
                return put_ports(backend, owner, bytes, length, body);
        *status = owner || nd_streq(head->path, "/v1/info") || nd_has_prefix(head->path, "/v1/ports") ? 405 : 404;
        return nullptr;
}

bool rootless_api_respond(const struct rootless_api_backend *backend, const char *bytes, size_t length, struct nd_text *ret) {
        nd_autohead struct nd_http_head head = {};
        nd_autotext struct nd_text body = ND_TEXT(API_RESPONSE_BYTES - 4096);
        nd_autoerror struct nd_error *error = nullptr;
        const char *content = "";
        size_t content_length = 0, used = 0;
        unsigned status = 400;

        error = nd_http_request_read(bytes, length, API_BODY_BYTES, &head, &content, &content_length, &used);
        if (!error && used == 0)
                return false;
        if (!error)
                error = route(backend, &head, content, content_length, &body, &status);
        if (error)
                write_error(ret, 400, nd_error_text(error));
        else if (status >= 400)
                write_error(ret, status, reason(status));
        else
                write_answer(ret, status, &body);
        return true;
}
