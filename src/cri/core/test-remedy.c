/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/core/remedy.h"

#include <unit/expect.h>

#include "base/error.h"

static void a_full_disk_has_a_remedy([[maybe_unused]] void **state) {
        nd_autoerror struct nd_error *error = nd_error_new(ND_EXHAUSTED, ENOSPC, "write '/x'");

        expect_contains(cri_remedy_of(nd_error_text(error)), "df -h");
}

static void a_disk_of_the_host_has_a_remedy_in_a_rootless_node([[maybe_unused]] void **state) {
        assert_non_null(cri_remedy_of("in '/x': idmap a mount of ext4, which the host mounted: a rootless node can idmap only "
                                      "filesystems that were mounted in it: Operation not permitted"));
}

static void other_errors_have_none([[maybe_unused]] void **state) {
        assert_null(cri_remedy_of("unknown key 'x'"));
        assert_null(cri_remedy_of(""));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_full_disk_has_a_remedy),
                cmocka_unit_test(a_disk_of_the_host_has_a_remedy_in_a_rootless_node),
                cmocka_unit_test(other_errors_have_none),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
