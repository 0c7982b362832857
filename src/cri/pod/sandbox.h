/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox.h - what is done with pod sandboxes: run, stop, remove, check
 *
 * An operation waits for its turn on the sandbox's queue, then goes step by step on the loop. Its callback runs once, from the loop and never
 * before the call has returned, with the error (the callback's to free) or nullptr. Whoever is not interested any more, because the kubelet's call
 * is gone, abandons it: the callback will not run; a run is undone as if it had never been asked for, everything else goes on to its end. The record
 * on disk says what was done before the callback says so. */
#pragma once

#include "cri/core/pod-table.h"

struct cri_parts;
struct cri_sandbox_operation;

/* sandbox is what the operation was about; nullptr when a run failed or the sandbox was removed. */
typedef void (*cri_sandbox_callback)(struct nd_error *error, struct cri_sandbox *sandbox, void *userdata);

/* Takes what is in the request and leaves it empty. bytes is the kubelet's message, kept in the record as it came. */
void cri_sandbox_run(struct cri_parts *parts, struct cri_sandbox_request *request, const char *bytes, size_t length,
                     cri_sandbox_callback done, void *userdata, struct cri_sandbox_operation **ret);

/* Kills its containers, takes it off the network and gives up what was made for it; it is NOTREADY then. Stopping it again finishes what is left. */
void cri_sandbox_stop(struct cri_parts *parts, struct cri_sandbox *sandbox, cri_sandbox_callback done, void *userdata,
                      struct cri_sandbox_operation **ret);

/* Stops it if need be, removes its containers, and drops it from disk and book; sandbox is nullptr in the callback. */
void cri_sandbox_remove(struct cri_parts *parts, struct cri_sandbox *sandbox, cri_sandbox_callback done, void *userdata,
                        struct cri_sandbox_operation **ret);

/* Asks the network's plugins whether what they made for it is still there, and notes the answer in network_check; nothing else becomes of it. Whoever wants
 * to stop or remove the sandbox does not wait for that. No error comes of it, and it cannot be abandoned. */
void cri_sandbox_check(struct cri_parts *parts, struct cri_sandbox *sandbox, cri_sandbox_callback done, void *userdata);

/* ret of the calls above may be nullptr for those who never abandon. */
void cri_sandbox_abandon(struct cri_sandbox_operation *operation);
