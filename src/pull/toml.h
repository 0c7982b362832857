/* SPDX-License-Identifier: Apache-2.0 */
/* toml.h - the TOML that configuration files of registries are written in
 *
 * A codec without I/O. All of TOML 1.0's grammar for keys, strings, arrays, tables and inline tables; numbers and dates are kept as
 * the text they were, since no setting of ours needs their value. The order of tables is kept: for hosts.toml it is meaning. */
#pragma once

#include "base/error.h"
#include "base/vector.h"

enum nd_toml_kind {
        ND_TOML_TABLE,
        ND_TOML_ARRAY,
        ND_TOML_STRING,
        ND_TOML_BOOL,
        ND_TOML_OTHER, /* a number or a date: text */
};

enum {
        ND_TOML_BYTES = 1024 * 1024, /* most bytes of a document */
        ND_TOML_DEPTH = 16,
        ND_TOML_VALUES = 10000,
};

struct nd_toml {
        enum nd_toml_kind kind;
        char *key;                            /* in a table; nullptr in an array and for the root */
        char *text;                           /* STRING and OTHER; may not hold a null byte */
        bool truth;                           /* BOOL */
        bool defined;                         /* a table that a header or a value has opened: a second header is an error */
        nd_vector(struct nd_toml *) children; /* TABLE and ARRAY, in the order of the file */
};

void nd_toml_free(struct nd_toml *node);
static inline void nd_toml_done(struct nd_toml **node) {
        nd_toml_free(*node);
        *node = nullptr;
}
#define nd_autotoml nd_cleanup(nd_toml_done) struct nd_toml *

/* The document's root table. An error says the line. */
[[nodiscard]] struct nd_error *nd_toml_parse(const char *bytes, size_t length, struct nd_toml **ret);

/* A table's value, nullptr when it has none of that name. */
[[nodiscard]] struct nd_toml *nd_toml_get(const struct nd_toml *table, const char *key);
