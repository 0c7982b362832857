/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/layers.h"

#include <unit/expect.h>

static struct nd_digest chain(int number) {
        return nd_digest_of(ND_HASH_SHA256, &number, sizeof number);
}

static void layers_are_found_while_others_come_and_go([[maybe_unused]] void **state) {
        enum { LAYERS = 5000 };
        nd_cleanup(nd_layers_done) struct nd_layers layers = {};

        for (int i = 0; i < LAYERS; i++) {
                struct nd_digest key = chain(i);
                struct nd_layers_entry *entry = nd_layers_add(&layers, &key);

                assert_ptr_equal(nd_layers_add(&layers, &key), entry);
                nd_layers_describe(&layers, entry, nullptr, (uint64_t) i, 1);
        }
        assert_int_equal(layers.count, LAYERS);
        for (int i = 0; i < LAYERS; i += 3) {
                struct nd_digest key = chain(i);

                (void) nd_layers_remove(&layers, nd_layers_find(&layers, &key));
        }
        for (int i = 0; i < LAYERS; i++) {
                struct nd_digest key = chain(i), back;
                struct nd_layers_entry *entry = nd_layers_find(&layers, &key);

                if (i % 3 == 0) {
                        assert_null(entry);
                        continue;
                }
                assert_non_null(entry);
                back = nd_layers_entry_chain(entry);
                assert_true(nd_digest_equal(&key, &back));
                assert_int_equal(entry->size, i);
        }
        assert_int_equal(layers.inodes, layers.count);
}

static void a_chain_of_another_hash_is_not_a_layer([[maybe_unused]] void **state) {
        nd_cleanup(nd_layers_done) struct nd_layers layers = {};
        struct nd_digest key = chain(1), other = nd_digest_of(ND_HASH_SHA512, "", 0);

        assert_null(nd_layers_find(&layers, &key));
        (void) nd_layers_add(&layers, &key);
        assert_null(nd_layers_find(&layers, &other));
}

static void a_layer_is_held_until_the_layer_above_is_removed([[maybe_unused]] void **state) {
        nd_cleanup(nd_layers_done) struct nd_layers layers = {};
        struct nd_digest low = chain(1), high = chain(2);
        struct nd_layers_entry *below = nd_layers_add(&layers, &low), *above = nd_layers_add(&layers, &high);

        nd_layers_describe(&layers, below, nullptr, 10, 1);
        nd_layers_describe(&layers, above, below, 20, 2);
        nd_layers_describe(&layers, above, below, 25, 2); /* again: still one child */
        assert_int_equal(layers.size, 35);
        assert_int_equal(below->children, 1);
        nd_layers_entry_hold(above);
        nd_layers_entry_hold(above);
        nd_layers_entry_release(above);
        assert_false(nd_layers_entry_idle(above));
        nd_layers_entry_release(above);
        assert_true(nd_layers_entry_idle(above));
        assert_false(nd_layers_entry_idle(below));
        assert_ptr_equal(nd_layers_remove(&layers, above), below);
        assert_true(nd_layers_entry_idle(below));
        assert_int_equal(layers.size, 10);
        assert_null(nd_layers_remove(&layers, below));
        assert_int_equal(layers.count, 0);
        nd_layers_entry_hold(nullptr);
        nd_layers_entry_release(nullptr);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(layers_are_found_while_others_come_and_go),
                cmocka_unit_test(a_chain_of_another_hash_is_not_a_layer),
                cmocka_unit_test(a_layer_is_held_until_the_layer_above_is_removed),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
