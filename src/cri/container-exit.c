/* SPDX-License-Identifier: Apache-2.0 */
/* container-exit.c - the exit of a container, and what a restart finds; see container.c
 *
 * Theory of operation
 *   The monitor reports that the first process has exited. The exit goes into the record. Then crun
 *   deletes what is left (other processes where the pid namespace is not the container's own, its
 *   state, the cgroup), while a worker writes the record through to the disk. The kubelet is not
 *   told before that, and a stop ends when both are done. If the record cannot be written, the exit
 *   is reported anyway. */
#include <signal.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "cri/attachment.h"
#include "cri/container-operation.h"
#include "cri/container-process.h"
#include "cri/container.h"
#include "cri/events.h"
#include "cri/exec.h"
#include "cri/paths.h"
#include "cri/record.h"
#include "cri/verdict.h"

enum {
        KILLED = 128 + SIGKILL,
        NEVER_STARTED = 128, /* the field's code for that */
};

static constexpr uint64_t sync_deadline_us = 60 * ND_SECOND_US;

void container_save(struct runtime *parts, const struct container *container) {
        nd_autoerror struct nd_error *error = record_save_container(parts->records, container, RECORD_NOSYNC);

        if (error)
                nd_log(ND_LOG_ERROR, "cannot save a container's record", nd_field("container", container->id),
                       nd_field("error", nd_error_text(error)));
}

/* Without it the next daemon would lay the same kills to another container. */
static void save_charge(struct runtime *parts, const struct sandbox *sandbox) {
        nd_autoerror struct nd_error *error = record_save_sandbox(parts->records, sandbox, RECORD_NOSYNC);

        if (error)
                nd_log(ND_LOG_ERROR, "cannot save a pod's record", nd_field("sandbox", sandbox->id),
                       nd_field("error", nd_error_text(error)));
}

static struct nd_error *sync_work(void *argument, [[maybe_unused]] int *ret_fd) {
        const struct container_life *life = argument;
        nd_autofree char *directory = path_of_container(&life->parts->config, life->container);

        nd_ignore(attachment_undo(directory)); /* the container has copies; what stays goes with its removal */
        return record_sync_container(life->parts->records, life->container);
}

void container_report_exit(struct container_life *life) {
        if (!life->container->exit_unsaved)
                return;
        life->container->exit_unsaved = false;
        events_of_container(life->parts->events, life->container, EVENT_STOPPED);
}

static void on_synced(struct nd_error *error, [[maybe_unused]] int fd, void *userdata) {
        struct container_life *life = userdata;

        life->sync = nullptr;
        nd_error_free(life->sync_error);
        life->sync_error = error;
        if (error)
                nd_log(ND_LOG_ERROR, "cannot sync a container's record", nd_field("container", life->container->id),
                       nd_field("error", nd_error_text(error)));
        container_report_exit(life);
        container_changed(life);
}

/* A pod that is to run once must not run again after a power cut: its record is on the disk before
 * its process runs, and so is its end before the kubelet knows of it. The disk is waited for by a
 * worker, while the kubelet gets ready to start what it has created, or crun clears up. */
void container_sync(struct container_life *life) {
        nd_worker_cancel(nd_take_ptr(life->sync));
        nd_error_free(life->sync_error);
        life->sync_error = nd_worker_start(life->parts->loop, "sync the container's record", sync_work, life,
                                           sync_deadline_us, on_synced, life, &life->sync);
}

/* ---- the exit ---- */

static void on_cleaned(struct nd_error *error, void *userdata) {
        struct container_life *life = userdata;

        life->cleanup = nullptr;
        if (error)
                nd_log(ND_LOG_WARNING, "cannot clear up after a container", nd_field("container", life->container->id),
                       nd_field("error", nd_error_text(error)));
        else
                life->container->made &= ~(unsigned) CONTAINER_MADE_ENGINE;
        nd_error_free(error);
        container_changed(life);
}

/* What fails here is tried again when the container is removed. */
static void clean_up(struct container_life *life) {
        struct runtime *parts = life->parts;
        nd_autoerror struct nd_error *error = nullptr;

        if (!(life->container->made & CONTAINER_MADE_ENGINE))
                return;
        error = oci_runtime_delete(parts->loop, &parts->config, life->container->sandbox->request.runtime_handler,
                              life->container->id, on_cleaned, life, &life->cleanup);
        if (error)
                nd_log(ND_LOG_WARNING, "cannot clear up after a container", nd_field("container", life->container->id),
                       nd_field("error", nd_error_text(error)));
}

void container_exited(struct container_life *life, const struct monitor_end *end) {
        struct container *container = life->container;
        bool out_of_memory = verdict_out_of_memory(container, end);

        container->before = container->state;
        container->state = CONTAINER_EXITED;
        container->exit_code = nd_streq(container->reason, "StartError") ? NEVER_STARTED : end->code;
        container->finished_at = end->at > container->started_at ? end->at : container->started_at;
        container->pid = 0;
        if (*container->reason == '\0')
                nd_strset(&container->reason, out_of_memory ? "OOMKilled" : end->code == 0 ? "Completed" : "Error");
        if (out_of_memory)
                save_charge(life->parts, container->sandbox);
        container_save(life->parts, container);
        container->exit_unsaved = true;
        container_sync(life);
        if (!life->sync)
                container_report_exit(life);
        clean_up(life);
        container_changed(life);
}

/* ---- a monitor that died or hangs ---- */

static struct monitor_end killed(void) {
        return (struct monitor_end) {.code = KILLED, .at = nd_clock_wall_ns(), .oom_kills = -1};
}

struct monitor_end container_kill_unmonitored(struct container_life *life) {
        struct monitor_end end = killed();

        container_kill(life->container);
        if (*life->container->message == '\0')
                nd_strset(&life->container->message,
                          "its monitor died, so its output was lost and it was killed: see the node's journal");
        if (*life->container->reason == '\0')
                nd_strset(&life->container->reason, "Error");
        return end;
}

bool container_give_up_monitor(struct container_life *life) {
        if (!container_lives(life->container) || !container_is_dead(life->container))
                return false;
        nd_log(ND_LOG_ERROR, "a container's monitor hangs and is killed", nd_field("container", life->container->id));
        container_kill_cgroup(life->container->monitor_cgroup);
        container_monitor_lost(life);
        return true;
}

/* ---- after a restart ---- */

static void forget(struct container_life *life, const char *why) {
        struct monitor_end end = killed();

        nd_strset(&life->container->message, why);
        nd_strset(&life->container->reason, "Error");
        container_kill(life->container);
        container_exited(life, &end);
}

void container_resume(struct runtime *parts, struct container *container) {
        struct container_life *life = life_of(parts, container);
        nd_autofree char *directory = path_of_container_run(&parts->config, container->id);
        nd_autoerror struct nd_error *error = nullptr;
        struct monitor_state state = {};

        if (!container_lives(container)) {
                if (container->state == CONTAINER_EXITED && container->sandbox->this_boot)
                        clean_up(life);
                return;
        }
        error = monitor_connect(parts->loop, directory, &container_monitor_events, life, &state, &container->monitor);
        if (error) {
                forget(life, nd_error_text(error));
        } else if (state.phase == MONITOR_EXITED) {
                monitor_free(nd_take_ptr(container->monitor));
                if (container->started && container->state == CONTAINER_CREATED)
                        container->state = CONTAINER_RUNNING;
                container_exited(life, &state.end);
        } else if (state.phase != MONITOR_CREATED || !container->monitor) {
                monitor_free(nd_take_ptr(container->monitor));
                forget(life, "its monitor died while the daemon was away, so nobody knows how it ended");
        } else if (container->started && container->state == CONTAINER_CREATED) {
                /* The daemon ended between the record of the start and its success. */
                if (oci_runtime_has_started(&parts->config, container->sandbox->request.runtime_handler, container->id)) {
                        container->state = CONTAINER_RUNNING;
                        container_save(parts, container);
                } else {
                        container_start(parts, container, nullptr, nullptr, nullptr);
                }
        } else {
                exec_forget(parts->loop, &parts->config, container);
        }
}
