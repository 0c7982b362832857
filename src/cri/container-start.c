/* SPDX-License-Identifier: Apache-2.0 */
/* container-start.c - steps of a start; see container.c
 *
 * Theory of operation
 *   The record says that the container was started before crun is called. If crun fails, its own
 *   state decides: a container that crun has let go was started. A container may exit before crun
 *   start does; the exit waits in the life until the result is known, since a start that failed
 *   gives it another meaning. */
#include "base/log.h"
#include "cri/container-operation.h"
#include "cri/container-process.h"
#include "cri/events.h"
#include "cri/record.h"

static struct nd_error *check(const struct container *container) {
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

/* The exit that came while crun start ran; false = none has. */
static bool take_early_exit(struct container_life *life) {
        if (!life->has_end)
                return false;
        life->has_end = false;
        container_exited(life, &life->end);
        return true;
}

/* The pod's init goes with its failed start; any other container stays, and has exited or is about
 * to. */
static void record_failure(struct container_operation *operation, const struct nd_error *error) {
        struct container *container = operation->container;

        if (operation->kind == OPERATION_INIT)
                return;
        nd_strset(&container->reason, "StartError");
        nd_strset(&container->message, nd_error_text(error));
        if (!take_early_exit(container->life))
                container_kill(container); /* the monitor will report its exit */
}

static void on_started(struct nd_error *error, void *userdata) {
        struct container_operation *operation = userdata;
        struct container *container = operation->container;

        operation->call = nullptr;
        if (error &&
            oci_runtime_has_started(&operation->parts->config, container->sandbox->request.runtime_handler, container->id)) {
                nd_log(ND_LOG_NOTICE, "the engine has started a container and failed all the same",
                       nd_field("container", container->id), nd_field("error", nd_error_text(error)));
                nd_error_free(error);
                error = nullptr;
        }
        if (error)
                record_failure(operation, error);
        container_advance(operation, INPUT_DONE, error);
}

struct nd_error *start_run(struct container_operation *operation) {
        struct container *container = operation->container;
        struct runtime *parts = operation->parts;

        nd_try(check(container));
        if (container->life->sync_error) {
                struct nd_error *error = nd_take_ptr(container->life->sync_error);

                container_sync(container->life); /* for the next attempt */
                return error;
        }
        container->started = true;
        container->started_at = nd_clock_wall_ns();
        nd_try(record_save_container(parts->records, container, RECORD_NOSYNC));
        return oci_runtime_start(parts->loop, &parts->config, container->sandbox->request.runtime_handler, container->id,
                            on_started, operation, &operation->call);
}

void start_record(struct container_operation *operation) {
        struct container *container = operation->container;

        container->state = CONTAINER_RUNNING;
        events_of_container(operation->parts->events, container, EVENT_STARTED);
        if (!take_early_exit(container->life))
                container_save(operation->parts, container);
}
