/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/api-ask.h"

#include "net/api-objects.h"

struct call {
        bool done;
        struct cli_api_reply *reply;
};

static void on_answer(const struct nd_api_answer *answer, void *userdata) {
        struct call *call = userdata;
        struct cli_api_reply *reply = call->reply;

        call->done = true;
        *reply = (struct cli_api_reply) {.status = answer->status, .retry_after_s = answer->retry_after_s};
        if (answer->error)
                reply->error = nd_error_received(nd_error_code(answer->error), nd_error_errno(answer->error),
                                                 nd_error_text(answer->error));
        else
                reply->error = nd_json_parse(answer->body, answer->length, ND_API_PAGE_BYTES, &reply->doc);
}

struct nd_error *cli_api_ask(struct nd_api *api, const struct nd_api_request *request, struct cli_api_reply *ret) {
        struct nd_api_request answered = *request;
        struct call call = {.reply = ret};
        struct nd_api_call *sent;
        int r = 0;

        answered.done = on_answer;
        answered.userdata = &call;
        sent = nd_api_send(api, &answered);
        while (!call.done && r >= 0)
                r = sd_event_run(nd_api_loop(api), UINT64_MAX);
        if (call.done)
                return nullptr;
        nd_api_cancel(sent);
        return nd_error_new(ND_INTERNAL, -r, "run the event loop");
}
