/* SPDX-License-Identifier: Apache-2.0 */
/* pull.h - images on their way in: orders, nodens-fetch and nodens-unpack at work, the commit into the store */
#pragma once

#include <systemd/sd-event.h>

#include "cri/core/config.h"
#include "cri/image/pull-event.h"

struct nd_oci_store;
struct cri_image_gc;
struct cri_telemetry;

struct cri_pull_credentials { /* all may be nullptr */
        const char *username, *password, *auth, *server_address, *identity_token, *registry_token;
};

/* Who waits for a pull. */
struct cri_pull_listener {
        void (*layer)(const struct cri_pull_event *event, void *userdata); /* may be nullptr */
        /* Last. The error is the listener's to free; the ids are of the images that are there now, "sha256:..." each. */
        void (*end)(struct nd_error *error, const struct nd_strings *image_ids, void *userdata);
};

struct cri_puller;
struct cri_pull_request; /* one listener's place in a pull */

[[nodiscard]] struct nd_error *cri_puller_new(sd_event *loop, const struct cri_config *config, struct nd_oci_store *store,
                                              struct cri_image_gc *image_gc, struct cri_telemetry *telemetry,
                                              struct cri_puller **ret);
void cri_puller_free(struct cri_puller *puller); /* pulls under way are killed, their listeners told */

/* Orders a pull. The same reference with the same credentials, ordered again while it is under way, is one pull with two listeners. */
[[nodiscard]] struct nd_error *cri_puller_pull(struct cri_puller *puller, const char *reference,
                                               const struct cri_pull_credentials *credentials,
                                               const struct cri_pull_listener *listener, void *userdata,
                                               struct cri_pull_request **ret);

/* Orders the import of an OCI archive; takes the descriptor. */
[[nodiscard]] struct nd_error *cri_puller_import(struct cri_puller *puller, int archive_fd,
                                                 const struct cri_pull_listener *listener, void *userdata,
                                                 struct cri_pull_request **ret);

/* The listener does not want to hear any more; a pull without listeners is killed. Not to be called after end. */
void cri_pull_request_cancel(struct cri_pull_request *request);

/* Pulls under way, waiting ones included. */
size_t cri_puller_count(const struct cri_puller *puller);
