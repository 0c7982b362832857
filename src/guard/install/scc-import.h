/* SPDX-License-Identifier: Apache-2.0 */
/* scc-import.h - OpenShift's SecurityContextConstraints as constraints of the guard
 *
 * The fields are the same; the API group differs, and so do some constraints of the same name.
 * Fields that the guard does not have are left out and reported, as is everything else in the
 * input. */
#pragma once

#include "base/text.h"

enum {
        GUARD_IMPORT_BYTES = 16 << 20, /* maximum of one file */
};

struct guard_import {
        const char *group; /* API group of the guard's constraints */
        bool all;          /* also constraints with the name of one of the guard's own */
        /* What was left out or is wrong, with the line of its document. */
        void (*report)(size_t line, const char *text, void *userdata);
        void *userdata;
        size_t imported, left_out, invalid; /* counted here */
};

/* Appends a constraint and a role for its use for each constraint of a YAML or JSON stream, as a
 * stream of JSON documents. An error if the stream cannot be parsed. */
[[nodiscard]] struct nd_error *guard_import_read(struct guard_import *import, const char *bytes, size_t length,
                                                 struct nd_text *ret);
