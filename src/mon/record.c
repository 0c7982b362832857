/* SPDX-License-Identifier: Apache-2.0 */
#include "mon/record.h"

#include <fcntl.h>
#include <string.h>

#include "sys/calls.h"

struct nd_error *mon_record_create(int directory, int *ret_fd) {
        static const struct nd_monitor_record first = {.phase = ND_MONITOR_CREATING};
        nd_autoclose int fd = -EBADF;
        char bytes[ND_MONITOR_RECORD];

        if (nd_sys->unlinkat(directory, "exit", 0) < 0 && errno != ENOENT)
                return nd_error_new(nd_error_code_of(errno), errno, "remove the old exit record");
        fd = nd_sys->openat(directory, "exit", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "create the exit record");
        memset(bytes, '\n', sizeof bytes);
        (void) nd_monitor_record_slot(&first, bytes);
        if (nd_sys->write(fd, bytes, sizeof bytes) != (ssize_t) sizeof bytes)
                return nd_error_new(ND_EXHAUSTED, errno, "write the exit record");
        *ret_fd = nd_take_fd(fd);
        return nullptr;
}

void mon_record_write(int fd, const struct nd_monitor_record *record) {
        char bytes[ND_MONITOR_SLOT];
        unsigned slot = nd_monitor_record_slot(record, bytes);

        /* The page is already allocated, so this cannot fail. */
        (void) !pwrite(fd, bytes, sizeof bytes, (off_t) slot * ND_MONITOR_SLOT);
}
