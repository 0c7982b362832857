/* SPDX-License-Identifier: Apache-2.0 */
/* toml.h - parser for the TOML of registry configuration files
 *
 * A codec without I/O. It supports TOML 1.0's grammar for keys, strings, arrays, tables and inline
 * tables; numbers and dates are kept as text, since no setting needs their value. The order of
 * tables is kept: it matters in hosts.toml. */
#pragma once

#include "base/error.h"
#include "base/vector.h"

enum pull_toml_kind {
        TOML_TABLE,
        TOML_ARRAY,
        TOML_STRING,
        TOML_BOOL,
        TOML_OTHER, /* a number or a date: text */
};

enum {
        TOML_BYTES = 1024 * 1024, /* limit of a document */
        TOML_DEPTH = 16,
        TOML_VALUES = 10000,
};

struct pull_toml {
        enum pull_toml_kind kind;
        char *key;  /* in a table; nullptr in an array and for the root */
        char *text; /* STRING and OTHER; without null bytes */
        bool truth; /* BOOL */
        /* a table opened by a header or value: a second header is an error */
        bool defined;
        nd_vector(struct pull_toml *) children; /* TABLE and ARRAY, in the order of the file */
};

void pull_toml_free(struct pull_toml *node);
static inline void pull_toml_done(struct pull_toml **node) {
        pull_toml_free(*node);
        *node = nullptr;
}
#define pull_autotoml nd_cleanup(pull_toml_done)

/* Returns the document's root table. Errors name the line. */
[[nodiscard]] struct nd_error *pull_toml_parse(const char *bytes, size_t length, struct pull_toml **ret);

/* Returns a table's value, nullptr when it has none of that name. */
[[nodiscard]] struct pull_toml *pull_toml_get(const struct pull_toml *table, const char *key);
