/* SPDX-License-Identifier: Apache-2.0 */
/* field.h - what is wrong with which field, in the API server's words
 *
 *      spec.containers[0].securityContext.runAsUser: Invalid value: 0: must be in the ranges: [1000, 65534] */
#pragma once

#include "base/arena.h"
#include "base/text.h"
#include "base/vector.h"

enum nd_field_problem {
        ND_FIELD_REQUIRED,
        ND_FIELD_INVALID,
        ND_FIELD_NOT_SUPPORTED,
        ND_FIELD_FORBIDDEN,
};

struct nd_field_error {
        enum nd_field_problem problem;
        const char *path;
        const char *value;  /* as the API server prints it; nullptr where it prints none */
        const char *detail; /* "" = none */
};

/* Errors in the order in which they were found; the same one is kept once. */
struct nd_field_errors {
        struct nd_arena *arena;
        bool quiet; /* the first one is kept, as a sign and without words: for whoever only wants to know whether there are any */
        nd_vector(struct nd_field_error) items;
};

void nd_field_errors_done(struct nd_field_errors *errors);

/* The path is a format. Value is what one of the functions below gives, or a literal like "true". */
[[gnu::format(printf, 5, 6)]] void nd_field_add(struct nd_field_errors *errors, enum nd_field_problem problem,
                                                const char *value, const char *detail, const char *path, ...);

const char *nd_field_text(struct nd_arena *arena, const char *value); /* as Go's %q */
const char *nd_field_json(struct nd_arena *arena,
                          const char *value); /* as Go's JSON: what named types of text are printed as */
const char *nd_field_int(struct nd_arena *arena, int64_t value);

/* "path: Invalid value: 0: detail" */
void nd_field_error_print(const struct nd_field_error *error, struct nd_text *text);

/* One as it is, several as "[a, b]". */
void nd_field_errors_print(const struct nd_field_errors *errors, struct nd_text *text);
