/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-id-maps.c - the text of a uid_map: parsing and printing it again gives the same map */
#include <string.h>

#include <unit/fuzz.h>

#include "base/text.h"
#include "sys/userns.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_cleanup(nd_userns_maps_done) struct nd_userns_maps maps = {}, again = {};
        nd_autofree char *text = fuzz_text(data, size);
        nd_autoerror struct nd_error *error = nd_userns_maps_parse(text, &maps);
        nd_autotext struct nd_text printed = ND_TEXT(1 << 20);

        if (error) {
                fuzz_require(nd_error_code(error) == ND_INVALID && maps.count == 0);
                return 0;
        }
        fuzz_require(maps.count <= ND_ID_MAP_LINES);
        nd_vector_each (map, &maps) {
                fuzz_require(map->count > 0);
                /* As the kernel does. */
                nd_text_addf(&printed, "%10u %10u %10u\n", map->inside, map->outside, map->count);
        }
        fuzz_require(!nd_userns_maps_parse(nd_text_get(&printed), &again));
        fuzz_require(again.count == maps.count);
        for (size_t i = 0; i < maps.count; i++)
                fuzz_require(maps.items[i].inside == again.items[i].inside &&
                             maps.items[i].outside == again.items[i].outside && maps.items[i].count == again.items[i].count);
        (void) nd_userns_maps_identity(&maps);
        return 0;
}
