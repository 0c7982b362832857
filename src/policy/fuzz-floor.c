/* SPDX-License-Identifier: Apache-2.0 */
/* A kubelet's version, or an object NodeVersionFloor: what parses compares consistently, and no
 * input turns a relaxation on that the lower minimum does not cover. */
#include <string.h>

#include <unit/fuzz.h>

#include "policy/floor.h"

static void try_version(const char *text) {
        const struct nd_floor_version minimum = {.major = 1, .minor = 30};
        struct nd_floor_version version;

        if (nd_floor_version_parse(text, &version) < 0) {
                fuzz_require(!nd_floor_meets(&minimum, text));
                return;
        }
        fuzz_require(version.major < 1000000 && version.minor < 1000000 && version.patch < 1000000);
        fuzz_require(nd_floor_version_compare(&version, &version) == 0);
        fuzz_require(nd_floor_meets(&minimum, text) == (nd_floor_version_compare(&version, &minimum) >= 0));
        fuzz_require(strpbrk(text, " \t\r\n\"'<>/\\") == nullptr);
}

static void try_floor(const char *bytes, size_t size) {
        nd_autoarena struct nd_arena arena = {};
        nd_autojson yyjson_doc *doc = nullptr;
        nd_autoerror struct nd_error *error = nd_json_parse(bytes, size, 1 << 16, &doc);
        struct nd_floor floor = {};

        if (!error)
                error = nd_floor_decode(yyjson_doc_get_root(doc), &arena, &floor);
        if (error)
                return;
        fuzz_require(nd_floor_version_compare(nd_floor_of_relaxations(&floor), nd_floor_of_joining(&floor)) <= 0);
        for (enum nd_floor_gate gate = 0; gate < ND_FLOOR_GATES; gate++)
                if (!(nd_floor_gates_off(&floor) & ND_FLOOR_BIT(gate)))
                        fuzz_require(nd_floor_version_compare(&floor.spec, &floor.required[gate]) >= 0 &&
                                     nd_floor_version_compare(&floor.status, &floor.required[gate]) >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_autofree char *text = nd_strndup((const char *) data, size);

        try_version(text);
        try_floor((const char *) data, size);
        return 0;
}
