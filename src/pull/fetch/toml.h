/* SPDX-License-Identifier: Apache-2.0 */
/* toml.h - the TOML that configuration files of registries are written in
 *
 * A codec without I/O. All of TOML 1.0's grammar for keys, strings, arrays, tables and inline tables; numbers and dates are kept as
 * the text they were, since no setting of ours needs their value. The order of tables is kept: for hosts.toml it is meaning. */
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
        TOML_BYTES = 1024 * 1024, /* most bytes of a document */
        TOML_DEPTH = 16,
        TOML_VALUES = 10000,
};

struct pull_toml {
        enum pull_toml_kind kind;
        char *key;                              /* in a table; nullptr in an array and for the root */
        char *text;                             /* STRING and OTHER; may not hold a null byte */
        bool truth;                             /* BOOL */
        bool defined;                           /* a table that a header or a value has opened: a second header is an error */
        nd_vector(struct pull_toml *) children; /* TABLE and ARRAY, in the order of the file */
};

void pull_toml_free(struct pull_toml *node);
static inline void pull_toml_done(struct pull_toml **node) {
        pull_toml_free(*node);
        *node = nullptr;
}
#define pull_autotoml nd_cleanup(pull_toml_done)

/* The document's root table. An error says the line. */
[[nodiscard]] struct nd_error *pull_toml_parse(const char *bytes, size_t length, struct pull_toml **ret);

/* A table's value, nullptr when it has none of that name. */
[[nodiscard]] struct pull_toml *pull_toml_get(const struct pull_toml *table, const char *key);
