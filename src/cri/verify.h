/* SPDX-License-Identifier: Apache-2.0 */
/* verify.h - whether a started container is what was promised
 *
 * After start a worker looks at the running process from outside: its ID maps, its cgroup, who owns an image's file, which of its volumes are
 * idmapped or read-only. The result is kept with the container and shown by verbose status and `nodens inspect`; what does not hold is logged. */
#pragma once

#include <systemd/sd-event.h>

#include "base/vector.h"
#include "cri/pods.h"

struct cri_config;
struct record_book;
struct verify;

[[nodiscard]] struct nd_error *verify_new(sd_event *loop, const struct cri_config *config, const struct pods *pods,
                                          struct record_book *records, struct verify **ret);
void verify_free(struct verify *verify);

/* Checks it in a worker, when the loop has nothing better to do. */
void verify_later(struct verify *verify, const struct container *container);

enum verify_result {
        VERIFY_PASSED,
        VERIFY_FAILED,
        VERIFY_UNKNOWN, /* it could not be looked at: the process had ended already, or the worker did not come to an end in time */
};

struct verify_check {
        char *name; /* "user IDs", "cgroup", ... */
        enum verify_result result;
        char *text; /* what was found */
};
struct verify_checks {
        struct verify_check *items;
        size_t count;
        size_t capacity;
};
void verify_checks_done(struct verify_checks *checks);

/* The result as it is kept, and back; a result that cannot be read is no checks. */
[[nodiscard]] char *verify_format(const struct verify_checks *checks);
void verify_parse(const char *checks_json, struct verify_checks *ret);

/* For tests. The checks of a mapping and of a mount table, given as their texts. */
void verify_map(const char *name, const char *map_text, const struct nd_id_map *wanted, struct verify_checks *ret);
void verify_mounts(const char *mountinfo, const struct container_request *request, struct verify_checks *ret);
void verify_cgroup(const char *cgroup_text, const char *parent, struct verify_checks *ret);
