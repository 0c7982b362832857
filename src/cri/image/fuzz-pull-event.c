/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-pull-event.c - lines of a compromised fetcher or unpacker */
#include <assert.h>
#include <stdint.h>

#include "cri/image/pull-event.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try(enum cri_pull_party party, const uint8_t *data, size_t size) {
        nd_cleanup(cri_pull_event_done) struct cri_pull_event event = {};
        nd_autoerror struct nd_error *error = cri_pull_event_parse(party, (const char *) data, size, &event);

        if (error) {
                /* an event with an error owns nothing */
                assert(event.images.count == 0 && !event.message);
                return;
        }
        switch (event.kind) {
        case PULL_RESOLVED:
                assert(nd_digest_is_set(&event.digest));
                break;
        case PULL_LAYER:
                assert(nd_digest_is_set(&event.digest) && event.state);
                break;
        case PULL_DONE:
                assert(event.images.count > 0 && event.images.count <= PULL_IMAGES);
                nd_vector_each (image, &event.images)
                        assert(nd_digest_is_set(&image->manifest) && nd_digest_is_set(&image->config));
                break;
        case PULL_ERROR:
                assert(event.code != ND_OK && event.message);
                break;
        case PULL_UNPACKED:
                assert(party == PULL_UNPACKER && nd_digest_is_set(&event.layer.chain));
                assert(nd_digest_is_set(&event.layer.layer.diff_id) && event.layer.layer.size <= ND_LAYER_SIZE);
                break;
        case PULL_SYNCED:
                assert(party == PULL_UNPACKER);
                break;
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        try(PULL_FETCHER, data, size);
        try(PULL_UNPACKER, data, size);
        return 0;
}
