/* SPDX-License-Identifier: Apache-2.0 */
/* cluster-info.h - bootstrap tokens, and the ConfigMap cluster-info that a host reads before it
 * trusts the cluster
 *
 * The ConfigMap has a kubeconfig with the cluster's authority, and for each token a signature: a
 * JSON Web Signature without its payload, HS256 with the token's secret.
 * Everything but the token is input of an unknown server. */
#pragma once

#include "base/error.h"

enum {
        CLUSTER_INFO_BYTES = 256 * 1024,
        TOKEN_ID = 6,
        TOKEN_SECRET = 16,
        TOKEN_TEXT = TOKEN_ID + 1 + TOKEN_SECRET + 1, /* with the terminator */
};

/* ID.SECRET: lower-case letters and digits. */
[[nodiscard]] bool rootless_token_valid(const char *token);

struct rootless_cluster_info {
        char *kubeconfig; /* as signed */
        char *ca;         /* PEM */
};
void rootless_cluster_info_done(struct rootless_cluster_info *info);

/* Parses the object, checks its signature with the token, and returns the kubeconfig and the
 * certificates in it. */
[[nodiscard]] struct nd_error *rootless_cluster_info_parse(const char *object, size_t length, const char *token,
                                                           struct rootless_cluster_info *ret);

/* The certificate of a bundle whose public key has the hash, "sha256:" and 64 digits, as PEM. */
[[nodiscard]] struct nd_error *rootless_cluster_info_pin(const char *bundle, const char *hash, char **ret);
[[nodiscard]] bool rootless_hash_valid(const char *hash);
