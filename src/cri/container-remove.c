/* SPDX-License-Identifier: Apache-2.0 */
/* container-remove.c - a container goes, or a creation is undone
 *
 * Theory of operation
 *   What was made is undone backwards: the process is killed (@STEP_KILL), a worker ends whatever else still lives of it (@STEP_QUELL), crun's state and the
 *   cgroup are deleted (@STEP_DELETE), a worker unmounts the root and removes the directories (@STEP_CLEAR), the record goes last. So a removal that
 *   is cut short anywhere is found again and finished.
 *   A creation may be undone by another daemon than the one that began it, while monitor and crun are still at work, or hang. Both live in a cgroup of
 *   their own, and what crun has made lives in the container's: two writes end all of it, and only when nobody is left there is anything deleted.
 *   After an ordinary end crun has deleted everything, and there is nothing to quell.
 *   A removal that fails shows the container again, ended: the kubelet asks once more. */
#include <fcntl.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "cri/container-operation.h"
#include "cri/events.h"
#include "cri/fuse.h"
#include "cri/paths.h"
#include "cri/record.h"
#include "cri/resources.h"
#include "sys/cgroup.h"
#include "sys/tree.h"

static constexpr uint64_t clear_deadline_us = 300 * ND_SECOND_US;
static constexpr uint64_t quell_deadline_us = 3 * KILL_PATIENCE_S * ND_SECOND_US; /* it has patience of its own, twice */

static bool undoes(const struct container_operation *operation) {
        return operation->kind != OPERATION_REMOVE;
}

/* Those who wait for the lane of a container that is gone. */
static void dismiss(struct lane *lane) {
        for (size_t i = 0; i < lane->waiting.count; i++) {
                struct container_operation *operation = lane->waiting.items[i].userdata;
                bool wanted = operation->kind == OPERATION_STOP || operation->kind == OPERATION_REMOVE;

                operation->container = nullptr;
                operation_finish(operation,
                                 wanted ? nullptr : nd_error_new(ND_NOT_FOUND, 0, "the container was removed meanwhile"));
        }
}

static void leave_the_book(struct container_operation *operation) {
        struct container *container = nd_take_ptr(operation->container);
        struct lane lane = nd_take(container->lane, (struct lane) {});
        struct nd_error *error = nd_take_ptr(operation->error);

        container->life->current = nullptr;
        if (!undoes(operation))
                events_of_container(operation->daemon->events, container, EVENT_DELETED);
        pods_drop_container(&operation->daemon->pods, container);
        operation_finish(operation, error);
        dismiss(&lane);
        lane_done(&lane);
}

/* The container stays, as something that has ended. */
static void give_up(struct container_operation *operation, struct nd_error *error) {
        struct container *container = operation->container;

        if (!undoes(operation)) {
                container->state = CONTAINER_EXITED;
                container_save(operation->daemon, container);
                operation_finish(operation, error);
                return;
        }
        /* Nobody is told of it, so nobody would ask again: the next start of the daemon finishes what is in the record. */
        nd_log(ND_LOG_WARNING, "cannot undo a creation", nd_field("container", container->id),
               nd_field("error", nd_error_text(error)));
        if (!operation->error)
                operation->error = nd_take_ptr(error);
        nd_error_free(error);
        operation_finish(operation, nd_take_ptr(operation->error));
}

/* ---- what workers do; they have a copy of all our memory, so nothing need outlive the call that starts one ---- */

struct clearing {
        char *directory;
        char *run;
        char *cgroups[2]; /* the monitor's first: who makes the container must not live longer than what it makes */
};

static void clearing_done(struct clearing *clearing) {
        free(clearing->directory);
        free(clearing->run);
        for (size_t i = 0; i < nd_count_of(clearing->cgroups); i++)
                free(clearing->cgroups[i]);
}

/* The container's cgroup is known when crun has told of it; until then it is where crun was told to make it. */
static struct nd_error *plan_clearing(const struct container_operation *operation, struct clearing *ret) {
        const struct container *container = operation->container;
        const struct cri_config *config = &operation->daemon->config;

        ret->directory = path_of_container(config, container);
        ret->run = path_of_container_run(config, container->id);
        if (!container->sandbox->this_boot)
                return nullptr;
        if (*container->monitor_cgroup == '\0') /* of a record that could not be read */
                nd_try(monitor_home(container->id, &ret->cgroups[0]));
        else
                ret->cgroups[0] = nd_strdup(container->monitor_cgroup);
        if (*container->cgroup == '\0')
                return resources_cgroup_path(config, container->sandbox->request.cgroup_parent, container->id,
                                             &ret->cgroups[1]);
        ret->cgroups[1] = nd_strdup(container->cgroup);
        return nullptr;
}

/* Processes that hang in a FUSE filesystem of their own need more than SIGKILL. */
static struct nd_error *clear_cgroup(const char *cgroup) {
        nd_autoerror struct nd_error *error = nd_cgroup_clear(cgroup, MONITOR_PATIENCE_S * ND_SECOND_US);

        if (!error || nd_error_code(error) != ND_DEADLINE)
                return nd_take_ptr(error);
        fuse_abort(cgroup);
        return nd_cgroup_clear(cgroup, (KILL_PATIENCE_S - MONITOR_PATIENCE_S) * ND_SECOND_US);
}

static struct nd_error *quell_work(void *argument, [[maybe_unused]] int *ret_fd) {
        const struct clearing *clearing = argument;

        for (size_t i = 0; i < nd_count_of(clearing->cgroups); i++)
                if (clearing->cgroups[i] && *clearing->cgroups[i])
                        nd_try(clear_cgroup(clearing->cgroups[i]));
        return nullptr;
}

static struct nd_error *clear_work(void *argument, int *ret_fd) {
        const struct clearing *clearing = argument;

        nd_try(quell_work(argument, ret_fd)); /* the monitor's cgroup is there until now */
        nd_try(bundle_undo(clearing->directory));
        return nd_tree_remove(AT_FDCWD, clearing->run);
}

static void start_worker(struct container_operation *operation, const char *what, nd_worker_function function,
                         uint64_t deadline_us, nd_worker_callback callback) {
        nd_cleanup(clearing_done) struct clearing clearing = {};
        struct nd_error *error = plan_clearing(operation, &clearing);

        if (!error)
                error = nd_worker_start(operation->daemon->loop, what, function, &clearing, deadline_us, callback, operation,
                                        &operation->worker);
        if (error)
                give_up(operation, error);
}

/* ---- directories ---- */

static void on_cleared(struct nd_error *error, [[maybe_unused]] int fd, void *userdata) {
        struct container_operation *operation = userdata;

        operation->worker = nullptr;
        if (!error)
                error = record_remove_container(operation->daemon->records, operation->container);
        if (error)
                give_up(operation, error);
        else
                leave_the_book(operation);
}

static void clear(struct container_operation *operation) {
        operation->step = STEP_CLEAR;
        start_worker(operation, "remove the container's files", clear_work, clear_deadline_us, on_cleared);
}

/* ---- the engine ---- */

static void on_deleted(struct nd_error *error, void *userdata) {
        struct container_operation *operation = userdata;

        operation->call = nullptr;
        if (error) {
                give_up(operation, error);
                return;
        }
        operation->container->made &= ~(unsigned) CONTAINER_MADE_ENGINE;
        clear(operation);
}

static void on_quelled(struct nd_error *error, [[maybe_unused]] int fd, void *userdata) {
        struct container_operation *operation = userdata;
        struct runtime *daemon = operation->daemon;

        operation->worker = nullptr;
        operation->step = STEP_DELETE;
        if (!error)
                error = engine_delete(daemon->loop, &daemon->config, operation->container->sandbox->request.runtime_handler,
                                      operation->container->id, on_deleted, operation, &operation->call);
        if (error)
                give_up(operation, error);
}

static void delete(struct container_operation *operation) {
        const struct container *container = operation->container;

        if (!(container->made & CONTAINER_MADE_ENGINE) || !container->sandbox->this_boot) {
                clear(operation);
                return;
        }
        operation->step = STEP_QUELL;
        start_worker(operation, "end what is left of the container", quell_work, quell_deadline_us, on_quelled);
}

/* ---- the beginning ---- */

void removal_ended(struct container_operation *operation) {
        struct container *container = operation->container;

        if (operation->step != STEP_KILL || container_lives(container) || container->life->cleanup)
                return;
        nd_worker_cancel(nd_take_ptr(operation->worker));     /* that aborted FUSE connections */
        nd_worker_cancel(nd_take_ptr(container->life->sync)); /* the record goes */
        container_tell_end(container->life);
        operation->timer = sd_event_source_disable_unref(operation->timer);
        container->state = CONTAINER_REMOVED;
        container_save(operation->daemon, container);
        delete (operation);
}

void removal_begin(struct container_operation *operation) {
        struct container *container = operation->container;

        operation->step = STEP_KILL;
        if (!container_lives(container)) {
                removal_ended(operation);
                return;
        }
        operation_kill(operation);
}

void removal_undo(struct container_operation *operation, struct nd_error *error) {
        struct container *container = operation->container;

        nd_error_free(operation->error);
        operation->error = error;
        if (!error && !operation->abandoned)
                operation->error = nd_error_new(ND_INTERNAL, 0, "the creation was undone");
        monitor_free(nd_take_ptr(container->monitor));
        if (container->made == 0) { /* refused before anything was on disk */
                leave_the_book(operation);
                return;
        }
        delete (operation);
}
