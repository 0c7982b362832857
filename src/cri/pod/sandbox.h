/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox.h - operations on pod sandboxes: run, stop, remove, check
 *
 * An operation waits for its turn in the sandbox's queue, then runs step by step on the loop. Its
 * callback runs once, from the loop and never before the call has returned, with the error (the
 * callback frees it) or nullptr. If the kubelet cancels its call, the caller abandons the
 * operation: the callback is not called; a run is undone, everything else runs to completion. The
 * record on disk is written before the callback runs. */
#pragma once

#include "cri/core/pod-table.h"

struct cri_parts;
struct cri_sandbox_operation;

/* sandbox is the object of the operation; nullptr if a run failed or the sandbox was removed. */
typedef void (*cri_sandbox_callback)(struct nd_error *error, struct cri_sandbox *sandbox, void *userdata);

/* Takes the contents of the request and leaves it empty. bytes is the kubelet's message, stored
 * verbatim in the record. */
void cri_sandbox_run(struct cri_parts *parts, struct cri_sandbox_request *request, const char *bytes, size_t length,
                     cri_sandbox_callback done, void *userdata, struct cri_sandbox_operation **ret);

/* Kills its containers, detaches it from the network and removes namespaces and files; then it is
 * NOTREADY. A second stop completes what a failed one has left. */
void cri_sandbox_stop(struct cri_parts *parts, struct cri_sandbox *sandbox, cri_sandbox_callback done, void *userdata,
                      struct cri_sandbox_operation **ret);

/* Stops it if necessary, removes its containers, and drops it from disk and from the pod table;
 * sandbox is nullptr in the callback. */
void cri_sandbox_remove(struct cri_parts *parts, struct cri_sandbox *sandbox, cri_sandbox_callback done, void *userdata,
                        struct cri_sandbox_operation **ret);

/* Runs CNI CHECK and stores the result in network_check; has no other effect. A stop or removal
 * cancels it. Never returns an error and cannot be abandoned. */
void cri_sandbox_check(struct cri_parts *parts, struct cri_sandbox *sandbox, cri_sandbox_callback done, void *userdata);

/* For the operations above; callers that never abandon may pass nullptr as ret. */
void cri_sandbox_abandon(struct cri_sandbox_operation *operation);
