/* SPDX-License-Identifier: Apache-2.0 */
#include "mon/oom.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "sys/cgroup.h"

enum {
        TEXT = 4096,
};

/* Reads a small kernel file once into a buffer; false when it is empty or unreadable. */
static bool read_small(int fd, char text[static TEXT]) {
        ssize_t n = pread(fd, text, TEXT - 1, 0);

        if (n <= 0)
                return false;
        text[n] = '\0';
        return true;
}

void mon_oom_watch(struct mon_oom *oom, pid_t pid) {
        nd_autoclose int fd = -EBADF;
        nd_autofree char *cgroup = nullptr, *events = nullptr;
        char path[32], text[TEXT];

        (void) snprintf(path, sizeof path, "/proc/%d/cgroup", pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || !read_small(fd, text))
                return;
        cgroup = nd_cgroup_path_of(text);
        if (!cgroup)
                return;
        events = nd_format(ND_CGROUP_MOUNT "%s/memory.events", cgroup);
        oom->fd = open(events, O_RDONLY | O_CLOEXEC);
        mon_oom_read(oom);
}

void mon_oom_read(struct mon_oom *oom) {
        char text[TEXT];
        uint64_t kills;

        if (oom->fd < 0)
                return;
        if (!read_small(oom->fd, text)) {
                /* The cgroup is gone. A count above 0 stays valid; 0 becomes unknown, since a kill
                 * may have happened after the last read. */
                if (oom->kills == 0)
                        oom->kills = -1;
                nd_close_fd(&oom->fd);
                return;
        }
        if (nd_cgroup_key(text, "oom_kill", &kills))
                oom->kills = (int64_t) kills;
}
