/* SPDX-License-Identifier: Apache-2.0 */
/* api-credentials.h - address and credentials of the API server, read again when their files
 * change */
#pragma once

#include <sys/stat.h>
#include <systemd/sd-event.h>
#include <time.h>

#include "net/api-client.h"

enum {
        ND_API_CREDENTIAL_FILES = 5, /* kubeconfig, authority, certificate, key, token */
};

enum nd_api_problem {
        ND_API_PROBLEM_CREDENTIALS, /* the API server refuses them */
        ND_API_PROBLEM_CONTACT,     /* no response */
        ND_API_PROBLEMS,
};

struct nd_api_credentials_settings {
        const char *path; /* of the kubeconfig; nullptr: see nd_kubeconfig_find() */
        /* Context of the kubeconfig to use if it has one of that name; nullptr: the current one. */
        const char *context;
        const char *owner;  /* "the guard's", for texts */
        const char *advice; /* for a kubeconfig with neither a token nor a certificate */
        /* Text nullptr: the problem is over, or there is none; called with each response. at_once:
         * the problem is certain, and not only when it lasts. */
        void (*report)(enum nd_api_problem problem, const char *text, bool at_once, void *userdata);
        /* The files changed and were read. On an error the former credentials stay. */
        void (*changed)(const struct nd_error *error, void *userdata);
        void *userdata;
};

struct nd_api_credentials {
        struct nd_api_credentials_settings settings;
        struct nd_api *api;
        struct nd_kubeconfig config; /* as last read, without its secrets */
        struct stat stamps[ND_API_CREDENTIAL_FILES];
        time_t token_expires, certificate_expires; /* 0: unknown, or none is used */
        bool has_token, has_certificate;
        bool refused;              /* by the last response */
        uint64_t unauthorized;     /* responses with status 401 */
        struct nd_api_call *probe; /* asks whether refused credentials are accepted again */
        sd_event_source *timer;
};

/* Reads the files and creates the client. The object must not move, and the texts of the settings
 * must outlive it; the client is freed by the caller, after the last request and before
 * nd_api_credentials_done(). */
[[nodiscard]] struct nd_error *nd_api_credentials_start(struct nd_api_credentials *credentials, sd_event *loop,
                                                        const struct nd_api_credentials_settings *settings,
                                                        struct nd_api **ret);
void nd_api_credentials_done(struct nd_api_credentials *credentials);

/* When the credentials expire; 0: unknown. */
time_t nd_api_credentials_expire(const struct nd_api_credentials *credentials);
