/* SPDX-License-Identifier: Apache-2.0 */
/* certificate.h - the server's certificate and key, as their files change */
#pragma once

#include <sys/stat.h>
#include <systemd/sd-event.h>

#include "guard/server.h"

struct guard_certificate {
        const char *certificate, *key; /* paths; whoever watches keeps them */
        struct guard_server *server;
        struct stat stamps[2]; /* of what was read last */
        sd_event_source *timer;
};

/* Both files. */
[[nodiscard]] struct nd_error *guard_certificate_read(struct guard_certificate *watched, char **ret_certificate,
                                                      char **ret_key);

/* From now on the server gets what the files become; files that cannot be used are logged and tried again when they change. */
[[nodiscard]] struct nd_error *guard_certificate_watch(struct guard_certificate *watched, sd_event *loop,
                                                       struct guard_server *server);
void guard_certificate_done(struct guard_certificate *watched);
