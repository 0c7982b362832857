/* SPDX-License-Identifier: Apache-2.0 */
/* events.h - events for the daemon: JSON lines on standard output
 *
 * No line contains a secret: known ones are redacted, and so are likely ones (the user and the
 * query of a URL). */
#pragma once

#include "base/json.h"
#include "oci/digest.h"

struct pull_events {
        int fd;
        /* nullptr = no secrets */
        void (*secrets)(void *userdata, void (*each)(void *, const char *), void *each_userdata);
        void *userdata;
};

void pull_event_resolved(const struct pull_events *events, const struct nd_digest *digest, const char *media_type);
void pull_event_layer(const struct pull_events *events, const struct nd_digest *digest, uint64_t size, const char *state,
                      uint64_t done);
/* Events of nodens-unpack: a layer is in layers/<chain> now (below is nullptr for the lowest); all
 * of them are on disk. */
void pull_event_unpacked(const struct pull_events *events, const struct nd_digest *chain, const struct nd_digest *diff_id,
                         const struct nd_digest *below, uint64_t size, uint64_t inodes);
void pull_event_synced(const struct pull_events *events);
void pull_event_error(const struct pull_events *events, const struct nd_error *error);
/* a complete object without newline */
void pull_event_line(const struct pull_events *events, struct nd_text *line);

/* Returns the message with secrets redacted. */
[[nodiscard]] char *pull_events_redact(const struct pull_events *events, const char *message);
