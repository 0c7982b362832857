/* SPDX-License-Identifier: Apache-2.0 */
/* recovery.c - see recovery.h
 *
 * Theory of operation
 *   A record's state says whether the object was reported to the kubelet. A NEW one was not: the
 *   kubelet will never ask for it, so it is removed, which undoes what its record says was made.
 *   The same applies to one whose removal had begun. All others are kept.
 *   For objects of this boot, cri_container_resume() reconnects the containers that may be alive to
 *   their monitors. Of an earlier boot nothing is alive: containers that were started are marked as
 *   ended with the node, so that a pod which must run once does not run again; the kubelet removes
 *   it, and with it the state of the network plugins. */
#include "cri/pod/recovery.h"

#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "cri/core/parts.h"
#include "cri/core/record.h"
#include "cri/pod/container.h"
#include "cri/pod/sandbox.h"

enum { LOST_WITH_NODE = 255 };

/* The time of boot in nanoseconds since 1970: everything from before has ended by then. */
static uint64_t boot_time(void) {
        struct timespec now, up;

        (void) clock_gettime(CLOCK_REALTIME, &now);
        (void) clock_gettime(CLOCK_BOOTTIME, &up);
        return (uint64_t) (now.tv_sec - up.tv_sec) * 1000000000;
}

/* ---- earlier boot ---- */

static void end_with_node(struct cri_container *container) {
        uint64_t boot = boot_time();

        container->pid = 0;
        if (container->state == CONTAINER_EXITED || container->state == CONTAINER_NEW || container->state == CONTAINER_REMOVED)
                return;
        container->state = CONTAINER_EXITED;
        container->exit_code = LOST_WITH_NODE;
        container->finished_at = boot > container->started_at ? boot : container->started_at + 1;
        nd_strset(&container->reason, "NodeRestarted");
        nd_strset(&container->message, container->started ? "the node was restarted while the container ran"
                                                          : "the node was restarted before the container was started");
}

/* Saved once, without sync: if it is lost, the next start finds the same. */
static void settle_sandbox(struct cri_record_store *records, struct cri_sandbox *sandbox) {
        nd_autoerror struct nd_error *error = nullptr;

        nd_vector_each (container, &sandbox->containers) {
                end_with_node(*container);
                if (!error)
                        error = cri_record_save_container(records, *container, RECORD_NOSYNC);
        }
        if (sandbox->init)
                end_with_node(sandbox->init);
        if (sandbox->state == SANDBOX_READY)
                sandbox->state = SANDBOX_NOTREADY;
        if (error)
                nd_log(ND_LOG_WARNING, "cannot save the containers that ended with the last boot",
                       nd_field("sandbox", sandbox->id), nd_field("error", nd_error_text(error)));
}

/* ---- this boot ---- */

static void on_undone(struct nd_error *error, [[maybe_unused]] void *object, void *userdata) {
        nd_autofree char *what = userdata;

        if (error)
                nd_log(ND_LOG_WARNING,
                       "cannot undo an unfinished operation of the previous daemon; the next start of nodens-cri retries",
                       nd_field("object", what), nd_field("error", nd_error_text(error)));
        nd_error_free(error);
}

static void on_sandbox_undone(struct nd_error *error, struct cri_sandbox *sandbox, void *userdata) {
        on_undone(error, sandbox, userdata);
}

static void on_container_undone(struct nd_error *error, struct cri_container *container, void *userdata) {
        on_undone(error, container, userdata);
}

static void resume_containers(struct cri_parts *parts, struct cri_sandbox *sandbox) {
        nd_vector_each (item, &sandbox->containers) {
                struct cri_container *container = *item;

                if (container->state == CONTAINER_NEW || container->state == CONTAINER_REMOVED)
                        cri_container_remove(parts, container, on_container_undone, nd_format("container %s", container->id),
                                             nullptr);
                else if (sandbox->this_boot && cri_container_lives(container))
                        cri_container_resume(parts, container);
        }
        if (sandbox->init && sandbox->this_boot && cri_container_lives(sandbox->init))
                cri_container_resume(parts, sandbox->init);
}

static void resume_sandbox(struct cri_parts *parts, struct cri_sandbox *sandbox) {
        if (!sandbox->this_boot)
                settle_sandbox(parts->records, sandbox);
        resume_containers(parts, sandbox);
        if (sandbox->state == SANDBOX_NEW || sandbox->state == SANDBOX_REMOVED)
                cri_sandbox_remove(parts, sandbox, on_sandbox_undone, nd_format("pod sandbox %s", sandbox->id), nullptr);
}

/* ---- all pods ---- */

static void report(const struct cri_pod_table *pods, const struct nd_strings *problems, uint64_t began) {
        size_t sandboxes = pods->sandboxes.count, containers = pods->containers.count;
        nd_autofree char *us = nd_format("%llu", (unsigned long long) (nd_clock_us() - began)),
                         *message = nd_format("took over %zu %s with %zu %s of the previous daemon", sandboxes,
                                              sandboxes == 1 ? "pod" : "pods", containers,
                                              containers == 1 ? "container" : "containers");

        nd_vector_each (problem, problems) {
                nd_log(ND_LOG_ERROR, *problem);
        }
        if (sandboxes > 0)
                nd_log(ND_LOG_INFO, message, nd_field("us", us));
}

struct nd_error *cri_recovery_run(struct cri_parts *parts) {
        nd_cleanup(nd_strings_done) struct nd_strings problems = {};
        const struct nd_map_slot *slot;
        uint64_t began = nd_clock_us();

        nd_try(cri_record_load(parts->records, &parts->pods, &problems));
        /* Operations start from the loop: none of these changes the pod table during the
         * iteration. */
        for (size_t at = 0; (slot = nd_map_next(&parts->pods.sandboxes, &at));)
                resume_sandbox(parts, slot->value);
        report(&parts->pods, &problems, began);
        return nullptr;
}
