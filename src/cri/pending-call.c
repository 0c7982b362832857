/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/pending-call.h"

#include <stdlib.h>

static void on_cancel(void *userdata) {
        struct pending_call *pending = userdata;

        pending->cancel(pending);
        nd_grpc_call_finish(pending->call, nullptr);
        free(pending);
}

void pending_call_attach(struct pending_call *pending) {
        nd_grpc_call_on_cancel(pending->call, on_cancel, pending);
}

void pending_call_detach(struct pending_call *pending) {
        nd_grpc_call_on_cancel(pending->call, nullptr, nullptr);
}

struct nd_grpc_call *pending_call_end(struct pending_call *pending) {
        struct nd_grpc_call *call = pending->call;

        pending_call_detach(pending);
        free(pending);
        return call;
}
