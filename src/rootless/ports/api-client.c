/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/ports/api-client.h"

#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "net/unix.h"
#include "rootless/core/node.h"
#include "rootless/ports/api.h"

enum { CONNECT_TRIES = 250 }; /* waits for the controller of a node that was just started */

static constexpr uint64_t receive_timeout_us = 15 * ND_SECOND_US;
static constexpr uint64_t connect_retry_us = 20 * ND_MS_US;

static struct nd_error *connect_api(const char *name, int *ret_fd) {
        nd_cleanup(rootless_node_done) struct rootless_node node = NODE_NONE;
        nd_cleanup(rootless_node_record_done) struct rootless_node_record record = {};
        nd_autofree char *path = nullptr;
        nd_autoclose int pidfd = -EBADF, fd = -EBADF;
        struct timeval timeout = {.tv_sec = receive_timeout_us / ND_SECOND_US};
        struct sockaddr_un address;

        nd_try(rootless_node_open(name, false, &node));
        nd_try(rootless_node_open_init(&node, &record, &pidfd));
        path = nd_format("%s/api/api.sock", node.path);
        nd_try(nd_unix_address(path, &address));
        for (int i = 0; i < CONNECT_TRIES; i++) {
                nd_close_fd(&fd);
                fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
                if (fd >= 0 && connect(fd, (struct sockaddr *) &address, sizeof address) == 0 &&
                    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout) == 0) {
                        *ret_fd = nd_take_fd(fd);
                        return nullptr;
                }
                (void) usleep(connect_retry_us);
        }
        return nd_error_new(ND_UNAVAILABLE, errno,
                            "connect to the port controller of node '%s' at '%s' (systemctl --user status nodens-node-api@%s)",
                            name, path, name);
}

static struct nd_error *exchange(const char *name, const struct nd_text *request, struct nd_text *answer) {
        nd_autoclose int fd = -EBADF;
        char piece[16 * 1024];
        ssize_t n;

        nd_try(connect_api(name, &fd));
        for (size_t sent = 0; sent < request->length; sent += (size_t) n) {
                n = send(fd, request->bytes + sent, request->length - sent, MSG_NOSIGNAL);
                if (n < 0)
                        return nd_error_new(ND_UNAVAILABLE, errno, "send a request to the port controller of node '%s'", name);
        }
        while ((n = recv(fd, piece, sizeof piece, 0)) > 0)
                nd_text_append(answer, piece, (size_t) n);
        if (n < 0 || answer->length == 0 || answer->overflow)
                return nd_error_new(ND_UNAVAILABLE, n < 0 ? errno : 0, "no reply from the port controller of node '%s'", name);
        return nullptr;
}

struct nd_error *rootless_api_request(const char *name, const char *method, const char *path, const char *body,
                                      yyjson_doc **ret) {
        nd_autotext struct nd_text request = ND_TEXT(API_REQUEST_BYTES), answer = ND_TEXT(API_RESPONSE_BYTES);

        rootless_api_format(&request, method, path, body);
        nd_try(exchange(name, &request, &answer));
        return rootless_api_parse(name, nd_text_get(&answer), ret);
}

void rootless_api_format(struct nd_text *request, const char *method, const char *path, const char *body) {
        nd_text_addf(request, "%s %s HTTP/1.1\r\nHost: nodens\r\nContent-Length: %zu\r\n\r\n", method, path, strlen(body));
        nd_text_add(request, body);
}

struct nd_error *rootless_api_parse(const char *name, const char *answer, yyjson_doc **ret) {
        const char *content = strstr(answer, "\r\n\r\n"), *message;
        nd_autojson yyjson_doc *doc = nullptr;
        bool good = nd_has_prefix(answer, "HTTP/1.1 2");

        if (!content)
                return nd_error_new(ND_UNAVAILABLE, 0, "invalid HTTP reply from the port controller of node '%s'", name);
        content += strlen("\r\n\r\n");
        if (good && *content == '\0')
                return nullptr;
        nd_try(nd_json_parse(content, strlen(content), API_RESPONSE_BYTES, &doc));
        message = yyjson_get_str(yyjson_obj_get(yyjson_doc_get_root(doc), "message"));
        if (!good)
                return nd_error_received(ND_INTERNAL, 0, message ? message : "error without a message");
        *ret = nd_take_ptr(doc);
        return nullptr;
}

struct nd_error *rootless_api_publish(const char *name, const char *text, uint64_t *ret_id) {
        nd_autotext struct nd_text body = ND_TEXT(4096);
        struct nd_json_out out = {.text = &body};
        nd_autojson yyjson_doc *doc = nullptr;
        struct rootless_port_spec spec;

        nd_try(rootless_port_parse(text, &spec));
        rootless_port_write_json(&out, nullptr, &spec);
        nd_try(rootless_api_request(name, "POST", "/v1/ports", body.bytes, &doc));
        *ret_id = yyjson_get_uint(yyjson_obj_get(yyjson_doc_get_root(doc), "id"));
        return nullptr;
}

struct nd_error *rootless_api_publish_owned(const char *name, const char *owner, const char *object, const char *text) {
        nd_autofree char *path = nd_format("/v1/owners/%s/ports", owner);
        nd_autotext struct nd_text body = ND_TEXT(4096);
        struct nd_json_out out = {.text = &body};
        nd_autojson yyjson_doc *doc = nullptr;
        struct rootless_port_spec spec;
        const char *error;

        nd_try(rootless_port_parse(text, &spec));
        nd_json_open(&out, nullptr, '{');
        nd_json_open(&out, "ports", '[');
        nd_json_open(&out, nullptr, '{');
        rootless_port_write_json(&out, "spec", &spec);
        nd_json_string(&out, "object", object);
        nd_json_close(&out, '}');
        nd_json_close(&out, ']');
        nd_json_close(&out, '}');
        nd_try(rootless_api_request(name, "PUT", path, nd_text_get(&body), &doc));
        error = yyjson_get_str(
                yyjson_obj_get(yyjson_arr_get_first(yyjson_obj_get(yyjson_doc_get_root(doc), "ports")), "error"));
        return error ? nd_error_received(ND_UNAVAILABLE, 0, error) : nullptr;
}

/* Calls a function for each port of a comma-separated list. */
static struct nd_error *each_port(const char *list, struct nd_error *(*take)(const char *text, const char *name),
                                  const char *name) {
        nd_autofree char *copy = nd_strdup(list);
        char *rest = copy, *word;

        while ((word = strsep(&rest, ",")))
                if (*word)
                        nd_try(take(word, name));
        return nullptr;
}

static struct nd_error *publish(const char *text, const char *name) {
        uint64_t id;

        return rootless_api_publish(name, text, &id);
}

struct nd_error *rootless_api_publish_list(const char *name, const char *list) {
        return each_port(list, publish, name);
}

static struct nd_error *check(const char *text, [[maybe_unused]] const char *name) {
        struct rootless_port_spec spec;

        return rootless_port_parse(text, &spec);
}

struct nd_error *rootless_api_check_list(const char *list) {
        return each_port(list, check, nullptr);
}
