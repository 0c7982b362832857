/* SPDX-License-Identifier: Apache-2.0 */
/* api-client.h - requests to an API server, in the event loop
 *
 * One connection carries all of them (HTTP/2). A request ends with one call of done(), unless it is
 * cancelled. No callback runs before nd_api_send() has returned; callbacks may call every function
 * here but nd_api_free(). */
#pragma once

#include <systemd/sd-event.h>

#include "net/kubeconfig.h"

struct nd_api;
struct nd_api_call;

[[nodiscard]] struct nd_error *nd_api_new(sd_event *loop, const struct nd_kubeconfig *config, struct nd_api **ret);
void nd_api_free(struct nd_api *api); /* pending requests are dropped without done() */

/* Uses this address and these credentials from now on. A new token does not affect requests that
 * are open; with another address or certificate they end with an error. Nothing changes on an
 * error. */
[[nodiscard]] struct nd_error *nd_api_reload(struct nd_api *api, const struct nd_kubeconfig *config);

/* Why there is no response. */
enum nd_api_fault {
        ND_API_FAULT_NONE,
        ND_API_FAULT_CONNECTION,
        ND_API_FAULT_TIMEOUT,
        /* The server's certificate: expired, of another authority, or not valid otherwise, for
         * instance for its name. */
        ND_API_FAULT_EXPIRED,
        ND_API_FAULT_SIGNER,
        ND_API_FAULT_CERTIFICATE,
};

struct nd_api_answer {
        /* No response, or its status is not 2xx: then errno is the HTTP status. */
        const struct nd_error *error;
        enum nd_api_fault fault;
        long status;      /* 0: no response */
        const char *body; /* NUL-terminated; "" if piece() took it */
        size_t length;
        uint64_t retry_after_s; /* 0: not given */
};

struct nd_api_request {
        const char *method; /* a constant; nullptr: GET */
        const char *path;   /* with its query */
        const char *body;
        const char *content_type; /* a constant; nullptr: application/json */
        uint64_t timeout_us;      /* for the whole request; 0: none */
        size_t ceiling;           /* maximum size of the response body; 0: 1 MiB */
        /* Client on whose behalf; calls of one share do not delay the others. 0: our own. */
        uint64_t share;
        /* If set, called when a 2xx response begins, before its body. */
        void (*begun)(void *userdata);
        /* If set, receives the body of a 2xx response in pieces. An error that it returns ends the
         * request. */
        struct nd_error *(*piece)(const char *bytes, size_t length, void *userdata);
        void (*done)(const struct nd_api_answer *answer, void *userdata);
        void *userdata;
};

/* Path and body are copied. */
struct nd_api_call *nd_api_send(struct nd_api *api, const struct nd_api_request *request);
void nd_api_cancel(struct nd_api_call *call); /* nullptr is fine; done() is not called */

/* Ends all requests with an error, so that their owners can clean up. For shutdown: requests sent
 * afterwards are not answered. */
void nd_api_stop(struct nd_api *api);

/* Closes all connections: a dead one would be reused for the next request, and all requests share
 * it. Pending requests end with an error. */
void nd_api_renew(struct nd_api *api);

/* Calls observe() with each answer, before the request's done(). It must not send requests. */
void nd_api_observe(struct nd_api *api, void (*observe)(const struct nd_api_answer *answer, void *userdata), void *userdata);

/* Appends one escaped component of a path or query. */
struct nd_text;
void nd_api_escape(struct nd_text *text, const char *part);

sd_event *nd_api_loop(struct nd_api *api);
