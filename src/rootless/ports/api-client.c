/* SPDX-License-Identifier: Apache-2.0 */
/* api-client.c - `nodens-rootless ports`: shows, publishes and withdraws ports, by the node's own API */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "net/unix.h"
#include "rootless/command/commands.h"
#include "rootless/core/node.h"
#include "rootless/ports/api-client.h"
#include "rootless/ports/api.h"

enum {
        PATIENCE_S = 15,
        WAIT_MS = 20,
        WAITS = 250, /* until the controller of a node that has just been started is there */
};

/* ---- asking */

static struct nd_error *connect_api(const char *name, int *ret_fd) {
        nd_cleanup(nd_node_done) struct nd_node node = ND_NODE_NONE;
        nd_cleanup(nd_node_record_done) struct nd_node_record record = {};
        nd_autofree char *path = nullptr;
        nd_autoclose int pidfd = -EBADF, fd = -EBADF;
        struct timeval patience = {.tv_sec = PATIENCE_S};
        struct sockaddr_un address;

        nd_try(nd_node_open(name, false, &node));
        nd_try(nd_node_holder(&node, &record, &pidfd));
        path = nd_format("%s/api/api.sock", node.path);
        nd_try(nd_unix_address(path, &address));
        for (int i = 0; i < WAITS; i++) {
                nd_close_fd(&fd);
                fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
                if (fd >= 0 && connect(fd, (struct sockaddr *) &address, sizeof address) == 0 &&
                    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0) {
                        *ret_fd = nd_take_fd(fd);
                        return nullptr;
                }
                (void) usleep(WAIT_MS * 1000);
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
                        return nd_error_new(ND_UNAVAILABLE, errno, "ask the port controller of node '%s'", name);
        }
        while ((n = recv(fd, piece, sizeof piece, 0)) > 0)
                nd_text_append(answer, piece, (size_t) n);
        if (n < 0 || answer->length == 0 || answer->overflow)
                return nd_error_new(ND_UNAVAILABLE, n < 0 ? errno : 0, "the port controller of node '%s' gave no answer",
                                    name);
        return nullptr;
}

/* The answer's body as JSON; an answer that is an error becomes one. */
static struct nd_error *ask(const char *name, const char *method, const char *path, const char *body, yyjson_doc **ret) {
        nd_autotext request = ND_TEXT(ND_API_REQUEST), answer = ND_TEXT(ND_API_ANSWER);
        const char *content, *message;
        nd_autojson doc = nullptr;
        bool good;

        nd_text_addf(&request, "%s %s HTTP/1.1\r\nHost: nodens\r\nContent-Length: %zu\r\n\r\n%s", method, path, strlen(body),
                     body);
        nd_try(exchange(name, &request, &answer));
        content = strstr(answer.bytes, "\r\n\r\n");
        good = nd_has_prefix(answer.bytes, "HTTP/1.1 2");
        if (!content)
                return nd_error_new(ND_UNAVAILABLE, 0, "the port controller of node '%s' does not speak HTTP", name);
        content += strlen("\r\n\r\n");
        if (good && *content == '\0')
                return nullptr;
        nd_try(nd_json_parse(content, strlen(content), ND_API_ANSWER, &doc));
        message = yyjson_get_str(yyjson_obj_get(yyjson_doc_get_root(doc), "message"));
        if (!good)
                return nd_error_received(ND_INTERNAL, 0, message ? message : "an error without a text");
        *ret = nd_take_ptr(doc);
        return nullptr;
}

struct nd_error *nd_publish(const char *name, const char *text, uint64_t *ret_id) {
        nd_autotext body = ND_TEXT(4096);
        struct nd_json_out out = {.text = &body};
        nd_autojson doc = nullptr;
        struct nd_port_spec spec;

        nd_try(nd_port_parse(text, &spec));
        nd_port_write(&out, nullptr, &spec);
        nd_try(ask(name, "POST", "/v1/ports", body.bytes, &doc));
        *ret_id = yyjson_get_uint(yyjson_obj_get(yyjson_doc_get_root(doc), "id"));
        return nullptr;
}

struct nd_error *nd_publish_list(const char *name, const char *list) {
        nd_autofree char *copy = nd_strdup(list);
        char *rest = copy, *word;
        uint64_t id;

        while ((word = strsep(&rest, ",")))
                if (*word)
                        nd_try(nd_publish(name, word, &id));
        return nullptr;
}

/* ---- the command */

static struct nd_error *add(const char *name, int count, char **operands) {
        for (int i = 0; i < count; i++) {
                uint64_t id = 0;

                nd_try(nd_publish(name, operands[i], &id));
                printf("%llu\n", (unsigned long long) id);
        }
        return nullptr;
}

static struct nd_error *withdraw(const char *name, int count, char **operands) {
        for (int i = 0; i < count; i++) {
                nd_autofree char *path = nd_format("/v1/ports/%s", operands[i]);
                nd_autojson doc = nullptr;
                uint64_t id;

                if (nd_parse_u64(operands[i], UINT32_MAX, &id) < 0)
                        return nd_error_new(ND_INVALID, 0, "'%s' is no port's id; 'nodens-rootless ports' shows them",
                                            operands[i]);
                nd_try(ask(name, "DELETE", path, "", &doc));
        }
        return nullptr;
}

static void print_port(yyjson_val *port) {
        yyjson_val *counters = yyjson_obj_get(port, "counters");
        const char *why = yyjson_get_str(yyjson_obj_get(port, "error"));
        struct nd_port_spec spec;
        nd_autoerror struct nd_error *error = nd_port_read(yyjson_obj_get(port, "spec"), &spec);
        char text[ND_PORT_TEXT];

        printf("%4llu  %-32s %8llu %8llu %8llu %12llu %12llu  %s\n",
               (unsigned long long) yyjson_get_uint(yyjson_obj_get(port, "id")), error ? "?" : nd_port_text(&spec, text),
               (unsigned long long) yyjson_get_uint(yyjson_obj_get(counters, "connections")),
               (unsigned long long) yyjson_get_uint(yyjson_obj_get(counters, "active")),
               (unsigned long long) yyjson_get_uint(yyjson_obj_get(counters, "refused")),
               (unsigned long long) yyjson_get_uint(yyjson_obj_get(counters, "bytesIn")),
               (unsigned long long) yyjson_get_uint(yyjson_obj_get(counters, "bytesOut")),
               why                                                         ? why
               : yyjson_is_true(yyjson_obj_get(port, "clientAddressKept")) ? "client's address kept"
                                                                           : "client's address not kept");
}

static struct nd_error *show(const char *name, bool json) {
        nd_autojson doc = nullptr;
        yyjson_arr_iter each;
        yyjson_val *port;

        nd_try(ask(name, "GET", "/v1/ports", "", &doc));
        if (json) {
                nd_autofree char *text = yyjson_write(doc, YYJSON_WRITE_PRETTY_TWO_SPACES, nullptr);

                printf("%s\n", text);
                return nullptr;
        }
        if (yyjson_arr_size(yyjson_doc_get_root(doc)) == 0) {
                printf("no port is published\n");
                return nullptr;
        }
        printf("%4s  %-32s %8s %8s %8s %12s %12s\n", "ID", "PORT", "CONNS", "ACTIVE", "REFUSED", "BYTES IN", "BYTES OUT");
        each = yyjson_arr_iter_with(yyjson_doc_get_root(doc));
        while ((port = yyjson_arr_iter_next(&each)))
                print_port(port);
        return nullptr;
}

int rootless_ports(void *settings, int operand_count, char **operands) {
        const struct nd_settings *given = settings;
        const char *name = given->name ? given->name : "default";
        struct nd_error *error;

        if (operand_count == 0)
                error = show(name, given->json);
        else if (nd_streq(operands[0], "add") && operand_count > 1)
                error = add(name, operand_count - 1, operands + 1);
        else if (nd_streq(operands[0], "remove") && operand_count > 1)
                error = withdraw(name, operand_count - 1, operands + 1);
        else
                error = nd_error_new(ND_INVALID, 0, "ports takes nothing, 'add PORT...' or 'remove ID...'");
        return error ? rootless_fail(error) : EXIT_SUCCESS;
}
