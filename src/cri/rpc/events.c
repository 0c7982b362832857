/* SPDX-License-Identifier: Apache-2.0 */
/* events.c - runtime.v1.RuntimeService: stream of pod and container events
 *
 * Each event carries the status of the pod and its containers at the time it is sent. Events are
 * queued at the peer first; when QUEUED_MOST bytes are queued there, they wait in core/events.c,
 * one per object, until the peer's queue is drained. */
#include <cri.pb-c.h>

#include "cri/core/events.h"
#include "cri/core/parts.h"
#include "cri/rpc/methods.h"
#include "cri/rpc/pending-call.h"
#include "cri/rpc/response-pod.h"
#include "cri/rpc/response.h"

enum { QUEUED_MOST = 256 << 10 };

struct pending {
        struct cri_pending_call base;
        struct cri_event_follower *follower;
};

/* The status of a sandbox that was removed before its event could be sent. */
static Runtime__V1__PodSandboxStatus *response_gone(struct nd_arena *memory, const struct cri_event *event) {
        Runtime__V1__PodSandboxStatus *m =
                cri_response_new(memory, Runtime__V1__PodSandboxStatus, runtime__v1__pod_sandbox_status__descriptor);

        m->id = (char *) event->sandbox;
        m->state = RUNTIME__V1__POD_SANDBOX_STATE__SANDBOX_NOTREADY;
        m->metadata = cri_response_new(memory, Runtime__V1__PodSandboxMetadata, runtime__v1__pod_sandbox_metadata__descriptor);
        m->metadata->uid = event->uid;
        m->metadata->name = event->name;
        m->metadata->namespace_ = event->namespace;
        return m;
}

static void add_containers(struct nd_arena *memory, const struct cri_parts *parts, const struct cri_sandbox *sandbox,
                           Runtime__V1__ContainerEventResponse *answer) {
        answer->containers_statuses = nd_arena_alloc(memory, sandbox->containers.count, sizeof *answer->containers_statuses);
        nd_vector_each (container, &sandbox->containers) {
                if (cri_container_is_shown(*container))
                        answer->containers_statuses[answer->n_containers_statuses++] =
                                cri_response_container_status(memory, parts->images, *container);
        }
}

static void on_event(const struct cri_event *event, void *userdata) {
        Runtime__V1__ContainerEventResponse answer = RUNTIME__V1__CONTAINER_EVENT_RESPONSE__INIT;
        struct pending *pending = userdata;
        const struct cri_sandbox *sandbox = nd_map_get(&pending->base.parts->pods.sandboxes, event->sandbox);
        nd_autoarena struct nd_arena memory = {};

        answer.container_id = (char *) event->id;
        answer.container_event_type = (Runtime__V1__ContainerEventType) event->kind;
        answer.created_at = (int64_t) event->at;
        if (sandbox && cri_sandbox_is_shown(sandbox)) {
                answer.pod_sandbox_status = cri_response_sandbox_status(&memory, sandbox);
                add_containers(&memory, pending->base.parts, sandbox, &answer);
        } else {
                answer.pod_sandbox_status = response_gone(&memory, event);
        }
        cri_response_send(pending->base.call, &answer.base);
}

static bool is_ready(void *userdata) {
        const struct pending *pending = userdata;

        return nd_grpc_call_queued(pending->base.call) < QUEUED_MOST;
}

static void on_dismissed(void *userdata) {
        struct pending *pending = userdata;

        nd_grpc_call_finish(pending->base.call,
                            nd_error_new(ND_EXHAUSTED, 0,
                                         "the client did not read events while more than %d objects changed: "
                                         "list pods and containers, then subscribe again",
                                         EVENTS_WAITING));
        free(pending);
}

static void on_drained(void *userdata) {
        const struct pending *pending = userdata;

        cri_events_resume(pending->follower);
}

static void cancel(struct cri_pending_call *pending) {
        cri_events_unfollow(((struct pending *) pending)->follower);
}

static const struct cri_event_follower_calls calls = {.ready = is_ready, .tell = on_event, .dismiss = on_dismissed};

static void handle_events(struct nd_grpc_call *call, const char *bytes, size_t length, void *userdata) {
        cri_response_autofree ProtobufCMessage *request =
                cri_response_decode(call, &runtime__v1__get_events_request__descriptor, bytes, length);
        struct cri_parts *parts = userdata;
        struct pending *pending;
        struct nd_error *error;

        if (!request)
                return;
        pending = cri_pending_call_new(struct pending, call, parts, cancel);
        error = cri_events_follow(parts->events, &calls, pending, &pending->follower);
        if (error) {
                free(pending);
                nd_grpc_call_finish(call, error);
                return;
        }
        nd_grpc_call_on_drained(call, on_drained, pending);
        cri_pending_call_attach(&pending->base);
        /* send the headers: the peer then knows that no later event is missed */
        nd_grpc_call_begin(call);
}

const struct nd_grpc_method cri_rpc_events_methods[] = {
        {"/runtime.v1.RuntimeService/GetContainerEvents", handle_events},
        {},
};
