/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <string.h>

#include "base/text.h"
#include "rootless/network/lxc-user-nic.h"

static bool mine(const char *who, [[maybe_unused]] void *userdata) {
        return nd_streq(who, "alice") || nd_streq(who, "@staff");
}

static const char *bridge_of(const char *text) {
        static char bridge[NET_LINK_BYTES];

        return rootless_lxc_usernet_parse(text, mine, nullptr, bridge) ? bridge : "";
}

static void the_first_bridge_of_the_user_or_a_group_is_used([[maybe_unused]] void **state) {
        assert_string_equal(bridge_of("bob veth br9 10\nalice veth lxcbr0 10\nalice veth br1 2\n"), "lxcbr0");
        assert_string_equal(bridge_of("@staff\tveth  br2\t3"), "br2");
        assert_string_equal(bridge_of("  alice veth br3 1\r\n"), "br3");
}

static void lines_without_a_bridge_are_skipped([[maybe_unused]] void **state) {
        assert_string_equal(bridge_of(""), "");
        assert_string_equal(bridge_of("# alice veth lxcbr0 10\n\n#alice veth lxcbr0 1\n"), "");
        assert_string_equal(bridge_of("alice macvlan eth0 10\nalice veth\nalice\n"), "");
        assert_string_equal(bridge_of("alice veth ../../etc 1\nalice veth .. 1\n"), "");
        assert_string_equal(bridge_of("alice veth a-name-that-is-too-long 1\nalice veth fifteen-letters 1\n"),
                            "fifteen-letters");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_first_bridge_of_the_user_or_a_group_is_used),
                cmocka_unit_test(lines_without_a_bridge_are_skipped),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
