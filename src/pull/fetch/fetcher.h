/* SPDX-License-Identifier: Apache-2.0 */
/* fetcher.h - GET requests to the servers of one registry, several at a time
 *
 * A fetch is one thing that is wanted, however many requests it takes: it answers challenges, follows redirects, resumes after a broken
 * connection and goes to the next server when one cannot help. libcurl's types stop here. */
#pragma once

#include <poll.h>

#include "oci/digest.h"
#include "pull/fetch/auth.h"
#include "pull/fetch/hosts.h"

/* How a response begins. */
struct pull_fetch_head {
        const char *content_type; /* "" when it says none */
        uint64_t length;          /* bytes that will come; UINT64_MAX when it does not say */
};

struct pull_fetch_plan {
        const char *path;          /* below a server's URL, with a slash in front; copied */
        const char *repository;    /* whose token is wanted; copied */
        const char *accept;        /* copied; nullptr = any */
        unsigned capability;       /* of pull_host_capability: which servers may be asked */
        unsigned deadline_seconds; /* for the whole response; 0 = as long as bytes come */

        uint64_t (*offset)(void *userdata); /* where to go on; nullptr = always at the start */
        /* A good response begins, at what offset() said. For a fetch without offset() a second one may begin after an error. */
        struct nd_error *(*head)(void *userdata, const struct pull_fetch_head *head);
        struct nd_error *(*body)(void *userdata, const char *bytes, size_t length);
        /* The response is complete. An error sends the fetch to the next server. */
        struct nd_error *(*check)(void *userdata);
        void (*done)(void *userdata, struct nd_error *error); /* the error is the receiver's */
        void *userdata;
};

struct pull_fetcher_settings {
        struct pull_hosts *hosts;  /* borrowed */
        struct pull_auth *auth;    /* borrowed */
        const char *const *ca;     /* the file of each host's certificate authorities, nullptr = none are known; borrowed */
        const char *const *client; /* the file of each host's client certificate and key, nullptr = none; borrowed */
        unsigned no_progress_seconds;
};

struct pull_fetcher;
[[nodiscard]] struct nd_error *pull_fetcher_new(const struct pull_fetcher_settings *settings, struct pull_fetcher **ret);
void pull_fetcher_free(struct pull_fetcher *fetcher); /* fetches that are under way end without their done() */

void pull_fetch_start(struct pull_fetcher *fetcher, const struct pull_fetch_plan *plan);

/* Waits for the network, for the descriptors or for the time, and moves everything on. */
[[nodiscard]] struct nd_error *pull_fetcher_wait(struct pull_fetcher *fetcher, struct pollfd *also, size_t count,
                                                 int timeout_ms);
