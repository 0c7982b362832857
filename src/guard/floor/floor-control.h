/* SPDX-License-Identifier: Apache-2.0 */
/* floor-control.h - moves the version floor from its spec to its status, and marks nodes */
#pragma once

#include "guard/floor/replicas.h"

struct guard_floor_control;
struct guard_store;

struct guard_floor_control_settings {
        struct nd_api *api;
        struct guard_store *store;
        const char *namespace;
        const char *identity;
        uint64_t number;
        const char *role;
        uint32_t lifetime_s;
        /* the authorizer only reports on which floor it acts */
        bool only_reports;
        /* error may be nullptr */
        void (*log)(const char *what, const struct nd_error *error, void *userdata);
        void *userdata;
};

/* Nodes and floors must have been listed. */
struct guard_floor_control *guard_floor_control_new(const struct guard_floor_control_settings *settings);
void guard_floor_control_free(struct guard_floor_control *control);
/* Floors or nodes changed. */
void guard_floor_control_wake(struct guard_floor_control *control);
