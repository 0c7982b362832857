/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <fcntl.h>
#include <sys/mman.h>

#include "base/memory.h"
#include "mon/oom.h"

/* A counter that can be set; without text it reads like that of a removed cgroup. */
static struct mon_oom watching(int64_t kills, const char *events) {
        struct mon_oom oom = {.fd = memfd_create("memory.events", MFD_CLOEXEC), .kills = kills};

        assert_true(oom.fd >= 0);
        assert_int_equal(write(oom.fd, events, strlen(events)), (ssize_t) strlen(events));
        return oom;
}

static void kills_are_counted([[maybe_unused]] void **state) {
        struct mon_oom oom = watching(0, "low 0\nhigh 0\nmax 9\noom 4\noom_kill 3\noom_group_kill 1\n");

        mon_oom_read(&oom);
        assert_int_equal(oom.kills, 3);
        assert_true(oom.fd >= 0);
        nd_close_fd(&oom.fd);
}

static void counted_kills_stay_when_the_cgroup_is_removed([[maybe_unused]] void **state) {
        struct mon_oom oom = watching(2, "");

        mon_oom_read(&oom);
        assert_int_equal(oom.kills, 2);
        assert_true(oom.fd < 0);
}

static void zero_kills_become_unknown_when_the_cgroup_is_removed([[maybe_unused]] void **state) {
        struct mon_oom oom = watching(0, "");

        mon_oom_read(&oom);
        assert_int_equal(oom.kills, -1);
        assert_true(oom.fd < 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(kills_are_counted),
                cmocka_unit_test(counted_kills_stay_when_the_cgroup_is_removed),
                cmocka_unit_test(zero_kills_become_unknown_when_the_cgroup_is_removed),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
