/* SPDX-License-Identifier: Apache-2.0 */
/* container.c - runtime.v1.RuntimeService: containers. See sandbox.c for how calls and operations
 * relate. */
#include <cri.pb-c.h>
#include <stdio.h>

#include "base/log.h"
#include "cri/core/parts.h"
#include "cri/core/request-decode.h"
#include "cri/oci-runtime/monitor.h"
#include "cri/pod/container.h"
#include "cri/pod/verify.h"
#include "cri/rpc/describe.h"
#include "cri/rpc/methods.h"
#include "cri/rpc/pending-call.h"
#include "cri/rpc/response-pod.h"
#include "cri/rpc/response.h"

enum { SUBJECT = 480 }; /* names of container, namespace and pod */

struct pending {
        struct cri_pending_call base;
        struct cri_container_operation *operation;
        const ProtobufCMessageDescriptor *answer; /* type of the empty response on success */
        /* the container, for the error; "" = the error names it */
        char subject[SUBJECT];
};

static void set_subject(struct pending *pending, const char *name, const struct cri_sandbox_request *pod) {
        (void) snprintf(pending->subject, sizeof pending->subject, "container '%s' of pod %s/%s", name, pod->namespace,
                        pod->name);
}

static void cancel(struct cri_pending_call *pending) {
        cri_container_abandon(((struct pending *) pending)->operation);
}

static struct pending *pending_new(struct nd_grpc_call *call, struct cri_parts *parts,
                                   const ProtobufCMessageDescriptor *answer) {
        struct pending *pending = cri_pending_call_new(struct pending, call, parts, cancel);

        pending->answer = answer;
        return pending;
}

static void response_empty(struct nd_grpc_call *call, const ProtobufCMessageDescriptor *type) {
        nd_autoarena struct nd_arena memory = {};

        cri_response_with(call, cri_response_message(&memory, type));
}

static void log_container(const char *what, const struct cri_container *container) {
        const struct cri_sandbox_request *pod = &container->sandbox->request;
        nd_autofree char *message =
                nd_format("container %s of pod %s/%s is %s", container->request.name, pod->namespace, pod->name, what);

        nd_log(ND_LOG_INFO, message, nd_field("pod", pod->name), nd_field("namespace", pod->namespace),
               nd_field("name", container->request.name), nd_field("container", container->id));
}

/* ---- create ---- */

static void on_created(struct nd_error *error, struct cri_container *container, void *userdata) {
        Runtime__V1__CreateContainerResponse answer = RUNTIME__V1__CREATE_CONTAINER_RESPONSE__INIT;
        struct nd_grpc_call *call;

        error = nd_error_wrap(error, "%s", ((struct pending *) userdata)->subject);
        call = cri_pending_call_end(userdata);
        if (error) {
                nd_grpc_call_finish(call, error);
                return;
        }
        log_container("created", container);
        answer.container_id = container->id;
        cri_response_with(call, &answer.base);
}

static struct nd_error *check_create(const struct cri_sandbox *sandbox, const struct cri_container_request *request) {
        if (sandbox->state != SANDBOX_READY)
                return nd_error_new(ND_PRECONDITION, 0, "sandbox %s has been stopped", sandbox->id);
        nd_try(cri_request_check_container(&sandbox->request, request));
        nd_vector_each (other, &sandbox->containers) {
                if (nd_streq((*other)->request.name, request->name) && (*other)->request.attempt == request->attempt &&
                    (*other)->state != CONTAINER_REMOVED)
                        return nd_error_new(ND_EXISTS, 0, "attempt %u already exists as container %s", request->attempt,
                                            (*other)->id);
        }
        return nullptr;
}

static void handle_create(struct nd_grpc_call *call, const char *bytes, size_t length, void *userdata) {
        nd_cleanup(cri_container_request_done) struct cri_container_request request = {};
        nd_autofree char *sandbox_id = nullptr;
        struct cri_parts *parts = userdata;
        struct cri_sandbox *sandbox = nullptr;
        struct nd_error *error = cri_request_decode_container(bytes, length, &sandbox_id, &request);
        struct pending *pending;

        if (!error)
                error = cri_pod_table_find_sandbox(&parts->pods, sandbox_id, &sandbox);
        if (!error) {
                cri_response_set_pod(call, &sandbox->request);
                error = nd_error_wrap(check_create(sandbox, &request), "container '%s' of pod %s/%s", request.name,
                                      sandbox->request.namespace, sandbox->request.name);
        }
        if (error) {
                nd_grpc_call_finish(call, error);
                return;
        }
        pending = pending_new(call, parts, nullptr);
        set_subject(pending, request.name, &sandbox->request);
        cri_container_create(parts, sandbox, &request, bytes, length, on_created, pending, &pending->operation);
        cri_pending_call_attach(&pending->base);
}

/* ---- start, stop, remove, update ---- */

/* For calls with an empty response. */
static void on_done(struct nd_error *error, [[maybe_unused]] struct cri_container *container, void *userdata) {
        struct pending *pending = userdata;
        const ProtobufCMessageDescriptor *answer = pending->answer;
        struct nd_grpc_call *call;

        if (*pending->subject)
                error = nd_error_wrap(error, "%s", pending->subject);
        call = cri_pending_call_end(&pending->base);
        if (error)
                nd_grpc_call_finish(call, error);
        else
                response_empty(call, answer);
}

static void on_started(struct nd_error *error, struct cri_container *container, void *userdata) {
        struct cri_parts *parts = ((struct cri_pending_call *) userdata)->parts;

        if (!error) {
                log_container("started", container);
                cri_verify_later(parts->verify, container);
        }
        on_done(error, container, userdata);
}

static void handle_start(struct nd_grpc_call *call, const char *bytes, size_t length, void *userdata) {
        cri_response_autofree ProtobufCMessage *request =
                cri_response_decode(call, &runtime__v1__start_container_request__descriptor, bytes, length);
        struct cri_container *container = nullptr;
        struct cri_parts *parts = userdata;
        struct nd_error *error;
        struct pending *pending;

        if (!request)
                return;
        error = cri_pod_table_find_container(&parts->pods, ((Runtime__V1__StartContainerRequest *) request)->container_id,
                                             &container);
        if (error) {
                nd_grpc_call_finish(call, error);
                return;
        }
        pending = pending_new(call, parts, &runtime__v1__start_container_response__descriptor);
        set_subject(pending, container->request.name, &container->sandbox->request);
        cri_response_set_pod(call, &container->sandbox->request);
        cri_container_start(parts, container, on_started, pending, &pending->operation);
        cri_pending_call_attach(&pending->base);
}

/* Stop and remove succeed for a container that does not exist. */
static bool answered_absent(struct nd_grpc_call *call, struct nd_error *error, const ProtobufCMessageDescriptor *answer) {
        if (!error)
                return false;
        if (nd_error_code(error) == ND_NOT_FOUND) {
                nd_error_free(error);
                response_empty(call, answer);
        } else {
                nd_grpc_call_finish(call, error);
        }
        return true;
}

static void handle_stop(struct nd_grpc_call *call, const char *bytes, size_t length, void *userdata) {
        static const ProtobufCMessageDescriptor *const answer = &runtime__v1__stop_container_response__descriptor;
        cri_response_autofree ProtobufCMessage *request =
                cri_response_decode(call, &runtime__v1__stop_container_request__descriptor, bytes, length);
        const Runtime__V1__StopContainerRequest *r = (const Runtime__V1__StopContainerRequest *) request;
        struct cri_container *container = nullptr;
        struct cri_parts *parts = userdata;
        struct pending *pending;

        if (!request || answered_absent(call, cri_pod_table_find_container(&parts->pods, r->container_id, &container), answer))
                return;
        cri_response_set_pod(call, &container->sandbox->request);
        pending = pending_new(call, parts, answer);
        cri_container_stop(parts, container, r->timeout, on_done, pending, &pending->operation);
        cri_pending_call_attach(&pending->base);
}

static void handle_remove(struct nd_grpc_call *call, const char *bytes, size_t length, void *userdata) {
        static const ProtobufCMessageDescriptor *const answer = &runtime__v1__remove_container_response__descriptor;
        cri_response_autofree ProtobufCMessage *request =
                cri_response_decode(call, &runtime__v1__remove_container_request__descriptor, bytes, length);
        const Runtime__V1__RemoveContainerRequest *r = (const Runtime__V1__RemoveContainerRequest *) request;
        struct cri_container *container = nullptr;
        struct cri_parts *parts = userdata;
        struct pending *pending;

        if (!request || answered_absent(call, cri_pod_table_find_container(&parts->pods, r->container_id, &container), answer))
                return;
        log_container("removed", container);
        cri_response_set_pod(call, &container->sandbox->request);
        pending = pending_new(call, parts, answer);
        cri_container_remove(parts, container, on_done, pending, &pending->operation);
        cri_pending_call_attach(&pending->base);
}

static void handle_update(struct nd_grpc_call *call, const char *bytes, size_t length, void *userdata) {
        nd_cleanup(cri_resource_request_done) struct cri_resource_request resources = {};
        struct cri_container *container = nullptr;
        nd_autofree char *id = nullptr;
        struct cri_parts *parts = userdata;
        struct nd_error *error = cri_request_decode_update(bytes, length, &id, &resources);
        struct pending *pending;

        if (!error)
                error = cri_pod_table_find_container(&parts->pods, id, &container);
        if (error) {
                nd_grpc_call_finish(call, error);
                return;
        }
        cri_response_set_pod(call, &container->sandbox->request);
        pending = pending_new(call, parts, &runtime__v1__update_container_resources_response__descriptor);
        cri_container_update(parts, container, &resources, on_done, pending, &pending->operation);
        cri_pending_call_attach(&pending->base);
}

/* ---- log ---- */

/* Completes when the monitor replies or dies; the caller may disconnect before either. */
struct reopening {
        struct nd_grpc_call *call; /* nullptr after the caller has disconnected */
};

static void on_reopening_cancelled(void *userdata) {
        struct reopening *reopening = userdata;

        nd_grpc_call_finish(nd_take_ptr(reopening->call), nullptr);
}

static void on_reopened(struct nd_error *error, void *userdata) {
        nd_autofree struct reopening *reopening = userdata;

        if (!reopening->call) {
                nd_error_free(error);
                return;
        }
        nd_grpc_call_on_cancel(reopening->call, nullptr, nullptr);
        if (error)
                nd_grpc_call_finish(reopening->call, error);
        else
                response_empty(reopening->call, &runtime__v1__reopen_container_log_response__descriptor);
}

static struct nd_error *find_logging(struct cri_parts *parts, const char *id, struct cri_container **ret) {
        nd_try(cri_pod_table_find_container(&parts->pods, id, ret));
        if ((*ret)->state != CONTAINER_RUNNING)
                return nd_error_new(ND_PRECONDITION, 0, "container %s is not running: its log is closed", (*ret)->id);
        if (!(*ret)->monitor)
                return nd_error_new(ND_UNAVAILABLE, 0, "no connection to the monitor of container %s", (*ret)->id);
        return nullptr;
}

static void handle_reopen(struct nd_grpc_call *call, const char *bytes, size_t length, void *userdata) {
        cri_response_autofree ProtobufCMessage *request =
                cri_response_decode(call, &runtime__v1__reopen_container_log_request__descriptor, bytes, length);
        struct cri_container *container = nullptr;
        struct reopening *reopening;
        struct nd_error *error;

        if (!request)
                return;
        error = find_logging(userdata, ((Runtime__V1__ReopenContainerLogRequest *) request)->container_id, &container);
        if (error) {
                nd_grpc_call_finish(call, error);
                return;
        }
        reopening = nd_new(struct reopening);
        reopening->call = call;
        cri_monitor_reopen_log(container->monitor, on_reopened, reopening);
        nd_grpc_call_on_cancel(call, on_reopening_cancelled, reopening);
}

/* ---- lists ---- */

struct list {
        nd_vector(Runtime__V1__Container *) items;
        struct nd_arena memory;
};

static void list_done(struct list *list) {
        nd_vector_done(&list->items);
        nd_arena_done(&list->memory);
}

static bool wanted(const struct cri_container *container, const Runtime__V1__ContainerFilter *filter) {
        if (!cri_container_is_shown(container))
                return false;
        if (!filter)
                return true;
        if (filter->state && (int) filter->state->state != (int) cri_container_reported_state(container))
                return false;
        return cri_response_selects(&container->request.labels, filter->label_selector, filter->n_label_selector);
}

static void collect_pod(const struct cri_sandbox *sandbox, const Runtime__V1__ContainerFilter *filter, struct list *list) {
        nd_vector_each (container, &sandbox->containers) {
                if (wanted(*container, filter))
                        nd_vector_push(&list->items, cri_response_container(&list->memory, *container));
        }
}

/* Collects all containers that match a filter; an unknown ID matches nothing. */
static void collect(const struct cri_parts *parts, const Runtime__V1__ContainerFilter *filter, struct list *list) {
        struct cri_container *only = nullptr;
        struct cri_sandbox *pod = nullptr;
        const struct nd_map_slot *slot;

        if (filter && filter->pod_sandbox_id[0]) {
                nd_ignore(cri_pod_table_find_sandbox(&parts->pods, filter->pod_sandbox_id, &pod));
                if (!pod)
                        return;
        }
        if (filter && filter->id[0]) {
                nd_ignore(cri_pod_table_find_container(&parts->pods, filter->id, &only));
                if (only && (!pod || only->sandbox == pod) && wanted(only, filter))
                        nd_vector_push(&list->items, cri_response_container(&list->memory, only));
                return;
        }
        if (pod) {
                collect_pod(pod, filter, list);
                return;
        }
        for (size_t at = 0; (slot = nd_map_next(&parts->pods.sandboxes, &at));)
                collect_pod(slot->value, filter, list);
}

static void handle_list(struct nd_grpc_call *call, const char *bytes, size_t length, void *userdata) {
        cri_response_autofree ProtobufCMessage *request =
                cri_response_decode(call, &runtime__v1__list_containers_request__descriptor, bytes, length);
        Runtime__V1__ListContainersResponse answer = RUNTIME__V1__LIST_CONTAINERS_RESPONSE__INIT;
        nd_cleanup(list_done) struct list list = {};

        if (!request)
                return;
        collect(userdata, ((const Runtime__V1__ListContainersRequest *) request)->filter, &list);
        answer.n_containers = list.items.count;
        answer.containers = list.items.items;
        cri_response_with(call, &answer.base);
}

static void handle_stream(struct nd_grpc_call *call, const char *bytes, size_t length, void *userdata) {
        enum { PER_MESSAGE = 256 };
        cri_response_autofree ProtobufCMessage *request =
                cri_response_decode(call, &runtime__v1__stream_containers_request__descriptor, bytes, length);
        nd_cleanup(list_done) struct list list = {};

        if (!request)
                return;
        collect(userdata, ((const Runtime__V1__StreamContainersRequest *) request)->filter, &list);
        for (size_t i = 0; i < list.items.count; i += PER_MESSAGE) {
                Runtime__V1__StreamContainersResponse answer = RUNTIME__V1__STREAM_CONTAINERS_RESPONSE__INIT;
                size_t left = list.items.count - i;

                answer.n_containers = left < PER_MESSAGE ? left : PER_MESSAGE;
                answer.containers = list.items.items + i;
                cri_response_send(call, &answer.base);
        }
        nd_grpc_call_finish(call, nullptr);
}

/* ---- one container ---- */

static void handle_status(struct nd_grpc_call *call, const char *bytes, size_t length, void *userdata) {
        cri_response_autofree ProtobufCMessage *request =
                cri_response_decode(call, &runtime__v1__container_status_request__descriptor, bytes, length);
        const Runtime__V1__ContainerStatusRequest *r = (const Runtime__V1__ContainerStatusRequest *) request;
        Runtime__V1__ContainerStatusResponse answer = RUNTIME__V1__CONTAINER_STATUS_RESPONSE__INIT;
        Runtime__V1__ContainerStatusResponse__InfoEntry info = RUNTIME__V1__CONTAINER_STATUS_RESPONSE__INFO_ENTRY__INIT;
        Runtime__V1__ContainerStatusResponse__InfoEntry *infos[] = {&info};
        struct cri_container *container = nullptr;
        struct cri_parts *parts = userdata;
        nd_autoarena struct nd_arena memory = {};
        nd_autotext struct nd_text text = ND_TEXT(DESCRIBE_CEILING);
        struct nd_error *error;

        if (!request)
                return;
        error = cri_pod_table_find_container(&parts->pods, r->container_id, &container);
        if (error) {
                nd_grpc_call_finish(call, error);
                return;
        }
        answer.status = cri_response_container_status(&memory, parts->images, container);
        if (r->verbose) {
                cri_describe_container(&parts->config, container, &text);
                info.key = (char *) "info";
                info.value = (char *) nd_text_get(&text);
                answer.n_info = 1;
                answer.info = infos;
        }
        cri_response_with(call, &answer.base);
}

/* The kubelet calls this for a request to its checkpoint endpoint; nodens-cri(8) explains why it is
 * not supported. */
static void handle_checkpoint(struct nd_grpc_call *call, [[maybe_unused]] const char *bytes, [[maybe_unused]] size_t length,
                              [[maybe_unused]] void *userdata) {
        nd_grpc_call_finish(call, nd_error_new(ND_UNIMPLEMENTED, 0, "checkpoints of containers are not supported"));
}

const struct nd_grpc_method cri_rpc_container_methods[] = {
        {"/runtime.v1.RuntimeService/CheckpointContainer", handle_checkpoint},
        {"/runtime.v1.RuntimeService/CreateContainer", handle_create},
        {"/runtime.v1.RuntimeService/StartContainer", handle_start},
        {"/runtime.v1.RuntimeService/StopContainer", handle_stop},
        {"/runtime.v1.RuntimeService/RemoveContainer", handle_remove},
        {"/runtime.v1.RuntimeService/ListContainers", handle_list},
        {"/runtime.v1.RuntimeService/StreamContainers", handle_stream},
        {"/runtime.v1.RuntimeService/ContainerStatus", handle_status},
        {"/runtime.v1.RuntimeService/UpdateContainerResources", handle_update},
        {"/runtime.v1.RuntimeService/ReopenContainerLog", handle_reopen},
        {},
};
