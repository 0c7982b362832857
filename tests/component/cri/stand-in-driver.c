/* SPDX-License-Identifier: Apache-2.0 */
/* stand-in-driver.c - the libraries of a GPU driver, for tests of the hooks that install them
 *
 * Built once for each library, with its SONAME. NVIDIA's hook for memory limits loads the
 * management library and calls the functions below; the limits go to the file $STAND_IN_LIMITS. */
#include <stdio.h>
#include <stdlib.h>

struct limits {
        const char *cgroup;
        unsigned long long soft, hard;
};

#define EXPORTED [[gnu::visibility("default")]]
EXPORTED int nvmlInit_v2(void);
EXPORTED int nvmlShutdown(void);
EXPORTED int nvmlDeviceGetHandleByUUID(const char *uuid, void **ret);
EXPORTED int nvmlDeviceSetMemoryLimits_v1(void *device, const struct limits *limits);

int nvmlInit_v2(void) {
        return 0;
}

int nvmlShutdown(void) {
        return 0;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **ret) {
        *ret = (void *) uuid;
        return 0;
}

int nvmlDeviceSetMemoryLimits_v1([[maybe_unused]] void *device, const struct limits *limits) {
        const char *path = getenv("STAND_IN_LIMITS");
        FILE *file = path ? fopen(path, "we") : nullptr;

        if (!file)
                return 999;
        (void) fprintf(file, "%s %llu %llu\n", limits->cgroup, limits->soft, limits->hard);
        return fclose(file) == 0 ? 0 : 999;
}
