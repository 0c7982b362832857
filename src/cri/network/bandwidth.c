/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/network/bandwidth.h"

#include "kube/quantity.h"

/* The limits that Kubernetes uses too. */
static constexpr int64_t least = 1000;
static constexpr int64_t most = 1000000000000000;

enum {
        SHOWN = 64, /* characters of a refused value in the error */
};

static struct nd_error *take(const struct cri_pairs *annotations, const char *key, uint64_t *ret) {
        *ret = 0;
        nd_vector_each (pair, annotations) {
                int64_t value = 0;
                int r;

                if (!nd_streq(pair->key, key))
                        continue;
                r = nd_quantity_parse(pair->value, &value);
                if (r < 0)
                        return nd_error_new(ND_INVALID, -r,
                                            "annotation %s: '%.*s' is not a quantity; use bits per second such as 10M", key,
                                            SHOWN, pair->value);
                if (value < least || value > most)
                        return nd_error_new(ND_INVALID, ERANGE,
                                            "annotation %s: '%.*s' is not between 1k and 1P bits per second", key, SHOWN,
                                            pair->value);
                *ret = (uint64_t) value;
        }
        return nullptr;
}

struct nd_error *cri_bandwidth_of(const struct cri_pairs *annotations, struct cri_bandwidth *ret) {
        struct cri_bandwidth found = {};

        nd_try(take(annotations, BANDWIDTH_INGRESS, &found.ingress));
        nd_try(take(annotations, BANDWIDTH_EGRESS, &found.egress));
        *ret = found;
        return nullptr;
}
