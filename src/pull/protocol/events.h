/* SPDX-License-Identifier: Apache-2.0 */
/* events.h - what the daemon hears: JSON lines on standard output
 *
 * No line carries a secret: known ones are replaced, and so is what looks like one (a user in a URL, a query string). */
#pragma once

#include "base/json.h"
#include "oci/digest.h"

struct pull_events {
        int fd;
        void (*secrets)(void *userdata, void (*each)(void *, const char *),
                        void *each_userdata); /* nullptr = none are known */
        void *userdata;
};

void pull_event_resolved(const struct pull_events *events, const struct nd_digest *digest, const char *media_type);
void pull_event_layer(const struct pull_events *events, const struct nd_digest *digest, uint64_t size, const char *state,
                      uint64_t done);
/* nodens-unpack's: a layer that is in layers/<chain> now, below is nullptr for the lowest; and that all of them are on disk. */
void pull_event_unpacked(const struct pull_events *events, const struct nd_digest *chain, const struct nd_digest *diff_id,
                         const struct nd_digest *below, uint64_t size, uint64_t inodes);
void pull_event_synced(const struct pull_events *events);
void pull_event_error(const struct pull_events *events, const struct nd_error *error);
void pull_event_line(const struct pull_events *events, struct nd_text *line); /* a finished object, without its end of line */

/* The message with secrets taken out. */
[[nodiscard]] char *pull_events_redact(const struct pull_events *events, const char *message);
