/* SPDX-License-Identifier: Apache-2.0 */
/* container.h - operations on containers: create, start, stop, update, remove
 *
 * An operation waits for its turn in the container's queue, then runs step by step on the loop. Its
 * callback runs once, from the loop and never before the call has returned, with the error (the
 * callback frees it) or nullptr. If the kubelet cancels its call, the caller abandons the
 * operation: the callback is not called; a creation is undone, everything else runs to completion.
 * The record on disk is written before the callback runs. */
#pragma once

#include "cri/core/pod-table.h"

struct cri_parts;
struct cri_container_operation;

/* container is the object of the operation; nullptr if a creation failed or the container was
 * removed. */
typedef void (*cri_container_callback)(struct nd_error *error, struct cri_container *container, void *userdata);

/* Takes the contents of the request and leaves it empty. bytes is the kubelet's message, stored
 * verbatim in the record. */
void cri_container_create(struct cri_parts *parts, struct cri_sandbox *sandbox, struct cri_container_request *request,
                          const char *bytes, size_t length, cri_container_callback done, void *userdata,
                          struct cri_container_operation **ret);

/* The pod's init: catatonit, which holds a pid namespace that the pod's containers share. Created
 * and started in one operation; it becomes sandbox->init. It is not visible to the kubelet. */
void cri_container_create_internal(struct cri_parts *parts, struct cri_sandbox *sandbox, cri_container_callback done,
                                   void *userdata, struct cri_container_operation **ret);

void cri_container_start(struct cri_parts *parts, struct cri_container *container, cri_container_callback done, void *userdata,
                         struct cri_container_operation **ret);

/* Sends the stop signal, and SIGKILL to all processes after timeout_s; 0 or less kills at once.
 * Succeeds if the container is not running. A second stop with a shorter timeout shortens the first
 * one's. */
void cri_container_stop(struct cri_parts *parts, struct cri_container *container, int64_t timeout_s,
                        cri_container_callback done, void *userdata, struct cri_container_operation **ret);

/* Kills it if it is running, undoes everything that was created for it and drops it from the pod
 * table; container is nullptr in the callback. */
void cri_container_remove(struct cri_parts *parts, struct cri_container *container, cri_container_callback done,
                          void *userdata, struct cri_container_operation **ret);

/* Takes the resources. Unset ones keep their values. */
void cri_container_update(struct cri_parts *parts, struct cri_container *container, struct cri_resource_request *resources,
                          cri_container_callback done, void *userdata, struct cri_container_operation **ret);

/* For the operations above; callers that never abandon may pass nullptr as ret. */
void cri_container_abandon(struct cri_container_operation *operation);

/* After a restart, for each container whose record was loaded and which is CREATED or RUNNING:
 * reconnects to its monitor, or reads its exit status from the monitor's record. Never fails: if
 * the status cannot be determined, the container is killed and EXITED with a message. */
void cri_container_resume(struct cri_parts *parts, struct cri_container *container);
