/* SPDX-License-Identifier: Apache-2.0 */
/* expect.h - cmocka, and common assertions of our tests
 *
 * An expectation that is not met ends the test by a long jump, past the cleanup attributes: a
 * failed test may leave memory and files behind, a passed one must not. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"

static inline void expect_ok_at(struct nd_error *error, const char *expression, const char *file, int line) {
        if (!error)
                return;
        print_error("%s\ngave the error: %s\n", expression, nd_error_text(error));
        nd_error_free(error);
        _fail(file, line);
}

/* Consumes the error. words is a part of its text; "" matches any. */
static inline void expect_error_at(struct nd_error *error, enum nd_error_code code, const char *words, const char *expression,
                                   const char *file, int line) {
        if (error && nd_error_code(error) == code && strstr(nd_error_text(error), words)) {
                nd_error_free(error);
                return;
        }
        print_error("%s\nshould have given '%s' with the words: %s\nbut gave '%s': %s\n", expression, nd_error_code_name(code),
                    words, nd_error_code_name(nd_error_code(error)), nd_error_text(error));
        nd_error_free(error);
        _fail(file, line);
}

/* The same with the whole text: for texts that must equal those of another program. */
static inline void expect_error_text_at(struct nd_error *error, const char *text, const char *file, int line) {
        nd_autofree char *copy = nd_strdup(nd_error_text(error));
        bool missing = !error;

        nd_error_free(error);
        if (missing)
                print_error("no error, but this was expected: %s\n", text);
        if (missing)
                _fail(file, line);
        _assert_string_equal(copy, text, file, line);
}

#define expect_ok(expression) expect_ok_at((expression), #expression, __FILE__, __LINE__)
#define expect_error(expression, code, words) expect_error_at((expression), (code), (words), #expression, __FILE__, __LINE__)
#define expect_error_text(expression, text) expect_error_text_at((expression), (text), __FILE__, __LINE__)

#define expect_contains(text, part)                                                                                           \
        do {                                                                                                                  \
                if (!strstr((text), (part))) {                                                                                \
                        print_error("'%s'\ndoes not contain '%s'\n", (text), (part));                                         \
                        fail();                                                                                               \
                }                                                                                                             \
        } while (0)

/* Takes a heap string, compares it and frees it. */
static inline void expect_text_at(char *text, const char *expected, const char *file, int line) {
        nd_autofree char *owned = text;

        if (!owned)
                print_error("nullptr, but this was expected: %s\n", expected);
        if (!owned)
                _fail(file, line);
        _assert_string_equal(owned, expected, file, line);
}
#define expect_text(text, expected) expect_text_at((text), (expected), __FILE__, __LINE__)

/* Whether this is a nightly run (the meson suite "nightly"): with random seeds, and with bounds on
 * speed that a loaded host breaks. */
static inline bool nightly(void) {
        return getenv("NODENS_NIGHTLY");
}

/* A claim about speed. It can fail at night alone; other runs print the figure. */
#define expect_figure(condition)                                                                                              \
        do {                                                                                                                  \
                if (nightly())                                                                                                \
                        assert_true(condition);                                                                               \
        } while (0)

/* Skips a test that this host or this user cannot run, with the reason. */
#define skip_because(...)                                                                                                     \
        do {                                                                                                                  \
                print_message("# skipped, since " __VA_ARGS__);                                                               \
                print_message("\n");                                                                                          \
                skip();                                                                                                       \
        } while (0)
