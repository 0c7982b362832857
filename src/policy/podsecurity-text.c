/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/podsecurity-text.h"

#include <string.h>

void nd_podsecurity_names_add(struct nd_podsecurity_names *names, struct nd_arena *arena, const char *name) {
        if (names->count == names->capacity) {
                size_t capacity = names->capacity > 0 ? names->capacity * 2 : 8;
                const char **items = nd_arena_alloc(arena, capacity, sizeof *items);

                for (size_t i = 0; i < names->count; i++)
                        items[i] = names->items[i];
                names->items = items;
                names->capacity = capacity;
        }
        names->items[names->count++] = nd_kube_or_empty(name);
}

static int compare_names(const void *a, const void *b) {
        return strcmp(*(const char *const *) a, *(const char *const *) b);
}

void nd_podsecurity_names_sort(struct nd_podsecurity_names *names) {
        if (names->count > 0)
                qsort(names->items, names->count, sizeof *names->items, compare_names);
}

void nd_podsecurity_names_unite(struct nd_podsecurity_names *names) {
        size_t kept = 0;

        if (names->count == 0)
                return;
        nd_podsecurity_names_sort(names);
        for (size_t i = 1; i < names->count; i++)
                if (!nd_streq(names->items[kept], names->items[i]))
                        names->items[++kept] = names->items[i];
        names->count = kept + 1;
}

const char *nd_podsecurity_plural(const char *one, const char *many, size_t count) {
        return count == 1 ? one : many;
}

void nd_podsecurity_put_names(struct nd_text *text, const struct nd_podsecurity_names *names, const char *quote) {
        for (size_t i = 0; i < names->count; i++) {
                nd_text_add(text, i > 0 ? ", " : "");
                nd_text_add(text, quote);
                nd_text_add(text, names->items[i]);
                nd_text_add(text, quote);
        }
}

void nd_podsecurity_put_containers(struct nd_text *text, const struct nd_podsecurity_names *containers) {
        nd_text_add(text, nd_podsecurity_plural("container ", "containers ", containers->count));
        nd_podsecurity_put_names(text, containers, "\"");
}

void nd_podsecurity_put_setters(struct nd_text *text, bool pod, const struct nd_podsecurity_names *containers) {
        if (pod)
                nd_text_add(text, "pod");
        if (pod && containers->count > 0)
                nd_text_add(text, " and ");
        if (containers->count > 0)
                nd_podsecurity_put_containers(text, containers);
}

void nd_podsecurity_conclude(struct nd_podsecurity_finding *finding, const char *reason, const struct nd_text *detail,
                             struct nd_arena *arena) {
        finding->reason = reason;
        finding->detail = nd_arena_copy(arena, nd_text_get(detail), detail->length);
}

bool nd_podsecurity_is_in(const char *const *allowed, const char *value) {
        for (; *allowed; allowed++)
                if (nd_streq(*allowed, nd_kube_or_empty(value)))
                        return true;
        return false;
}
