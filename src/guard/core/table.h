/* SPDX-License-Identifier: Apache-2.0 */
/* table.h - objects by name, as reported by a watch
 *
 * An entry that a new list does not contain was deleted. So entries carry the number of the list in
 * which they were last seen, and guard_table_listed() drops the older ones. */
#pragma once

#include <stdint.h>

#include "base/map.h"

/* The first member of every entry. */
struct guard_entry {
        uint64_t seen;
};

struct guard_table {
        struct nd_map map;
        uint64_t list;
        void (*drop)(void *entry, void *userdata); /* removes it from indices and frees it */
        void *userdata;
};

void guard_table_done(struct guard_table *table);
void guard_table_begin(struct guard_table *table);
void guard_table_listed(struct guard_table *table);
/* Drops the former entry of that name. */
void guard_table_put(struct guard_table *table, const char *name, struct guard_entry *entry);
void guard_table_remove(struct guard_table *table, const char *name);
