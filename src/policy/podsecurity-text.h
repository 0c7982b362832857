/* SPDX-License-Identifier: Apache-2.0 */
/* podsecurity-text.h - lists of names and texts of findings, for the checks */
#pragma once

#include "policy/podsecurity.h"

/* A growing list in an arena. */
struct nd_podsecurity_names {
        const char **items;
        size_t count;
        size_t capacity;
};

void nd_podsecurity_names_add(struct nd_podsecurity_names *names, struct nd_arena *arena, const char *name);
void nd_podsecurity_names_sort(struct nd_podsecurity_names *names);
/* Sorts and removes duplicates. */
void nd_podsecurity_names_unite(struct nd_podsecurity_names *names);

/* The list ends with nullptr. */
bool nd_podsecurity_is_in(const char *const *allowed, const char *value);

const char *nd_podsecurity_plural(const char *one, const char *many, size_t count);

/* Names separated by commas; each in quotes, which may be "". */
void nd_podsecurity_put_names(struct nd_text *text, const struct nd_podsecurity_names *names, const char *quote);

/* containers "a", "b" */
void nd_podsecurity_put_containers(struct nd_text *text, const struct nd_podsecurity_names *containers);

/* pod and container "a" */
void nd_podsecurity_put_setters(struct nd_text *text, bool pod, const struct nd_podsecurity_names *containers);

void nd_podsecurity_conclude(struct nd_podsecurity_finding *finding, const char *reason, const struct nd_text *detail,
                             struct nd_arena *arena);

#define nd_podsecurity_each_container(c, pod)                                                                                 \
        const struct nd_pod_container *c;                                                                                     \
        for (size_t c##_index = 0; (c = nd_pod_container(&(pod)->spec, c##_index)); c##_index++)
