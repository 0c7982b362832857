/* SPDX-License-Identifier: Apache-2.0 */
/* config.h - the guard's configuration file */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "base/strings.h"
#include "guard/core/standards.h"

#define GUARD_CONFIG_PATH "/etc/nodens/guard.yaml"
#define GUARD_DIRECTORY "/etc/nodens/guard" /* default place of certificates and credentials */
/* kubeadm's name of the API servers' client certificate. */
#define GUARD_CLIENT_NAME "kube-apiserver-kubelet-client"

#define GUARD_AUTHORIZER_CONFIG_PATH "/etc/nodens/authorizer.yaml"
#define GUARD_AUTHORIZER_DIRECTORY "/etc/nodens/authorizer"

/* What a process of the guard does; defaults differ. */
enum guard_role {
        GUARD_ROLE_ADMISSION,
        GUARD_ROLE_AUTHORIZER,
        GUARD_ROLES,
};

#define GUARD_NO_AUTHORITY "none" /* clientCA: clients need no certificate */
/* certificate: guards make it and share it in a Secret; clientCA: the one that the API server
 * publishes */
#define GUARD_FROM_CLUSTER "cluster"

struct guard_config {
        char *address;
        uint32_t port;
        char *certificate, *key; /* paths; GUARD_FROM_CLUSTER: no files */
        /* path, GUARD_NO_AUTHORITY or GUARD_FROM_CLUSTER; nullptr: not set, and the guard refuses
         * to serve */
        char *client_ca;
        struct nd_strings client_names;  /* names of certificates that may request reviews */
        struct nd_strings metrics_names; /* names of certificates that may read metrics only */
        /* nullptr: the pod's service account, $KUBECONFIG or ~/.kube/config */
        char *kubeconfig;
        char *group;   /* API group of the constraints */
        char *service; /* by which API servers reach the guard, for a certificate of its own */
        uint32_t ids_per_pod;
        uint32_t overlap_seconds; /* between the steps of a rotation of authorities */
        uint32_t connections;
        /* without contact with the API server, after which reviews are denied */
        uint32_t stale_seconds;
        /* after SIGTERM, in which new connections are accepted */
        uint32_t drain_seconds;
        bool host_network; /* the cluster's gate UserNamespacesHostNetworkSupport */
        bool allocate;     /* whether to allocate ranges of user IDs to namespaces */
        /* of the objects that guards share, a Lease and a record; nullptr: the pod's own, or
         * nodens-system */
        char *namespace;
        /* off, dry-run or on: labels of pod security for namespaces that opt in */
        char *label_sync;
        bool rbac_only;     /* the API server's authorizers are Node and RBAC */
        char *default_mode; /* off, warn or enforce, for namespaces without a label */
        struct guard_standards standards;
};

/* Whether clients need a certificate. */
[[nodiscard]] bool guard_config_authenticates(const struct guard_config *config);
/* Whether the guard computes labels of pod security for namespaces, and whether it writes them. */
[[nodiscard]] bool guard_config_computes_labels(const struct guard_config *config);
[[nodiscard]] bool guard_config_writes_labels(const struct guard_config *config);
/* Whether the guard makes its own certificate, and whether it reads the authority of clients from
 * the cluster. */
[[nodiscard]] bool guard_config_makes_certificate(const struct guard_config *config);
[[nodiscard]] bool guard_config_reads_client_ca(const struct guard_config *config);

/* Default configuration file and directory of a role. */
const char *guard_config_path(enum guard_role role);
const char *guard_config_directory(enum guard_role role);

void guard_config_init(enum guard_role role, struct guard_config *ret);
void guard_config_done(struct guard_config *config);
[[nodiscard]] struct nd_error *guard_config_parse(const char *text, size_t length, struct guard_config *config);
/* With path nullptr it reads the default file, if that exists. */
[[nodiscard]] struct nd_error *guard_config_read(enum guard_role role, const char *path, struct guard_config *ret);
