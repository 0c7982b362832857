/* SPDX-License-Identifier: Apache-2.0 */
/* pull.h - pulls and imports images: runs nodens-fetch and nodens-unpack, and commits to the
 * store */
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

/* Callbacks of a caller that waits for a pull. */
struct cri_pull_listener {
        void (*layer)(const struct cri_pull_event *event, void *userdata); /* may be nullptr */
        /* Called last. The listener frees the error. image_ids are the images that exist now,
         * "sha256:..." each. */
        void (*end)(struct nd_error *error, const struct nd_strings *image_ids, void *userdata);
};

struct cri_puller;
struct cri_pull_request; /* a listener of a pull */

[[nodiscard]] struct nd_error *cri_puller_new(sd_event *loop, const struct cri_config *config, struct nd_oci_store *store,
                                              struct cri_image_gc *image_gc, struct cri_telemetry *telemetry,
                                              struct cri_puller **ret);
/* kills running pulls and notifies their listeners */
void cri_puller_free(struct cri_puller *puller);

/* Starts a pull. A request with the same reference and credentials as a pull in progress joins
 * it. */
[[nodiscard]] struct nd_error *cri_puller_pull(struct cri_puller *puller, const char *reference,
                                               const struct cri_pull_credentials *credentials,
                                               const struct cri_pull_listener *listener, void *userdata,
                                               struct cri_pull_request **ret);

/* Starts the import of an OCI archive; takes the descriptor. The path is for messages. */
[[nodiscard]] struct nd_error *cri_puller_import(struct cri_puller *puller, const char *path, int archive_fd,
                                                 const struct cri_pull_listener *listener, void *userdata,
                                                 struct cri_pull_request **ret);

/* Removes the listener; a pull without listeners is killed. Must not be called after end. */
void cri_pull_request_cancel(struct cri_pull_request *request);

/* Pulls in progress, including queued ones. */
size_t cri_puller_count(const struct cri_puller *puller);
