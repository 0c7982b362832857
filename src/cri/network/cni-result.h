/* SPDX-License-Identifier: Apache-2.0 */
/* cni-result.h - what a CNI plugin answered. No I/O here; a plugin is any program that a cluster's network brings. */
#pragma once

#include "base/error.h"
#include "base/strings.h"

/* The addresses that a pod has on an interface, in the plugin's order, without the prefix lengths. A result that names no interfaces means that one. */
[[nodiscard]] struct nd_error *cri_cni_result_addresses(const char *text, size_t length, const char *interface,
                                                        struct nd_strings *ret);

/* What a plugin that failed says of it: code, msg and details of its answer, or what it printed when that is no such answer. */
[[nodiscard]] struct nd_error *cri_cni_result_error(const char *text, size_t length);

enum {
        CNI_RESULT_CEILING = 1 << 20,
        CNI_ADDRESSES_MOST = 64,
};
