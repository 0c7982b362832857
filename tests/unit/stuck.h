/* SPDX-License-Identifier: Apache-2.0 */
/* stuck.h - a filesystem that never answers: who looks for a name in it cannot even be killed until
 * it is released */
#pragma once

#include <sys/types.h>

struct stuck {
        char *path; /* where it is mounted */
        pid_t server;
};

/* Mounts it in a directory that is there; false where FUSE cannot be used. */
bool stuck_make(const char *directory, struct stuck *ret);

/* Ends its server, and with it every wait; unmounts it. */
void stuck_release(struct stuck *stuck);
