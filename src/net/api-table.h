/* SPDX-License-Identifier: Apache-2.0 */
/* api-table.h - objects by name, as reported by a watch
 *
 * An entry that a new list does not contain was deleted. So entries carry the number of the list in
 * which they were last seen, and nd_api_table_listed() drops the older ones. */
#pragma once

#include <stdint.h>

#include "base/map.h"

/* The first member of every entry. */
struct nd_api_entry {
        uint64_t seen;
};

struct nd_api_table {
        struct nd_map map;
        uint64_t list;
        void (*drop)(void *entry, void *userdata); /* removes it from indices and frees it */
        void *userdata;
};

void nd_api_table_done(struct nd_api_table *table);
void nd_api_table_begin(struct nd_api_table *table);
void nd_api_table_listed(struct nd_api_table *table);
/* Drops the former entry of that name. */
void nd_api_table_put(struct nd_api_table *table, const char *name, struct nd_api_entry *entry);
void nd_api_table_remove(struct nd_api_table *table, const char *name);
