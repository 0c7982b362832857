/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/plane/client.h"

#include "base/clock.h"
#include "base/text.h"

static constexpr uint64_t request_timeout_us = 10 * ND_SECOND_US;

struct waiting {
        struct nd_error *error;
        char *body;
};

void rootless_plane_client_done(struct rootless_plane_client *client) {
        nd_api_free(client->api);
        sd_event_unref(client->loop);
        *client = (struct rootless_plane_client) {};
}

struct nd_error *rootless_plane_client_open(const struct nd_kubeconfig *config, struct rootless_plane_client *ret) {
        nd_cleanup(rootless_plane_client_done) struct rootless_plane_client client = {};
        int r = sd_event_new(&client.loop);

        if (r < 0)
                return nd_error_new(ND_INTERNAL, -r, "create an event loop");
        nd_try(nd_api_new(client.loop, config, &client.api));
        *ret = nd_take(client, (struct rootless_plane_client) {});
        return nullptr;
}

static void on_done(const struct nd_api_answer *answer, void *userdata) {
        struct waiting *waiting = userdata;

        if (answer->error)
                waiting->error = nd_error_received(nd_error_code(answer->error), nd_error_errno(answer->error),
                                                   nd_error_text(answer->error));
        else
                waiting->body = nd_strndup(answer->body, answer->length);
}

struct nd_error *rootless_plane_send(struct rootless_plane_client *client, const struct rootless_plane_call *call,
                                     char **ret_body) {
        struct waiting waiting = {};

        (void) nd_api_send(client->api, &(struct nd_api_request) {.method = call->method,
                                                                  .path = call->path,
                                                                  .body = call->body,
                                                                  .content_type = call->content_type,
                                                                  .timeout_us = request_timeout_us,
                                                                  .ceiling = call->ceiling,
                                                                  .done = on_done,
                                                                  .userdata = &waiting});
        while (!waiting.error && !waiting.body) {
                int r = sd_event_run(client->loop, UINT64_MAX);

                if (r < 0)
                        return nd_error_new(ND_INTERNAL, -r, "wait for the API server");
        }
        nd_try(waiting.error);
        if (ret_body)
                *ret_body = waiting.body;
        else
                free(waiting.body);
        return nullptr;
}
