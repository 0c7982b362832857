/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/rpc/pending-call.h"

#include <stdlib.h>

static void on_cancel(void *userdata) {
        struct cri_pending_call *pending = userdata;

        pending->cancel(pending);
        nd_grpc_call_finish(pending->call, nullptr);
        free(pending);
}

void cri_pending_call_attach(struct cri_pending_call *pending) {
        nd_grpc_call_on_cancel(pending->call, on_cancel, pending);
}

void cri_pending_call_detach(struct cri_pending_call *pending) {
        nd_grpc_call_on_cancel(pending->call, nullptr, nullptr);
}

struct nd_grpc_call *cri_pending_call_end(struct cri_pending_call *pending) {
        struct nd_grpc_call *call = pending->call;

        cri_pending_call_detach(pending);
        free(pending);
        return call;
}
