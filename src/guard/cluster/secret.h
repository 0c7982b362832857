/* SPDX-License-Identifier: Apache-2.0 */
/* secret.h - a certificate that guards make themselves and share in a Secret, and the authority of
 * clients that the API server publishes */
#pragma once

#include "guard/server/certificate.h"
#include "net/api-client.h"

#define GUARD_SECRET "nodens-guard-tls"
#define GUARD_SECRET_ROTATE "security.nodens.io/rotate" /* annotation: make a new authority */

struct guard_secret;

struct guard_secret_settings {
        struct nd_api *api;
        const char *namespace, *service; /* of the guard */
        bool makes_certificate;
        bool reads_client_ca;
        uint64_t overlap_seconds; /* see authority.h */
        /* A new certificate and key, or a new authority of clients; the other texts are nullptr. */
        void (*take)(const struct guard_server_files *files, void *userdata);
        /* What cannot be done; nullptr: all is well. */
        void (*report)(const char *problem, void *userdata);
        void *userdata;
};

/* Texts of the settings must outlive the object. Freed before the client's nd_api_free() and after
 * its nd_api_stop(). */
[[nodiscard]] struct guard_secret *guard_secret_new(const struct guard_secret_settings *settings);
void guard_secret_free(struct guard_secret *secret);
