/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-runtime-mntns.c - a line of mountinfo, whose paths anything can name */
#include <string.h>
#include <unit/fuzz.h>

#include "base/text.h"
#include "cri/bundle/runtime-mntns.h"

static bool is_below(const char *path, const char *directory) {
        return nd_has_prefix(path, directory) && path[strlen(directory)] == '/';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct cri_runtime_mntns_places places = {
                .run = (char *) "/run/n", .state = (char *) "/var/n", .netns = (char *) "/run/netns"};
        nd_autofree char *line = nd_strndup((const char *) data, size);
        nd_autofree char *path = cri_runtime_mntns_excluded(&places, line);

        if (!path)
                return 0;
        fuzz_require(strlen(path) <= strlen(line));
        fuzz_require(is_below(path, places.run) || is_below(path, places.state) || is_below(path, places.netns) ||
                     strstr(path, "/pods/"));
        return 0;
}
