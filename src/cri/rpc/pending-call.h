/* SPDX-License-Identifier: Apache-2.0 */
/* pending-call.h - an RPC that completes with an operation
 *
 * A handler that cannot respond at once allocates a struct whose first member is a pending call,
 * starts the operation with it as userdata, and attaches it. Then either
 *   - the operation completes: its callback takes the call with cri_pending_call_end() and sends
 *     the response; or
 *   - the client disconnects first (its deadline, its restart): `cancel` abandons the operation,
 *     which must not call back any more, and the call is finished. */
#pragma once

#include "net/grpc-server.h"

struct cri_pending_call {
        struct nd_grpc_call *call;
        struct cri_parts *parts;
        void (*cancel)(struct cri_pending_call *pending);
};

/* Allocates a struct of the type, whose first member is `base`. */
#define cri_pending_call_new(type, call_, parts_, cancel_)                                                                    \
        ({                                                                                                                    \
                type *nd_new_ = nd_new(type);                                                                                 \
                                                                                                                              \
                static_assert(offsetof(type, base) == 0);                                                                     \
                nd_new_->base = (struct cri_pending_call) {.call = call_, .parts = parts_, .cancel = cancel_};                \
                nd_new_;                                                                                                      \
        })

/* From here on a disconnect of the client cancels the operation. */
void cri_pending_call_attach(struct cri_pending_call *pending);
/* The operation has completed: a disconnect of the client is ignored from now on. */
void cri_pending_call_detach(struct cri_pending_call *pending);
/* Detaches, frees the pending call and returns the call; the caller sends the response. */
[[nodiscard]] struct nd_grpc_call *cri_pending_call_end(struct cri_pending_call *pending);
