/* SPDX-License-Identifier: Apache-2.0 */
/* certificates.h - the certificates, keys and kubeconfigs of a control plane
 *
 * Made once and kept: the next start uses them. A certificate is renewed when two thirds of its
 * time have passed or its names have changed, with the same key; so is an authority's, which signed
 * certificates stay valid with. A key is never replaced. */
#pragma once

#include "base/error.h"

struct rootless_certificates_settings {
        const char *directory;
        const char *address;   /* of the node: pods reach the API server at it */
        const char *listen;    /* address of the host at which the API server is published */
        const char *server;    /* its URL for clients on the host */
        const char *node_name; /* of the Node object */
};

[[nodiscard]] struct nd_error *rootless_certificates_ensure(const struct rootless_certificates_settings *settings);
