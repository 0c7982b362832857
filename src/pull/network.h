/* SPDX-License-Identifier: Apache-2.0 */
/* network.h - what the fetching side takes with it into its jail
 *
 * Everything of the machine that a TLS connection and a name's resolution need is read beforehand and put into the jail as a copy. */
#pragma once

#include "pull/fetch.h"
#include "pull/request.h"

struct nd_network {
        struct nd_auth *auth;
        nd_hosts hosts;
        char **ca; /* for each host the path in the jail; nullptr = none */
        char **client;
};

void nd_network_done(struct nd_network *network);

/* Reads hosts.toml and certificates. */
[[nodiscard]] struct nd_error *nd_network_prepare(const struct nd_request *request, struct nd_network *ret);

/* Puts the calling process into the jail. */
[[nodiscard]] struct nd_error *nd_network_jail(struct nd_network *network, int blobs_fd, int partial_fd);

[[nodiscard]] struct nd_error *nd_network_fetcher(struct nd_network *network, unsigned no_progress_seconds,
                                                  struct nd_fetcher **ret);
