/* SPDX-License-Identifier: Apache-2.0 */
/* verify.h - checks that a started container has the isolation it was created with
 *
 * After the start a worker inspects the running process from outside: its ID maps, its cgroup, the
 * owner of an image's file, and which of its volumes are idmapped, bridged or read-only. The result
 * is stored with the container and shown by verbose status and `nodens inspect`; failed checks are
 * logged. */
#pragma once

#include <systemd/sd-event.h>

#include "base/vector.h"
#include "cri/core/pod-table.h"

struct cri_record_store;
struct cri_verify;

[[nodiscard]] struct nd_error *cri_verify_new(sd_event *loop, const struct cri_pod_table *pods,
                                              struct cri_record_store *records, struct cri_verify **ret);
void cri_verify_free(struct cri_verify *verify);

/* Checks it in a worker, when the loop is idle. */
void cri_verify_later(struct cri_verify *verify, const struct cri_container *container);

enum cri_verify_result {
        VERIFY_PASSED,
        VERIFY_FAILED,
        VERIFY_UNKNOWN, /* not checked: the process had exited already, or the worker timed out */
};

struct cri_verify_check {
        char *name; /* "user IDs", "cgroup", ... */
        enum cri_verify_result result;
        char *text; /* the finding */
};
struct cri_verify_checks {
        struct cri_verify_check *items;
        size_t count;
        size_t capacity;
};
void cri_verify_checks_done(struct cri_verify_checks *checks);

/* Formats and parses the stored result; an invalid one gives no checks. */
[[nodiscard]] char *cri_verify_format(const struct cri_verify_checks *checks);
void cri_verify_parse(const char *checks_json, struct cri_verify_checks *ret);

/* For tests: the checks of a mapping, a mount table and a cgroup, given as text. */
void cri_verify_map(const char *name, const char *map_text, const struct nd_userns_map *wanted, struct cri_verify_checks *ret);
void cri_verify_mounts(const char *mountinfo, const struct cri_container *container, struct cri_verify_checks *ret);
void cri_verify_cgroup(const char *cgroup_text, const char *parent, struct cri_verify_checks *ret);
