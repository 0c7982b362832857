/* SPDX-License-Identifier: Apache-2.0 */
/* container.c - containers: from CreateContainer to RemoveContainer
 *
 * Theory of operation
 *   An operation enters the container's lane when it is asked for, begins from the loop when its turn has come, and goes on from callback to callback: of a
 *   worker, of crun, of the monitor. The lane has at most one of them (@current); it alone changes state, except that a container may end at any time (container-exit.c). Creation
 *   is in container-create.c, removal and the undoing of a creation in container-remove.c; starting, stopping and updating are here.
 *   When a container is removed, those who still wait for its lane are told that it is gone: stopped and removed it is, started it cannot be.
 * Owns       the operations. Containers are the book's (pods.c).
 * Invariant  the record says what was begun before it is begun, and what was done before the callback says so. */
#include "cri/container.h"

#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "cri/container-operation.h"
#include "cri/container-process.h"
#include "cri/events.h"
#include "cri/fuse.h"
#include "cri/record.h"
#include "cri/resources.h"

enum {
        RELEASE_S = 10,
};

/* Disconnects from the monitor and cancels the background work. Neither the monitor nor the container ends by it. */
static void release_life(struct container *container) {
        struct container_life *life = container->life;

        monitor_free(nd_take_ptr(container->monitor));
        engine_cancel(life->cleanup);
        nd_worker_cancel(life->sync);
        nd_error_free(life->sync_error);
        free(life);
}

/* There is a life before there is a monitor: both callers of monitor.h come here first. */
struct container_life *life_of(struct runtime *daemon, struct container *container) {
        if (!container->life) {
                container->life = nd_new(struct container_life);
                container->life->daemon = daemon;
                container->life->container = container;
                container->release = release_life;
        }
        return container->life;
}

/* ---- the way of every operation ---- */

static void operation_free(struct container_operation *operation) {
        sd_event_source_disable_unref(operation->timer);
        nd_worker_cancel(operation->worker);
        engine_cancel(operation->call);
        nd_error_free(operation->error);
        resource_request_done(&operation->resources);
        creation_free(operation->creation);
        free(operation);
}

void operation_finish(struct container_operation *operation, struct nd_error *error) {
        struct container *container = operation->container;
        bool gone = !container || (error && container->state == CONTAINER_NEW);

        if (operation->done)
                operation->done(error, gone ? nullptr : container, operation->userdata);
        else
                nd_error_free(error);
        operation_free(operation);
        if (!container)
                return;
        container->life->current = nullptr;
        lane_leave(&container->lane);
}

static void stop_begin(struct container_operation *operation);
static void update_begin(struct container_operation *operation);

static int on_begin([[maybe_unused]] sd_event_source *source, void *userdata) {
        static void (*const begin[])(struct container_operation *) = {
                [OPERATION_CREATE] = creation_begin, [OPERATION_INIT] = creation_begin, [OPERATION_START] = start_begin,
                [OPERATION_STOP] = stop_begin,       [OPERATION_UPDATE] = update_begin, [OPERATION_REMOVE] = removal_begin,
        };
        struct container_operation *operation = userdata;

        operation->timer = sd_event_source_disable_unref(operation->timer);
        if (operation->container)
                begin[operation->kind](operation);
        else /* refused before there was a container */
                operation_finish(operation, nd_take_ptr(operation->error));
        return 0;
}

/* Nothing happens within the call that asked for it. */
static void begin_later(struct container_operation *operation) {
        if (sd_event_add_defer(operation->daemon->loop, &operation->timer, on_begin, operation) < 0)
                abort(); /* no memory: an event source takes nothing else */
}

static void on_turn(void *userdata) {
        struct container_operation *operation = userdata;

        operation->container->life->current = operation;
        begin_later(operation);
}

static struct container_operation *operation_new(struct runtime *daemon, enum operation_kind kind, container_callback done,
                                                 void *userdata, struct container_operation **ret) {
        struct container_operation *operation = nd_new(struct container_operation);

        *operation = (struct container_operation) {.daemon = daemon, .kind = kind, .done = done, .userdata = userdata};
        if (ret)
                *ret = operation;
        return operation;
}

/* From here on the container's lane knows of it: whoever ends the container tells it. */
static struct container_operation *operation_on(struct runtime *daemon, struct container *container, enum operation_kind kind,
                                                container_callback done, void *userdata, struct container_operation **ret) {
        struct container_operation *operation = operation_new(daemon, kind, done, userdata, ret);

        operation->container = container;
        (void) life_of(daemon, container);
        lane_enter(&container->lane, on_turn, operation);
        return operation;
}

void container_abandon(struct container_operation *operation) {
        operation->done = nullptr;
        operation->abandoned = true;
        if (operation->kind == OPERATION_CREATE || operation->kind == OPERATION_INIT)
                creation_abandon(operation);
}

/* ---- start ---- */

static void start_failed(struct container_operation *operation, struct nd_error *error) {
        struct container *container = operation->container;

        if (operation->kind == OPERATION_INIT) {
                container->state = CONTAINER_NEW;
                removal_undo(operation, error);
                return;
        }
        nd_strset(&container->reason, "StartError");
        nd_strset(&container->message, nd_error_text(error));
        if (container->life->has_end) {
                container->life->has_end = false;
                container_ended(container->life, &container->life->end);
        } else {
                container_kill(container); /* its end will be told by the monitor */
        }
        operation_finish(operation, error);
}

static void on_started(struct nd_error *error, void *userdata) {
        struct container_operation *operation = userdata;
        struct container *container = operation->container;

        operation->call = nullptr;
        if (error &&
            engine_has_started(&operation->daemon->config, container->sandbox->request.runtime_handler, container->id)) {
                nd_log(ND_LOG_NOTICE, "the engine has started a container and failed all the same",
                       nd_field("container", container->id), nd_field("error", nd_error_text(error)));
                nd_error_free(error);
                error = nullptr;
        }
        if (error) {
                start_failed(operation, error);
                return;
        }
        container->state = CONTAINER_RUNNING;
        events_of_container(operation->daemon->events, container, EVENT_STARTED);
        if (container->life->has_end) {
                container->life->has_end = false;
                container_ended(container->life, &container->life->end);
        } else {
                container_save(operation->daemon, container);
        }
        operation_finish(operation, nullptr);
}

static struct nd_error *start_check(const struct container *container) {
        if (container->state == CONTAINER_EXITED)
                return nd_error_new(ND_PRECONDITION, 0, "container %.13s has ended before it was started: %s", container->id,
                                    *container->message ? container->message : container->reason);
        if (container->state != CONTAINER_CREATED)
                return nd_error_new(ND_PRECONDITION, 0, "container %.13s is not in the state that follows its creation",
                                    container->id);
        if ((container->sandbox->state != SANDBOX_READY || container->sandbox->stopping) && !container->internal)
                return nd_error_new(ND_PRECONDITION, 0, "sandbox %.13s of the container is not ready", container->sandbox->id);
        return nullptr;
}

static void start_refused(struct container_operation *operation, struct nd_error *error) {
        if (operation->kind == OPERATION_INIT)
                start_failed(operation, error);
        else
                operation_finish(operation, error);
}

void start_begin(struct container_operation *operation) {
        struct container *container = operation->container;
        struct runtime *daemon = operation->daemon;
        struct nd_error *error;

        if (container->life->sync) {
                operation->step = STEP_SYNC; /* whoever waits for it in container-exit.c goes on */
                return;
        }
        operation->step = STEP_ENGINE;
        error = start_check(container);
        if (!error && container->life->sync_error) {
                error = nd_take_ptr(container->life->sync_error);
                container_sync(container->life); /* for who tries again */
        }
        if (!error) {
                container->started = true;
                container->started_at = nd_clock_wall_ns();
                error = record_save_container(daemon->records, container, RECORD_HERE);
        }
        if (!error)
                error = engine_start(daemon->loop, &daemon->config, container->sandbox->request.runtime_handler, container->id,
                                     on_started, operation, &operation->call);
        if (error)
                start_refused(operation, error);
}

void container_start(struct runtime *daemon, struct container *container, container_callback done, void *userdata,
                     struct container_operation **ret) {
        (void) operation_on(daemon, container, OPERATION_START, done, userdata, ret);
}

/* ---- stop ---- */

static struct nd_error *release_work(void *argument, [[maybe_unused]] int *ret_fd) {
        fuse_abort(argument);
        return nullptr;
}

static void on_released(struct nd_error *error, [[maybe_unused]] int fd, void *userdata) {
        struct container_operation *operation = userdata;

        operation->worker = nullptr;
        nd_error_free(error); /* the patience that is left says how it went */
}

/* It does not end by SIGKILL: perhaps it hangs in a FUSE filesystem of its own. */
static void release(struct container_operation *operation) {
        if (*operation->container->cgroup && !operation->worker)
                nd_ignore(nd_worker_start(operation->daemon->loop, "abort FUSE connections", release_work,
                                              operation->container->cgroup, RELEASE_S * ND_SECOND_US, on_released, operation,
                                              &operation->worker));
}

static int on_patience([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t now, void *userdata) {
        struct container_operation *operation = userdata;

        if (operation->step == STEP_SIGNAL) {
                operation_kill(operation);
                return 0;
        }
        if (container_give_up_monitor(operation->container->life))
                return 0; /* its end was taken, and the operation went on with it */
        if (!operation->waited) {
                operation->waited = true;
                operation_patience(operation, KILL_PATIENCE_S - MONITOR_PATIENCE_S);
                release(operation);
                return 0;
        }
        operation_finish(operation, nd_error_new(ND_DEADLINE, ETIMEDOUT,
                                                 "container %.13s has not ended %d s after SIGKILL: a process hangs in the "
                                                 "kernel, see /proc/%d/stack",
                                                 operation->container->id, KILL_PATIENCE_S, (int) operation->container->pid));
        return 0;
}

void operation_patience(struct container_operation *operation, uint64_t seconds) {
        uint64_t us = seconds > UINT64_MAX / 2 / ND_SECOND_US ? UINT64_MAX / 2 : seconds * ND_SECOND_US;

        sd_event_source_disable_unref(operation->timer);
        operation->timer = nullptr;
        if (sd_event_add_time_relative(operation->daemon->loop, &operation->timer, CLOCK_MONOTONIC, us, 10 * ND_MS_US,
                                       on_patience, operation) < 0)
                abort();
}

void operation_kill(struct container_operation *operation) {
        operation->step = STEP_KILL;
        operation->waited = false;
        container_kill(operation->container);
        operation_patience(operation, MONITOR_PATIENCE_S);
}

static void stop_begin(struct container_operation *operation) {
        struct container *container = operation->container;

        if (!container_lives(container)) {
                stop_ended(operation);
                return;
        }
        /* A container that was never started has nobody to hear a signal. */
        if (operation->timeout_s <= 0 || container->state == CONTAINER_CREATED ||
            !container_signal(container, container->stop_signal)) {
                operation_kill(operation);
                return;
        }
        operation->step = STEP_SIGNAL;
        operation_patience(operation, (uint64_t) operation->timeout_s);
}

/* It has ended; what it left (other processes in a shared pid namespace, the cgroup) is being cleared away and its end is on its way to the disk, and we
 * wait for both. */
void stop_ended(struct container_operation *operation) {
        const struct container *container = operation->container;

        if (!container_lives(container) && !container->life->cleanup && !container->untold)
                operation_finish(operation, nullptr);
}

void container_stop(struct runtime *daemon, struct container *container, int64_t timeout_s, container_callback done,
                    void *userdata, struct container_operation **ret) {
        struct container_operation *before = life_of(daemon, container)->current;
        struct container_operation *operation = operation_on(daemon, container, OPERATION_STOP, done, userdata, ret);

        operation->timeout_s = timeout_s;
        /* Whoever is less patient than the one whose turn it is does not wait for that one. */
        if (before && before->kind == OPERATION_STOP && before->step == STEP_SIGNAL && timeout_s < before->timeout_s) {
                before->timeout_s = timeout_s;
                operation_patience(before, timeout_s > 0 ? (uint64_t) timeout_s : 0);
        }
}

/* ---- update ---- */

#define TAKE_NUMBER(field)                                                                                                    \
        do {                                                                                                                  \
                if (from->field != 0)                                                                                         \
                        to->field = from->field;                                                                              \
        } while (0)

static void take_text(char **to, char **from) {
        if (!*from || **from == '\0')
                return;
        free(*to);
        *to = nd_take_ptr(*from);
}

static void take_pair(pairs *list, const struct pair *pair) {
        nd_vector_each (known, list) {
                if (nd_streq(known->key, pair->key)) {
                        nd_strset(&known->value, pair->value);
                        return;
                }
        }
        nd_vector_push(list, ((struct pair) {.key = nd_strdup(pair->key), .value = nd_strdup(pair->value)}));
}

/* What was not set stays as it was. */
static void merge(struct resource_request *to, struct resource_request *from) {
        TAKE_NUMBER(cpu_period);
        TAKE_NUMBER(cpu_quota);
        TAKE_NUMBER(cpu_shares);
        TAKE_NUMBER(memory_limit);
        TAKE_NUMBER(memory_swap_limit);
        TAKE_NUMBER(oom_score_adj);
        take_text(&to->cpuset_cpus, &from->cpuset_cpus);
        take_text(&to->cpuset_mems, &from->cpuset_mems);
        nd_vector_each (pair, &from->unified) {
                take_pair(&to->unified, pair);
        }
}

static void on_updated(struct nd_error *error, void *userdata) {
        struct container_operation *operation = userdata;

        operation->call = nullptr;
        if (!error) {
                merge(&operation->container->request.resources, &operation->resources);
                error = record_save_container(operation->daemon->records, operation->container, RECORD_HERE);
        }
        operation_finish(operation, error);
}

static struct nd_error *update_start(struct container_operation *operation) {
        nd_cleanup(nd_spec_resources_done) struct nd_spec_resources resources = {};
        nd_autotext text = ND_TEXT(ND_SPEC_CEILING);
        const struct container *container = operation->container;
        struct runtime *daemon = operation->daemon;

        if (!container_lives(container))
                return nd_error_new(ND_PRECONDITION, 0, "container %.13s does not run", container->id);
        resources_describe(&operation->resources, container->sandbox->request.cgroup_parent, &resources);
        nd_try(nd_spec_resources_format(&resources, &text));
        return engine_update(daemon->loop, &daemon->config, container->sandbox->request.runtime_handler, container->id,
                             nd_text_get(&text), on_updated, operation, &operation->call);
}

static void update_begin(struct container_operation *operation) {
        struct nd_error *error = update_start(operation);

        operation->step = STEP_ENGINE;
        if (error)
                operation_finish(operation, error);
}

void container_update(struct runtime *daemon, struct container *container, struct resource_request *resources,
                      container_callback done, void *userdata, struct container_operation **ret) {
        struct container_operation *operation = operation_on(daemon, container, OPERATION_UPDATE, done, userdata, ret);

        operation->resources = nd_take(*resources, (struct resource_request) {});
}

/* ---- create and remove: the calls; their way is in container-create.c and container-remove.c ---- */

void container_remove(struct runtime *daemon, struct container *container, container_callback done, void *userdata,
                      struct container_operation **ret) {
        (void) operation_on(daemon, container, OPERATION_REMOVE, done, userdata, ret);
}

static void accept(struct container_operation *operation, struct nd_error *refusal) {
        operation->error = refusal;
        if (refusal)
                begin_later(operation);
        else
                lane_enter(&operation->container->lane, on_turn, operation);
}

void container_create(struct runtime *daemon, struct sandbox *sandbox, struct container_request *request, const char *bytes,
                      size_t length, container_callback done, void *userdata, struct container_operation **ret) {
        struct container_operation *operation = operation_new(daemon, OPERATION_CREATE, done, userdata, ret);

        accept(operation, creation_accept(operation, sandbox, request, bytes, length));
}

void container_create_internal(struct runtime *daemon, struct sandbox *sandbox, container_callback done, void *userdata,
                               struct container_operation **ret) {
        struct container_operation *operation = operation_new(daemon, OPERATION_INIT, done, userdata, ret);

        accept(operation, creation_accept(operation, sandbox, nullptr, nullptr, 0));
}
