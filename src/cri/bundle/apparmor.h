/* SPDX-License-Identifier: Apache-2.0 */
/* apparmor.h - AppArmor profiles of containers: those that the node has, and ours, which are the default */
#pragma once

#include "cri/core/request.h"

struct cri_config;

#define APPARMOR_DEFAULT "nodens-container"               /* for pods with the host's users */
#define APPARMOR_DEFAULT_MAPPED "nodens-container-mapped" /* for pods with users of their own */

/* Loads our profiles, where the kernel has AppArmor; again at each start, so that a new version of them takes effect. Takes a moment: for the daemon's start. What
 * fails is logged: containers that ask for the default are refused then, and those that ask for nothing go without. */
void cri_apparmor_load(const struct cri_config *config);

/* The profile of a container, the caller's to free; nullptr = none. ND_PRECONDITION when the one that was asked for is not there. */
[[nodiscard]] struct nd_error *cri_apparmor_choose(const struct cri_security_profile *wanted, bool mapped, char **ret);

/* The same of a list of loaded profiles, as the kernel writes it; nullptr = the kernel has no AppArmor. */
[[nodiscard]] struct nd_error *cri_apparmor_choose_from(const char *loaded, const struct cri_security_profile *wanted,
                                                        bool mapped, char **ret);
