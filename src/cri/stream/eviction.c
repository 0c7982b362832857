/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/stream/eviction.h"

static bool is_root(const struct cri_tcp_owner *owner) {
        return owner->known && owner->uid == 0;
}

static bool is_same(const struct cri_tcp_owner *a, const struct cri_tcp_owner *b) {
        return a->known == b->known && (!a->known || (a->uid == b->uid && a->cgroup == b->cgroup));
}

static size_t connections_of(const struct cri_tcp_owner *owners, size_t count, const struct cri_tcp_owner *owner) {
        size_t connections = 0;

        for (size_t i = 0; i < count; i++)
                connections += is_same(&owners[i], owner);
        return connections;
}

size_t cri_stream_eviction_choose(const struct cri_tcp_owner *owners, size_t count) {
        size_t chosen = 0, most = connections_of(owners, count, &owners[0]);

        for (size_t i = 1; i < count; i++) {
                size_t connections = connections_of(owners, count, &owners[i]);
                bool root = is_root(&owners[i]), chosen_root = is_root(&owners[chosen]);

                if ((chosen_root && !root) || (chosen_root == root && connections > most)) {
                        chosen = i;
                        most = connections;
                }
        }
        return chosen;
}
