/* SPDX-License-Identifier: Apache-2.0 */
/* discovery.h - finds a cluster with a bootstrap token, as kubeadm does
 *
 * The token is read from standard input. The result is a kubeconfig with the contexts
 *
 *      bootstrap       the token: the kubelet requests its certificate with it
 *      controller      a token of the controller's service account, if the cluster gives one */
#pragma once

#include "base/error.h"

struct rootless_discovery_settings {
        const char *server;       /* URL */
        const char *ca_cert_hash; /* "sha256:..."; nullptr: ca is used */
        const char *ca;           /* file with the cluster's authority */
        const char *output;       /* path of the result */
};

[[nodiscard]] struct nd_error *rootless_discover(const struct rootless_discovery_settings *settings);
