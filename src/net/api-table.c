/* SPDX-License-Identifier: Apache-2.0 */
#include "net/api-table.h"

#include "base/vector.h"

void nd_api_table_done(struct nd_api_table *table) {
        const struct nd_map_slot *slot;

        for (size_t at = 0; (slot = nd_map_next(&table->map, &at));)
                table->drop(slot->value, table->userdata);
        nd_map_done(&table->map);
}

void nd_api_table_begin(struct nd_api_table *table) {
        table->list++;
}

void nd_api_table_listed(struct nd_api_table *table) {
        nd_vector(char *) old = {};
        const struct nd_map_slot *slot;

        for (size_t at = 0; (slot = nd_map_next(&table->map, &at));)
                if (((const struct nd_api_entry *) slot->value)->seen < table->list)
                        nd_vector_push(&old, nd_strdup(slot->key));
        nd_vector_each (name, &old) {
                nd_api_table_remove(table, *name);
                free(*name);
        }
        nd_vector_done(&old);
}

void nd_api_table_put(struct nd_api_table *table, const char *name, struct nd_api_entry *entry) {
        void *former;

        entry->seen = table->list;
        former = nd_map_put(&table->map, name, entry);
        if (former)
                table->drop(former, table->userdata);
}

void nd_api_table_remove(struct nd_api_table *table, const char *name) {
        void *former = nd_map_remove(&table->map, name);

        if (former)
                table->drop(former, table->userdata);
}
