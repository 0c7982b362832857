/* SPDX-License-Identifier: Apache-2.0 */
/* kubeconfig.h - writes kubeconfig files */
#pragma once

#include "base/error.h"

struct rootless_plane_context {
        const char *name; /* of the context, the cluster and the user */
        const char *server;
        const char *ca;          /* PEM */
        const char *certificate; /* PEM, with its key; nullptr = none */
        const char *key;
        /* Paths in the node instead of texts; nullptr = none. */
        const char *certificate_file;
        const char *token; /* nullptr = none */
};

/* The first context is the current one. The caller wipes the text. */
[[nodiscard]] char *rootless_plane_kubeconfig(const struct rootless_plane_context *contexts, size_t count);
