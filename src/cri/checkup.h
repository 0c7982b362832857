/* SPDX-License-Identifier: Apache-2.0 */
/* CNI check.h - after a restart: do the plugins still find what they made for each pod? */
#pragma once

struct runtime;
struct checkup;

/* Notes the pods that there are now. */
[[nodiscard]] struct checkup *checkup_new(struct runtime *parts);
void checkup_free(struct checkup *checks);

/* From now on, in its own time. */
void checkup_begin(struct checkup *checks);
