/* SPDX-License-Identifier: Apache-2.0 */
/* record-format.h - sandbox.json and container.json: bytes in, bytes out
 *
 * A record says where an object stands; what was asked for is in the request beside it. Unknown members are passed over and absent ones keep the
 * value they have, so that a newer daemon reads an older one's records; a record of a newer format is ND_UNIMPLEMENTED. */
#pragma once

#include "cri/core/pod-table.h"

enum {
        RECORD_CEILING = 4 << 20, /* bytes of one */
        RECORD_VERSION = 1,
        RECORD_BOOT_ID = 36, /* characters, as in /proc/sys/kernel/random/boot_id */
};

[[nodiscard]] struct nd_error *cri_record_format_sandbox(const struct cri_sandbox *sandbox, const char *boot_id,
                                                         struct nd_text *ret);
[[nodiscard]] struct nd_error *cri_record_format_container(const struct cri_container *container, struct nd_text *ret);

/* Fills an object that its request has filled already. With an error it is half-filled, and fit to be freed. */
[[nodiscard]] struct nd_error *cri_record_parse_sandbox(const char *bytes, size_t length, const char *boot_id,
                                                        struct cri_sandbox *sandbox);
[[nodiscard]] struct nd_error *cri_record_parse_container(const char *bytes, size_t length, struct cri_container *container);

/* Whether a container's record is that of the pod's own init, which has no request. */
[[nodiscard]] bool cri_record_is_internal(const char *bytes, size_t length);

const char *cri_sandbox_state_name(enum cri_sandbox_state state);
const char *cri_container_state_name(enum cri_container_state state);
