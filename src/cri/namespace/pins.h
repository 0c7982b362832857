/* SPDX-License-Identifier: Apache-2.0 */
/* pins.h - keeps the pods' namespaces alive, outside the host's mount table
 *
 * A namespace without a process lives as long as its file is mounted somewhere. Network
 * namespaces are mounted where other tools expect them (cri_config.netns). The others would add
 * three lines per pod to a mount table that crun copies for every container; so they are mounted
 * in one mount namespace of the node, which contains nothing else and is itself kept by one
 * mount at <run>/pins/mnt. */
#pragma once

#include "base/error.h"

struct cri_config;
struct cri_pins;

/* Opens the node's namespace of pins, making it if there is none. */
[[nodiscard]] struct nd_error *cri_pins_open(const struct cri_config *config, struct cri_pins **ret);
void cri_pins_free(struct cri_pins *pins); /* the pins stay */

/* Path by which any process on the host can open a pin while this daemon runs. It goes through
 * one of our descriptors, so it cannot be the source of a bind mount. The caller frees it. */
[[nodiscard]] char *cri_pins_path(const struct cri_pins *pins, const char *sandbox_id, const char *name);

/* Only for workers, since they enter the pins' mount namespace: make or undo the pins of a
 * sandbox. names and fds go together; negative descriptors are skipped. Undoing missing pins is
 * no error. */
[[nodiscard]] struct nd_error *cri_pins_put(const struct cri_pins *pins, const char *sandbox_id, const char *const *names,
                                            const int *fds, size_t count);
[[nodiscard]] struct nd_error *cri_pins_drop(const struct cri_pins *pins, const char *sandbox_id, const char *const *names,
                                             size_t count);
