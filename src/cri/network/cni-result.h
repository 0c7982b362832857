/* SPDX-License-Identifier: Apache-2.0 */
/* cni-result.h - parses results and errors of CNI plugins. No I/O here.
 *
 * A plugin is any program that the cluster's network installs, so its output is validated. */
#pragma once

#include "base/error.h"
#include "base/strings.h"

/* The pod's addresses on an interface, in the plugin's order, without prefix lengths. If the
 * result lists no interfaces, all its addresses count. */
[[nodiscard]] struct nd_error *cri_cni_result_addresses(const char *text, size_t length, const char *interface,
                                                        struct nd_strings *ret);

/* Error of a failed plugin: code, msg and details of its JSON, or its output if that is not
 * valid JSON. */
[[nodiscard]] struct nd_error *cri_cni_result_error(const char *text, size_t length);

enum {
        CNI_RESULT_CEILING = 1 << 20,
        CNI_ADDRESSES_MOST = 64,
};
