/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox.c - see sandbox.h
 *
 * Theory of operation
 *   A sandbox consists of pinned namespaces, a tmpfs with a few files, and a network attachment;
 *   there is no pause process. An operation is a list of steps that operation_advance() executes;
 *   each step ends by calling it again, from the loop.
 *        run      choose the network, record what is about to be made, create namespaces and files
 *                 (a worker, while another one syncs the record to disk), network, late sysctls,
 *                 init, record that it is ready
 *        stop     containers, init, network, namespaces and files, record
 *        remove   stop, removal of the containers, removal of the record
 *        check    CNI CHECK; killed as soon as a stop or a removal is queued
 *   A run that fails, or whose caller has gone, is undone: it continues with the steps of a removal
 *   for everything that is recorded as made. It changes direction between two steps, never within
 *   one, so that nothing is undone while it is still being made. If something cannot be undone now
 *   (a CNI plugin fails its DEL), a NOTREADY sandbox is left, which the kubelet stops and removes
 *   like any other: no allocation of a plugin is leaked.
 *   The bits in sandbox->made are recorded before a thing is begun and cleared after it is undone.
 *   All three that every pod needs are recorded at once.
 * Owns       an operation owns itself from its start to its end; it is at the head of the sandbox's
 *            queue meanwhile.
 * Invariant  a CNI ADD is on disk before it starts, so every ADD gets its DEL, even across a
 *            restart. */
#include "cri/pod/sandbox.h"

#include "base/assert.h"

#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "cri/bundle/bridge.h"
#include "cri/bundle/pod-files.h"
#include "cri/core/events.h"
#include "cri/core/parts.h"
#include "cri/core/record.h"
#include "cri/namespace/namespaces.h"
#include "cri/network/network.h"
#include "cri/pod/container.h"
#include "cri/stats/telemetry.h"
#include "cri/stream/server.h"
#include "sys/worker.h"

static constexpr uint64_t worker_deadline_us = 30 * ND_SECOND_US;

enum step {
        /* run */
        STEP_RECORD,
        STEP_MAKE,
        STEP_NETWORK,
        STEP_LATE_SYSCTLS,
        STEP_INIT,
        STEP_READY,
        /* stop, and after it: remove */
        STEP_STOP_CONTAINERS,
        STEP_STOP_INIT,
        STEP_LEAVE_NETWORK,
        STEP_UNMAKE,
        STEP_STOPPED,
        STEP_REMOVE_CONTAINERS,
        STEP_FORGET,
        STEP_END,
        /* check */
        STEP_CHECK,
};

enum kind {
        KIND_RUN,
        KIND_STOP,
        KIND_REMOVE,
        KIND_CHECK,
};

struct cri_sandbox_operation {
        struct cri_parts *parts;
        struct cri_sandbox *sandbox;
        enum kind kind;
        enum step step; /* the next step */
        bool undoing;   /* a run that is being undone */
        char *bytes;    /* of the request, until recorded */
        size_t length;
        size_t pending;             /* workers or containers that the step waits for */
        struct nd_error *complaint; /* the first error of these */
        struct nd_error *error;     /* for the caller */
        sd_event_source *starter;
        struct cri_network_call *network; /* the running call */
        cri_sandbox_callback done;        /* nullptr if abandoned */
        void *userdata;
};

static void operation_advance(struct cri_sandbox_operation *operation);

/* ---- end of an operation ---- */

/* Starts the next operation. The last queued operation frees a removed sandbox; until then waiters
 * see SANDBOX_REMOVED. */
static void leave(struct cri_parts *parts, struct cri_sandbox *sandbox) {
        if (sandbox->state == SANDBOX_REMOVED && sandbox->op_queue.waiting.count == 0)
                cri_pod_table_drop_sandbox(&parts->pods, sandbox);
        else
                cri_op_queue_leave(&sandbox->op_queue);
}

static void operation_end(struct cri_sandbox_operation *operation) {
        struct cri_parts *parts = operation->parts;
        struct cri_sandbox *sandbox = operation->sandbox;
        struct nd_error *error = nd_take_ptr(operation->error);
        bool gone = sandbox->state == SANDBOX_REMOVED || (operation->kind == KIND_RUN && error);

        if (operation->done)
                operation->done(error, gone ? nullptr : sandbox, operation->userdata);
        else
                nd_error_free(error);
        sd_event_source_disable_unref(operation->starter);
        free(operation->bytes);
        free(operation);
        leave(parts, sandbox);
}

static void log_warning(const struct cri_sandbox_operation *operation, const char *what, const struct nd_error *error) {
        nd_log(ND_LOG_WARNING, what, nd_field("sandbox", operation->sandbox->id),
               nd_field("pod", operation->sandbox->request.name), nd_field("namespace", operation->sandbox->request.namespace),
               nd_field("error", nd_error_text(error)));
}

/* If a run cannot be undone, the kubelet must stop and remove the sandbox: list it from now on. */
static void leave_behind(struct cri_sandbox_operation *operation) {
        nd_autoerror struct nd_error *error = nullptr;

        operation->sandbox->state = SANDBOX_NOTREADY;
        cri_events_of_sandbox(operation->parts->events, operation->sandbox, EVENT_STOPPED);
        error = cri_record_save_sandbox(operation->parts->records, operation->sandbox, RECORD_NOSYNC);
        if (error)
                log_warning(operation, "cannot save the record of a pod", error);
}

/* A step failed. A run is undone; an error during the undo is only logged, because the caller needs
 * the first one. */
static void fail(struct cri_sandbox_operation *operation, struct nd_error *error) {
        if (operation->kind == KIND_RUN && !operation->undoing) {
                cri_telemetry_pod(operation->parts->telemetry, operation->sandbox->request.user_namespace, false);
                operation->error = error;
                operation->undoing = true;
                operation->step = STEP_STOP_CONTAINERS;
                return;
        }
        if (operation->undoing)
                log_warning(operation, "cannot undo a pod that failed to start", error);
        if (operation->sandbox->state == SANDBOX_NEW)
                leave_behind(operation);
        if (operation->error)
                nd_error_free(error);
        else
                operation->error = error;
        operation->step = STEP_END;
}

/* For steps that end from the loop: handles the error or goes on to the next step. */
static void step_ended(struct cri_sandbox_operation *operation, struct nd_error *error) {
        if (error)
                fail(operation, error);
        operation_advance(operation);
}

/* One of the workers or containers that the step waits for has completed. */
static void one_ended(struct cri_sandbox_operation *operation, struct nd_error *error) {
        if (operation->complaint)
                nd_error_free(error);
        else
                operation->complaint = error;
        nd_assert(operation->pending > 0);
        if (--operation->pending == 0)
                step_ended(operation, nd_take_ptr(operation->complaint));
}

static void on_worker(struct nd_error *error, [[maybe_unused]] int fd, void *userdata) {
        one_ended(userdata, error);
}

static void on_container(struct nd_error *error, [[maybe_unused]] struct cri_container *container, void *userdata) {
        one_ended(userdata, error);
}

/* Starts a worker and counts it as pending. A worker that fails to start is not counted; the step
 * fails with its error. */
static void start_worker(struct cri_sandbox_operation *operation, const char *what, nd_worker_function function) {
        struct nd_worker *worker;
        struct nd_error *error = nd_worker_start(operation->parts->loop, what, function, operation, worker_deadline_us,
                                                 on_worker, operation, &worker);

        if (!error)
                operation->pending++;
        else if (operation->complaint)
                nd_error_free(error);
        else
                operation->complaint = error;
}

/* Ends a step whose workers could not be started; true if there is nothing to wait for. */
static bool none_pending(struct cri_sandbox_operation *operation) {
        if (operation->pending > 0)
                return false;
        if (operation->complaint)
                fail(operation, nd_take_ptr(operation->complaint));
        return true;
}

/* ---- steps of a run ---- */

/* All validation happens before anything is made. */
static struct nd_error *record_first(struct cri_sandbox_operation *operation) {
        struct cri_sandbox *sandbox = operation->sandbox;

        nd_try(cri_namespaces_check(&sandbox->request));
        nd_try(cri_pod_files_check(&sandbox->request));
        if (cri_namespaces_owned(&sandbox->request, POD_NET)) {
                nd_try(cri_network_choose(operation->parts->network, sandbox));
                sandbox->made = SANDBOX_MADE_NETWORK;
        }
        sandbox->made |= SANDBOX_MADE_NAMESPACES | SANDBOX_MADE_FILES;
        return cri_record_new_sandbox(operation->parts->records, sandbox, operation->bytes, operation->length);
}

static struct nd_error *make(void *argument, [[maybe_unused]] int *ret_fd) {
        const struct cri_sandbox_operation *operation = argument;
        const struct cri_parts *parts = operation->parts;

        nd_try(cri_namespaces_make(&parts->config, &parts->users, parts->pins, operation->sandbox));
        return cri_pod_files_make(&parts->config, operation->sandbox);
}

static struct nd_error *set_late_sysctls(void *argument, [[maybe_unused]] int *ret_fd) {
        const struct cri_sandbox_operation *operation = argument;

        return cri_namespaces_set_late_sysctls(&operation->parts->config, operation->sandbox);
}

static struct nd_error *sync_record(void *argument, [[maybe_unused]] int *ret_fd) {
        const struct cri_sandbox_operation *operation = argument;

        return cri_record_sync_sandbox(operation->parts->records, operation->sandbox);
}

static void on_network(struct nd_error *error, void *userdata) {
        struct cri_sandbox_operation *operation = userdata;

        operation->network = nullptr;
        step_ended(operation, error);
}

static void on_init(struct nd_error *error, [[maybe_unused]] struct cri_container *container, void *userdata) {
        struct cri_sandbox_operation *operation = userdata;

        step_ended(operation, error);
}

static struct nd_error *become_ready(struct cri_sandbox_operation *operation) {
        struct cri_sandbox *sandbox = operation->sandbox;
        struct nd_error *error;

        sandbox->state = SANDBOX_READY;
        error = cri_record_save_sandbox(operation->parts->records, sandbox, RECORD_NOSYNC);
        if (error) {
                sandbox->state = SANDBOX_NEW;
                return error;
        }
        cri_telemetry_pod(operation->parts->telemetry, sandbox->request.user_namespace, true);
        cri_events_of_sandbox(operation->parts->events, sandbox, EVENT_CREATED);
        cri_events_of_sandbox(operation->parts->events, sandbox, EVENT_STARTED);
        return nullptr;
}

/* ---- steps of a stop and a removal ---- */

typedef void (*container_verb)(struct cri_parts *parts, struct cri_container *container, cri_container_callback done,
                               void *userdata, struct cri_container_operation **ret);

static void kill_container(struct cri_parts *parts, struct cri_container *container, cri_container_callback done,
                           void *userdata, struct cri_container_operation **ret) {
        cri_container_stop(parts, container, 0, done, userdata, ret);
}

/* Applies the verb to all containers in parallel. False if there are none. */
static bool each_container(struct cri_sandbox_operation *operation, container_verb verb) {
        struct cri_sandbox *sandbox = operation->sandbox;

        operation->pending = sandbox->containers.count;
        /* the callbacks run later, from the loop */
        for (size_t i = 0; i < sandbox->containers.count; i++)
                verb(operation->parts, sandbox->containers.items[i], on_container, operation, nullptr);
        return operation->pending > 0;
}

static struct nd_error *unmake(void *argument, [[maybe_unused]] int *ret_fd) {
        const struct cri_sandbox_operation *operation = argument;

        nd_try(cri_bridge_close_all(&operation->parts->config, operation->sandbox));
        nd_try(cri_pod_files_undo(&operation->parts->config, operation->sandbox));
        return cri_namespaces_undo(&operation->parts->config, operation->parts->pins, operation->sandbox);
}

static struct nd_error *become_stopped(struct cri_sandbox_operation *operation) {
        struct cri_sandbox *sandbox = operation->sandbox;
        bool changed = sandbox->made != 0 || sandbox->state != SANDBOX_NOTREADY, was_ready = sandbox->state == SANDBOX_READY;

        sandbox->made = 0;
        if (operation->undoing) /* never reported to the kubelet; the record is removed next */
                return nullptr;
        sandbox->state = SANDBOX_NOTREADY;
        if (was_ready)
                cri_events_of_sandbox(operation->parts->events, sandbox, EVENT_STOPPED);
        cri_stream_server_leave(operation->parts->streams, sandbox->id);
        return changed ? cri_record_save_sandbox(operation->parts->records, sandbox, RECORD_NOSYNC) : nullptr;
}

static struct nd_error *forget(struct cri_sandbox_operation *operation) {
        struct nd_error *error = cri_record_remove_sandbox(operation->parts->records, operation->sandbox);

        if (error)
                return error;
        if (!operation->undoing)
                cri_events_of_sandbox(operation->parts->events, operation->sandbox, EVENT_DELETED);
        operation->sandbox->state = SANDBOX_REMOVED;
        return nullptr;
}

/* ---- check ---- */

/* The result is only logged and recorded: the pod may still work, and only the kubelet decides
 * whether to replace it. */
static void on_checked(struct nd_error *error, void *userdata) {
        struct cri_sandbox_operation *operation = userdata;
        struct cri_sandbox *sandbox = operation->sandbox;

        operation->network = sandbox->checking = nullptr;
        if (!error || nd_error_code(error) != ND_CANCELLED)
                nd_strset(&sandbox->network_check, error ? nd_error_text(error) : "");
        if (error && nd_error_code(error) != ND_CANCELLED)
                log_warning(operation, "CNI CHECK failed", error);
        nd_error_free(error);
        operation->step = STEP_END;
        operation_advance(operation);
}

/* True if there is nothing to check, or other operations are waiting. */
static bool begin_check(struct cri_sandbox_operation *operation) {
        struct cri_sandbox *sandbox = operation->sandbox;

        operation->step = STEP_END;
        if (sandbox->state != SANDBOX_READY || !sandbox->this_boot || !(sandbox->made & SANDBOX_MADE_NETWORK) ||
            sandbox->op_queue.waiting.count > 0)
                return true;
        cri_network_check(operation->parts->network, sandbox, on_checked, operation, &operation->network);
        sandbox->checking = operation->network;
        return !operation->network;
}

/* ---- step machine ---- */

/* Executes or starts the step: true if it is complete. Every step may find that there is nothing to
 * do. */
static bool take_step(struct cri_sandbox_operation *operation, enum step step) {
        struct cri_parts *parts = operation->parts;
        struct cri_sandbox *sandbox = operation->sandbox;
        struct nd_error *error = nullptr;

        switch (step) {
        case STEP_RECORD:
                error = record_first(operation);
                break;
        case STEP_MAKE:
                start_worker(operation, "create the pod's namespaces and files", make);
                if (sandbox->made & SANDBOX_MADE_NETWORK)
                        start_worker(operation, "sync the pod's record", sync_record);
                return none_pending(operation);
        case STEP_NETWORK:
                if (!(sandbox->made & SANDBOX_MADE_NETWORK))
                        return true;
                cri_network_add(parts->network, sandbox, on_network, operation, &operation->network);
                return false;
        case STEP_LATE_SYSCTLS:
                if (!cri_namespaces_have_late_sysctls(&sandbox->request))
                        return true;
                start_worker(operation, "set the pod's sysctls", set_late_sysctls);
                return none_pending(operation);
        case STEP_INIT:
                if (sandbox->request.pid != NAMESPACE_POD)
                        return true;
                cri_container_create_internal(parts, sandbox, on_init, operation, nullptr);
                return false;
        case STEP_READY:
                error = become_ready(operation);
                operation->step = STEP_END;
                break;
        case STEP_STOP_CONTAINERS:
                sandbox->stopping = true;
                return !each_container(operation, kill_container);
        case STEP_STOP_INIT:
                if (!sandbox->init)
                        return true;
                cri_container_remove(parts, sandbox->init, on_init, operation, nullptr);
                return false;
        case STEP_LEAVE_NETWORK:
                if (!(sandbox->made & SANDBOX_MADE_NETWORK))
                        return true;
                cri_network_remove(parts->network, sandbox, on_network, operation, &operation->network);
                return false;
        case STEP_UNMAKE:
                sandbox->made &= ~(unsigned) SANDBOX_MADE_NETWORK;
                if (!(sandbox->made & (SANDBOX_MADE_NAMESPACES | SANDBOX_MADE_FILES)) || !sandbox->this_boot)
                        return true;
                start_worker(operation, "remove the pod's namespaces and files", unmake);
                return none_pending(operation);
        case STEP_STOPPED:
                error = become_stopped(operation);
                if (operation->kind == KIND_STOP)
                        operation->step = STEP_END;
                break;
        case STEP_REMOVE_CONTAINERS:
                return !each_container(operation, cri_container_remove);
        case STEP_FORGET:
                error = forget(operation);
                break;
        case STEP_CHECK:
                return begin_check(operation);
        case STEP_END:
                break;
        }
        if (error)
                fail(operation, error);
        return true;
}

static void operation_advance(struct cri_sandbox_operation *operation) {
        while (operation->step != STEP_END) {
                enum step step;

                if (operation->kind == KIND_RUN && !operation->undoing && !operation->done)
                        fail(operation, nd_error_new(ND_CANCELLED, 0, "the caller cancelled the request"));
                step = operation->step++;
                if (!take_step(operation, step))
                        return;
        }
        operation_end(operation);
}

/* ---- calls ---- */

static int on_start([[maybe_unused]] sd_event_source *source, void *userdata) {
        struct cri_sandbox_operation *operation = userdata;

        /* by the operation before us: there is nothing left to do */
        if (operation->sandbox->state == SANDBOX_REMOVED)
                operation->step = STEP_END;
        operation_advance(operation);
        return 0;
}

/* The queue may be free at once, but the caller does not have the operation yet. */
static void on_turn(void *userdata) {
        struct cri_sandbox_operation *operation = userdata;

        if (sd_event_add_defer(operation->parts->loop, &operation->starter, on_start, operation) < 0)
                abort(); /* out of memory is the only possible failure */
}

static const enum step first_steps[] = {[KIND_RUN] = STEP_RECORD,
                                        [KIND_STOP] = STEP_STOP_CONTAINERS,
                                        [KIND_REMOVE] = STEP_STOP_CONTAINERS,
                                        [KIND_CHECK] = STEP_CHECK};
static_assert(nd_count_of(first_steps) == KIND_CHECK + 1);

static struct cri_sandbox_operation *order(struct cri_parts *parts, struct cri_sandbox *sandbox, enum kind kind,
                                           cri_sandbox_callback done, void *userdata, struct cri_sandbox_operation **ret) {
        struct cri_sandbox_operation *operation = nd_new(struct cri_sandbox_operation);

        *operation = (struct cri_sandbox_operation) {.parts = parts,
                                                     .sandbox = sandbox,
                                                     .kind = kind,
                                                     .step = first_steps[kind],
                                                     .done = done,
                                                     .userdata = userdata};
        if (sandbox->checking)
                cri_network_abort(sandbox->checking);
        cri_op_queue_enter(&sandbox->op_queue, on_turn, operation);
        if (ret)
                *ret = operation;
        return operation;
}

void cri_sandbox_run(struct cri_parts *parts, struct cri_sandbox_request *request, const char *bytes, size_t length,
                     cri_sandbox_callback done, void *userdata, struct cri_sandbox_operation **ret) {
        struct cri_sandbox *sandbox = nd_new(struct cri_sandbox);
        struct cri_sandbox_operation *operation;

        cri_pod_table_new_id(sandbox->id);
        sandbox->request = nd_take(*request, (struct cri_sandbox_request) {});
        sandbox->state = SANDBOX_NEW;
        sandbox->this_boot = true;
        sandbox->created_at = nd_clock_wall_ns();
        cri_pod_table_add_sandbox(&parts->pods, sandbox);
        operation = order(parts, sandbox, KIND_RUN, done, userdata, ret);
        operation->bytes = nd_calloc(length + 1, 1);
        if (length > 0)
                memcpy(operation->bytes, bytes, length);
        operation->length = length;
}

void cri_sandbox_stop(struct cri_parts *parts, struct cri_sandbox *sandbox, cri_sandbox_callback done, void *userdata,
                      struct cri_sandbox_operation **ret) {
        (void) order(parts, sandbox, KIND_STOP, done, userdata, ret);
}

void cri_sandbox_remove(struct cri_parts *parts, struct cri_sandbox *sandbox, cri_sandbox_callback done, void *userdata,
                        struct cri_sandbox_operation **ret) {
        (void) order(parts, sandbox, KIND_REMOVE, done, userdata, ret);
}

void cri_sandbox_check(struct cri_parts *parts, struct cri_sandbox *sandbox, cri_sandbox_callback done, void *userdata) {
        (void) order(parts, sandbox, KIND_CHECK, done, userdata, nullptr);
}

void cri_sandbox_abandon(struct cri_sandbox_operation *operation) {
        operation->done = nullptr;
        if (operation->kind == KIND_RUN && !operation->undoing && operation->network)
                /* a plugin may take minutes; all other steps are short */
                cri_network_abort(operation->network);
}
