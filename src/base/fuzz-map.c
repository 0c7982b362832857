/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-map.c - the bytes are operations on a map; a plain list must agree with it after each */
#include <stdio.h>
#include <string.h>

#include <unit/fuzz.h>

#include "base/map.h"

enum { KEYS = 256 };

/* Few keys of different lengths, so that they collide often. */
static const char *key_of(uint8_t number) {
        static char key[300];

        (void) snprintf(key, sizeof key, "%0*u", 1 + number % 20, number);
        return key;
}

static void compare_all(const struct nd_map *map, void *const *list, const bool *there) {
        size_t count = 0, expected = 0;

        for (size_t at = 0; nd_map_next(map, &at);)
                count++;
        for (int i = 0; i < KEYS; i++) {
                expected += there[i];
                fuzz_require(nd_map_has(map, key_of((uint8_t) i)) == there[i]);
                fuzz_require(nd_map_get(map, key_of((uint8_t) i)) == list[i]);
        }
        fuzz_require(count == expected && map->count == expected);
        fuzz_require(map->capacity == 0 || map->count < map->capacity);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_cleanup(nd_map_done) struct nd_map map = {};
        void *list[KEYS] = {};
        bool there[KEYS] = {};

        for (size_t i = 0; i + 1 < size; i += 2) {
                uint8_t number = data[i + 1];
                void *value = (void *) &data[i];

                switch (data[i] % 4) {
                case 0:
                case 1:
                        fuzz_require(nd_map_put(&map, key_of(number), value) == list[number]);
                        list[number] = value;
                        there[number] = true;
                        break;
                case 2:
                        fuzz_require(nd_map_remove(&map, key_of(number)) == list[number]);
                        list[number] = nullptr;
                        there[number] = false;
                        break;
                default:
                        fuzz_require(nd_map_get(&map, key_of(number)) == list[number]);
                }
        }
        compare_all(&map, list, there);
        return 0;
}
