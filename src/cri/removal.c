/* SPDX-License-Identifier: Apache-2.0 */
/* removal.c - a container goes, or a creation is undone
 *
 * Theory of operation
 *   What was made is undone backwards: the process is killed (@STEP_KILL), crun's state and the cgroup are deleted (@STEP_DELETE), a worker unmounts the
 *   root and removes the directories (@STEP_CLEAR), the record goes last. So a removal that is cut short anywhere is found again and finished.
 *   A removal that fails shows the container again, ended: the kubelet asks once more. */
#include <fcntl.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "cri/events.h"
#include "cri/operation.h"
#include "cri/paths.h"
#include "cri/record.h"
#include "sys/tree.h"

static constexpr uint64_t clear_deadline_us = 300 * ND_SECOND_US;

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

/* ---- directories ---- */

struct clearing {
        char *directory;
        char *run;
};

static void clearing_done(struct clearing *clearing) {
        free(clearing->directory);
        free(clearing->run);
}

static struct nd_error *clear_work(void *argument, [[maybe_unused]] int *ret_fd) {
        const struct clearing *clearing = argument;

        nd_try(bundle_undo(clearing->directory));
        return nd_tree_remove(AT_FDCWD, clearing->run);
}

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
        struct daemon *daemon = operation->daemon;
        nd_cleanup(clearing_done) struct clearing clearing = {
                .directory = path_of_container(&daemon->config, operation->container),
                .run = path_of_container_run(&daemon->config, operation->container->id)};
        struct nd_error *error;

        operation->step = STEP_CLEAR;
        /* The worker has a copy of all our memory: the clearing need not outlive the call. */
        error = nd_worker_start(daemon->loop, "remove the container's files", clear_work, &clearing, clear_deadline_us,
                                on_cleared, operation, &operation->worker);
        if (error)
                give_up(operation, error);
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

static void delete(struct container_operation *operation) {
        struct container *container = operation->container;
        struct daemon *daemon = operation->daemon;
        struct nd_error *error;

        operation->step = STEP_DELETE;
        if (!(container->made & CONTAINER_MADE_ENGINE) || !container->sandbox->this_boot) {
                clear(operation);
                return;
        }
        error = engine_delete(daemon->loop, &daemon->config, container->id, on_deleted, operation, &operation->call);
        if (error)
                give_up(operation, error);
}

/* ---- the beginning ---- */

void removal_ended(struct container_operation *operation) {
        struct container *container = operation->container;

        if (operation->step != STEP_KILL || container->life->cleanup)
                return;
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
        container_kill(container);
        operation_patience(operation, KILL_PATIENCE_S);
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
