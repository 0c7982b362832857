/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox.c - runtime.v1.RuntimeService: pod sandboxes
 *
 * A call that changes something is pending until its operation ends. If the client disconnects
 * first (the kubelet's deadline, its restart), the operation is abandoned: a run undoes itself,
 * everything else finishes. Stopping or removing a sandbox that does not exist succeeds. */
#include <cri.pb-c.h>
#include <stdio.h>
#include <time.h>

#include "base/log.h"
#include "cri/bundle/resources.h"
#include "cri/core/parts.h"
#include "cri/core/request-decode.h"
#include "cri/image/image-gc.h"
#include "cri/oci-runtime/selftest.h"
#include "cri/pod/sandbox.h"
#include "cri/rpc/describe.h"
#include "cri/rpc/methods.h"
#include "cri/rpc/pending-call.h"
#include "cri/rpc/response-pod.h"
#include "cri/rpc/response.h"
#include "cri/stats/telemetry.h"

enum { SUBJECT = 400 }; /* a namespace and a name */

struct pending {
        struct cri_pending_call base;
        struct cri_sandbox_operation *operation;
        char subject[SUBJECT]; /* the pod, for the error of a run */
};

static void cancel(struct cri_pending_call *pending) {
        cri_sandbox_abandon(((struct pending *) pending)->operation);
}

static struct pending *pending_new(struct nd_grpc_call *call, struct cri_parts *parts) {
        return cri_pending_call_new(struct pending, call, parts, cancel);
}

static void log_sandbox(const char *what, const struct cri_sandbox *sandbox) {
        const struct cri_sandbox_request *request = &sandbox->request;
        nd_autofree char *message = nd_format("pod %s/%s is %s", request->namespace, request->name, what);

        nd_log(ND_LOG_INFO, message, nd_field("pod", request->name), nd_field("namespace", request->namespace),
               nd_field("uid", request->uid), nd_field("sandbox", sandbox->id));
}

/* ---- run, stop, remove ---- */

static void on_ran(struct nd_error *error, struct cri_sandbox *sandbox, void *userdata) {
        Runtime__V1__RunPodSandboxResponse answer = RUNTIME__V1__RUN_POD_SANDBOX_RESPONSE__INIT;
        struct nd_grpc_call *call;

        error = nd_error_wrap(error, "%s", ((struct pending *) userdata)->subject);
        call = cri_pending_call_end(userdata);
        if (error) {
                nd_grpc_call_finish(call, error);
                return;
        }
        log_sandbox("ready", sandbox);
        answer.pod_sandbox_id = sandbox->id;
        cri_response_with(call, &answer.base);
}

/* A rootless node has only some of the IDs that a kubelet may allocate. */
static struct nd_error *check_ids(const struct cri_parts *parts, const struct cri_sandbox_request *request) {
        nd_autofree char *own = nullptr;

        if (!request->user_namespace || nd_own_userns_can_map(&parts->users, &request->uids, &request->gids))
                return nullptr;
        own = nd_own_userns_describe(&parts->users.uids);
        return nd_error_new(
                ND_PRECONDITION, 0,
                "IDs %u to %u of the pod's user namespace are not part of this rootless node, which has %s, or not "
                "of one subordinate range: give the node's user more subordinate IDs",
                request->uids.outside, request->uids.outside + request->uids.count - 1, own);
}

static struct nd_error *check_run(struct cri_parts *parts, const struct cri_sandbox_request *request) {
        nd_autofree char *cgroup = nullptr;
        struct cri_runtime_handler handler;

        if (!cri_config_handler(&parts->config, request->runtime_handler, &handler))
                return nd_error_new(ND_INVALID, 0,
                                    "unknown runtime handler '%s'; runtimeHandlers in /etc/nodens/cri.yaml defines handlers",
                                    request->runtime_handler);
        /* Root of the node would own the limits of its own cgroup. */
        if (handler.writable_cgroups && !request->user_namespace)
                return nd_error_new(ND_PRECONDITION, 0,
                                    "runtime handler '%s' has writable cgroups, which are safe only in a user namespace: set "
                                    "hostUsers: false in the pod's spec, or use another RuntimeClass",
                                    request->runtime_handler);
        /* the kubelet's cgroup driver is ours */
        nd_try(cri_resources_cgroup(&parts->config, request->cgroup_parent, "id", &cgroup));
        if (request->user_namespace)
                nd_try(cri_selftest_userns(parts->selftest, request->runtime_handler, request->network == NAMESPACE_NODE));
        nd_try(check_ids(parts, request));
        return cri_request_check_sandbox(&parts->pods, request);
}

static void handle_run(struct nd_grpc_call *call, const char *bytes, size_t length, void *userdata) {
        nd_cleanup(cri_sandbox_request_done) struct cri_sandbox_request request = {};
        struct cri_parts *parts = userdata;
        struct nd_error *error = cri_request_decode_sandbox(bytes, length, &request);
        struct pending *pending;

        if (!error) {
                cri_response_set_pod(call, &request);
                error = nd_error_wrap(check_run(parts, &request), "pod %s/%s", request.namespace, request.name);
        }
        if (error) {
                cri_telemetry_pod(parts->telemetry, request.user_namespace, false);
                nd_grpc_call_finish(call, error);
                return;
        }
        pending = pending_new(call, parts);
        (void) snprintf(pending->subject, sizeof pending->subject, "pod %s/%s", request.namespace, request.name);
        cri_sandbox_run(parts, &request, bytes, length, on_ran, pending, &pending->operation);
        cri_pending_call_attach(&pending->base);
}

/* Finishes the call with the error, or with the response. */
static void respond(struct nd_grpc_call *call, struct nd_error *error, const ProtobufCMessage *answer) {
        if (error)
                nd_grpc_call_finish(call, error);
        else
                cri_response_with(call, answer);
}

/* Returns nullptr after finishing the call: with success for an unknown sandbox, or with an
 * error. */
static struct cri_sandbox *find_or_respond(struct nd_grpc_call *call, const struct cri_parts *parts, const char *id,
                                           const ProtobufCMessage *answer) {
        struct cri_sandbox *sandbox = nullptr;
        struct nd_error *error = cri_pod_table_find_sandbox(&parts->pods, id, &sandbox);

        if (!error)
                return sandbox;
        if (nd_error_code(error) == ND_NOT_FOUND) {
                nd_error_free(error);
                error = nullptr;
        }
        respond(call, error, answer);
        return nullptr;
}

/* Starts cri_sandbox_stop() or cri_sandbox_remove(); the callback finishes the call. */
static void start(struct nd_grpc_call *call, struct cri_parts *parts, struct cri_sandbox *sandbox,
                  typeof(cri_sandbox_stop) operation, cri_sandbox_callback callback) {
        struct pending *pending = pending_new(call, parts);

        cri_response_set_pod(call, &sandbox->request);
        operation(parts, sandbox, callback, pending, &pending->operation);
        cri_pending_call_attach(&pending->base);
}

static void on_stopped(struct nd_error *error, struct cri_sandbox *sandbox, void *userdata) {
        Runtime__V1__StopPodSandboxResponse answer = RUNTIME__V1__STOP_POD_SANDBOX_RESPONSE__INIT;
        struct nd_grpc_call *call = cri_pending_call_end(userdata);

        if (!error && sandbox)
                log_sandbox("stopped", sandbox);
        respond(call, error, &answer.base);
}

static void handle_stop(struct nd_grpc_call *call, const char *bytes, size_t length, void *userdata) {
        cri_response_autofree ProtobufCMessage *request =
                cri_response_decode(call, &runtime__v1__stop_pod_sandbox_request__descriptor, bytes, length);
        const Runtime__V1__StopPodSandboxRequest *r = (const Runtime__V1__StopPodSandboxRequest *) request;
        Runtime__V1__StopPodSandboxResponse answer = RUNTIME__V1__STOP_POD_SANDBOX_RESPONSE__INIT;
        struct cri_sandbox *sandbox = r ? find_or_respond(call, userdata, r->pod_sandbox_id, &answer.base) : nullptr;

        if (sandbox)
                start(call, userdata, sandbox, cri_sandbox_stop, on_stopped);
}

static void on_removed(struct nd_error *error, [[maybe_unused]] struct cri_sandbox *sandbox, void *userdata) {
        Runtime__V1__RemovePodSandboxResponse answer = RUNTIME__V1__REMOVE_POD_SANDBOX_RESPONSE__INIT;
        const struct cri_parts *parts = ((struct pending *) userdata)->base.parts;

        if (!parts->users.initial)
                cri_image_gc_wake(parts->image_gc); /* copies of layers for its IDs are free */
        respond(cri_pending_call_end(userdata), error, &answer.base);
}

static void handle_remove(struct nd_grpc_call *call, const char *bytes, size_t length, void *userdata) {
        cri_response_autofree ProtobufCMessage *request =
                cri_response_decode(call, &runtime__v1__remove_pod_sandbox_request__descriptor, bytes, length);
        const Runtime__V1__RemovePodSandboxRequest *r = (const Runtime__V1__RemovePodSandboxRequest *) request;
        Runtime__V1__RemovePodSandboxResponse answer = RUNTIME__V1__REMOVE_POD_SANDBOX_RESPONSE__INIT;
        struct cri_sandbox *sandbox = r ? find_or_respond(call, userdata, r->pod_sandbox_id, &answer.base) : nullptr;

        if (!sandbox)
                return;
        log_sandbox("removed", sandbox);
        start(call, userdata, sandbox, cri_sandbox_remove, on_removed);
}

/* ---- lists ---- */

struct list {
        nd_vector(Runtime__V1__PodSandbox *) items;
        struct nd_arena memory;
};

static void list_done(struct list *list) {
        nd_vector_done(&list->items);
        nd_arena_done(&list->memory);
}

static bool wanted(const struct cri_sandbox *sandbox, const Runtime__V1__PodSandboxFilter *filter) {
        if (!cri_sandbox_is_shown(sandbox))
                return false;
        if (!filter)
                return true;
        if (filter->state &&
            (filter->state->state == RUNTIME__V1__POD_SANDBOX_STATE__SANDBOX_READY) != (sandbox->state == SANDBOX_READY))
                return false;
        return cri_response_selects(&sandbox->request.labels, filter->label_selector, filter->n_label_selector);
}

/* Collects all sandboxes that match a filter. An unknown or ambiguous ID matches nothing. */
static void collect(const struct cri_parts *parts, const Runtime__V1__PodSandboxFilter *filter, struct list *list) {
        struct cri_sandbox *only = nullptr;
        const struct nd_map_slot *slot;

        if (filter && filter->id[0]) {
                nd_ignore(cri_pod_table_find_sandbox(&parts->pods, filter->id, &only));
                if (only && wanted(only, filter))
                        nd_vector_push(&list->items, cri_response_sandbox(&list->memory, only));
                return;
        }
        for (size_t at = 0; (slot = nd_map_next(&parts->pods.sandboxes, &at));)
                if (wanted(slot->value, filter))
                        nd_vector_push(&list->items, cri_response_sandbox(&list->memory, slot->value));
}

static void handle_list(struct nd_grpc_call *call, const char *bytes, size_t length, void *userdata) {
        cri_response_autofree ProtobufCMessage *request =
                cri_response_decode(call, &runtime__v1__list_pod_sandbox_request__descriptor, bytes, length);
        Runtime__V1__ListPodSandboxResponse answer = RUNTIME__V1__LIST_POD_SANDBOX_RESPONSE__INIT;
        nd_cleanup(list_done) struct list list = {};

        if (!request)
                return;
        collect(userdata, ((const Runtime__V1__ListPodSandboxRequest *) request)->filter, &list);
        answer.n_items = list.items.count;
        answer.items = list.items.items;
        cri_response_with(call, &answer.base);
}

static void handle_stream(struct nd_grpc_call *call, const char *bytes, size_t length, void *userdata) {
        enum { PER_MESSAGE = 256 };
        cri_response_autofree ProtobufCMessage *request =
                cri_response_decode(call, &runtime__v1__stream_pod_sandboxes_request__descriptor, bytes, length);
        nd_cleanup(list_done) struct list list = {};

        if (!request)
                return;
        collect(userdata, ((const Runtime__V1__StreamPodSandboxesRequest *) request)->filter, &list);
        for (size_t i = 0; i < list.items.count; i += PER_MESSAGE) {
                Runtime__V1__StreamPodSandboxesResponse answer = RUNTIME__V1__STREAM_POD_SANDBOXES_RESPONSE__INIT;
                size_t left = list.items.count - i;

                answer.n_pod_sandboxes = left < PER_MESSAGE ? left : PER_MESSAGE;
                answer.pod_sandboxes = list.items.items + i;
                cri_response_send(call, &answer.base);
        }
        nd_grpc_call_finish(call, nullptr);
}

/* ---- one sandbox ---- */

static void handle_status(struct nd_grpc_call *call, const char *bytes, size_t length, void *userdata) {
        cri_response_autofree ProtobufCMessage *request =
                cri_response_decode(call, &runtime__v1__pod_sandbox_status_request__descriptor, bytes, length);
        const Runtime__V1__PodSandboxStatusRequest *r = (const Runtime__V1__PodSandboxStatusRequest *) request;
        Runtime__V1__PodSandboxStatusResponse answer = RUNTIME__V1__POD_SANDBOX_STATUS_RESPONSE__INIT;
        Runtime__V1__PodSandboxStatusResponse__InfoEntry info = RUNTIME__V1__POD_SANDBOX_STATUS_RESPONSE__INFO_ENTRY__INIT;
        Runtime__V1__PodSandboxStatusResponse__InfoEntry *infos[] = {&info};
        struct cri_parts *parts = userdata;
        nd_autoarena struct nd_arena memory = {};
        nd_autotext struct nd_text text = ND_TEXT(DESCRIBE_CEILING);
        struct cri_sandbox *sandbox = nullptr;
        struct nd_error *error;

        if (!request)
                return;
        error = cri_pod_table_find_sandbox(&parts->pods, r->pod_sandbox_id, &sandbox);
        if (error) {
                nd_grpc_call_finish(call, error);
                return;
        }
        answer.status = cri_response_sandbox_status(&memory, sandbox);
        if (r->verbose) {
                cri_describe_sandbox(&parts->config, parts->pins, sandbox, &text);
                info.key = (char *) "info";
                info.value = (char *) nd_text_get(&text);
                answer.n_info = 1;
                answer.info = infos;
        }
        cri_response_with(call, &answer.base);
}

/* The kubelet has already resized the pod's cgroup; there is nothing else to do. */
static void handle_update(struct nd_grpc_call *call, const char *bytes, size_t length, void *userdata) {
        cri_response_autofree ProtobufCMessage *request =
                cri_response_decode(call, &runtime__v1__update_pod_sandbox_resources_request__descriptor, bytes, length);
        Runtime__V1__UpdatePodSandboxResourcesResponse answer = RUNTIME__V1__UPDATE_POD_SANDBOX_RESOURCES_RESPONSE__INIT;
        struct cri_parts *parts = userdata;
        struct cri_sandbox *sandbox = nullptr;
        struct nd_error *error;

        if (!request)
                return;
        error = cri_pod_table_find_sandbox(
                &parts->pods, ((const Runtime__V1__UpdatePodSandboxResourcesRequest *) request)->pod_sandbox_id, &sandbox);
        respond(call, error, &answer.base);
}

const struct nd_grpc_method cri_rpc_sandbox_methods[] = {
        {"/runtime.v1.RuntimeService/RunPodSandbox", handle_run},
        {"/runtime.v1.RuntimeService/StopPodSandbox", handle_stop},
        {"/runtime.v1.RuntimeService/RemovePodSandbox", handle_remove},
        {"/runtime.v1.RuntimeService/ListPodSandbox", handle_list},
        {"/runtime.v1.RuntimeService/StreamPodSandboxes", handle_stream},
        {"/runtime.v1.RuntimeService/PodSandboxStatus", handle_status},
        {"/runtime.v1.RuntimeService/UpdatePodSandboxResources", handle_update},
        {},
};
