/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/limits.h"

#include <sys/resource.h>

static struct rlimit before; /* {0, 0} = never raised */

struct nd_error *nd_limits_raise(void) {
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
                return nd_error_new(ND_INTERNAL, errno, "read the limit of open files");
        before = limit;
        limit.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
                return nd_error_new(ND_INTERNAL, errno, "raise the limit of open files to %llu",
                                    (unsigned long long) limit.rlim_max);
        return nullptr;
}

void nd_limits_restore(void) {
        if (before.rlim_max > 0)
                (void) setrlimit(RLIMIT_NOFILE, &before);
}
