/* SPDX-License-Identifier: Apache-2.0 */
/* container-start.c - steps of a start; see container.c
 *
 * Theory of operation
 *   The record says that the container was started before crun is called. If crun fails, its own
 *   state decides: a container that crun has released was started. A container may exit before crun
 *   start does; the exit waits in the life until the result is known, because it has another
 *   meaning if the start failed. */
#include "base/log.h"
#include "cri/core/events.h"
#include "cri/core/record.h"
#include "cri/pod/container-operation.h"
#include "cri/pod/container-process.h"

static struct nd_error *check(const struct cri_container *container) {
        if (container->state == CONTAINER_EXITED)
                return nd_error_new(ND_PRECONDITION, 0, "container %.13s cannot be started: it has exited: %s", container->id,
                                    *container->message ? container->message : container->reason);
        if (container->state != CONTAINER_CREATED)
                return nd_error_new(ND_PRECONDITION, 0, "container %.13s cannot be started: it is not in state CREATED",
                                    container->id);
        if ((container->sandbox->state != SANDBOX_READY || container->sandbox->stopping) && !container->internal)
                return nd_error_new(ND_PRECONDITION, 0, "sandbox %.13s of the container is not ready", container->sandbox->id);
        return nullptr;
}

/* Returns the exit that was reported while crun start ran; false = none. */
static bool take_early_exit(struct cri_container_life *life) {
        if (!life->has_end)
                return false;
        life->has_end = false;
        cri_container_exited(life, &life->end);
        return true;
}

/* The pod's init is removed after a failed start; any other container is kept, and has exited or is
 * about to. */
static void record_failure(struct cri_container_operation *operation, const struct nd_error *error) {
        struct cri_container *container = operation->container;

        if (operation->kind == OPERATION_INIT)
                return;
        nd_strset(&container->reason, "StartError");
        nd_strset(&container->message, nd_error_text(error));
        if (!take_early_exit(container->life))
                cri_container_kill(container); /* the monitor will report its exit */
}

static void on_started(struct nd_error *error, void *userdata) {
        struct cri_container_operation *operation = userdata;
        struct cri_container *container = operation->container;

        operation->call = nullptr;
        if (error && cri_oci_runtime_has_started(&operation->parts->config, container->sandbox->request.runtime_handler,
                                                 container->id)) {
                nd_log(ND_LOG_NOTICE, "OCI runtime start failed after the container had started",
                       nd_field("container", container->id), nd_field("error", nd_error_text(error)));
                nd_error_free(error);
                error = nullptr;
        }
        if (error)
                record_failure(operation, error);
        cri_container_advance(operation, INPUT_DONE, error);
}

struct nd_error *cri_container_start_run(struct cri_container_operation *operation) {
        struct cri_container *container = operation->container;
        struct cri_parts *parts = operation->parts;

        nd_try(check(container));
        if (container->life->sync_error) {
                struct nd_error *error = nd_take_ptr(container->life->sync_error);

                cri_container_sync(container->life); /* for the next attempt */
                return error;
        }
        container->started = true;
        container->started_at = nd_clock_wall_ns();
        nd_try(cri_record_save_container(parts->records, container, RECORD_NOSYNC));
        return cri_oci_runtime_start(parts->loop, &parts->config, container->sandbox->request.runtime_handler, container->id,
                                     on_started, operation, &operation->call);
}

void cri_container_start_record(struct cri_container_operation *operation) {
        struct cri_container *container = operation->container;

        container->state = CONTAINER_RUNNING;
        cri_events_of_container(operation->parts->events, container, EVENT_STARTED);
        if (!take_early_exit(container->life))
                cri_container_save(operation->parts, container);
}
