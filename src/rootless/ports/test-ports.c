/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <string.h>

#include "rootless/ports/api.h"
#include "rootless/ports/ports.h"

/* ---- text ---- */

static void test_a_port_uses_rootlesskits_syntax([[maybe_unused]] void **state) {
        static const char *const same[] = {
                "8080:80/tcp",
                "127.0.0.1:8080:80/udp",
                "127.0.0.1:8080:10.0.2.100:80/tcp",
                "[::1]:8080:[fd00::2]:80/udp",
                "8080:10.0.2.100:80/tcp4",
                "0.0.0.0:1:65535/udp",
                "[::]:53:53/udp6",
        };

        for (size_t i = 0; i < nd_count_of(same); i++) {
                struct rootless_port_spec spec;
                char text[PORT_TEXT];

                expect_ok(rootless_port_parse(same[i], &spec));
                assert_string_equal(rootless_port_format(&spec, text), same[i]);
        }
}

static void test_omitted_parts_get_defaults([[maybe_unused]] void **state) {
        static const char *const pairs[][2] = {{"80", "80:80/tcp"},
                                               {"80/udp", "80:80/udp"},
                                               {"8080:80", "8080:80/tcp"},
                                               {"10.0.0.1:8080", "10.0.0.1:8080:8080/tcp"}};

        for (size_t i = 0; i < nd_count_of(pairs); i++) {
                struct rootless_port_spec spec;
                char text[PORT_TEXT];

                expect_ok(rootless_port_parse(pairs[i][0], &spec));
                assert_string_equal(rootless_port_format(&spec, text), pairs[i][1]);
        }
}

static void test_invalid_ports_are_rejected([[maybe_unused]] void **state) {
        static const char *const bad[] = {"",
                                          ":",
                                          "0:80",
                                          "80:0",
                                          "65536:1",
                                          "1:2/sctp",
                                          "1:2/",
                                          "a:1:2",
                                          "1:2:3:4:5",
                                          "[::1:80:80/tcp",
                                          "[::1]80:80",
                                          "-1:2",
                                          "1:+2",
                                          "1.2.3.4/8:1:2",
                                          "::1:2:3",
                                          "127.0.0.1:80:80/tcp6",
                                          "[::1]:80:80/udp4"};

        for (size_t i = 0; i < nd_count_of(bad); i++) {
                struct rootless_port_spec spec;

                expect_error(rootless_port_parse(bad[i], &spec), ND_INVALID, "invalid port");
        }
}

static void test_the_file_survives_a_round_trip([[maybe_unused]] void **state) {
        nd_cleanup(rootless_ports_done) struct rootless_ports ports = {}, again = {};
        nd_autofree char *text = nullptr, *text_again = nullptr;
        uint64_t next;

        for (uint64_t i = 1; i <= 3; i++) {
                struct rootless_port port = {.id = i * 10, .fds = {-EBADF, -EBADF}};

                expect_ok(rootless_port_parse(i == 1   ? "80"
                                              : i == 2 ? "[::1]:53:[fd00::1]:5353/udp"
                                                       : "1.2.3.4:1:2/tcp4",
                                              &port.spec));
                nd_vector_push(&ports, port);
        }
        text = rootless_ports_format(&ports, false, 31);
        expect_ok(rootless_ports_parse(text, strlen(text), &again, &next));
        assert_int_equal(next, 31);
        assert_int_equal(again.count, 3);
        text_again = rootless_ports_format(&again, false, next);
        assert_string_equal(text, text_again);
}

static void test_an_id_is_never_reused([[maybe_unused]] void **state) {
        static const char text[] =
                "{\"next\": 2, \"ports\": [{\"id\": 7, \"spec\": {\"proto\": \"tcp\", \"parentPort\": 1, \"childPort\": 2}}]}";
        nd_cleanup(rootless_ports_done) struct rootless_ports ports = {};
        uint64_t next;

        expect_ok(rootless_ports_parse(text, strlen(text), &ports, &next));
        assert_int_equal(next, 8);
}

static void test_ports_of_an_owner_are_stored_apart_from_the_users([[maybe_unused]] void **state) {
        static const char text[] =
                "{\"next\": 9, \"ports\": [{\"id\": 7, \"spec\": {\"proto\": \"tcp\", \"parentPort\": 1, \"childPort\": 2}}, "
                "{\"id\": 8, \"spec\": {\"proto\": \"udp\", \"parentPort\": 3, \"childPort\": 4}, \"owner\": \"kubernetes\", "
                "\"object\": \"Service default/web\"}]}";
        nd_cleanup(rootless_ports_done) struct rootless_ports ports = {}, users = {}, owned = {};
        nd_autofree char *of_user = nullptr, *of_owner = nullptr;
        uint64_t next;

        expect_ok(rootless_ports_parse(text, strlen(text), &ports, &next));
        of_user = rootless_ports_format(&ports, false, next);
        of_owner = rootless_ports_format(&ports, true, next);
        expect_ok(rootless_ports_parse(of_user, strlen(of_user), &users, &next));
        expect_ok(rootless_ports_parse(of_owner, strlen(of_owner), &owned, &next));
        assert_int_equal(users.count, 1);
        assert_int_equal(owned.count, 1);
        assert_null(users.items[0].owner);
        assert_string_equal(owned.items[0].owner, "kubernetes");
        assert_string_equal(owned.items[0].object, "Service default/web");
}

static void test_ports_overlap_if_both_listen_at_the_same_port_of_an_address([[maybe_unused]] void **state) {
        static const struct {
                const char *a, *b;
                bool overlap;
        } rows[] = {
                {"80:80", "80:8080", true},
                {"80:80", "80:80/udp", false},
                {"80:80", "81:80", false},
                {"80:80", "127.0.0.1:80:80", true},
                {"10.0.0.1:80:80", "127.0.0.1:80:80", false},
                {"10.0.0.1:80:80", "10.0.0.1:80:9", true},
                {"0.0.0.0:80:80", "127.0.0.1:80:80", true},
                {"80:80/tcp4", "80:80/tcp6", false},
                {"80:80/tcp4", "[::1]:80:80", false},
                {"80:80/tcp", "[::1]:80:80", true},
                {"[::]:80:80", "[::1]:80:80", true},
        };

        for (size_t i = 0; i < nd_count_of(rows); i++) {
                struct rootless_port_spec a, b;

                expect_ok(rootless_port_parse(rows[i].a, &a));
                expect_ok(rootless_port_parse(rows[i].b, &b));
                if (rootless_port_overlaps(&a, &b) != rows[i].overlap || rootless_port_overlaps(&b, &a) != rows[i].overlap)
                        fail_msg("%s and %s", rows[i].a, rows[i].b);
        }
}

/* ---- the API ---- */

struct fake {
        struct rootless_ports ports;
        uint64_t removed;
};

static void fake_info([[maybe_unused]] void *userdata, struct nd_json_out *out) {
        nd_json_string(out, "apiVersion", "1.1.2");
}

static const struct rootless_ports *fake_list(void *userdata, bool *ret_kept) {
        *ret_kept = true;
        return &((struct fake *) userdata)->ports;
}

static struct nd_error *fake_add(void *userdata, const struct rootless_port_spec *spec, const struct rootless_port **ret) {
        struct fake *f = userdata;
        struct rootless_port port = {.id = f->ports.count + 1, .spec = *spec, .fds = {-EBADF, -EBADF}};

        if (spec->parent_port == 13)
                return nd_error_new(ND_EXISTS, 0, "port \"13\" is in use");
        nd_vector_push(&f->ports, port);
        *ret = &f->ports.items[f->ports.count - 1];
        return nullptr;
}

static struct nd_error *fake_remove(void *userdata, uint64_t id) {
        ((struct fake *) userdata)->removed = id;
        return nullptr;
}

static struct nd_error *fake_replace(void *userdata, const char *owner, struct rootless_ports *wanted) {
        struct fake *f = userdata;

        nd_vector_each (port, wanted) {
                struct rootless_port added = {.id = f->ports.count + 1,
                                              .spec = port->spec,
                                              .owner = nd_strdup(owner),
                                              .object = nd_take_ptr(port->object),
                                              .why = port->spec.parent_port == 13 ? nd_strdup("in use") : nullptr,
                                              .fds = {-EBADF, -EBADF}};

                nd_vector_push(&f->ports, added);
        }
        return nullptr;
}

static uint16_t fake_lowest([[maybe_unused]] void *userdata) {
        return 80;
}

static char *answer(struct fake *f, const char *request) {
        struct rootless_api_backend backend = {.userdata = f,
                                               .info = fake_info,
                                               .list = fake_list,
                                               .add = fake_add,
                                               .remove = fake_remove,
                                               .replace = fake_replace,
                                               .lowest = fake_lowest};
        nd_autotext struct nd_text text = ND_TEXT(API_RESPONSE_BYTES);

        if (!rootless_api_respond(&backend, request, strlen(request), &text))
                return nd_strdup("incomplete");
        return nd_text_steal(&text);
}

static void expect_answer(struct fake *f, const char *request, const char *begin, const char *part) {
        nd_autofree char *text = answer(f, request);

        if (strncmp(text, begin, strlen(begin)) != 0 || !strstr(text, part))
                fail_msg("'%s' is answered with '%s'", request, text);
}

static void test_the_api_answers_as_rootlesskit_does([[maybe_unused]] void **state) {
        struct fake f = {};

        expect_answer(&f, "GET /v1/info HTTP/1.1\r\n\r\n", "HTTP/1.1 200 ", "\"apiVersion\":");
        expect_answer(&f, "GET /v1/ports HTTP/1.1\r\n\r\n", "HTTP/1.1 200 ", "[]");
        expect_answer(
                &f,
                "POST /v1/ports HTTP/1.1\r\nContent-Length: 48\r\n\r\n{\"proto\":\"tcp\",\"parentPort\":8080,\"childPort\":80}",
                "HTTP/1.1 201 ", "\"id\":");
        assert_int_equal(f.ports.count, 1);
        expect_answer(&f, "GET /v1/ports HTTP/1.1\r\n\r\n", "HTTP/1.1 200 ", "\"parentPort\":");
        expect_answer(&f, "DELETE /v1/ports/17 HTTP/1.1\r\n\r\n", "HTTP/1.1 200 ", "");
        assert_int_equal(f.removed, 17);
        rootless_ports_done(&f.ports);
}

static char *put_request(const char *owner, const char *body) {
        return nd_format("PUT /v1/owners/%s/ports HTTP/1.1\r\nContent-Length: %zu\r\n\r\n%s", owner, strlen(body), body);
}

static void test_an_owner_replaces_its_ports_by_one_request([[maybe_unused]] void **state) {
        struct fake f = {};
        nd_autofree char *good = put_request("kubernetes",
                                             "{\"ports\":[{\"spec\":{\"proto\":\"tcp\",\"parentPort\":13,\"childPort\":80},"
                                             "\"object\":\"Service default/\\u001b[31mweb\"}]}"),
                         *bad = put_request("Kubernetes", "{\"ports\":[]}"), *none = put_request("kubernetes", "{}");

        expect_answer(&f, good, "HTTP/1.1 200 ", "\"lowestPort\": 80");
        assert_int_equal(f.ports.count, 1);
        assert_string_equal(f.ports.items[0].object, "Service default/ [31mweb");
        expect_answer(&f, "GET /v1/ports HTTP/1.1\r\n\r\n", "HTTP/1.1 200 ", "\"error\": \"in use\"");
        expect_answer(&f, "GET /v1/ports HTTP/1.1\r\n\r\n", "HTTP/1.1 200 ", "\"owner\": \"kubernetes\"");
        expect_answer(&f, bad, "HTTP/1.1 400 ", "invalid owner");
        expect_answer(&f, none, "HTTP/1.1 400 ", "'ports' must be a list");
        expect_answer(&f, "GET /v1/owners/kubernetes/ports HTTP/1.1\r\n\r\n", "HTTP/1.1 405 ", "message");
        expect_answer(&f, "PUT /v1/owners/kubernetes HTTP/1.1\r\n\r\n", "HTTP/1.1 404 ", "message");
        rootless_ports_done(&f.ports);
}

static void test_the_api_rejects_invalid_requests([[maybe_unused]] void **state) {
        struct fake f = {};

        expect_answer(
                &f,
                "POST /v1/ports HTTP/1.1\r\nContent-Length: 46\r\n\r\n{\"proto\":\"tcp\",\"parentPort\":13,\"childPort\":80}",
                "HTTP/1.1 400 ", "\\\"13\\\"");
        expect_answer(&f, "POST /v1/ports HTTP/1.1\r\nContent-Length: 1\r\n\r\n{", "HTTP/1.1 400 ", "\"message\":");
        expect_answer(&f, "POST /v1/ports HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.1 400 ", "message");
        expect_answer(&f, "POST /v1/ports HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}", "HTTP/1.1 400 ",
                      "message");
        expect_answer(&f, "POST /v1/ports HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n", "HTTP/1.1 400 ", "longer");
        expect_answer(&f, "DELETE /v1/ports/x HTTP/1.1\r\n\r\n", "HTTP/1.1 400 ", "invalid port ID");
        expect_answer(&f, "PUT /v1/ports HTTP/1.1\r\n\r\n", "HTTP/1.1 405 ", "message");
        expect_answer(&f, "GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 404 ", "message");
        expect_answer(&f, "nonsense\r\n\r\n", "HTTP/1.1 400 ", "message");
        expect_answer(&f, "GET /v1/ports HTTP/1.1\r\n", "incomplete", "");
        expect_answer(&f, "POST /v1/ports HTTP/1.1\r\nContent-Length: 3\r\n\r\n{}", "incomplete", "");
        assert_int_equal(f.ports.count, 0);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_port_uses_rootlesskits_syntax),
                cmocka_unit_test(test_omitted_parts_get_defaults),
                cmocka_unit_test(test_invalid_ports_are_rejected),
                cmocka_unit_test(test_the_file_survives_a_round_trip),
                cmocka_unit_test(test_an_id_is_never_reused),
                cmocka_unit_test(test_ports_of_an_owner_are_stored_apart_from_the_users),
                cmocka_unit_test(test_ports_overlap_if_both_listen_at_the_same_port_of_an_address),
                cmocka_unit_test(test_the_api_answers_as_rootlesskit_does),
                cmocka_unit_test(test_an_owner_replaces_its_ports_by_one_request),
                cmocka_unit_test(test_the_api_rejects_invalid_requests),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
