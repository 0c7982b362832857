/* SPDX-License-Identifier: Apache-2.0 */
/* container-remove.c - steps of a removal, and of the undo of a creation; see container.c
 *
 * Theory of operation
 *   Everything is undone in reverse order: after the exit a worker kills the container's remaining
 *   processes, crun deletes its state and the cgroup, a worker unmounts the root and removes the
 *   directories, and the record is removed last. So an interrupted removal is found again and
 *   completed.
 *   A creation may be undone by a later daemon than the one that started it, while monitor and crun
 *   still run, or hang. Both are in a cgroup of their own, and what crun has created is in the
 *   container's: two writes kill everything, and nothing is deleted until both cgroups are empty.
 *   After a normal exit crun has deleted everything, and there is nothing to kill.
 *   After a failed removal the container is listed again as EXITED; the kubelet retries. */
#include <fcntl.h>
#include <string.h>

#include "base/log.h"
#include "cri/bundle/bundle.h"
#include "cri/core/paths.h"
#include "cri/core/record.h"
#include "cri/pod/container-operation.h"
#include "cri/pod/fuse.h"
#include "sys/cgroup.h"
#include "sys/tree.h"

static constexpr uint64_t clear_deadline_us = 300 * ND_SECOND_US;
/* it contains two timeouts of its own */
static constexpr uint64_t kill_deadline_us = 3 * cri_kill_timeout_us;

/* ---- in workers; they have a copy of our memory, so nothing need outlive the call that starts one
 * ---- */

struct clearing {
        char *directory;
        char *run;
        char *cgroups[2]; /* the monitor's first: the creator must not outlive what it creates */
};

static void clearing_done(struct clearing *clearing) {
        free(clearing->directory);
        free(clearing->run);
        for (size_t i = 0; i < nd_count_of(clearing->cgroups); i++)
                free(clearing->cgroups[i]);
}

static struct nd_error *plan_clearing(const struct cri_container_operation *operation, struct clearing *ret) {
        const struct cri_container *container = operation->container;
        const struct cri_config *config = &operation->parts->config;

        ret->directory = cri_path_of_container(config, container);
        ret->run = cri_path_of_container_run(config, container->id);
        if (!container->sandbox->this_boot)
                return nullptr;
        if (*container->monitor_cgroup == '\0') /* of a record that could not be read */
                nd_try(cri_monitor_home(container->id, &ret->cgroups[0]));
        else
                ret->cgroups[0] = nd_strdup(container->monitor_cgroup);
        ret->cgroups[1] = nd_strdup(container->cgroup);
        return nullptr;
}

/* Processes that hang in a FUSE filesystem of their own do not die by SIGKILL alone. */
static struct nd_error *clear_cgroup(const char *cgroup) {
        nd_autoerror struct nd_error *error = nd_cgroup_clear(cgroup, cri_monitor_timeout_us);

        if (!error || nd_error_code(error) != ND_DEADLINE)
                return nd_take_ptr(error);
        cri_fuse_abort(cgroup);
        return nd_cgroup_clear(cgroup, cri_kill_timeout_us - cri_monitor_timeout_us);
}

static struct nd_error *kill_work(void *argument, [[maybe_unused]] int *ret_fd) {
        const struct clearing *clearing = argument;

        nd_autofree char *given = nullptr;

        for (size_t i = 0; i < nd_count_of(clearing->cgroups); i++)
                if (clearing->cgroups[i] && *clearing->cgroups[i])
                        nd_try(clear_cgroup(clearing->cgroups[i]));
        if (!clearing->cgroups[1] || *clearing->cgroups[1])
                return nullptr;
        /* crun was interrupted before it reported the container's cgroup */
        nd_try(cri_bundle_cgroup(clearing->directory, &given));
        return given ? clear_cgroup(given) : nullptr;
}

static struct nd_error *clear_work(void *argument, int *ret_fd) {
        const struct clearing *clearing = argument;

        nd_try(kill_work(argument, ret_fd)); /* the monitor's cgroup exists until now */
        nd_try(cri_bundle_undo(clearing->directory));
        return nd_tree_remove(AT_FDCWD, clearing->run);
}

static void on_worker(struct nd_error *error, [[maybe_unused]] int fd, void *userdata) {
        struct cri_container_operation *operation = userdata;

        operation->worker = nullptr;
        cri_container_advance(operation, INPUT_DONE, error);
}

static struct nd_error *start_worker(struct cri_container_operation *operation, const char *what, nd_worker_function function,
                                     uint64_t deadline_us) {
        nd_cleanup(clearing_done) struct clearing clearing = {};

        nd_try(plan_clearing(operation, &clearing));
        return nd_worker_start(operation->parts->loop, what, function, &clearing, deadline_us, on_worker, operation,
                               &operation->worker);
}

/* ---- steps ---- */

void cri_container_remove_record(struct cri_container_operation *operation) {
        struct cri_container *container = operation->container;

        nd_worker_cancel(nd_take_ptr(operation->worker)); /* which aborted FUSE connections */
        /* the record is going to be removed */
        nd_worker_cancel(nd_take_ptr(container->life->sync));
        cri_container_report_exit(container->life);
        operation->timer = sd_event_source_disable_unref(operation->timer);
        container->state = CONTAINER_REMOVED;
        cri_container_save(operation->parts, container);
}

bool cri_container_remove_needs_delete(const struct cri_container *container) {
        return (container->made & CONTAINER_MADE_ENGINE) && container->sandbox->this_boot;
}

struct nd_error *cri_container_remove_kill_cgroups(struct cri_container_operation *operation) {
        return start_worker(operation, "kill the container's remaining processes", kill_work, kill_deadline_us);
}

static void on_deleted(struct nd_error *error, void *userdata) {
        struct cri_container_operation *operation = userdata;

        operation->call = nullptr;
        if (!error)
                operation->container->made &= ~(unsigned) CONTAINER_MADE_ENGINE;
        cri_container_advance(operation, INPUT_DONE, error);
}

struct nd_error *cri_container_remove_delete(struct cri_container_operation *operation) {
        struct cri_parts *parts = operation->parts;

        return cri_oci_runtime_delete(parts->loop, &parts->config, operation->container->sandbox->request.runtime_handler,
                                      operation->container->id, on_deleted, operation, &operation->call);
}

struct nd_error *cri_container_remove_files(struct cri_container_operation *operation) {
        return start_worker(operation, "remove the container's files", clear_work, clear_deadline_us);
}

struct nd_error *cri_container_remove_forget(struct cri_container_operation *operation) {
        nd_try(cri_record_remove_container(operation->parts->records, operation->container));
        operation->forgotten = true;
        return nullptr;
}

void cri_container_remove_failed(struct cri_container_operation *operation, const struct nd_error *error) {
        struct cri_container *container = operation->container;

        if (operation->kind == OPERATION_REMOVE) {
                container->state = CONTAINER_EXITED;
                cri_container_save(operation->parts, container);
                return;
        }
        /* The kubelet does not know the container and cannot retry: the next start of the daemon
         * completes the undo from the record. */
        nd_log(ND_LOG_WARNING, "cannot undo the creation of a container; the next start of nodens-cri retries",
               nd_field("container", container->id), nd_field("error", nd_error_text(error)));
}
