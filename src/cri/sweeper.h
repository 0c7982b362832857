/* SPDX-License-Identifier: Apache-2.0 */
/* image garbage collector.h - what no image and no container needs any more goes, without anybody having to wait for it */
#pragma once

#include <systemd/sd-event.h>

#include "base/error.h"

struct nd_image_store;
struct pods;
struct sweeper;

/* What the containers in the pod table use stays. */
[[nodiscard]] struct nd_error *sweeper_new(sd_event *loop, struct nd_image_store *store, const struct pods *pods,
                                           struct sweeper **ret);
void sweeper_free(struct sweeper *image_gc);

/* Something may have become garbage. */
void sweeper_wake(struct sweeper *image_gc);

typedef void (*sweeper_callback)(void *userdata);

/* Wakes it, and calls back once what is garbage now is off the disk, or cannot be removed: always later, never within the call. Whoever does not want to be
 * called any more cancels before that. */
struct sweeper_wait *sweeper_wait(struct sweeper *image_gc, sweeper_callback done, void *userdata);
void sweeper_wait_cancel(struct sweeper_wait *wait);
