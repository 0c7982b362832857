/* SPDX-License-Identifier: Apache-2.0 */
/* credentials.h - kubeconfigs of a node's components, from one kubeconfig of the user
 *
 * With a context `bootstrap` the kubelet requests a certificate with the credential of it, and
 * kube-proxy uses the kubelet's certificate. Otherwise:
 * A component gets the context of its own name, or the current context if there is none of that
 * name. Certificates, keys and tokens are inlined, so that no path of the host is in the result. */
#pragma once

#include "rootless/core/node.h"

enum {
        CREDENTIALS_BYTES = 4 << 20, /* limit of all results together */
};

struct rootless_credentials {
        char *kubelet; /* texts of kubeconfig files */
        char *proxy;
        char *ca;       /* PEM, "" = none */
        bool bootstrap; /* kubelet's is the one to request a certificate with */
};

/* Where the kubelet keeps its certificate in the node. */
#define KUBELET_CERTIFICATE "/var/lib/kubelet/pki/kubelet-client-current.pem"
void rootless_credentials_done(struct rootless_credentials *credentials);

/* Makes the text of a kubeconfig with one context. */
[[nodiscard]] struct nd_error *rootless_credentials_format(const char *path, const char *context, char **ret_config,
                                                           char **ret_ca);

/* Reads the file in a child process: the node's init is a clone of the calling process, root of the
 * node can read init's memory, and the file may have other credentials than the node's. */
[[nodiscard]] struct nd_error *rootless_credentials_read(const char *path, struct rootless_credentials *ret);

/* Links the user's file in the node's directory, for the controller, which runs outside of the
 * node. It uses the file itself, so that changed credentials are used without a new start. Checks
 * that it has some; not to be called before init exists, for the same reason. */
#define CONTROLLER_KUBECONFIG "controller.kubeconfig"
[[nodiscard]] struct nd_error *rootless_credentials_link_controller(const char *path, const struct rootless_node *node);
