/* SPDX-License-Identifier: Apache-2.0 */
/* record.h - the exit record, in a preallocated file: a full disk cannot lose a container's exit
 * status */
#pragma once

#include "base/error.h"
#include "net/monitor-wire.h"

/* Creates the file "exit" and writes all of it once. */
[[nodiscard]] struct nd_error *mon_record_create(int directory, int *ret_fd);

/* Writes the slot of the record's phase. */
void mon_record_write(int fd, const struct nd_monitor_record *record);
