/* SPDX-License-Identifier: Apache-2.0 */
/* container.c - operations on containers, and the events of their monitors
 *
 * Theory of operation
 *   Two structures hold the state of what happens to a container:
 *   - A container_operation is one call of container.h. It enters the container's queue at once and
 *     becomes the life's @current at the head of the queue; then cri_container_advance() takes it
 *     from step to step, from the loop.
 *   - A container_life is the work that is independent of operations: the events of the monitor,
 *     the worker that syncs the record to disk (sync), and crun delete after the exit (cleanup).
 *   take_step() is the table of all steps. An operation takes its own from top to bottom:
 *        create   @STEP_PREPARE @STEP_BUNDLE @STEP_MONITOR @STEP_CREATED
 *        init     as create, then as start
 *        start    @STEP_SYNC @STEP_START @STEP_STARTED
 *        stop     @STEP_STOP @STEP_SIGNAL @STEP_KILL @STEP_EXITED; a container that is not alive
 *                 needs neither signal nor kill
 *        update   @STEP_UPDATE @STEP_UPDATED
 *        remove   @STEP_KILL @STEP_EXITED @STEP_REMOVE @STEP_KILL_CGROUPS @STEP_DELETE @STEP_CLEAR
 *                 @STEP_FORGET
 *        undo     @STEP_UNDO, then as remove: a create or init that failed, or whose caller is gone
 *   There are three kinds of steps. Some compute and complete at once. Some start work (a worker,
 *   crun, the monitor) and complete when it reports @INPUT_DONE; other inputs are ignored
 *   meanwhile. Some wait for a condition of the container and check it at every input:
 *   @STEP_SYNC, @STEP_SIGNAL, @STEP_KILL, @STEP_EXITED.
 *   A creation is not abandoned between the start of crun and its result, because a half-made
 *   container could not be distinguished from a complete one.
 *   When a container is removed, operations still queued complete at once: stop and remove succeed,
 *   all others fail with NOT_FOUND.
 *   The work of the steps is in container-create.c, container-start.c, container-stop.c,
 *   container-update.c and container-remove.c. The exit, which may come at any time, and the
 *   recovery after a restart are in container-exit.c.
 * Owns       the operations, and of each container its life and the connection to its monitor.
 *            Containers are in the pod table (pod-table.c).
 * Invariant  only cri_container_advance() changes a step. The record is written before an action
 *            starts, and again with its result before the callback runs. */
#include "cri/pod/container.h"

#include "cri/core/events.h"
#include "cri/pod/container-operation.h"
#include "cri/pod/container-process.h"

/* ---- life of a container ---- */

/* Disconnects from the monitor and cancels the background work. Neither the monitor nor the
 * container is ended. */
static void release_life(struct cri_container *container) {
        struct cri_container_life *life = container->life;

        cri_monitor_free(nd_take_ptr(container->monitor));
        cri_oci_runtime_cancel(life->cleanup);
        nd_worker_cancel(life->sync);
        nd_error_free(life->sync_error);
        free(life);
}

/* The life must exist before the monitor: both callers of monitor.h call this first. */
struct cri_container_life *cri_container_life_of(struct cri_parts *parts, struct cri_container *container) {
        if (!container->life) {
                container->life = nd_new(struct cri_container_life);
                container->life->parts = parts;
                container->life->container = container;
                container->release = release_life;
        }
        return container->life;
}

/* ---- end of an operation ---- */

static void operation_free(struct cri_container_operation *operation) {
        sd_event_source_disable_unref(operation->timer);
        nd_worker_cancel(operation->worker);
        cri_oci_runtime_cancel(operation->call);
        nd_error_free(operation->error);
        cri_resource_request_done(&operation->resources);
        cri_container_create_free(operation->creation);
        free(operation);
}

/* Runs the callback, then starts the next operation in the queue. */
static void operation_finish(struct cri_container_operation *operation) {
        struct cri_container *container = operation->container;
        struct nd_error *error = nd_take_ptr(operation->error);
        bool gone = !container || (error && container->state == CONTAINER_NEW);

        if (operation->done)
                operation->done(error, gone ? nullptr : container, operation->userdata);
        else
                nd_error_free(error);
        operation_free(operation);
        if (!container)
                return;
        container->life->current = nullptr;
        cri_op_queue_leave(&container->op_queue);
}

/* Completes the operations that were queued for a removed container. */
static void finish_queued(struct cri_op_queue *op_queue) {
        for (size_t i = 0; i < op_queue->waiting.count; i++) {
                struct cri_container_operation *operation = op_queue->waiting.items[i].userdata;

                operation->container = nullptr;
                if (operation->kind != OPERATION_STOP && operation->kind != OPERATION_REMOVE)
                        operation->error = nd_error_new(ND_NOT_FOUND, 0, "the container was removed meanwhile");
                operation_finish(operation);
        }
}

/* The container leaves the pod table together with the operation that removed its record. */
static void operation_finish_last(struct cri_container_operation *operation) {
        struct cri_container *container = nd_take_ptr(operation->container);
        struct cri_op_queue op_queue = nd_take(container->op_queue, (struct cri_op_queue) {});

        container->life->current = nullptr;
        if (operation->kind == OPERATION_REMOVE)
                cri_events_of_container(operation->parts->events, container, EVENT_DELETED);
        cri_pod_table_drop_container(&operation->parts->pods, container);
        operation_finish(operation);
        finish_queued(&op_queue);
        cri_op_queue_done(&op_queue);
}

/* ---- steps ---- */

static bool creates(const struct cri_container_operation *operation) {
        return operation->kind == OPERATION_CREATE || operation->kind == OPERATION_INIT;
}

/* The step failed. A creation is undone; every other operation ends, and the caller gets the first
 * error. */
static enum cri_container_step fail(struct cri_container_operation *operation, struct nd_error *error) {
        bool removing = operation->step >= STEP_REMOVE;

        if (removing)
                cri_container_remove_failed(operation, error);
        if (operation->error)
                nd_error_free(error);
        else
                operation->error = error;
        return creates(operation) && !removing ? STEP_UNDO : STEP_END;
}

typedef struct nd_error *(*step_function)(struct cri_container_operation *operation);

/* A step that is complete when the function returns. */
static enum cri_container_step compute(struct cri_container_operation *operation, step_function function,
                                       enum cri_container_step next) {
        struct nd_error *error = function(operation);

        return error ? fail(operation, error) : next;
}

/* A step that is complete when the work that the function starts has completed. */
static enum cri_container_step work(struct cri_container_operation *operation, enum cri_container_input input,
                                    step_function start, enum cri_container_step next) {
        if (input == INPUT_DONE)
                return next;
        return input == INPUT_ENTER ? compute(operation, start, operation->step) : operation->step;
}

static enum cri_container_step first_step(const struct cri_container_operation *operation) {
        switch (operation->kind) {
        case OPERATION_CREATE:
        case OPERATION_INIT:
                return operation->abandoned ? STEP_UNDO : STEP_PREPARE;
        case OPERATION_START:
                return STEP_SYNC;
        case OPERATION_STOP:
                return STEP_STOP;
        case OPERATION_UPDATE:
                return STEP_UPDATE;
        case OPERATION_REMOVE:
                break;
        }
        return cri_container_lives(operation->container) ? STEP_KILL : STEP_EXITED;
}

static enum cri_container_step end_creation(struct cri_container_operation *operation) {
        if (operation->abandoned)
                return STEP_UNDO;
        if (operation->kind == OPERATION_INIT)
                return STEP_SYNC;
        cri_container_create_report(operation);
        return STEP_END;
}

/* After the exit crun deletes the rest of the container (other processes in a shared pid namespace,
 * the cgroup), and a worker syncs the record to disk. A stop waits for both, a removal only for the
 * first, since it removes the record. */
static bool exit_is_complete(const struct cri_container_operation *operation) {
        const struct cri_container *container = operation->container;

        return !cri_container_lives(container) && !container->life->cleanup &&
               (operation->kind == OPERATION_REMOVE || !container->exit_unsaved);
}

static enum cri_container_step kill_step(struct cri_container_operation *operation, enum cri_container_input input) {
        struct nd_error *error = nullptr;

        if (input == INPUT_ENTER)
                cri_container_stop_kill(operation);
        else if (input == INPUT_TIMEOUT)
                error = cri_container_stop_kill_timeout(operation);
        if (error)
                return fail(operation, error);
        return exit_is_complete(operation) ? STEP_EXITED : STEP_KILL;
}

static enum cri_container_step undo(struct cri_container_operation *operation) {
        struct cri_container *container = operation->container;

        container->state = CONTAINER_NEW;
        cri_monitor_free(nd_take_ptr(container->monitor));
        if (container->made != 0)
                return STEP_KILL_CGROUPS;
        operation->forgotten = true; /* it failed before there was a record */
        return STEP_END;
}

/* Starts or continues the step. Returns the next step, or the same one to wait for another
 * input. */
static enum cri_container_step take_step(struct cri_container_operation *operation, enum cri_container_input input) {
        switch (operation->step) {
        case STEP_QUEUED:
                return input == INPUT_TURN ? first_step(operation) : STEP_QUEUED;
        case STEP_PREPARE:
                return compute(operation, cri_container_create_prepare, STEP_BUNDLE);
        case STEP_BUNDLE:
                if (input == INPUT_ABANDON) {
                        nd_worker_cancel(nd_take_ptr(operation->worker));
                        return STEP_UNDO;
                }
                return work(operation, input, cri_container_create_bundle, STEP_MONITOR);
        case STEP_MONITOR:
                return work(operation, input, cri_container_create_monitor, STEP_CREATED);
        case STEP_CREATED: {
                struct nd_error *error = cri_container_create_record(operation);

                return error ? fail(operation, error) : end_creation(operation);
        }
        case STEP_SYNC:
                return operation->container->life->sync ? STEP_SYNC : STEP_START;
        case STEP_START:
                return work(operation, input, cri_container_start_run, STEP_STARTED);
        case STEP_STARTED:
                cri_container_start_record(operation);
                return STEP_END;
        case STEP_STOP:
                if (!cri_container_lives(operation->container))
                        return STEP_EXITED;
                return cri_container_stop_signal(operation) ? STEP_SIGNAL : STEP_KILL;
        case STEP_SIGNAL:
                if (input == INPUT_TIMEOUT)
                        return STEP_KILL;
                return exit_is_complete(operation) ? STEP_EXITED : STEP_SIGNAL;
        case STEP_KILL:
                return kill_step(operation, input);
        case STEP_EXITED:
                if (!exit_is_complete(operation))
                        return STEP_EXITED;
                return operation->kind == OPERATION_STOP ? STEP_END : STEP_REMOVE;
        case STEP_UPDATE:
                return work(operation, input, cri_container_update_run, STEP_UPDATED);
        case STEP_UPDATED:
                return compute(operation, cri_container_update_record, STEP_END);
        case STEP_REMOVE:
                cri_container_remove_record(operation);
                return STEP_KILL_CGROUPS;
        case STEP_UNDO:
                return undo(operation);
        case STEP_KILL_CGROUPS:
                if (input == INPUT_ENTER && !cri_container_remove_needs_delete(operation->container))
                        return STEP_CLEAR;
                return work(operation, input, cri_container_remove_kill_cgroups, STEP_DELETE);
        case STEP_DELETE:
                return work(operation, input, cri_container_remove_delete, STEP_CLEAR);
        case STEP_CLEAR:
                return work(operation, input, cri_container_remove_files, STEP_FORGET);
        case STEP_FORGET:
                return compute(operation, cri_container_remove_forget, STEP_END);
        case STEP_END:
                break;
        }
        return STEP_END;
}

void cri_container_advance(struct cri_container_operation *operation, enum cri_container_input input, struct nd_error *error) {
        enum cri_container_step next;

        /* only INPUT_CHANGE comes from within a step, which checks for itself */
        if (operation->advancing)
                return;
        operation->advancing = true;
        next = error ? fail(operation, error) : take_step(operation, input);
        while (next != operation->step && next != STEP_END) {
                operation->step = next;
                next = take_step(operation, INPUT_ENTER);
        }
        if (next != STEP_END)
                operation->advancing = false;
        else if (operation->forgotten)
                operation_finish_last(operation);
        else
                operation_finish(operation);
}

void cri_container_changed(struct cri_container_life *life) {
        if (life->current)
                cri_container_advance(life->current, INPUT_CHANGE, nullptr);
}

/* ---- events of the monitor ---- */

static bool is_at(const struct cri_container_life *life, enum cri_container_step step) {
        return life->current && life->current->step == step;
}

static void on_created(pid_t pid, uint64_t birth, void *userdata) {
        struct cri_container_life *life = userdata;

        if (!is_at(life, STEP_MONITOR))
                return;
        life->container->pid = pid;
        life->container->pid_birth = birth;
        cri_container_advance(life->current, INPUT_DONE, nullptr);
}

static void on_failed(struct nd_error *error, void *userdata) {
        struct cri_container_life *life = userdata;

        cri_monitor_free(nd_take_ptr(life->container->monitor));
        if (is_at(life, STEP_MONITOR))
                cri_container_advance(life->current, INPUT_DONE, error);
        else
                nd_error_free(error);
}

/* The result of crun start decides what an exit during that step means. */
static void take_exit(struct cri_container_life *life, const struct cri_monitor_end *end) {
        if (is_at(life, STEP_START)) {
                life->end = *end;
                life->has_end = true;
        } else if (cri_container_lives(life->container)) {
                cri_container_exited(life, end);
        }
}

static void on_exited(const struct cri_monitor_end *end, void *userdata) {
        struct cri_container_life *life = userdata;
        struct cri_monitor_end copy = *end; /* the monitor owns it */

        cri_monitor_free(nd_take_ptr(life->container->monitor));
        take_exit(life, &copy);
}

void cri_container_monitor_lost(struct cri_container_life *life) {
        struct cri_monitor_end end;

        cri_monitor_free(nd_take_ptr(life->container->monitor));
        if (is_at(life, STEP_MONITOR)) {
                cri_container_advance(life->current, INPUT_DONE, nd_error_new(ND_INTERNAL, 0, "the container's monitor died"));
                return;
        }
        end = cri_container_kill_unmonitored(life);
        take_exit(life, &end);
}

static void on_lost(void *userdata) {
        cri_container_monitor_lost(userdata);
}

const struct cri_monitor_events cri_container_monitor_events = {
        .created = on_created, .failed = on_failed, .exited = on_exited, .lost = on_lost};

/* ---- calls ---- */

static int on_begin([[maybe_unused]] sd_event_source *source, void *userdata) {
        struct cri_container_operation *operation = userdata;

        operation->timer = sd_event_source_disable_unref(operation->timer);
        if (operation->container)
                cri_container_advance(operation, INPUT_TURN, nullptr);
        else /* refused before there was a container */
                operation_finish(operation);
        return 0;
}

/* Nothing runs from within the call. */
static void begin_later(struct cri_container_operation *operation) {
        if (sd_event_add_defer(operation->parts->loop, &operation->timer, on_begin, operation) < 0)
                abort(); /* out of memory is the only possible failure */
}

static void on_turn(void *userdata) {
        struct cri_container_operation *operation = userdata;

        operation->container->life->current = operation;
        begin_later(operation);
}

static struct cri_container_operation *operation_new(struct cri_parts *parts, enum cri_container_operation_kind kind,
                                                     cri_container_callback done, void *userdata,
                                                     struct cri_container_operation **ret) {
        struct cri_container_operation *operation = nd_new(struct cri_container_operation);

        *operation = (struct cri_container_operation) {.parts = parts, .kind = kind, .done = done, .userdata = userdata};
        if (ret)
                *ret = operation;
        return operation;
}

static struct cri_container_operation *operation_on(struct cri_parts *parts, struct cri_container *container,
                                                    enum cri_container_operation_kind kind, cri_container_callback done,
                                                    void *userdata, struct cri_container_operation **ret) {
        struct cri_container_operation *operation = operation_new(parts, kind, done, userdata, ret);

        operation->container = container;
        (void) cri_container_life_of(parts, container);
        cri_op_queue_enter(&container->op_queue, on_turn, operation);
        return operation;
}

static void accept(struct cri_container_operation *operation, struct nd_error *refusal) {
        operation->error = refusal;
        if (refusal)
                begin_later(operation);
        else
                cri_op_queue_enter(&operation->container->op_queue, on_turn, operation);
}

void cri_container_create(struct cri_parts *parts, struct cri_sandbox *sandbox, struct cri_container_request *request,
                          const char *bytes, size_t length, cri_container_callback done, void *userdata,
                          struct cri_container_operation **ret) {
        struct cri_container_operation *operation = operation_new(parts, OPERATION_CREATE, done, userdata, ret);

        accept(operation, cri_container_create_accept(operation, sandbox, request, bytes, length));
}

void cri_container_create_internal(struct cri_parts *parts, struct cri_sandbox *sandbox, cri_container_callback done,
                                   void *userdata, struct cri_container_operation **ret) {
        struct cri_container_operation *operation = operation_new(parts, OPERATION_INIT, done, userdata, ret);

        accept(operation, cri_container_create_accept(operation, sandbox, nullptr, nullptr, 0));
}

void cri_container_start(struct cri_parts *parts, struct cri_container *container, cri_container_callback done, void *userdata,
                         struct cri_container_operation **ret) {
        (void) operation_on(parts, container, OPERATION_START, done, userdata, ret);
}

void cri_container_stop(struct cri_parts *parts, struct cri_container *container, int64_t timeout_s,
                        cri_container_callback done, void *userdata, struct cri_container_operation **ret) {
        struct cri_container_operation *before = cri_container_life_of(parts, container)->current;
        struct cri_container_operation *operation = operation_on(parts, container, OPERATION_STOP, done, userdata, ret);

        operation->timeout_s = timeout_s;
        /* A second stop with a shorter timeout shortens the running one. */
        if (before && before->step == STEP_SIGNAL && timeout_s < before->timeout_s)
                cri_container_stop_shorten(before, timeout_s);
}

void cri_container_update(struct cri_parts *parts, struct cri_container *container, struct cri_resource_request *resources,
                          cri_container_callback done, void *userdata, struct cri_container_operation **ret) {
        struct cri_container_operation *operation = operation_on(parts, container, OPERATION_UPDATE, done, userdata, ret);

        operation->resources = nd_take(*resources, (struct cri_resource_request) {});
}

void cri_container_remove(struct cri_parts *parts, struct cri_container *container, cri_container_callback done,
                          void *userdata, struct cri_container_operation **ret) {
        (void) operation_on(parts, container, OPERATION_REMOVE, done, userdata, ret);
}

void cri_container_abandon(struct cri_container_operation *operation) {
        operation->done = nullptr;
        operation->abandoned = true;
        if (creates(operation))
                cri_container_advance(operation, INPUT_ABANDON, nullptr);
}
