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
        text = rootless_ports_format(&ports, 31);
        expect_ok(rootless_ports_parse(text, strlen(text), &again, &next));
        assert_int_equal(next, 31);
        assert_int_equal(again.count, 3);
        text_again = rootless_ports_format(&again, next);
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

static char *answer(struct fake *f, const char *request) {
        struct rootless_api_backend backend = {
                .userdata = f, .info = fake_info, .list = fake_list, .add = fake_add, .remove = fake_remove};
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
                cmocka_unit_test(test_the_api_answers_as_rootlesskit_does),
                cmocka_unit_test(test_the_api_rejects_invalid_requests),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
