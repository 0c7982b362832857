/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include "base/text.h"
#include "cri/bundle/apparmor.h"
#include "sys/own-userns.h"

static const char ours[] =
        "crun (unconfined)\nnodens-container (enforce)\nnodens-container-mapped (enforce)\nshop (complain)\n";
static const char others[] = "my-nodens-container (enforce)\nnodens-container-mapped-old (enforce)\n";

static void gives(const char *loaded, int kind, const char *localhost, bool mapped, const char *expected) {
        struct cri_security_profile wanted = {.kind = kind, .localhost = (char *) localhost};
        char *name = nullptr;

        expect_ok(cri_apparmor_choose_from(loaded, &wanted, mapped, &name));
        if (expected)
                assert_string_equal(name, expected);
        else
                assert_null(name);
        free(name);
}

static void refuses(const char *loaded, int kind, const char *localhost, const char *words) {
        struct cri_security_profile wanted = {.kind = kind, .localhost = (char *) localhost};
        char *name = nullptr;

        expect_error(cri_apparmor_choose_from(loaded, &wanted, true, &name), ND_PRECONDITION, words);
        assert_null(name);
}

static void the_default_depends_on_the_pods_user_namespace([[maybe_unused]] void **state) {
        gives(ours, PROFILE_DEFAULT, "", false, "nodens-container");
        gives(ours, PROFILE_DEFAULT, "", true, "nodens-container-mapped");
        gives(ours, PROFILE_UNSET, "", false, "nodens-container");
        gives(ours, PROFILE_UNSET, "", true, "nodens-container-mapped");
        gives(ours, PROFILE_UNCONFINED, "", true, nullptr);
        gives(ours, PROFILE_LOCALHOST, "shop", true, "shop");
}

static void a_requested_profile_that_is_not_loaded_is_refused([[maybe_unused]] void **state) {
        refuses(ours, PROFILE_LOCALHOST, "sho", "AppArmor profile 'sho' is not loaded on this node");
        refuses(others, PROFILE_DEFAULT, "",
                "'nodens-container-mapped' is not loaded on this node; see the log of nodens-cri's start");
        refuses(nullptr, PROFILE_DEFAULT, "", "AppArmor is not enabled on this node");
        refuses(nullptr, PROFILE_LOCALHOST, "shop", "AppArmor is not enabled on this node");
}

static void a_profile_that_confines_nothing_is_refused_by_name([[maybe_unused]] void **state) {
        refuses(ours, PROFILE_LOCALHOST, "crun", "'crun' is loaded in mode unconfined, which confines nothing");
        refuses("a (enforce)\ncrun (unconfined)\n", PROFILE_LOCALHOST, "crun", "which confines nothing");
        gives("crun (enforce)\n", PROFILE_LOCALHOST, "crun", true, "crun");
}

static void without_a_request_the_default_is_used_if_loaded([[maybe_unused]] void **state) {
        gives(others, PROFILE_UNSET, "", false, nullptr);
        gives(nullptr, PROFILE_UNSET, "", true, nullptr);
        gives(nullptr, PROFILE_UNCONFINED, "", false, nullptr);
}

static void a_rootless_node_has_no_profiles([[maybe_unused]] void **state) {
        static const struct nd_own_userns node = {};
        static const struct {
                int kind;
                const char *localhost, *refusal;
        } cases[] = {
                {PROFILE_UNSET, "", nullptr},
                {PROFILE_UNCONFINED, "", nullptr},
                {PROFILE_DEFAULT, "", "AppArmor profile 'RuntimeDefault': this is a rootless node"},
                {PROFILE_LOCALHOST, "shop", "AppArmor profile 'shop': this is a rootless node"},
        };

        for (size_t i = 0; i < nd_count_of(cases); i++) {
                struct cri_security_profile wanted = {.kind = cases[i].kind, .localhost = (char *) cases[i].localhost};
                char *name = nullptr;

                if (cases[i].refusal)
                        expect_error(cri_apparmor_choose(&node, &wanted, false, &name), ND_PRECONDITION, cases[i].refusal);
                else
                        expect_ok(cri_apparmor_choose(&node, &wanted, false, &name));
                assert_null(name);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_default_depends_on_the_pods_user_namespace),
                cmocka_unit_test(a_requested_profile_that_is_not_loaded_is_refused),
                cmocka_unit_test(a_profile_that_confines_nothing_is_refused_by_name),
                cmocka_unit_test(without_a_request_the_default_is_used_if_loaded),
                cmocka_unit_test(a_rootless_node_has_no_profiles),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
