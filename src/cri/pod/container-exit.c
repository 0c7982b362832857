/* SPDX-License-Identifier: Apache-2.0 */
/* container-exit.c - the exit of a container, and recovery after a restart; see container.c
 *
 * Theory of operation
 *   The monitor reports that the first process has exited. The exit goes into the record. Then crun
 *   deletes the rest (other processes if the container has no pid namespace of its own, its state,
 *   the cgroup), while a worker syncs the record to disk. The exit is not reported to the kubelet
 *   before that, and a stop completes when both are done. If the record cannot be written, the exit
 *   is reported anyway. */
#include <signal.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "cri/bundle/volume-attachment.h"
#include "cri/core/events.h"
#include "cri/core/paths.h"
#include "cri/core/record.h"
#include "cri/oci-runtime/exec.h"
#include "cri/pod/container-operation.h"
#include "cri/pod/container-process.h"
#include "cri/pod/container.h"
#include "cri/pod/oom.h"

enum {
        KILLED = 128 + SIGKILL,
        NEVER_STARTED = 128, /* containerd and CRI-O use 128 too */
};

static constexpr uint64_t sync_deadline_us = 60 * ND_SECOND_US;

void cri_container_save(struct cri_parts *parts, const struct cri_container *container) {
        nd_autoerror struct nd_error *error = cri_record_save_container(parts->records, container, RECORD_NOSYNC);

        if (error)
                nd_log(ND_LOG_ERROR, "cannot save the record of a container", nd_field("container", container->id),
                       nd_field("error", nd_error_text(error)));
}

/* Without it the next daemon would attribute the same OOM kills to another container. */
static void save_charge(struct cri_parts *parts, const struct cri_sandbox *sandbox) {
        nd_autoerror struct nd_error *error = cri_record_save_sandbox(parts->records, sandbox, RECORD_NOSYNC);

        if (error)
                nd_log(ND_LOG_ERROR, "cannot save the record of a pod", nd_field("sandbox", sandbox->id),
                       nd_field("error", nd_error_text(error)));
}

static struct nd_error *sync_work(void *argument, [[maybe_unused]] int *ret_fd) {
        const struct cri_container_life *life = argument;
        nd_autofree char *directory = cri_path_of_container(&life->parts->config, life->container);

        /* the container has its own copies; leftovers are removed with the container */
        nd_ignore(cri_volume_attachment_undo(directory));
        return cri_record_sync_container(life->parts->records, life->container);
}

void cri_container_report_exit(struct cri_container_life *life) {
        if (!life->container->exit_unsaved)
                return;
        life->container->exit_unsaved = false;
        cri_events_of_container(life->parts->events, life->container, EVENT_STOPPED);
}

static void on_synced(struct nd_error *error, [[maybe_unused]] int fd, void *userdata) {
        struct cri_container_life *life = userdata;

        life->sync = nullptr;
        nd_error_free(life->sync_error);
        life->sync_error = error;
        if (error)
                nd_log(ND_LOG_ERROR, "cannot sync the record of a container", nd_field("container", life->container->id),
                       nd_field("error", nd_error_text(error)));
        cri_container_report_exit(life);
        cri_container_changed(life);
}

/* A pod that must run once must not run again after a power cut: the record is on disk before its
 * process runs, and the exit is on disk before it is reported to the kubelet. A worker does the
 * sync, in parallel with the kubelet's next request or with crun delete. */
void cri_container_sync(struct cri_container_life *life) {
        nd_worker_cancel(nd_take_ptr(life->sync));
        nd_error_free(life->sync_error);
        life->sync_error = nd_worker_start(life->parts->loop, "sync the container's record", sync_work, life, sync_deadline_us,
                                           on_synced, life, &life->sync);
}

/* ---- exit ---- */

static void on_cleaned(struct nd_error *error, void *userdata) {
        struct cri_container_life *life = userdata;

        life->cleanup = nullptr;
        if (error)
                nd_log(ND_LOG_WARNING, "OCI runtime delete failed after the container exited",
                       nd_field("container", life->container->id), nd_field("error", nd_error_text(error)));
        else
                life->container->made &= ~(unsigned) CONTAINER_MADE_ENGINE;
        nd_error_free(error);
        cri_container_changed(life);
}

/* On failure this is retried when the container is removed. */
static void clean_up(struct cri_container_life *life) {
        struct cri_parts *parts = life->parts;
        nd_autoerror struct nd_error *error = nullptr;

        if (!(life->container->made & CONTAINER_MADE_ENGINE))
                return;
        error = cri_oci_runtime_delete(parts->loop, &parts->config, life->container->sandbox->request.runtime_handler,
                                       life->container->id, on_cleaned, life, &life->cleanup);
        if (error)
                nd_log(ND_LOG_WARNING, "OCI runtime delete failed after the container exited",
                       nd_field("container", life->container->id), nd_field("error", nd_error_text(error)));
}

void cri_container_exited(struct cri_container_life *life, const struct cri_monitor_end *end) {
        struct cri_container *container = life->container;
        bool out_of_memory = cri_oom_killed(container, end);

        container->before = container->state;
        container->state = CONTAINER_EXITED;
        container->exit_code = nd_streq(container->reason, "StartError") ? NEVER_STARTED : end->code;
        container->finished_at = end->at > container->started_at ? end->at : container->started_at;
        container->pid = 0;
        if (*container->reason == '\0')
                nd_strset(&container->reason, out_of_memory ? "OOMKilled" : end->code == 0 ? "Completed" : "Error");
        if (out_of_memory)
                save_charge(life->parts, container->sandbox);
        cri_container_save(life->parts, container);
        container->exit_unsaved = true;
        cri_container_sync(life);
        if (!life->sync)
                cri_container_report_exit(life);
        clean_up(life);
        cri_container_changed(life);
}

/* ---- a monitor that died or hangs ---- */

static struct cri_monitor_end killed(void) {
        return (struct cri_monitor_end) {.code = KILLED, .at = nd_clock_wall_ns(), .oom_kills = -1};
}

struct cri_monitor_end cri_container_kill_unmonitored(struct cri_container_life *life) {
        struct cri_monitor_end end = killed();

        cri_container_kill(life->container);
        if (*life->container->message == '\0')
                nd_strset(&life->container->message,
                          "its monitor died; the container was killed and output may be lost: see the node's journal");
        if (*life->container->reason == '\0')
                nd_strset(&life->container->reason, "Error");
        return end;
}

bool cri_container_give_up_monitor(struct cri_container_life *life) {
        if (!cri_container_lives(life->container) || !cri_container_is_dead(life->container))
                return false;
        nd_log(ND_LOG_ERROR, "killing the monitor of a container, which hangs", nd_field("container", life->container->id));
        cri_container_kill_cgroup(life->container->monitor_cgroup);
        cri_container_monitor_lost(life);
        return true;
}

/* ---- after a restart ---- */

static void forget(struct cri_container_life *life, const char *why) {
        struct cri_monitor_end end = killed();

        nd_strset(&life->container->message, why);
        nd_strset(&life->container->reason, "Error");
        cri_container_kill(life->container);
        cri_container_exited(life, &end);
}

void cri_container_resume(struct cri_parts *parts, struct cri_container *container) {
        struct cri_container_life *life = cri_container_life_of(parts, container);
        nd_autofree char *directory = cri_path_of_container_run(&parts->config, container->id);
        nd_autoerror struct nd_error *error = nullptr;
        struct cri_monitor_state state = {};

        if (!cri_container_lives(container)) {
                if (container->state == CONTAINER_EXITED && container->sandbox->this_boot)
                        clean_up(life);
                return;
        }
        error = cri_monitor_connect(parts->loop, directory, &cri_container_monitor_events, life, &state, &container->monitor);
        if (error) {
                forget(life, nd_error_text(error));
        } else if (state.phase == MONITOR_EXITED) {
                cri_monitor_free(nd_take_ptr(container->monitor));
                if (container->started && container->state == CONTAINER_CREATED)
                        container->state = CONTAINER_RUNNING;
                cri_container_exited(life, &state.end);
        } else if (state.phase != MONITOR_CREATED || !container->monitor) {
                cri_monitor_free(nd_take_ptr(container->monitor));
                forget(life, "its monitor died while the daemon was down; the exit status is unknown");
        } else if (container->started && container->state == CONTAINER_CREATED) {
                /* The daemon died between recording the start and recording its success. */
                if (cri_oci_runtime_has_started(&parts->config, container->sandbox->request.runtime_handler, container->id)) {
                        container->state = CONTAINER_RUNNING;
                        cri_container_save(parts, container);
                } else {
                        cri_container_start(parts, container, nullptr, nullptr, nullptr);
                }
        } else {
                cri_exec_forget(parts->loop, &parts->config, container);
        }
}
