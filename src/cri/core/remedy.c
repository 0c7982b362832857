/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/core/remedy.h"

#include <string.h>

#include "base/memory.h"

static const struct {
        const char *cause;
        const char *remedy;
} remedies[] = {
        {"No space left on device",
         "free space or inodes on that filesystem ('df -h' and 'df -i' show them), or set images and state in "
         "/etc/nodens/cri.yaml to a larger one"},
        {"Disk quota exceeded", "raise the quota of root on that filesystem"},
        {"Read-only file system",
         "mount the filesystem writable; the kernel log ('journalctl -k') shows whether an error made it read-only"},
        {"which the host mounted: a rootless node can idmap only",
         "set images and state in /etc/nodens/cri.yaml to directories on a tmpfs of the node, or run these pods on other nodes"},
        {"may not create any: start it with a delegated cgroup",
         "'nodens check --rootless' shows what the user of the node lacks, and the command that delegates cgroups"},
        {"Too many open files", "raise the limit of open files (fs.file-max, or LimitNOFILE= of the unit)"},
};

const char *cri_remedy_of(const char *text) {
        for (size_t i = 0; i < nd_count_of(remedies); i++)
                if (strstr(text, remedies[i].cause))
                        return remedies[i].remedy;
        return nullptr;
}
