/* SPDX-License-Identifier: Apache-2.0 */
/* certificate.h - loads and reloads the server's certificate and key and the CA of its clients */
#pragma once

#include <sys/stat.h>
#include <systemd/sd-event.h>

#include "guard/server/server.h"

enum {
        GUARD_CERTIFICATE_FILES = 3,
};

struct guard_certificate_texts {
        char *certificate, *key, *client_ca;
};

struct guard_certificate {
        const char *certificate, *key; /* paths, the caller's */
        const char *client_ca;         /* nullptr: clients need no certificate */
        /* Texts that do not come from files; then the paths only name them. */
        struct guard_certificate_texts given;
        struct guard_server *server;
        /* Called with each look at the files: why API servers do not accept the certificate;
         * nullptr: no reason. */
        void (*report)(const char *problem, time_t expires, void *userdata);
        void *userdata;
        time_t expires;
        /* when the log last said that it expires soon; 0: never */
        uint64_t warned_us;
        struct stat stamps[GUARD_CERTIFICATE_FILES]; /* of the files as last read */
        sd_event_source *timer;
};

/* Reads all files. */
[[nodiscard]] struct nd_error *guard_certificate_read(struct guard_certificate *watched, struct guard_certificate_texts *ret);
void guard_certificate_texts_done(struct guard_certificate_texts *texts);
struct guard_server_files guard_certificate_files(const struct guard_certificate_texts *texts);

/* report is set. Polls the files and hands changed ones to the server. Files that cannot be used
 * are logged, and tried again when they change. */
[[nodiscard]] struct nd_error *guard_certificate_watch(struct guard_certificate *watched, sd_event *loop,
                                                       struct guard_server *server);
/* Serves with these texts from now on instead of files; nullptr: as before. */
void guard_certificate_give(struct guard_certificate *watched, const struct guard_server_files *files);
void guard_certificate_done(struct guard_certificate *watched);
