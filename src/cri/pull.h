/* SPDX-License-Identifier: Apache-2.0 */
/* pull.h - images on their way in: orders, nodens-fetch and nodens-unpack at work, the commit into the store */
#pragma once

#include <systemd/sd-event.h>

#include "cri/config.h"
#include "cri/pull-event.h"

struct nd_image_store;
struct sweeper;
struct telemetry;

struct pull_credentials { /* all may be nullptr */
        const char *username, *password, *auth, *server_address, *identity_token, *registry_token;
};

/* Who waits for a pull. */
struct pull_listener {
        void (*layer)(const struct pull_event *event, void *userdata); /* may be nullptr */
        /* Last. The error is the listener's to free; the ids are of the images that are there now, "sha256:..." each. */
        void (*end)(struct nd_error *error, const struct nd_strings *image_ids, void *userdata);
};

struct puller;
struct pull_request; /* one listener's place in a pull */

[[nodiscard]] struct nd_error *puller_new(sd_event *loop, const struct cri_config *config, struct nd_image_store *store,
                                          struct sweeper *image_gc, struct telemetry *telemetry, struct puller **ret);
void puller_free(struct puller *puller); /* pulls under way are killed, their listeners told */

/* Orders a pull. The same reference with the same credentials, ordered again while it is under way, is one pull with two listeners. */
[[nodiscard]] struct nd_error *puller_pull(struct puller *puller, const char *reference,
                                           const struct pull_credentials *credentials, const struct pull_listener *listener,
                                           void *userdata, struct pull_request **ret);

/* Orders the import of an OCI archive; takes the descriptor. */
[[nodiscard]] struct nd_error *puller_import(struct puller *puller, int archive_fd, const struct pull_listener *listener,
                                             void *userdata, struct pull_request **ret);

/* The listener does not want to hear any more; a pull without listeners is killed. Not to be called after end. */
void pull_ticket_cancel(struct pull_request *request);

/* Pulls under way, waiting ones included. */
size_t puller_count(const struct puller *puller);
