/* SPDX-License-Identifier: Apache-2.0 */
/* image-gc.h - removes images' data that no image and no container uses, in the background */
#pragma once

#include <systemd/sd-event.h>

#include "base/error.h"

struct nd_oci_store;
struct cri_pod_table;
struct cri_image_gc;

/* Keeps what the containers in the pod table use. */
[[nodiscard]] struct nd_error *cri_image_gc_new(sd_event *loop, struct nd_oci_store *store, const struct cri_pod_table *pods,
                                                struct cri_image_gc **ret);
void cri_image_gc_free(struct cri_image_gc *image_gc);

/* Call when something may have become garbage. */
void cri_image_gc_wake(struct cri_image_gc *image_gc);

typedef void (*cri_image_gc_callback)(void *userdata);

/* Wakes the collector, and calls back once the current garbage is off the disk or cannot be
 * removed: always later, never within the call. The caller may cancel before that. */
struct cri_image_gc_wait *cri_image_gc_wait(struct cri_image_gc *image_gc, cri_image_gc_callback done, void *userdata);
void cri_image_gc_wait_cancel(struct cri_image_gc_wait *wait);
