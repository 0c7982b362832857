/* SPDX-License-Identifier: Apache-2.0 */
/* install-manifest.h - objects that a cluster needs for the guard, for `kubectl apply` */
#pragma once

#include "base/text.h"
#include "guard/core/standards.h"

#define GUARD_INSTALL_ANNOTATIONS(object) "(has(" object ".metadata.annotations) ? " object ".metadata.annotations : {})"
/* CEL: a request that is not an update, or an update of what the guard looks at. */
#define GUARD_INSTALL_CHANGES                                                                                                 \
        "request.operation != 'UPDATE' || object.spec != oldObject.spec\n"                                                    \
        "|| " GUARD_INSTALL_ANNOTATIONS("object") "\n   != " GUARD_INSTALL_ANNOTATIONS("oldObject") "\n"

struct guard_install_settings {
        const char *group;
        const char *namespace; /* of the guard's service */
        const char *service;
        const char *url; /* instead of a service: "https://10.0.0.1:9443" */
        /* PEM with which the API server verifies the guard; nullptr: left out */
        const char *ca;
        /* of namespaces without a label, as in the configuration */
        const char *default_mode;
        const struct guard_standards *standards; /* pod security; nullptr: none */
        /* a path on the API server's host, as the next two */
        const char *kubeconfig;
        const char *client_certificate, *client_key;
        const char *api_servers; /* networks, separated by commas; nullptr: unknown */
        uint16_t port;           /* of the guard's pods */
        unsigned grace_seconds;  /* after which their processes are killed */
        /* gets the guard's permissions besides the service account; nullptr: none */
        const char *user;
        /* for the guard's own kubeconfig: address of the API server, paths on the guard's host */
        const char *server;
        const char *cluster_ca;
        const char *token_file; /* or, if nullptr: */
        const char *own_certificate, *own_key;
        /* for the Deployment; texts of files */
        const char *image;
        const char *client_ca;
        const char *config; /* nullptr: defaults */
        /* guards make their certificate; they read the authority of clients from the cluster */
        bool makes_certificate, reads_client_ca;
        bool syncs_labels; /* guards compute labels of pod security */
        /* for the authorizer: address, and paths on the API server's host */
        const char *authorizer_url;
        const char *authorizer_kubeconfig;
        const char *authorizer_ca;
};

enum guard_install_part {
        GUARD_INSTALL_CRD,
        /* the default constraints, a role and its binding for each, and the default floor */
        GUARD_INSTALL_CONSTRAINTS,
        GUARD_INSTALL_RBAC, /* the guard's own permissions */
        GUARD_INSTALL_WEBHOOKS,
        GUARD_INSTALL_NETWORK, /* a NetworkPolicy; needs api_servers */
        /* a file for the API server that gives it a client certificate for webhooks */
        GUARD_INSTALL_ADMISSION,
        GUARD_INSTALL_KUBECONFIG,       /* the kubeconfig that this file names */
        GUARD_INSTALL_GUARD_KUBECONFIG, /* the guard's own; needs server */
        GUARD_INSTALL_DEPLOYMENT,       /* needs image; with api_servers also a NetworkPolicy */
        GUARD_INSTALL_NODES,            /* a policy that keeps old kubelets out */
        /* a file for the API server that names the authorizer, and its kubeconfig */
        GUARD_INSTALL_AUTHORIZATION,
        GUARD_INSTALL_AUTHORIZATION_KUBECONFIG,
        GUARD_INSTALL_AUTHORIZER, /* a static pod; needs image */
        GUARD_INSTALL_PARTS,
};

extern const char *const guard_install_part_names[GUARD_INSTALL_PARTS];

/* A stream of YAML documents in JSON syntax. */
void guard_install_manifest_write(enum guard_install_part part, const struct guard_install_settings *settings,
                                  struct nd_text *text);
