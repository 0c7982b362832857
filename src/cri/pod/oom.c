/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/pod/oom.h"

#include <signal.h>

#include "sys/cgroup.h"
#include "sys/file.h"

enum {
        KILLED = 128 + SIGKILL,
        EVENTS = 4096, /* memory.events has nine short lines */
};

/* -1 = unknown. */
static int64_t kills_of(const char *cgroup) {
        nd_autofree char *path = nd_format(ND_CGROUP_MOUNT "%s/memory.events", cgroup), *text = nullptr;
        nd_autoerror struct nd_error *error = nd_file_read_kernel(path, EVENTS, &text);
        uint64_t kills;

        return !error && nd_cgroup_key(text, "oom_kill", &kills) && kills <= INT64_MAX ? (int64_t) kills : -1;
}

int64_t cri_oom_share(int64_t all, int64_t charged, const int64_t *others, size_t count) {
        int64_t left = all - charged, waiting = 0;

        for (size_t i = 0; i < count; i++) {
                if (others[i] < 0)
                        waiting++;
                else
                        left -= others[i];
        }
        if (all < 0 || left <= 0)
                return 0;
        return left > waiting ? left - waiting : 1;
}

static bool has_not_ended(const struct cri_container *container) {
        return container->state == CONTAINER_CREATED || container->state == CONTAINER_RUNNING;
}

static int64_t share_of(const struct cri_container *container) {
        const struct cri_sandbox *sandbox = container->sandbox;
        nd_autofree int64_t *others = nd_calloc(sandbox->containers.count, sizeof *others);
        size_t count = 0;

        if (!*sandbox->request.cgroup_parent)
                return 0;
        nd_vector_each (other, &sandbox->containers) {
                if (*other != container && has_not_ended(*other))
                        others[count++] = kills_of((*other)->cgroup);
        }
        return cri_oom_share(kills_of(sandbox->request.cgroup_parent), (int64_t) sandbox->oom_kills, others, count);
}

bool cri_oom_killed(struct cri_container *container, const struct cri_monitor_end *end) {
        int64_t kills = end->oom_kills;

        if (kills < 0 && end->code == KILLED)
                kills = share_of(container);
        if (kills <= 0)
                return false;
        container->sandbox->oom_kills += (uint64_t) kills;
        return end->code != 0; /* a child was killed, and the container handled it */
}
