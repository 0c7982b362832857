/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/core/table.h"

#include "base/vector.h"

void guard_table_done(struct guard_table *table) {
        const struct nd_map_slot *slot;

        for (size_t at = 0; (slot = nd_map_next(&table->map, &at));)
                table->drop(slot->value, table->userdata);
        nd_map_done(&table->map);
}

void guard_table_begin(struct guard_table *table) {
        table->list++;
}

void guard_table_listed(struct guard_table *table) {
        nd_vector(char *) old = {};
        const struct nd_map_slot *slot;

        for (size_t at = 0; (slot = nd_map_next(&table->map, &at));)
                if (((const struct guard_entry *) slot->value)->seen < table->list)
                        nd_vector_push(&old, nd_strdup(slot->key));
        nd_vector_each (name, &old) {
                guard_table_remove(table, *name);
                free(*name);
        }
        nd_vector_done(&old);
}

void guard_table_put(struct guard_table *table, const char *name, struct guard_entry *entry) {
        void *former;

        entry->seen = table->list;
        former = nd_map_put(&table->map, name, entry);
        if (former)
                table->drop(former, table->userdata);
}

void guard_table_remove(struct guard_table *table, const char *name) {
        void *former = nd_map_remove(&table->map, name);

        if (former)
                table->drop(former, table->userdata);
}
