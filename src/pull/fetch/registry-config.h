/* SPDX-License-Identifier: Apache-2.0 */
/* registry-config.h - hosts, credentials and certificates of a registry, as copies in the jail
 *
 * Everything of the host that TLS and name resolution need is read beforehand and copied into the
 * jail. */
#pragma once

#include "pull/fetch/fetcher.h"
#include "pull/fetch/request.h"

struct pull_registry_config {
        struct pull_auth *auth;
        struct pull_hosts hosts;
        char **ca; /* path in the jail for each host; nullptr = none */
        char **client;
};

void pull_registry_config_done(struct pull_registry_config *config);

/* Reads hosts.toml and certificates. */
[[nodiscard]] struct nd_error *pull_registry_config_load(const struct pull_request *request, struct pull_registry_config *ret);

/* Puts the calling process into the jail. */
[[nodiscard]] struct nd_error *pull_registry_config_enter_jail(struct pull_registry_config *config, int blobs_fd,
                                                               int partial_fd);

[[nodiscard]] struct nd_error *pull_registry_config_fetcher(struct pull_registry_config *config, unsigned no_progress_seconds,
                                                            int broker, struct pull_fetcher **ret);
