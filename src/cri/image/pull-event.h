/* SPDX-License-Identifier: Apache-2.0 */
/* pull-event.h - parses the lines that nodens-fetch and nodens-unpack write
 *
 * The fetcher reads untrusted data; if it is compromised, its lines are untrusted too. So they
 * are bounded and validated like any input, and what the store can verify itself is not taken
 * from them. Only the unpacker reports which layers were unpacked: the same line from the
 * fetcher is an error. */
#pragma once

#include "base/strings.h"
#include "oci/digest.h"
#include "oci/store.h"

enum {
        PULL_LINE = 1 << 20,        /* bytes of one line */
        PULL_IMAGES = 100,          /* images in one archive */
        PULL_UNPACKED_MOST = 20000, /* new layers of one pull or archive */
        PULL_MESSAGE = 4096,
};

enum cri_pull_event_kind {
        PULL_RESOLVED,
        PULL_LAYER,
        PULL_DONE,
        PULL_ERROR,
        PULL_UNPACKED,
        PULL_SYNCED,
};

enum cri_pull_party {
        PULL_FETCHER,
        PULL_UNPACKER,
        PULL_PARTIES,
};

struct cri_pull_image {
        struct nd_digest manifest;
        struct nd_digest index; /* none unless it was selected from an index */
        struct nd_digest config;
        struct nd_strings names; /* from an archive; the daemon knows the name of a pull */
};

struct cri_pull_event {
        enum cri_pull_event_kind kind;
        struct nd_digest digest; /* PULL_RESOLVED, PULL_LAYER */
        uint64_t size, done;     /* PULL_LAYER */
        const char *state;       /* PULL_LAYER; static */
        nd_vector(struct cri_pull_image) images;
        enum nd_error_code code; /* PULL_ERROR */
        char *message;
        struct nd_oci_unpacked_layer layer; /* PULL_UNPACKED */
};

void cri_pull_event_done(struct cri_pull_event *event);
[[nodiscard]] struct nd_error *cri_pull_event_parse(enum cri_pull_party party, const char *line, size_t length,
                                                    struct cri_pull_event *ret);
