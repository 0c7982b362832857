/* SPDX-License-Identifier: Apache-2.0 */
/* sweeper.h - what no image and no container needs any more goes, without anybody waiting for it */
#pragma once

#include <systemd/sd-event.h>

#include "base/error.h"

struct nd_image_store;
struct pods;
struct sweeper;

/* What the containers in the book use stays. */
[[nodiscard]] struct nd_error *sweeper_new(sd_event *loop, struct nd_image_store *store, const struct pods *pods,
                                           struct sweeper **ret);
void sweeper_free(struct sweeper *sweeper);

/* Something may have become garbage. */
void sweeper_wake(struct sweeper *sweeper);
