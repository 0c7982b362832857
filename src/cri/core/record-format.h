/* SPDX-License-Identifier: Apache-2.0 */
/* record-format.h - writes and parses sandbox.json and container.json
 *
 * A record holds an object's state; the original request is in a file beside it. Unknown members
 * are ignored and absent ones keep their value, so that a newer daemon reads an older one's
 * records. A record of a newer format fails with ND_UNIMPLEMENTED. */
#pragma once

#include "cri/core/pod-table.h"

enum {
        RECORD_CEILING = 4 << 20, /* bytes of one record */
        RECORD_VERSION = 1,
        RECORD_BOOT_ID = 36, /* characters, as in /proc/sys/kernel/random/boot_id */
};

[[nodiscard]] struct nd_error *cri_record_format_sandbox(const struct cri_sandbox *sandbox, const char *boot_id,
                                                         struct nd_text *ret);
[[nodiscard]] struct nd_error *cri_record_format_container(const struct cri_container *container, struct nd_text *ret);

/* Fills an object whose request is already decoded. After an error it is half-filled and can be
 * freed. */
[[nodiscard]] struct nd_error *cri_record_parse_sandbox(const char *bytes, size_t length, const char *boot_id,
                                                        struct cri_sandbox *sandbox);
[[nodiscard]] struct nd_error *cri_record_parse_container(const char *bytes, size_t length, struct cri_container *container);

/* Whether a container's record belongs to the pod's init, which has no request. */
[[nodiscard]] bool cri_record_is_internal(const char *bytes, size_t length);

const char *cri_sandbox_state_name(enum cri_sandbox_state state);
const char *cri_container_state_name(enum cri_container_state state);
/* "" if it is not known. */
const char *cri_mapping_name(enum cri_mapping how);
