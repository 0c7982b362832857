/* SPDX-License-Identifier: Apache-2.0 */
/* container.h - what is done with containers: create, start, stop, update, remove; and what they do themselves: end
 *
 * An operation waits for its turn on the container's queue, then goes step by step on the loop. Its callback runs once, from the loop and never before
 * the call has returned, with the error (the callback's to free) or nullptr. Whoever is not interested any more, because the kubelet's call is
 * gone, abandons it: the callback will not run, a creation is undone as if it had never been asked for, everything else goes on to its end. The
 * record on disk says what was done before the callback says so. */
#pragma once

#include "cri/core/pod-table.h"

struct cri_parts;
struct cri_container_operation;

/* container is what the operation was about; nullptr when a creation failed or the container was removed. */
typedef void (*cri_container_callback)(struct nd_error *error, struct cri_container *container, void *userdata);

/* Takes what is in the request and leaves it empty. bytes is the kubelet's message, kept in the record as it came. */
void cri_container_create(struct cri_parts *parts, struct cri_sandbox *sandbox, struct cri_container_request *request,
                          const char *bytes, size_t length, cri_container_callback done, void *userdata,
                          struct cri_container_operation **ret);

/* The pod's own init: catatonit, the holder of a pid namespace that the pod's containers share. Created and started in one operation; it becomes
 * sandbox->init. The kubelet is never told of it. */
void cri_container_create_internal(struct cri_parts *parts, struct cri_sandbox *sandbox, cri_container_callback done,
                                   void *userdata, struct cri_container_operation **ret);

void cri_container_start(struct cri_parts *parts, struct cri_container *container, cri_container_callback done, void *userdata,
                         struct cri_container_operation **ret);

/* Its stop signal, then SIGKILL to all of it after timeout_s; 0 or less kills at once. A container that does not run is stopped already. A second stop with
 * a shorter timeout shortens the first one's. */
void cri_container_stop(struct cri_parts *parts, struct cri_container *container, int64_t timeout_s,
                        cri_container_callback done, void *userdata, struct cri_container_operation **ret);

/* Kills it if it runs, undoes what was made for it and drops it from the pod table; container is nullptr in the callback. */
void cri_container_remove(struct cri_parts *parts, struct cri_container *container, cri_container_callback done,
                          void *userdata, struct cri_container_operation **ret);

/* Takes the resources. Those that are not set stay as they are. */
void cri_container_update(struct cri_parts *parts, struct cri_container *container, struct cri_resource_request *resources,
                          cri_container_callback done, void *userdata, struct cri_container_operation **ret);

/* ret of the calls above may be nullptr for those who never abandon. */
void cri_container_abandon(struct cri_container_operation *operation);

/* After a restart, for each container whose record was loaded and which is CREATED or RUNNING: connects to its monitor, or learns from the exit
 * record what became of it. Never fails: what cannot be known is UNKNOWN with a message. */
void cri_container_resume(struct cri_parts *parts, struct cri_container *container);
