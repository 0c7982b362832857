/* SPDX-License-Identifier: Apache-2.0 */
/* container-stop.c - steps of a stop, and of the kill before a removal; see container.c
 *
 * Theory of operation
 *   The stop signal is sent to the first process. After the timeout SIGKILL is sent to all
 *   processes of the container. If the exit is still not complete after @cri_monitor_timeout_us,
 *   either the monitor hangs and is killed, or processes hang in a FUSE filesystem of their own,
 *   whose connections a worker aborts; if the pod is being stopped, also those of its bridged
 *   volumes, whose storage may not respond. After @cri_kill_timeout_us the caller gets an error.
 *   The timer runs until the cleanup after the exit is complete: other processes of the container
 *   may outlive the first one, and hang. */
#include <signal.h>

#include "cri/bundle/bridge.h"
#include "cri/pod/container-operation.h"
#include "cri/pod/container-process.h"
#include "cri/pod/fuse.h"

static constexpr uint64_t fuse_abort_deadline_us = 10 * ND_SECOND_US;

static int on_timeout([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t now, void *userdata) {
        cri_container_advance(userdata, INPUT_TIMEOUT, nullptr);
        return 0;
}

static void set_timer(struct cri_container_operation *operation, uint64_t us) {
        sd_event_source_disable_unref(operation->timer);
        operation->timer = nullptr;
        if (sd_event_add_time_relative(operation->parts->loop, &operation->timer, CLOCK_MONOTONIC, us, 10 * ND_MS_US,
                                       on_timeout, operation) < 0)
                abort();
}

/* ---- the stop signal ---- */

static void set_stop_timer(struct cri_container_operation *operation) {
        uint64_t seconds = operation->timeout_s > 0 ? (uint64_t) operation->timeout_s : 0;

        set_timer(operation, seconds > UINT64_MAX / 2 / ND_SECOND_US ? UINT64_MAX / 2 : seconds * ND_SECOND_US);
}

bool cri_container_stop_signal(struct cri_container_operation *operation) {
        const struct cri_container *container = operation->container;

        /* A container that was never started has no process that could handle a signal. */
        if (operation->timeout_s <= 0 || container->state == CONTAINER_CREATED ||
            !cri_container_signal(container, container->stop_signal))
                return false;
        set_stop_timer(operation);
        return true;
}

void cri_container_stop_shorten(struct cri_container_operation *operation, int64_t timeout_s) {
        operation->timeout_s = timeout_s;
        set_stop_timer(operation);
}

/* ---- SIGKILL ---- */

/* In a worker, which has a copy of our memory. */
static struct nd_error *abort_work(void *argument, [[maybe_unused]] int *ret_fd) {
        const struct cri_container_operation *operation = argument;
        const struct cri_container *container = operation->container;

        if (container->sandbox->stopping) /* no other container of the pod needs its volumes */
                cri_bridge_abort_all(&operation->parts->config, container->sandbox);
        cri_fuse_abort(container->cgroup);
        return nullptr;
}

static void on_aborted(struct nd_error *error, [[maybe_unused]] int fd, void *userdata) {
        struct cri_container_operation *operation = userdata;

        operation->worker = nullptr;
        nd_error_free(error); /* the rest of the timeout shows whether it helped */
}

static void abort_fuse(struct cri_container_operation *operation) {
        if (*operation->container->cgroup && !operation->worker)
                nd_ignore(nd_worker_start(operation->parts->loop, "abort FUSE connections", abort_work, operation,
                                          fuse_abort_deadline_us, on_aborted, operation, &operation->worker));
}

void cri_container_stop_kill(struct cri_container_operation *operation) {
        operation->waited = false;
        cri_container_kill(operation->container);
        set_timer(operation, cri_monitor_timeout_us);
}

struct nd_error *cri_container_stop_kill_timeout(struct cri_container_operation *operation) {
        const struct cri_container *container = operation->container;

        if (cri_container_give_up_monitor(container->life))
                return nullptr;
        if (!operation->waited) {
                operation->waited = true;
                set_timer(operation, cri_kill_timeout_us - cri_monitor_timeout_us);
                abort_fuse(operation);
                return nullptr;
        }
        return nd_error_new(ND_DEADLINE, ETIMEDOUT,
                            "container %.13s is still alive %d s after SIGKILL: a process hangs in the "
                            "kernel, see /proc/%d/stack",
                            container->id, (int) (cri_kill_timeout_us / ND_SECOND_US), (int) container->pid);
}
