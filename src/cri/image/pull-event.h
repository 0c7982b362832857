/* SPDX-License-Identifier: Apache-2.0 */
/* pull-event.h - the lines that nodens-fetch and nodens-unpack write
 *
 * The fetcher reads what strangers send; should it be taken over, its lines are a stranger's too. So they are bounded and checked like
 * anything from outside, and nothing in them is believed that the store can check itself. Which layers were unpacked is for the
 * unpacker alone to say: the same line of the fetcher is an error. */
#pragma once

#include "base/strings.h"
#include "oci/digest.h"
#include "oci/store.h"

enum {
        PULL_LINE = 1 << 20, /* bytes of one line */
        PULL_IMAGES = 100,   /* images of one archive */
        PULL_LAYERS = 500,
        PULL_UNPACKED_MOST = 20000, /* layers of one pull or archive that are new */
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
        struct nd_digest index; /* none unless it was picked from an index */
        struct nd_digest config;
        struct nd_strings names; /* of an archive; a pull's name is the daemon's to know */
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
