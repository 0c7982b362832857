/* SPDX-License-Identifier: Apache-2.0 */
/* test-shifted.c - copies of layers for pods' user namespaces: counted, trimmed, and removed with
 * their layer */
#include <string.h>

#include <unit/expect.h>
#include <unit/offers.h>
#include <unit/scratch.h>

#include "oci/store.h"

static const struct offer_plan apple = {.number = 1, .own = 1, .names = {"apple:1"}};

static void add_copy(const char *root, const struct nd_digest *chain, const char *name) {
        char hex[ND_DIGEST_HEX];
        nd_autofree char *path = nd_format("layers/%s/%s", nd_digest_hex(chain, hex), name);

        scratch_mkdir(root, path);
}

static size_t count_entries(const char *root, const struct nd_digest *chain) {
        char hex[ND_DIGEST_HEX];
        nd_autofree char *path = nd_format("layers/%s", nd_digest_hex(chain, hex));

        return scratch_entries(root, path);
}

static struct nd_digest open_store(const char *root, struct nd_oci_store **ret) {
        struct nd_digest id = offer_id(&apple), chain[1];

        expect_ok(nd_oci_store_open(root, ret));
        if (!nd_oci_store_get(*ret, &id))
                expect_ok(offer_commit(*ret, &apple));
        nd_image_chains(nd_oci_store_get(*ret, &id), chain);
        return chain[0];
}

static void copies_count_as_used_space([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        nd_cleanup(nd_oci_store_done) struct nd_oci_store *store = nullptr;
        struct nd_digest chain = open_store(root, &store);
        struct nd_oci_store_usage before = nd_oci_store_usage(store), after;
        struct nd_oci_store_collected collected;
        struct nd_digest id = offer_id(&apple);

        add_copy(root, &chain, "shifted-65536-65536");
        add_copy(root, &chain, "shifted-131072-131072");
        add_copy(root, &chain, "shifting-196608-196608"); /* not complete */
        add_copy(root, &chain, "shifted-x-1");
        add_copy(root, &chain, "shifted-1");
        nd_oci_store_count_shifted(store, &chain, 1);
        after = nd_oci_store_usage(store);
        assert_true(after.bytes - before.bytes >= 2 * 1000);
        nd_oci_store_count_shifted(store, nullptr, 0);
        assert_int_equal(nd_oci_store_usage(store).bytes, after.bytes);
        expect_ok(nd_oci_store_remove(store, &id));
        expect_ok(nd_oci_store_collect(store, 0, nullptr, nullptr, &collected));
        assert_int_equal(scratch_entries(root, "layers"), 0);
        assert_true(collected.bytes >= 3 * 1000);
        offers_empty_trash(store);
        assert_true(nd_oci_store_usage(store).bytes < 1000);
}

static bool is_used(uint32_t uid, void *userdata) {
        return uid == *(const uint32_t *) userdata;
}

static void surplus_copies_without_a_pod_are_removed([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        nd_cleanup(nd_oci_store_done) struct nd_oci_store *store = nullptr;
        struct nd_digest chain = open_store(root, &store);
        size_t entries = count_entries(root, &chain);
        uint32_t used = 10 * 65536;
        char hex[ND_DIGEST_HEX];
        nd_autofree char *kept = nd_format("layers/%s/shifted-%u-%u", nd_digest_hex(&chain, hex), used, used);

        for (unsigned i = 1; i <= 10; i++) {
                nd_autofree char *name = nd_format("shifted-%u-%u", i * 65536, i * 65536);

                add_copy(root, &chain, name);
        }
        nd_oci_store_count_shifted(store, nullptr, 0);
        expect_ok(nd_oci_store_trim_shifted(store, is_used, &used));
        assert_int_equal(count_entries(root, &chain), entries + 4 + 1);
        assert_int_equal(scratch_entries(root, kept), 0); /* it exists */
        expect_ok(nd_oci_store_trim_shifted(store, is_used, &used));
        assert_int_equal(count_entries(root, &chain), entries + 4 + 1);
        offers_empty_trash(store);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(copies_count_as_used_space),
                cmocka_unit_test(surplus_copies_without_a_pod_are_removed),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
