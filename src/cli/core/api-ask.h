/* SPDX-License-Identifier: Apache-2.0 */
/* api-ask.h - one request to an API server, for commands that have nothing to do meanwhile */
#pragma once

#include "base/json.h"
#include "net/api-client.h"

struct cli_api_reply {
        long status;
        uint64_t retry_after_s;
        struct nd_error *error; /* of the response; the caller frees it */
        yyjson_doc *doc;        /* otherwise: its body; the caller frees it */
};

/* Sends the request and runs the loop of the client until its response has arrived. done and
 * userdata of the request do not count. */
[[nodiscard]] struct nd_error *cli_api_ask(struct nd_api *api, const struct nd_api_request *request,
                                           struct cli_api_reply *ret);
