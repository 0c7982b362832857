/* SPDX-License-Identifier: Apache-2.0 */
/* resources.h - resources of a process: open descriptors, unreaped children, mounts */
#pragma once

#include <stddef.h>

size_t resources_descriptors(void); /* how many are open */
size_t resources_mounts(void);      /* lines of its mount table */
size_t resources_children(void);    /* how many there are, running or dead; reaps the dead ones */
/* The same for a child that belongs to a loop, which reaps it. */
bool resources_has_children(void);
