/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/core/subject.h"

struct guard_subject guard_subject_of_account(const char *namespace, const char *name, bool is_authenticated,
                                              struct nd_arena *arena) {
        const char **groups = nd_arena_alloc(arena, 3, sizeof *groups);

        groups[0] = "system:serviceaccounts";
        groups[1] = nd_arena_format(arena, "system:serviceaccounts:%s", namespace);
        groups[2] = "system:authenticated";
        return (struct guard_subject) {.name = nd_arena_format(arena, "system:serviceaccount:%s:%s", namespace, name),
                                       .uid = "",
                                       .groups = {.items = groups, .count = is_authenticated ? 3 : 2}};
}

bool guard_subject_is_listed(const struct guard_subject *subject, const struct nd_scc *scc) {
        if (nd_shape_texts_have(&scc->users, subject->name))
                return true;
        for (size_t i = 0; i < subject->groups.count; i++)
                if (nd_shape_texts_have(&scc->groups, subject->groups.items[i]))
                        return true;
        return false;
}
