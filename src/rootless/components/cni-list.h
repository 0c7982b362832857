/* SPDX-License-Identifier: Apache-2.0 */
/* cni-list.h - a CNI network configuration list of the user's own, in place of that of cni.h */
#pragma once

#include "base/strings.h"

struct rootless_cni_list {
        char *text;                /* nullptr = none */
        char *bridge;              /* of the first plugin; nullptr if it is another plugin */
        struct nd_strings plugins; /* programs that it needs */
};

void rootless_cni_list_done(struct rootless_cni_list *list);
[[nodiscard]] struct nd_error *rootless_cni_list_read(const char *path, struct rootless_cni_list *ret);
