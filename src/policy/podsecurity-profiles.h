/* SPDX-License-Identifier: Apache-2.0 */
/* podsecurity-profiles.h - the checks of AppArmor, SELinux and seccomp, for podsecurity-checks.c */
#pragma once

#include "policy/podsecurity.h"

void nd_podsecurity_check_apparmor(const struct nd_pod *pod, const char *const *allowed, struct nd_arena *arena,
                                   struct nd_podsecurity_finding *finding);
void nd_podsecurity_check_selinux(const struct nd_pod *pod, const char *const *allowed, struct nd_arena *arena,
                                  struct nd_podsecurity_finding *finding);
void nd_podsecurity_check_seccomp_annotations(const struct nd_pod *pod, const char *const *allowed, struct nd_arena *arena,
                                              struct nd_podsecurity_finding *finding);
void nd_podsecurity_check_seccomp_baseline(const struct nd_pod *pod, const char *const *allowed, struct nd_arena *arena,
                                           struct nd_podsecurity_finding *finding);
void nd_podsecurity_check_seccomp_restricted(const struct nd_pod *pod, const char *const *allowed, struct nd_arena *arena,
                                             struct nd_podsecurity_finding *finding);
