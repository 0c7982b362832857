/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-mapping.c - the file of a pod: an accepted file is formatted as itself; a rejected one hides
 * no block
 *
 * From a truncated or damaged file every host ID that a reader could see must still be salvaged, or
 * a pod's block would be given to another. */
#include <string.h>

#include <unit/fuzz.h>

#include "userns/mapping.h"

static bool same_line(const struct nd_mapping_line *a, const struct nd_mapping_line *b) {
        return a->host == b->host && a->container == b->container && a->length == b->length;
}

static bool salvaged(const char *bytes, size_t length, uint32_t host) {
        nd_cleanup(nd_userns_extents_done) struct nd_userns_extents extents = {};

        nd_mapping_salvage(bytes, length, &extents);
        fuzz_require(extents.count <= ND_MAPPING_SALVAGE);
        nd_vector_each (extent, &extents) {
                fuzz_require(extent->first < ND_ID_SPACE && extent->count > 0);
                if (extent->first == host)
                        return true;
        }
        return false;
}

static void check_format(const struct nd_mapping *mapping) {
        nd_autofree char *text = nd_mapping_format(mapping->uid.host, mapping->uid.length);
        struct nd_mapping again = {};

        fuzz_require(!nd_mapping_parse(text, strlen(text), &again));
        fuzz_require(!nd_mapping_check(&again));
        fuzz_require(same_line(&mapping->uid, &again.uid) && same_line(&mapping->gid, &again.gid));
        fuzz_require(again.uid_lines == 1 && again.gid_lines == 1);
        fuzz_require(strlen(text) <= 141 + 2 * 10);

        /* The ID is found at any truncation after it. */
        for (size_t cut = strlen("{\"uidMappings\":[{\"hostId\":4294967295"); cut <= strlen(text); cut++)
                fuzz_require(salvaged(text, cut, mapping->uid.host));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_autoerror struct nd_error *error = nullptr, *refused = nullptr;
        struct nd_mapping mapping = {};

        (void) salvaged((const char *) data, size, 0);
        error = nd_mapping_parse((const char *) data, size, &mapping);
        if (error) {
                fuzz_require(nd_error_code(error) == ND_INVALID);
                return 0;
        }
        refused = nd_mapping_check(&mapping);
        if (refused)
                return 0;
        fuzz_require(mapping.uid_lines == 1 && mapping.gid_lines == 1 && mapping.uid.container == 0);
        fuzz_require(same_line(&mapping.uid, &mapping.gid));
        check_format(&mapping);
        return 0;
}
