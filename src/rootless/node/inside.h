/* SPDX-License-Identifier: Apache-2.0 */
/* inside.h - nodes in a user namespace that another program made, as for a container or a pod
 *
 * Here "container" is all of these. Its root writes the node's ID maps itself: the node gets the
 * container's IDs, and newuidmap and subordinate IDs are not needed. */
#pragma once

#include "rootless/node/settings.h"
#include "sys/userns.h"

/* What of the container decides whether a node can start; text so that tests need no container. */
struct rootless_inside_facts {
        bool initial;       /* our user namespace is the host's */
        uint32_t uid;       /* our effective user ID */
        const char *status; /* /proc/self/status */
        const char *mounts; /* /proc/self/mountinfo */
};

/* An error with the remedy if a node cannot start here. */
[[nodiscard]] struct nd_error *rootless_inside_check(const struct rootless_inside_facts *facts);

/* The same for the container that we are in. */
[[nodiscard]] struct nd_error *rootless_inside_require(void);

/* Maps every ID of the container to itself. */
[[nodiscard]] struct nd_error *rootless_inside_maps(struct nd_userns_maps *ret_uids, struct nd_userns_maps *ret_gids);

/* Changes the network of the settings to one that the container permits, unless the user chose it:
 * slirp4netns without pasta, the container's own network without both or without /dev/net/tun. A
 * node with Kubernetes is refused then: pods could have no network of their own. */
[[nodiscard]] struct nd_error *rootless_inside_choose_network(struct rootless_config *config);

/* The container's cgroup, "/", if we may divide it; its processes have moved to a leaf then.
 * nullptr otherwise. */
[[nodiscard]] char *rootless_inside_cgroup(void);

/* An error with the remedy unless the cgroup has the controllers for the limits of pods; nullptr:
 * no cgroup. */
[[nodiscard]] struct nd_error *rootless_inside_require_cgroup(const char *cgroup);

/* An error with the remedy if the directory cannot have the layers of containers. */
[[nodiscard]] struct nd_error *rootless_inside_check_data(const char *path);
