/* SPDX-License-Identifier: Apache-2.0 */
/* cni-check.c - see cni-check.h
 *
 * Theory of operation
 *   While no daemon ran, nobody held the node's network to account: an upgrade of the plugins, a flushed ruleset or a removed bridge leaves pods that are
 *   READY and cannot be reached. CNI's CHECK tells, so each pod that a new daemon finds is checked once, one at a time and with a pause between
 *   two: a node may have a thousand, and the kubelet's requests come first. What is found is noted and logged (cri_sandbox_check()), and no more is
 *   done: a plugin's CHECK may be stricter than what the pod needs, and only the kubelet decides over pods.
 * Owns       the list of ids and a timer. A check that runs belongs to its sandbox. */
#include "cri/pod/cni-check.h"

#include <systemd/sd-event.h>

#include "base/clock.h"
#include "cri/core/parts.h"
#include "cri/pod/sandbox.h"

static constexpr uint64_t first_us = ND_SECOND_US; /* after a restart the kubelet has much to ask */
static constexpr uint64_t pause_us = 100 * ND_MS_US;

struct cri_cni_check {
        struct cri_parts *parts;
        struct nd_strings ids; /* of sandboxes, from the last to the first */
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
                abort(); /* only memory can be missing */
}

void cri_cni_check_begin(struct cri_cni_check *checks) {
        wait_for_next(checks, first_us);
}
