/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of one address. */
#include "guard/server/clients.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <unit/expect.h>

enum {
        MOST = 80,
};

static struct sockaddr_storage at(const char *text) {
        struct sockaddr_storage address = {};

        if (inet_pton(AF_INET, text, &((struct sockaddr_in *) &address)->sin_addr) == 1)
                address.ss_family = AF_INET;
        else if (inet_pton(AF_INET6, text, &((struct sockaddr_in6 *) &address)->sin6_addr) == 1)
                address.ss_family = AF_INET6;
        return address;
}

/* Opens connections until one is refused, and returns their number. */
static unsigned fill(struct guard_clients *clients, const char *text, uint64_t now_us, struct guard_address **ret) {
        struct sockaddr_storage address = at(text);
        unsigned count = 0;

        while (guard_clients_may_connect(clients, (struct sockaddr *) &address, sizeof address, now_us)) {
                *ret = guard_clients_open(clients, (struct sockaddr *) &address);
                count++;
                assert_true(count <= MOST);
        }
        return count;
}

static void drain(struct guard_clients *clients, struct guard_address *address, unsigned count, uint64_t now_us) {
        while (count-- > 0)
                guard_clients_close(clients, address, false, now_us);
}

static void one_address_does_not_take_all_connections([[maybe_unused]] void **state) {
        struct guard_clients *open = guard_clients_new(MOST, false), *asking = guard_clients_new(MOST, true);
        struct guard_address *a = nullptr, *b = nullptr, *c = nullptr;

        assert_int_equal(fill(open, "10.0.0.1", 0, &a), MOST / 2);
        assert_int_equal(fill(open, "10.0.0.2", 0, &b), MOST / 2);
        assert_int_equal(fill(open, "10.0.0.3", 0, &c), 0);
        drain(open, a, MOST / 2, 0);
        drain(open, b, MOST / 2, 0);
        /* it has shown no certificate */
        assert_int_equal(fill(asking, "10.0.0.1", 0, &a), MOST / 8);
        drain(asking, a, MOST / 8, 0);
        guard_clients_free(open);
        guard_clients_free(asking);
}

static void the_last_quarter_is_for_addresses_that_have_shown_a_certificate([[maybe_unused]] void **state) {
        struct guard_clients *clients = guard_clients_new(MOST, true);
        struct sockaddr_storage server = at("10.0.0.1");
        struct guard_address *api = guard_clients_open(clients, (struct sockaddr *) &server), *other = nullptr;
        unsigned unauthenticated = 0;

        guard_clients_authenticated(clients, api, 0);
        guard_clients_close(clients, api, true, 0); /* its idle connection was closed */
        for (unsigned i = 0; i < 20; i++) {
                nd_autofree char *text = nd_format("10.1.0.%u", i);

                unauthenticated += fill(clients, text, 0, &other);
        }
        assert_int_equal(unauthenticated, MOST / 4 * 3);
        assert_int_equal(fill(clients, "10.0.0.1", 0, &api), MOST / 4);
        guard_clients_free(clients);
}

static void handshakes_of_an_unauthenticated_client_are_rate_limited([[maybe_unused]] void **state) {
        struct guard_clients *clients = guard_clients_new(1000, true);
        struct sockaddr_storage address = at("10.0.0.1");
        unsigned count = 0;

        for (int i = 0; i < 1000; i++)
                if (guard_clients_may_connect(clients, (struct sockaddr *) &address, sizeof address, 5)) {
                        guard_clients_close(clients, guard_clients_open(clients, (struct sockaddr *) &address), false, 5);
                        count++;
                }
        assert_in_range(count, 32, 128);
        assert_true(guard_clients_may_connect(clients, (struct sockaddr *) &address, sizeof address, 2000000));
        guard_clients_free(clients);
}

static void addresses_of_one_ipv6_network_count_as_one([[maybe_unused]] void **state) {
        struct guard_clients *clients = guard_clients_new(MOST, true);
        struct guard_address *a = nullptr, *b = nullptr;

        assert_int_equal(fill(clients, "2001:db8::1", 0, &a), MOST / 8);
        assert_int_equal(fill(clients, "2001:db8::ffff:2", 0, &b), 0);
        assert_int_equal(fill(clients, "2001:db8:0:1::1", 0, &b), MOST / 8);
        assert_string_equal(b->text, "2001:db8:0:1::/64");
        assert_int_equal(fill(clients, "::ffff:10.0.0.1", 0, &a), MOST / 8);
        assert_int_equal(fill(clients, "10.0.0.1", 0, &b), 0);
        guard_clients_free(clients);
}

static void request_bodies_share_a_memory_limit([[maybe_unused]] void **state) {
        struct guard_clients *clients = guard_clients_new(MOST, false);
        struct sockaddr_storage one = at("10.0.0.1"), two = at("10.0.0.2");
        struct guard_address *a = guard_clients_open(clients, (struct sockaddr *) &one),
                             *b = guard_clients_open(clients, (struct sockaddr *) &two);

        assert_true(guard_clients_take_bytes(clients, a, GUARD_BODIES / 2));
        assert_false(guard_clients_take_bytes(clients, a, 1));
        assert_true(guard_clients_take_bytes(clients, b, 1));
        guard_clients_return_bytes(clients, a, GUARD_BODIES / 2);
        assert_true(guard_clients_take_bytes(clients, a, 1));
        assert_false(guard_clients_take_bytes(clients, b, SIZE_MAX));
        guard_clients_free(clients);
}

static void addresses_are_dropped_after_their_last_connection([[maybe_unused]] void **state) {
        struct guard_clients *clients = guard_clients_new(MOST, true);
        struct sockaddr_storage one = at("10.0.0.1");
        struct guard_address *a = guard_clients_open(clients, (struct sockaddr *) &one);
        uint64_t first = a->number;

        guard_clients_close(clients, a, false, 0);
        guard_clients_sweep(clients, UINT64_C(10000000));
        a = guard_clients_open(clients, (struct sockaddr *) &one);
        assert_int_not_equal(a->number, first);
        guard_clients_authenticated(clients, a, UINT64_C(10000000));
        guard_clients_close(clients, a, true, UINT64_C(10000000));
        guard_clients_sweep(clients, UINT64_C(20000000));
        assert_int_equal(fill(clients, "10.0.0.1", UINT64_C(20000000), &a),
                         MOST / 2); /* an API server reconnects in a burst */
        guard_clients_free(clients);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(one_address_does_not_take_all_connections),
                cmocka_unit_test(the_last_quarter_is_for_addresses_that_have_shown_a_certificate),
                cmocka_unit_test(handshakes_of_an_unauthenticated_client_are_rate_limited),
                cmocka_unit_test(addresses_of_one_ipv6_network_count_as_one),
                cmocka_unit_test(request_bodies_share_a_memory_limit),
                cmocka_unit_test(addresses_are_dropped_after_their_last_connection),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
