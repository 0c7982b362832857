/* SPDX-License-Identifier: Apache-2.0 */
/* pins.h - what keeps the pods' namespaces alive, out of the host's mount table
 *
 * A namespace without a process lives as long as its file is mounted somewhere. Network namespaces are mounted where everybody looks for them
 * (cri_config.netns). The others would be three more lines per pod in a table that crun copies for every container; so they are mounted in
 * one mount namespace of the node's own, which has nothing else in it and is itself kept by one mount at <run>/pins/mnt. */
#pragma once

#include "base/error.h"

struct cri_config;
struct cri_pins;

/* Opens the node's namespace of pins, making it when there is none. */
[[nodiscard]] struct nd_error *cri_pins_open(const struct cri_config *config, struct cri_pins **ret);
void cri_pins_free(struct cri_pins *pins); /* the pins stay */

/* A path by which anybody on the host can open a pin while this daemon lives. It leads through one of our descriptors: it cannot be the source of a
 * bind mount. The caller's to free. */
[[nodiscard]] char *cri_pins_path(const struct cri_pins *pins, const char *sandbox_id, const char *name);

/* For workers alone, as they visit the pins' mount namespace: makes or undoes the pins of a sandbox. names and fds go together; a negative descriptor
 * is passed over. Of what is not there to be undone, nothing is said. */
[[nodiscard]] struct nd_error *cri_pins_put(const struct cri_pins *pins, const char *sandbox_id, const char *const *names,
                                            const int *fds, size_t count);
[[nodiscard]] struct nd_error *cri_pins_drop(const struct cri_pins *pins, const char *sandbox_id, const char *const *names,
                                             size_t count);
