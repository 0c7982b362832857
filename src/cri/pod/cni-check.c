/* SPDX-License-Identifier: Apache-2.0 */
/* cni-check.c - see cni-check.h
 *
 * Theory of operation
 *   While the daemon was down the node's network may have changed: an upgrade of the plugins, a
 *   flushed ruleset or a removed bridge leaves pods that are READY but unreachable. CNI CHECK
 *   detects this. So every pod that a new daemon finds is checked once, one at a time and with a
 *   pause between two: a node may have a thousand, and the kubelet's requests come first. The
 *   result is recorded and logged (cri_sandbox_check()), nothing else: a plugin's CHECK may be
 *   stricter than the pod needs, and only the kubelet replaces pods.
 * Owns       the list of IDs and a timer. A running check belongs to its sandbox. */
#include "cri/pod/cni-check.h"

#include <systemd/sd-event.h>

#include "base/clock.h"
#include "cri/core/parts.h"
#include "cri/pod/sandbox.h"

/* the kubelet sends many requests after a restart */
static constexpr uint64_t first_us = ND_SECOND_US;
static constexpr uint64_t pause_us = 100 * ND_MS_US;

struct cri_cni_check {
        struct cri_parts *parts;
        struct nd_strings ids; /* of sandboxes, in reverse order */
        sd_event_source *timer;
};

struct cri_cni_check *cri_cni_check_new(struct cri_parts *parts) {
        struct cri_cni_check *checks = nd_new(struct cri_cni_check);
        const struct nd_map_slot *slot;

        checks->parts = parts;
        for (size_t at = 0; (slot = nd_map_next(&parts->pods.sandboxes, &at));) {
                const struct cri_sandbox *sandbox = slot->value;

                if (sandbox->state == SANDBOX_READY && sandbox->this_boot && (sandbox->made & SANDBOX_MADE_NETWORK))
                        nd_strings_add(&checks->ids, sandbox->id);
        }
        return checks;
}

void cri_cni_check_free(struct cri_cni_check *checks) {
        if (!checks)
                return;
        sd_event_source_disable_unref(checks->timer);
        nd_strings_done(&checks->ids);
        free(checks);
}

static void wait_for_next(struct cri_cni_check *checks, uint64_t us);

static void on_checked(struct nd_error *error, [[maybe_unused]] struct cri_sandbox *sandbox, void *userdata) {
        nd_error_free(error);
        wait_for_next(userdata, pause_us);
}

static int on_next([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t now, void *userdata) {
        struct cri_cni_check *checks = userdata;
        nd_autofree char *id = checks->ids.items[--checks->ids.count];
        struct cri_sandbox *sandbox = nd_map_get(&checks->parts->pods.sandboxes, id);

        if (sandbox && sandbox->state == SANDBOX_READY)
                cri_sandbox_check(checks->parts, sandbox, on_checked, checks);
        else
                wait_for_next(checks, 0);
        return 0;
}

static void wait_for_next(struct cri_cni_check *checks, uint64_t us) {
        sd_event_source_disable_unref(nd_take_ptr(checks->timer));
        if (checks->ids.count > 0 && sd_event_add_time_relative(checks->parts->loop, &checks->timer, CLOCK_MONOTONIC, us,
                                                                ND_MS_US, on_next, checks) < 0)
                abort(); /* out of memory is the only possible failure */
}

void cri_cni_check_begin(struct cri_cni_check *checks) {
        wait_for_next(checks, first_us);
}
