/* SPDX-License-Identifier: Apache-2.0 */
/* table.h - objects by name, as a watch tells them
 *
 * A list may leave out what we know, and then that is gone. So entries carry the number of the list
 * in which they were last seen, and guard_table_listed() drops the older ones. */
#pragma once

#include <stdint.h>

#include "base/map.h"

struct guard_entry { /* the first member of what is kept */
        uint64_t seen;
};

struct guard_table {
        struct nd_map map;
        uint64_t list;
        void (*drop)(void *entry, void *userdata); /* takes it out of indices and frees it */
        void *userdata;
};

void guard_table_done(struct guard_table *table);
void guard_table_begin(struct guard_table *table);
void guard_table_listed(struct guard_table *table);
void guard_table_put(struct guard_table *table, const char *name, struct guard_entry *entry); /* the former one is dropped */
void guard_table_remove(struct guard_table *table, const char *name);
