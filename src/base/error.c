/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <string.h>

struct nd_error {
        enum nd_error_code code;
        int error_number;
        /* The message chain, joined; wrapping allocates a new one, which is fine on a rare path. */
        char *text;
};

struct nd_error *nd_error_new(enum nd_error_code code, int error_number, const char *format, ...) {
        struct nd_error *error = nd_new(struct nd_error);
        nd_autofree char *message = nullptr;
        va_list arguments;

        va_start(arguments, format);
        message = nd_format_va(format, arguments);
        va_end(arguments);

        error->code = code;
        error->error_number = error_number;
        if (error_number != 0)
                error->text = nd_format("%s: %s", message, strerrordesc_np(error_number) ?: "unknown error");
        else
                error->text = nd_take_ptr(message);
        return error;
}

struct nd_error *nd_error_received(enum nd_error_code code, int error_number, const char *text) {
        struct nd_error *error = nd_error_new(code, 0, "%s", text);

        error->error_number = error_number;
        return error;
}

struct nd_error *nd_error_wrap(struct nd_error *cause, const char *format, ...) {
        nd_autofree char *message = nullptr;
        va_list arguments;
        char *joined;

        if (!cause)
                return nullptr;

        va_start(arguments, format);
        message = nd_format_va(format, arguments);
        va_end(arguments);

        joined = nd_format("%s: %s", message, cause->text);
        free(cause->text);
        cause->text = joined;
        return cause;
}

struct nd_error *nd_error_recode(struct nd_error *error, enum nd_error_code code) {
        if (error)
                error->code = code;
        return error;
}

enum nd_error_code nd_error_code(const struct nd_error *error) {
        return error ? error->code : ND_OK;
}

int nd_error_errno(const struct nd_error *error) {
        return error ? error->error_number : 0;
}

const char *nd_error_text(const struct nd_error *error) {
        return error ? error->text : "";
}

void nd_error_free(struct nd_error *error) {
        if (!error)
                return;
        free(error->text);
        free(error);
}

const char *nd_error_code_name(enum nd_error_code code) {
        static const char *const names[] = {
                [ND_OK] = "ok",
                [ND_CANCELLED] = "cancelled",
                [ND_UNKNOWN] = "unknown",
                [ND_INVALID] = "invalid argument",
                [ND_DEADLINE] = "deadline exceeded",
                [ND_NOT_FOUND] = "not found",
                [ND_EXISTS] = "already exists",
                [ND_DENIED] = "permission denied",
                [ND_EXHAUSTED] = "resource exhausted",
                [ND_PRECONDITION] = "failed precondition",
                [ND_ABORTED] = "aborted",
                [ND_OUT_OF_RANGE] = "out of range",
                [ND_UNIMPLEMENTED] = "unimplemented",
                [ND_INTERNAL] = "internal",
                [ND_UNAVAILABLE] = "unavailable",
                [ND_DATA_LOSS] = "data loss",
                [ND_UNAUTHENTICATED] = "unauthenticated",
        };
        static_assert(nd_count_of(names) == ND_UNAUTHENTICATED + 1);

        return (size_t) code < nd_count_of(names) ? names[code] : "unknown";
}

enum nd_error_code nd_error_code_of(int error_number) {
        switch (error_number) {
        case 0:
                return ND_OK;
        case ENOENT:
        case ESRCH:
                return ND_NOT_FOUND;
        case EEXIST:
                return ND_EXISTS;
        case EACCES:
        case EPERM:
                return ND_DENIED;
        case EMFILE:
        case ENFILE:
        case ENOSPC:
        case EDQUOT:
        case ENOMEM:
        case EFBIG:
                return ND_EXHAUSTED;
        case ETIMEDOUT:
                return ND_DEADLINE;
        case ENOSYS:
        case EOPNOTSUPP:
                return ND_UNIMPLEMENTED;
        default:
                return ND_INTERNAL;
        }
}
