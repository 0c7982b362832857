/* SPDX-License-Identifier: Apache-2.0 */
/* error.h - the one error object
 *
 * nullptr means success. An error carries a code for the caller (the numbers are gRPC's, so that
 * nodens-cri need not translate), an errno for tests and decisions, and a chain of messages for the
 * user. Wrap when you add a fact (which pod, which path), never to add "failed". Never log and
 * return: an error is logged once, at the boundary where the request came in. */
#pragma once

#include "base/memory.h"

enum nd_error_code {
        ND_OK = 0,
        ND_CANCELLED = 1,
        ND_UNKNOWN = 2,
        ND_INVALID = 3, /* the caller's argument, a config key, a file's contents */
        ND_DEADLINE = 4,
        ND_NOT_FOUND = 5,
        ND_EXISTS = 6,
        ND_DENIED = 7,
        ND_EXHAUSTED = 8, /* no ID block, descriptor or disk space left; a limit was reached */
        ND_PRECONDITION = 9,
        ND_ABORTED = 10,
        ND_OUT_OF_RANGE = 11,
        ND_UNIMPLEMENTED = 12,
        ND_INTERNAL = 13,
        ND_UNAVAILABLE = 14,
        ND_DATA_LOSS = 15,
        ND_UNAUTHENTICATED = 16,
};

struct nd_error;

/* Makes an error. If error_number is not 0 its text ends the chain: "open '/x': Permission
 * denied". */
[[nodiscard, gnu::format(printf, 3, 4), gnu::returns_nonnull]]
struct nd_error *nd_error_new(enum nd_error_code code, int error_number, const char *format, ...);

/* An error received from another process, with its text complete: the errno is kept for decisions
 * and not added to the text. */
[[nodiscard, gnu::returns_nonnull]]
struct nd_error *nd_error_received(enum nd_error_code code, int error_number, const char *text);

/* Prefixes an error with a fact: "pod 'a': open '/x': Permission denied". Consumes the error and
 * returns the new one; code and errno stay. nullptr stays nullptr, so `return nd_error_wrap(f(),
 * "pod '%s'", uid);` works without a check. */
[[nodiscard, gnu::format(printf, 2, 3)]] struct nd_error *nd_error_wrap(struct nd_error *cause, const char *format, ...);

/* Changes the code of an error, for callers that have a better one. Returns its argument. */
[[nodiscard]] struct nd_error *nd_error_recode(struct nd_error *error, enum nd_error_code code);

enum nd_error_code nd_error_code(const struct nd_error *error); /* ND_OK for nullptr */
int nd_error_errno(const struct nd_error *error);               /* 0 if no system call failed */
/* The whole chain, joined by ": "; valid as long as the error. */
const char *nd_error_text(const struct nd_error *error);
const char *nd_error_code_name(enum nd_error_code code);

/* The default code for an errno. */
enum nd_error_code nd_error_code_of(int error_number);

void nd_error_free(struct nd_error *error);
static inline void nd_error_done(struct nd_error **error) {
        nd_error_free(*error);
        *error = nullptr;
}

#define nd_autoerror nd_cleanup(nd_error_done)

/* Drops an error on purpose: nd_ignore(nd_file_remove(...)). A comment there says why that is
 * safe. */
static inline void nd_ignore(struct nd_error *error) {
        nd_error_free(error);
}

/* Returns from the calling function if the expression gives an error. */
#define nd_try(expression)                                                                                                    \
        do {                                                                                                                  \
                struct nd_error *_error = (expression);                                                                       \
                if (_error)                                                                                                   \
                        return _error;                                                                                        \
        } while (0)
