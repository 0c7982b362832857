/* SPDX-License-Identifier: Apache-2.0 */
/* apparmor.h - AppArmor profiles of containers: the default ones, and others loaded on the node */
#pragma once

#include "cri/core/request.h"

struct cri_config;
struct nd_own_userns;

#define APPARMOR_DEFAULT "nodens-container"               /* for pods with the host's users */
#define APPARMOR_DEFAULT_MAPPED "nodens-container-mapped" /* for pods with a user namespace */

/* Loads the default profiles if the kernel has AppArmor; at each start, so that a new version
 * takes effect. Blocks: call it at the daemon's start. A failure is logged: then containers that
 * request the default are refused, and containers that request nothing run without a profile. */
void cri_apparmor_load(const struct cri_config *config);

/* The profile of a container; nullptr = none. The caller frees it. ND_PRECONDITION if the
 * requested one is not loaded, or if the node's user namespace is not the host's. */
[[nodiscard]] struct nd_error *cri_apparmor_choose(const struct nd_own_userns *users,
                                                   const struct cri_security_profile *wanted, bool mapped, char **ret);

/* The same with a list of loaded profiles in the kernel's format; nullptr = the kernel has no
 * AppArmor. */
[[nodiscard]] struct nd_error *cri_apparmor_choose_from(const char *loaded, const struct cri_security_profile *wanted,
                                                        bool mapped, char **ret);
