/* SPDX-License-Identifier: Apache-2.0 */
/* ports.c - `nodens-rootless ports`: lists, publishes and removes ports through the node's API */
#include <stdio.h>

#include "rootless/command/commands.h"
#include "rootless/ports/api-client.h"
#include "rootless/ports/ports.h"

static struct nd_error *add(const char *name, int count, char **operands) {
        for (int i = 0; i < count; i++) {
                uint64_t id = 0;

                nd_try(rootless_api_publish(name, operands[i], &id));
                printf("%llu\n", (unsigned long long) id);
        }
        return nullptr;
}

static struct nd_error *withdraw(const char *name, int count, char **operands) {
        for (int i = 0; i < count; i++) {
                nd_autofree char *path = nd_format("/v1/ports/%s", operands[i]);
                nd_autojson yyjson_doc *doc = nullptr;
                uint64_t id;

                if (nd_text_parse_u64(operands[i], UINT32_MAX, &id) < 0)
                        return nd_error_new(ND_INVALID, 0, "invalid port ID '%s'; 'nodens-rootless ports' lists the IDs",
                                            operands[i]);
                nd_try(rootless_api_request(name, "DELETE", path, "", &doc));
        }
        return nullptr;
}

static void print_port(yyjson_val *port) {
        yyjson_val *counters = yyjson_obj_get(port, "counters");
        const char *why = yyjson_get_str(yyjson_obj_get(port, "error")),
                   *object = yyjson_get_str(yyjson_obj_get(port, "object"));
        struct rootless_port_spec spec;
        nd_autoerror struct nd_error *error = rootless_port_read_json(yyjson_obj_get(port, "spec"), &spec);
        char text[PORT_TEXT];

        printf("%4llu  %-32s %8llu %8llu %8llu %12llu %12llu  %s%s%s\n",
               (unsigned long long) yyjson_get_uint(yyjson_obj_get(port, "id")),
               error ? "?" : rootless_port_format(&spec, text),
               (unsigned long long) yyjson_get_uint(yyjson_obj_get(counters, "connections")),
               (unsigned long long) yyjson_get_uint(yyjson_obj_get(counters, "active")),
               (unsigned long long) yyjson_get_uint(yyjson_obj_get(counters, "refused")),
               (unsigned long long) yyjson_get_uint(yyjson_obj_get(counters, "bytesIn")),
               (unsigned long long) yyjson_get_uint(yyjson_obj_get(counters, "bytesOut")), object ? object : "",
               object ? ": " : "",
               why                                                         ? why
               : yyjson_is_true(yyjson_obj_get(port, "clientAddressKept")) ? "client address kept"
                                                                           : "client address not kept");
}

static struct nd_error *show(const char *name, bool json) {
        nd_autojson yyjson_doc *doc = nullptr;
        yyjson_arr_iter each;
        yyjson_val *port;

        nd_try(rootless_api_request(name, "GET", "/v1/ports", "", &doc));
        if (json) {
                nd_autofree char *text = yyjson_write(doc, YYJSON_WRITE_PRETTY_TWO_SPACES, nullptr);

                printf("%s\n", text);
                return nullptr;
        }
        if (yyjson_arr_size(yyjson_doc_get_root(doc)) == 0) {
                printf("no published ports\n");
                return nullptr;
        }
        printf("%4s  %-32s %8s %8s %8s %12s %12s\n", "ID", "PORT", "CONNS", "ACTIVE", "REFUSED", "BYTES IN", "BYTES OUT");
        each = yyjson_arr_iter_with(yyjson_doc_get_root(doc));
        while ((port = yyjson_arr_iter_next(&each)))
                print_port(port);
        return nullptr;
}

int rootless_command_ports(void *settings, int operand_count, char **operands) {
        const struct rootless_settings *given = settings;
        const char *name = given->name ? given->name : NODE_DEFAULT_NAME;
        struct nd_error *error;

        if (operand_count == 0)
                error = show(name, given->json);
        else if (nd_streq(operands[0], "add") && operand_count > 1)
                error = add(name, operand_count - 1, operands + 1);
        else if (nd_streq(operands[0], "remove") && operand_count > 1)
                error = withdraw(name, operand_count - 1, operands + 1);
        else
                error = nd_error_new(ND_INVALID, 0, "invalid operands: 'ports' takes none, 'add PORT...' or 'remove ID...'");
        return error ? rootless_command_fail(error) : EXIT_SUCCESS;
}
