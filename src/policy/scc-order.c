/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <strings.h>

#include "policy/scc.h"

/* OpenShift's points: more = laxer. Each value outweighs the sum of all below it. */
enum {
        POINTS_PRIVILEGED = 1600000,
        POINTS_HOST_PORTS = 800000,
        POINTS_HOST_NETWORK = 400000,
        POINTS_HOST_VOLUME = 200000,
        POINTS_VOLUME = 100000, /* any but volumes with files that Kubernetes writes */
        POINTS_RUN_AS = 10000,
        POINTS_CAPABILITIES = 5000,
        POINTS_ADD_ONE = 300,
        POINTS_ALLOW_ALL = 4000,
        POINTS_ALLOW_ONE = 10,
        POINTS_DROP_ALL = -3000,
        POINTS_DROP_ONE = -50,
        POINTS_CAPABILITIES_MOST = 9999,
};

static uint32_t volume_points(const struct nd_scc *scc) {
        static const char *const trivial[] = {"secret", "configMap", "emptyDir", "downwardAPI", "projected", "none"};
        uint32_t points = 0;

        for (size_t i = 0; i < scc->volumes.count; i++) {
                const char *type = scc->volumes.items[i];
                bool plain = false;

                if (nd_streq(type, "hostPath") || nd_streq(type, "*"))
                        return POINTS_HOST_VOLUME;
                for (size_t j = 0; j < nd_count_of(trivial); j++)
                        plain |= nd_streq(type, trivial[j]);
                if (!plain)
                        points = POINTS_VOLUME;
        }
        return points;
}

static uint32_t run_as_points(const char *type) {
        static const char *const types[] = {"MustRunAs", "MustRunAsRange", "MustRunAsNonRoot", "RunAsAny"};

        for (uint32_t i = 0; i < nd_count_of(types); i++)
                if (nd_streq(nd_kube_or_empty(type), types[i]))
                        return (i + 1) * POINTS_RUN_AS;
        return 0;
}

static bool names_all(const struct nd_shape_texts *capabilities) {
        for (size_t i = 0; i < capabilities->count; i++)
                if (strcasecmp(capabilities->items[i], "ALL") == 0)
                        return true;
        return false;
}

static uint32_t capability_points(const struct nd_scc *scc) {
        bool allows_all = nd_shape_texts_have(&scc->allowed_capabilities, "*") || names_all(&scc->allowed_capabilities);
        int64_t points = POINTS_CAPABILITIES;

        points += POINTS_ADD_ONE * (int64_t) scc->default_add.count;
        points += allows_all ? POINTS_ALLOW_ALL : POINTS_ALLOW_ONE * (int64_t) scc->allowed_capabilities.count;
        points += names_all(&scc->required_drop) ? POINTS_DROP_ALL : POINTS_DROP_ONE * (int64_t) scc->required_drop.count;
        if (points < 0)
                return 0;
        return points > POINTS_CAPABILITIES_MOST ? POINTS_CAPABILITIES_MOST : (uint32_t) points;
}

uint32_t nd_scc_points(const struct nd_scc *scc) {
        return (scc->allow_privileged ? POINTS_PRIVILEGED : 0) + (scc->allow_host_ports ? POINTS_HOST_PORTS : 0) +
               (scc->allow_host_network ? POINTS_HOST_NETWORK : 0) + volume_points(scc) + run_as_points(scc->user.type) +
               run_as_points(scc->selinux.type) + capability_points(scc);
}

static int compare_numbers(int64_t a, int64_t b) {
        return (a > b) - (a < b);
}

int nd_scc_compare(const struct nd_scc *a, const struct nd_scc *b, bool user_namespace) {
        int order = compare_numbers(b->priority.value, a->priority.value);

        if (order == 0 && user_namespace)
                order = compare_numbers(nd_scc_requires_user_namespace(b), nd_scc_requires_user_namespace(a));
        if (order == 0)
                order = compare_numbers(nd_scc_points(a), nd_scc_points(b));
        return order != 0 ? order : strcmp(nd_kube_or_empty(a->metadata.name), nd_kube_or_empty(b->metadata.name));
}

static int compare_plain(const void *a, const void *b) {
        return nd_scc_compare(*(const struct nd_scc *const *) a, *(const struct nd_scc *const *) b, false);
}

static int compare_with_user_namespace(const void *a, const void *b) {
        return nd_scc_compare(*(const struct nd_scc *const *) a, *(const struct nd_scc *const *) b, true);
}

void nd_scc_sort(const struct nd_scc **sccs, size_t count, bool user_namespace) {
        if (count > 1)
                qsort(sccs, count, sizeof *sccs, user_namespace ? compare_with_user_namespace : compare_plain);
}

struct nd_scc_set nd_scc_set_make(const struct nd_scc *const *sccs, size_t count, struct nd_arena *arena) {
        struct nd_scc_set set = {.plain = nd_arena_alloc(arena, count, sizeof *set.plain),
                                 .with_user_namespace = nd_arena_alloc(arena, count, sizeof *set.plain),
                                 .count = count};

        for (size_t i = 0; i < count; i++)
                set.plain[i] = set.with_user_namespace[i] = sccs[i];
        nd_scc_sort(set.plain, count, false);
        nd_scc_sort(set.with_user_namespace, count, true);
        return set;
}

/* Points ignore seccomp: a constraint without a wildcard there is stricter. */
bool nd_scc_is_stricter(const struct nd_scc *a, const struct nd_scc *b) {
        bool lax_a = nd_shape_texts_have(&a->seccomp_profiles, "*"), lax_b = nd_shape_texts_have(&b->seccomp_profiles, "*");

        return lax_a != lax_b ? lax_b : nd_scc_points(a) < nd_scc_points(b);
}
