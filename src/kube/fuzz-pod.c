/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes: either an error, or a pod that can be walked, copied and changed without changing the
 * original. */
#include <string.h>

#include <unit/fuzz.h>

#include "kube/pod.h"

static void walk(const struct nd_pod *pod) {
        size_t count = 0, number;

        for (size_t i = 0; nd_pod_container(&pod->spec, i); i++, count++)
                fuzz_require(nd_pod_container_list(&pod->spec, i, &number));
        fuzz_require(count ==
                     pod->spec.init_containers.count + pod->spec.containers.count + pod->spec.ephemeral_containers.count);
        for (size_t i = 1; i < pod->metadata.annotations.count; i++)
                fuzz_require(strcmp(pod->metadata.annotations.items[i - 1].key, pod->metadata.annotations.items[i].key) < 0);
        nd_list_each(volume, &pod->spec.volumes) fuzz_require(volume->sources >> ND_VOLUME_SOURCES == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_autoarena struct nd_arena arena = {};
        struct nd_pod pod, *copy;
        nd_autoerror struct nd_error *error = nd_pod_decode((const char *) data, size, &arena, &pod);

        if (error)
                return 0;
        walk(&pod);
        copy = nd_pod_copy(&pod, &arena);
        nd_pod_own_context(copy, &arena)->fs_group = ND_INT(1);
        walk(copy);
        walk(&pod);
        return 0;
}
