/* SPDX-License-Identifier: Apache-2.0 */
/* field.h - validation errors of fields, formatted as in the API server
 *
 *      spec.containers[0].securityContext.runAsUser: Invalid value: 0: must be in the ranges:
 *      [1000, 65534] */
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
        const char *value;  /* as printed by the API server; nullptr if it prints none */
        const char *detail; /* "" = none */
};

/* Errors in the order of detection, without duplicates. */
struct nd_field_errors {
        struct nd_arena *arena;
        /* keeps only the first error, without texts: for callers that only check whether there are
         * any */
        bool quiet;
        nd_vector(struct nd_field_error) items;
};

void nd_field_errors_done(struct nd_field_errors *errors);

/* path is a format. value comes from one of the functions below, or is a literal like "true". */
[[gnu::format(printf, 5, 6)]] void nd_field_add(struct nd_field_errors *errors, enum nd_field_problem problem,
                                                const char *value, const char *detail, const char *path, ...);

const char *nd_field_text(struct nd_arena *arena, const char *value); /* as Go's %q */
/* As Go's JSON encoder, which prints named string types. */
const char *nd_field_json(struct nd_arena *arena, const char *value);
const char *nd_field_int(struct nd_arena *arena, int64_t value);

/* "path: Invalid value: 0: detail" */
void nd_field_error_print(const struct nd_field_error *error, struct nd_text *text);

/* One error as it is, several as "[a, b]". */
void nd_field_errors_print(const struct nd_field_errors *errors, struct nd_text *text);
