/* SPDX-License-Identifier: Apache-2.0 */
/* api-client.h - requests to an API server, in the event loop
 *
 * One connection carries all of them (HTTP/2). A request ends with one call of done(), unless it is cancelled; nothing is called before
 * nd_api_send() has returned, and from within the callbacks everything here may be called but nd_api_free(). */
#pragma once

#include <systemd/sd-event.h>

#include "net/kubeconfig.h"

struct nd_api;
struct nd_api_call;

[[nodiscard]] struct nd_error *nd_api_new(sd_event *loop, const struct nd_kubeconfig *config, struct nd_api **ret);
void nd_api_free(struct nd_api *api); /* open requests end without a word */

struct nd_api_answer {
        const struct nd_error *error; /* no answer came, or it is not 2xx: then errno is the HTTP status */
        long status;                  /* 0: none came */
        const char *body;             /* terminated; "" where pieces were taken */
        size_t length;
        uint64_t retry_after_s; /* 0: not said */
};

struct nd_api_request {
        const char *method; /* a constant; nullptr: GET */
        const char *path;   /* with its query */
        const char *body;
        const char *content_type; /* a constant; nullptr: application/json */
        uint64_t timeout_us;      /* for all of it; 0: as long as it takes */
        size_t ceiling;           /* most bytes of an answer's body; 0: 1 MiB */
        uint64_t share;           /* on whose behalf; calls of one share do not keep others waiting. 0: our own */
        /* Where given it takes the body of a good answer as it comes. An error of its own ends the request. */
        struct nd_error *(*piece)(const char *bytes, size_t length, void *userdata);
        void (*done)(const struct nd_api_answer *answer, void *userdata);
        void *userdata;
};

/* Path and body are copied. */
struct nd_api_call *nd_api_send(struct nd_api *api, const struct nd_api_request *request);
void nd_api_cancel(struct nd_api_call *call); /* nullptr is fine; done() is not called */

/* Ends all requests with an error, so that whoever waits for them can clean up. For the end: what is sent then is not answered. */
void nd_api_stop(struct nd_api *api);

/* Gives up all connections: one on which nothing comes any more would be used for whatever is asked next, and all requests share it. Those
 * that are open end with an error. */
void nd_api_renew(struct nd_api *api);

/* Appends a part of a path or query, escaped. */
struct nd_text;
void nd_api_escape(struct nd_text *text, const char *part);

sd_event *nd_api_loop(struct nd_api *api);
