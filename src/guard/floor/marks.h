/* SPDX-License-Identifier: Apache-2.0 */
/* marks.h - a condition and an event on nodes below the version floor */
#pragma once

#include "guard/core/store.h"
#include "net/api-client.h"

struct guard_marks {
        struct nd_api *api;
        struct guard_store *store;
        const char *identity;
        unsigned pending;
        bool troubled;
        /* error may be nullptr */
        void (*log)(const char *what, const struct nd_error *error, void *userdata);
        void *userdata;
};

/* Marks nodes that are below the floor, and clears the mark of the others. */
void guard_marks_update(struct guard_marks *marks);
