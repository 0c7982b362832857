/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/plane/kubeconfig.h"

#include <string.h>

#include "base/base64.h"
#include "base/json.h"

enum { KUBECONFIG_BYTES = 1 << 20 };

static void add_data(struct nd_json_out *out, const char *key, const char *value) {
        char *encoded = value ? nd_base64(value, strlen(value)) : nullptr;

        if (!encoded)
                return;
        nd_json_string(out, key, encoded);
        explicit_bzero(encoded, strlen(encoded));
        free(encoded);
}

static void open_entry(struct nd_json_out *out, const char *name, const char *member) {
        nd_json_open(out, nullptr, '{');
        nd_json_string(out, "name", name);
        nd_json_open(out, member, '{');
}

static void close_entry(struct nd_json_out *out) {
        nd_json_close(out, '}');
        nd_json_close(out, '}');
}

static void add_user(struct nd_json_out *out, const struct rootless_plane_context *context) {
        open_entry(out, context->name, "user");
        add_data(out, "client-certificate-data", context->certificate);
        add_data(out, "client-key-data", context->key);
        if (context->certificate_file) {
                nd_json_string(out, "client-certificate", context->certificate_file);
                nd_json_string(out, "client-key", context->certificate_file);
        }
        if (context->token)
                nd_json_string(out, "token", context->token);
        close_entry(out);
}

static void add_cluster(struct nd_json_out *out, const struct rootless_plane_context *context) {
        open_entry(out, context->name, "cluster");
        nd_json_string(out, "server", context->server);
        add_data(out, "certificate-authority-data", context->ca);
        close_entry(out);
}

static void add_context(struct nd_json_out *out, const struct rootless_plane_context *context) {
        open_entry(out, context->name, "context");
        nd_json_string(out, "cluster", context->name);
        nd_json_string(out, "user", context->name);
        close_entry(out);
}

char *rootless_plane_kubeconfig(const struct rootless_plane_context *contexts, size_t count) {
        static const struct {
                const char *list;
                void (*add)(struct nd_json_out *out, const struct rootless_plane_context *context);
        } lists[] = {{"contexts", add_context}, {"clusters", add_cluster}, {"users", add_user}};
        nd_autotext struct nd_text text = ND_TEXT(KUBECONFIG_BYTES);
        struct nd_json_out out = {.text = &text, .indent = 1};

        nd_json_open(&out, nullptr, '{');
        nd_json_string(&out, "apiVersion", "v1");
        nd_json_string(&out, "kind", "Config");
        nd_json_string(&out, "current-context", contexts[0].name);
        for (size_t i = 0; i < nd_count_of(lists); i++) {
                nd_json_open(&out, lists[i].list, '[');
                for (size_t j = 0; j < count; j++)
                        lists[i].add(&out, &contexts[j]);
                nd_json_close(&out, ']');
        }
        nd_json_close(&out, '}');
        nd_text_add(&text, "\n");
        return nd_text_steal(&text);
}
