/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/bundle/capabilities.h"

#include <linux/capability.h>
#include <unit/expect.h>

#define BIT(capability) (UINT64_C(1) << (capability))

static constexpr uint64_t all = (UINT64_C(1) << 41) - 1;
static constexpr uint64_t usual = 0xa80425fb; /* the default of containerd, CRI-O and Docker */

static struct nd_spec_capabilities choose(const struct cri_container_request *request) {
        struct nd_spec_capabilities set = {};

        expect_ok(cri_capabilities_choose(request, all, &set));
        assert_true(set.bounding == set.effective && set.bounding == set.permitted);
        assert_true((set.ambient & ~set.permitted) == 0 && set.ambient == set.inheritable);
        return set;
}

static void request_free(struct cri_container_request *request) {
        nd_strings_done(&request->add_capabilities);
        nd_strings_done(&request->drop_capabilities);
        nd_strings_done(&request->ambient_capabilities);
}

static void the_default_set_is_containerds_and_nothing_is_inheritable([[maybe_unused]] void **state) {
        struct nd_spec_capabilities set = choose(&(struct cri_container_request) {});

        assert_true(set.bounding == usual);
        assert_true(set.inheritable == 0 && set.ambient == 0);
}

static void names_are_added_and_dropped_in_any_spelling([[maybe_unused]] void **state) {
        nd_cleanup(request_free) struct cri_container_request request = {};

        nd_strings_add(&request.add_capabilities, "cap_net_admin");
        nd_strings_add(&request.drop_capabilities, "NET_RAW");
        assert_true(choose(&request).bounding == ((usual | BIT(CAP_NET_ADMIN)) & ~BIT(CAP_NET_RAW)));
}

static void all_is_applied_before_names([[maybe_unused]] void **state) {
        nd_cleanup(request_free) struct cri_container_request request = {}, most = {};

        nd_strings_add(&request.drop_capabilities, "all");
        nd_strings_add(&request.add_capabilities, "NET_BIND_SERVICE");
        assert_true(choose(&request).bounding == BIT(CAP_NET_BIND_SERVICE));
        nd_strings_add(&most.add_capabilities, "ALL");
        nd_strings_add(&most.drop_capabilities, "SYS_ADMIN");
        assert_true(choose(&most).bounding == (all & ~BIT(CAP_SYS_ADMIN)));
}

static void ambient_capabilities_must_be_requested_and_permitted([[maybe_unused]] void **state) {
        nd_cleanup(request_free) struct cri_container_request request = {};

        nd_strings_add(&request.ambient_capabilities, "NET_BIND_SERVICE");
        nd_strings_add(&request.ambient_capabilities, "SYS_ADMIN");
        assert_true(choose(&request).ambient == BIT(CAP_NET_BIND_SERVICE));
}

static void privileged_has_the_daemons_set_and_ignores_drops([[maybe_unused]] void **state) {
        nd_cleanup(request_free) struct cri_container_request request = {.privileged = true};

        nd_strings_add(&request.drop_capabilities, "ALL");
        assert_true(choose(&request).bounding == all);
        assert_true(choose(&request).ambient == 0);
}

static void an_unknown_name_is_an_error([[maybe_unused]] void **state) {
        nd_cleanup(request_free) struct cri_container_request request = {};
        struct nd_spec_capabilities set;

        nd_strings_add(&request.drop_capabilities, "FLY");
        expect_error(cri_capabilities_choose(&request, all, &set), ND_INVALID, "unknown capability \"FLY\"");
}

static void the_daemons_own_set_is_read([[maybe_unused]] void **state) {
        if (geteuid() != 0)
                skip_because("an ordinary user has none");
        assert_true((cri_capabilities_own() & BIT(CAP_CHOWN)) != 0);
        assert_true((cri_capabilities_own() & ~all) == 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_default_set_is_containerds_and_nothing_is_inheritable),
                cmocka_unit_test(names_are_added_and_dropped_in_any_spelling),
                cmocka_unit_test(all_is_applied_before_names),
                cmocka_unit_test(ambient_capabilities_must_be_requested_and_permitted),
                cmocka_unit_test(privileged_has_the_daemons_set_and_ignores_drops),
                cmocka_unit_test(an_unknown_name_is_an_error),
                cmocka_unit_test(the_daemons_own_set_is_read),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
