/* SPDX-License-Identifier: Apache-2.0 */
/* install-manifest.h - what a cluster needs for the guard, as objects for `kubectl apply` */
#pragma once

#include "base/text.h"
#include "guard/core/standards.h"

struct guard_install_settings {
        const char *group;
        const char *namespace; /* of the guard's service */
        const char *service;
        const char *url;                         /* instead of a service: "https://10.0.0.1:9443" */
        const char *ca;                          /* PEM that the API server checks the guard by; nullptr: none is written */
        const char *default_mode;                /* of namespaces without a label, as in the configuration */
        const struct guard_standards *standards; /* pod security; nullptr: none */
        const char *kubeconfig;                  /* a path on the API server's machine, as the next two */
        const char *client_certificate, *client_key;
        const char *api_servers; /* networks, with commas between them; nullptr: not known */
        uint16_t port;           /* of the guard's pods */
};

enum guard_install_part {
        GUARD_INSTALL_CRD,
        GUARD_INSTALL_CONSTRAINTS, /* the default constraints, a role for each, and who has them */
        GUARD_INSTALL_RBAC,        /* what the guard itself may do */
        GUARD_INSTALL_WEBHOOKS,
        GUARD_INSTALL_NETWORK,    /* a NetworkPolicy; api_servers are known */
        GUARD_INSTALL_ADMISSION,  /* a file for the API server: that it has a client certificate for webhooks */
        GUARD_INSTALL_KUBECONFIG, /* and the kubeconfig that this one names */
        GUARD_INSTALL_PARTS,
};

extern const char *const guard_install_part_names[GUARD_INSTALL_PARTS];

/* A stream of YAML documents; they are JSON inside. */
void guard_install_manifest_write(enum guard_install_part part, const struct guard_install_settings *settings,
                                  struct nd_text *text);
