/* SPDX-License-Identifier: Apache-2.0 */
/* offers.h - makes staging directories as a pull leaves them, and checks a store from outside
 *
 * Images are made of numbers: image n has a config of its own, some layers that all images share
 * and some of its own. A layer's tree has one file, which says whose it is. */
#pragma once

#include "oci/store.h"

struct offer_plan {
        unsigned number; /* which image */
        unsigned shared; /* lowest layers, the same in all images */
        unsigned own;    /* layers above, its own */
        bool index;      /* there is an index above the manifest */
        const char *names[4];
};

struct offer {
        struct nd_oci_store_offer offer;
        struct nd_strings names;
        struct nd_oci_unpacked_layers unpacked;
};

void offer_done(struct offer *offer);

/* Writes blobs and those layers that the store does not have. */
void offer_make(const struct nd_oci_store *store, int stage_fd, const struct offer_plan *plan, struct offer *ret);

/* Stage, make, commit, unstage. */
struct nd_error *offer_commit(struct nd_oci_store *store, const struct offer_plan *plan);
struct nd_digest offer_id(const struct offer_plan *plan);

/* Opens the store at root as after a crash and checks all of it through the files and the API:
 * everything that an image names is there and whole, no name is on two images, nothing was
 * reported; after a collection with nothing in use exactly what the images need is left. Returns
 * the number of images. */
size_t offers_check(const char *root);

/* Collects without a grace period. Returns how many layers went. */
size_t offers_collect(struct nd_oci_store *store, nd_oci_store_used used, void *userdata);

/* Removes the trash, as the daemon's child does. */
void offers_empty_trash(struct nd_oci_store *store);

/* System calls of ours without fsync: for preparation, where a power cut is not tested. */
void offers_hurry(bool hurry);
