/* SPDX-License-Identifier: Apache-2.0 */
/* fetcher.h - GET requests to the servers of one registry, several at a time
 *
 * A fetch gets one resource, with as many requests as needed: it answers challenges, follows
 * redirects, resumes after a broken connection and tries the next server after a failure. libcurl's
 * types stop here. */
#pragma once

#include <poll.h>

#include "oci/digest.h"
#include "pull/fetch/auth.h"
#include "pull/fetch/hosts.h"

/* Headers of a response. */
struct pull_fetch_head {
        const char *content_type; /* "" = none */
        uint64_t length;          /* bytes that will follow; UINT64_MAX = unknown */
};

struct pull_fetch_plan {
        const char *path;          /* below a server's URL, with a leading slash; copied */
        const char *repository;    /* repository for the token; copied */
        const char *accept;        /* copied; nullptr = any */
        unsigned capability;       /* of pull_host_capability: which servers to use */
        unsigned deadline_seconds; /* for the whole response; 0 = only the no-progress timeout */

        uint64_t (*offset)(void *userdata); /* where to resume; nullptr = always from the start */
        /* A good response begins, at the offset that offset() returned. For a fetch without
         * offset() a second one may begin after an error. */
        struct nd_error *(*head)(void *userdata, const struct pull_fetch_head *head);
        struct nd_error *(*body)(void *userdata, const char *bytes, size_t length);
        /* The response is complete. On an error the fetch tries the next server. */
        struct nd_error *(*check)(void *userdata);
        void (*done)(void *userdata, struct nd_error *error); /* the receiver owns the error */
        void *userdata;
};

struct pull_fetcher_settings {
        struct pull_hosts *hosts; /* borrowed */
        struct pull_auth *auth;   /* borrowed */
        /* file with each host's CA certificates, nullptr = none; borrowed */
        const char *const *ca;
        /* file with each host's client certificate and key, nullptr = none; borrowed */
        const char *const *client;
        unsigned no_progress_seconds;
        /* connection to the broker of a rootless node (net/broker.h), -EBADF = none; borrowed */
        int broker;
};

struct pull_fetcher;
[[nodiscard]] struct nd_error *pull_fetcher_new(const struct pull_fetcher_settings *settings, struct pull_fetcher **ret);
void pull_fetcher_free(struct pull_fetcher *fetcher); /* running fetches end without their done() */

void pull_fetch_start(struct pull_fetcher *fetcher, const struct pull_fetch_plan *plan);

/* Waits for the network, the descriptors or the timeout, and advances all fetches. */
[[nodiscard]] struct nd_error *pull_fetcher_wait(struct pull_fetcher *fetcher, struct pollfd *also, size_t count,
                                                 int timeout_ms);
