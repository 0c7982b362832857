/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/stream/eviction.h"

#include <unit/expect.h>

#define KUBELET {.known = true, .uid = 0, .cgroup = 7}
#define ROOT {.known = true, .uid = 0, .cgroup = 8}
#define USER {.known = true, .uid = 1000, .cgroup = 9}
#define OTHER {.known = true, .uid = 1001, .cgroup = 9}
#define UNKNOWN                                                                                                               \
        {                                                                                                                     \
        }

static size_t choose(const struct cri_tcp_owner *owners, size_t count) {
        return cri_stream_eviction_choose(owners, count);
}
#define CHOOSE(...)                                                                                                           \
        choose((const struct cri_tcp_owner[]) {__VA_ARGS__},                                                                  \
               sizeof((const struct cri_tcp_owner[]) {__VA_ARGS__}) / sizeof(struct cri_tcp_owner))

static void clients_of_other_users_than_root_are_evicted_first([[maybe_unused]] void **state) {
        assert_int_equal(CHOOSE(KUBELET, USER), 1);
        assert_int_equal(CHOOSE(KUBELET, KUBELET, KUBELET, OTHER), 3);
        assert_int_equal(CHOOSE(KUBELET, UNKNOWN), 1);
        /* one connection for each of many users */
        assert_int_equal(CHOOSE(KUBELET, USER, OTHER, UNKNOWN), 1);
}

static void a_client_with_many_connections_evicts_its_own([[maybe_unused]] void **state) {
        assert_int_equal(CHOOSE(KUBELET, ROOT, ROOT), 1);
        assert_int_equal(CHOOSE(USER, OTHER, OTHER), 1);
        assert_int_equal(CHOOSE(OTHER, USER, OTHER, USER, USER), 1);
}

static void among_equals_the_oldest_is_evicted([[maybe_unused]] void **state) {
        assert_int_equal(CHOOSE(UNKNOWN, UNKNOWN, UNKNOWN), 0);
        assert_int_equal(CHOOSE(KUBELET), 0);
        assert_int_equal(CHOOSE(KUBELET, ROOT), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(clients_of_other_users_than_root_are_evicted_first),
                cmocka_unit_test(a_client_with_many_connections_evicts_its_own),
                cmocka_unit_test(among_equals_the_oldest_is_evicted),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
