/* SPDX-License-Identifier: Apache-2.0 */
/* kubeconfig.h - where an API server is, and as whom to talk to it
 *
 * A kubeconfig file of people or the files that a pod is given. Only what needs no other program: certificates and tokens; a user
 * with an exec plugin, an auth provider or a password is refused with words. */
#pragma once

#include "base/error.h"

enum {
        ND_KUBECONFIG_BYTES = 1 << 20,
        ND_KUBECONFIG_PEM = 1 << 20,
        ND_KUBECONFIG_TOKEN = 64 << 10,
};

struct nd_kubeconfig {
        char *server;          /* "https://10.0.0.1:6443", without a slash at the end */
        char *tls_server_name; /* nullptr: the server's own */
        char *ca;              /* PEM; nullptr: the machine's */
        char *certificate;     /* PEM, with its key; nullptr: none */
        char *key;
        char *token;
        char *token_file; /* read again and again: tokens of pods are replaced */
        char *namespace;  /* nullptr: not said */
        bool insecure;    /* the server's certificate is not checked */
        /* Paths until nd_kubeconfig_load() has read them. */
        char *ca_file;
        char *certificate_file;
        char *key_file;
};

void nd_kubeconfig_done(struct nd_kubeconfig *config);

/* The context's, or where that is nullptr the current context's, cluster and user. Reads no other file. */
[[nodiscard]] struct nd_error *nd_kubeconfig_parse(const char *text, size_t length, const char *context,
                                                   struct nd_kubeconfig *ret);

/* A file and those that it names, which are relative to it. */
[[nodiscard]] struct nd_error *nd_kubeconfig_load(const char *path, const char *context, struct nd_kubeconfig *ret);

/* What Kubernetes gives a pod. directory is nullptr for the usual place. */
[[nodiscard]] struct nd_error *nd_kubeconfig_of_pod(const char *directory, struct nd_kubeconfig *ret);

/* The file if one is named; else a pod's; else $KUBECONFIG; else ~/.kube/config. */
[[nodiscard]] struct nd_error *nd_kubeconfig_find(const char *path, struct nd_kubeconfig *ret);
