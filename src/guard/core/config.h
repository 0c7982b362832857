/* SPDX-License-Identifier: Apache-2.0 */
/* config.h - the guard's configuration file */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "base/strings.h"
#include "guard/core/standards.h"

#define GUARD_CONFIG_PATH "/etc/nodens/guard.yaml"
#define GUARD_CLIENT_NAME                                                                                                     \
        "kube-apiserver-kubelet-client" /* what kubeadm calls the certificate that its API servers have for clients */

#define GUARD_NO_AUTHORITY "none" /* clientCA: every peer is answered */

struct guard_config {
        char *address;
        uint32_t port;
        char *certificate, *key;         /* paths */
        char *client_ca;                 /* path, or GUARD_NO_AUTHORITY; nullptr: not said, so that the guard does not serve */
        struct nd_strings client_names;  /* names of certificates that may ask for reviews */
        struct nd_strings metrics_names; /* and of those that may read metrics only */
        char *kubeconfig;                /* nullptr: a pod's, $KUBECONFIG or ~/.kube/config */
        char *group;                     /* API group of the constraints */
        uint32_t ids_per_pod;
        uint32_t connections;
        uint32_t stale_seconds; /* without a word of the API server, after which reviews are refused */
        bool host_network;      /* the cluster's gate UserNamespacesHostNetworkSupport */
        bool allocate;          /* ranges of user IDs for namespaces */
        char *namespace;        /* of what the guards share: a Lease and a record; nullptr: the pod's own, or nodens-system */
        bool rbac_only;         /* the API server's authorizers are Node and RBAC */
        char *default_mode;     /* off, warn or enforce, for namespaces without a label */
        struct guard_standards standards;
};

/* Whether clients need a certificate. */
[[nodiscard]] bool guard_config_authenticates(const struct guard_config *config);

void guard_config_init(struct guard_config *ret);
void guard_config_done(struct guard_config *config);
[[nodiscard]] struct nd_error *guard_config_parse(const char *text, size_t length, struct guard_config *config);
[[nodiscard]] struct nd_error *guard_config_read(const char *path,
                                                 struct guard_config *ret); /* nullptr: the usual one, if it is there */
