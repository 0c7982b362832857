/* SPDX-License-Identifier: Apache-2.0 */
/* kubeconfig.h - address and credentials of an API server
 *
 * Reads a user's kubeconfig file or the service account files of a pod. Only certificates and
 * tokens are supported; a user with an exec plugin, an auth provider or a password is refused with
 * an error. */
#pragma once

#include <stdint.h>

#include "base/error.h"

enum {
        ND_KUBECONFIG_BYTES = 1 << 20,
        ND_KUBECONFIG_PEM = 1 << 20,
        ND_KUBECONFIG_TOKEN = 64 << 10,
};

struct nd_kubeconfig {
        char *server;          /* "https://10.0.0.1:6443", without a trailing slash */
        char *tls_server_name; /* nullptr: use the server's address */
        char *ca;              /* PEM; nullptr: the host's CA bundle */
        char *certificate;     /* PEM, needs the key; nullptr: none */
        char *key;
        char *token;
        char *token_file;
        char *namespace; /* nullptr: not set */
        bool insecure;   /* the server's certificate is not checked */
        /* The files that were read, for a caller that reads them again when they change; nullptr:
         * not from a file. */
        char *file; /* the kubeconfig itself */
        char *ca_file;
        char *certificate_file;
        char *key_file;
};

void nd_kubeconfig_done(struct nd_kubeconfig *config);

/* Parses cluster and user of the given context, or of the current context if nullptr. Reads no
 * other file. */
[[nodiscard]] struct nd_error *nd_kubeconfig_parse(const char *text, size_t length, const char *context,
                                                   struct nd_kubeconfig *ret);

/* Reads a file and the files that it names, relative to it. */
[[nodiscard]] struct nd_error *nd_kubeconfig_load(const char *path, const char *context, struct nd_kubeconfig *ret);

/* Whether a file defines a context of that name. */
[[nodiscard]] struct nd_error *nd_kubeconfig_has_context(const char *path, const char *context, bool *ret);

/* Reads the service account files of a pod. directory nullptr: the default place. */
[[nodiscard]] struct nd_error *nd_kubeconfig_of_pod(const char *directory, struct nd_kubeconfig *ret);

/* When a token expires, in seconds since 1970: a service account's is a JSON Web Token. 0: unknown.
 * The signature is not checked. */
[[nodiscard]] uint64_t nd_kubeconfig_token_expiry(const char *token);

/* The file if given; else a pod's files; else $KUBECONFIG; else ~/.kube/config. */
[[nodiscard]] struct nd_error *nd_kubeconfig_find(const char *path, struct nd_kubeconfig *ret);
