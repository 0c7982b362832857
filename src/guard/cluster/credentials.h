/* SPDX-License-Identifier: Apache-2.0 */
/* credentials.h - address and credentials of the API server, read again when their files change */
#pragma once

#include <sys/stat.h>
#include <systemd/sd-event.h>

#include "guard/cluster/health.h"

enum {
        GUARD_CREDENTIAL_FILES = 5, /* kubeconfig, authority, certificate, key, token */
};

struct guard_credentials {
        const char *path; /* of the kubeconfig, the caller's; nullptr: see nd_kubeconfig_find() */
        struct nd_api *api;
        struct guard_health *health;
        struct nd_kubeconfig config; /* as last read, without its secrets */
        struct stat stamps[GUARD_CREDENTIAL_FILES];
        time_t token_expires, certificate_expires; /* 0: unknown, or none is used */
        bool has_token, has_certificate;
        struct nd_api_call *probe; /* asks whether refused credentials are accepted again */
        sd_event_source *timer;
};

/* Reads the files and creates the client. The object must not move; the client is freed by the
 * caller, after the last request and before guard_credentials_done(). */
[[nodiscard]] struct nd_error *guard_credentials_start(struct guard_credentials *credentials, sd_event *loop,
                                                       struct guard_health *health, struct nd_api **ret);
void guard_credentials_done(struct guard_credentials *credentials);

/* When the credentials expire; 0: unknown. */
time_t guard_credentials_expire(const struct guard_credentials *credentials);
