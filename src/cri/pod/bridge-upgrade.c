/* SPDX-License-Identifier: Apache-2.0 */
/* bridge-upgrade.c - see bridge-upgrade.h
 *
 * Theory of operation
 *   One worker looks at all pods, one after the other: it stops the processes of a volume for some
 *   milliseconds, and waits up to ten seconds for one whose storage does not respond.
 * Owns       the worker until it has ended. */
#include "cri/pod/bridge-upgrade.h"

#include "base/clock.h"
#include "base/log.h"
#include "cri/bundle/bridge.h"
#include "cri/core/parts.h"
#include "sys/worker.h"

enum {
        DEADLINE_S = 1800,
};

struct cri_bridge_upgrade {
        struct nd_worker *worker;
};

static struct nd_error *upgrade_all(void *argument, [[maybe_unused]] int *ret_fd) {
        const struct cri_parts *parts = argument;
        const struct nd_map_slot *slot;

        for (size_t at = 0; (slot = nd_map_next(&parts->pods.sandboxes, &at));) {
                const struct cri_sandbox *sandbox = slot->value;
                nd_autoerror struct nd_error *error = nullptr;

                if (!sandbox->this_boot || !sandbox->request.user_namespace)
                        continue;
                error = cri_bridge_upgrade(&parts->config, sandbox);
                if (error)
                        nd_log(ND_LOG_WARNING, "a volume keeps its old nodens-bridge", nd_field("sandbox", sandbox->id),
                               nd_field("error", nd_error_text(error)));
        }
        return nullptr;
}

static void on_done(struct nd_error *error, [[maybe_unused]] int fd, void *userdata) {
        struct cri_bridge_upgrade *upgrade = userdata;

        upgrade->worker = nullptr;
        if (error)
                nd_log(ND_LOG_WARNING, "volumes may keep their old nodens-bridge", nd_field("error", nd_error_text(error)));
        nd_error_free(error);
}

struct cri_bridge_upgrade *cri_bridge_upgrade_new(struct cri_parts *parts) {
        struct cri_bridge_upgrade *upgrade = nd_new(struct cri_bridge_upgrade);
        nd_autoerror struct nd_error *error = nd_worker_start(parts->loop, "replace nodens-bridge", upgrade_all, parts,
                                                              DEADLINE_S * ND_SECOND_US, on_done, upgrade, &upgrade->worker);

        if (error)
                nd_log(ND_LOG_WARNING, "volumes keep their old nodens-bridge", nd_field("error", nd_error_text(error)));
        return upgrade;
}

void cri_bridge_upgrade_free(struct cri_bridge_upgrade *upgrade) {
        if (!upgrade)
                return;
        nd_worker_cancel(upgrade->worker);
        free(upgrade);
}
