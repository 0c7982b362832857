/* SPDX-License-Identifier: Apache-2.0 */
/* pending-call.h - an RPC that is answered when an operation ends
 *
 * A handler that cannot answer at once allocates a struct whose first member is a pending call, starts
 * the operation with it as userdata, and attaches it. One of two things happens next:
 *   - the operation ends: its callback takes the call with cri_pending_call_end() and answers it;
 *   - the client disconnects first (its deadline, its restart): `cancel` gives up the operation, which
 *     must not call back any more, and the call is finished. */
#pragma once

#include "net/grpc-server.h"

struct cri_pending_call {
        struct nd_grpc_call *call;
        struct cri_parts *parts;
        void (*cancel)(struct cri_pending_call *pending);
};

/* A struct of the type whose first member is `base`. */
#define pending_call_new(type, call_, runtime_, cancel_)                                                                      \
        ({                                                                                                                    \
                type *nd_new_ = nd_new(type);                                                                                 \
                                                                                                                              \
                static_assert(offsetof(type, base) == 0);                                                                     \
                nd_new_->base = (struct cri_pending_call) {.call = call_, .parts = runtime_, .cancel = cancel_};              \
                nd_new_;                                                                                                      \
        })

/* From here on a client that disconnects cancels the operation. */
void cri_pending_call_attach(struct cri_pending_call *pending);
/* The operation has ended: a client that disconnects changes nothing any more. */
void cri_pending_call_detach(struct cri_pending_call *pending);
/* Detaches, frees the pending call and returns the call, which the caller answers. */
[[nodiscard]] struct nd_grpc_call *cri_pending_call_end(struct cri_pending_call *pending);
