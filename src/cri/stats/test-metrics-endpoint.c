/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/stats/metrics-endpoint.h"

#include <unit/expect.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/log.h"
#include "base/strings.h"

static constexpr uint64_t patience_us = 60 * ND_SECOND_US;

static struct nd_strings lines; /* of the log */

static void keep([[maybe_unused]] enum nd_log_level level, const char *line) {
        nd_strings_add(&lines, line);
}

static void format([[maybe_unused]] struct nd_text *ret, [[maybe_unused]] void *userdata) {
}

static int occupy(uint16_t *ret_port) {
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t length = sizeof address;
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        assert_true(fd >= 0);
        assert_int_equal(bind(fd, (struct sockaddr *) &address, sizeof address), 0);
        assert_int_equal(listen(fd, 1), 0);
        assert_int_equal(getsockname(fd, (struct sockaddr *) &address, &length), 0);
        *ret_port = ntohs(address.sin_port);
        return fd;
}

static void run_until_logged(sd_event *loop, size_t count) {
        uint64_t end = nd_clock_us() + patience_us;

        while (lines.count < count) {
                assert_true(nd_clock_us() < end);
                assert_true(sd_event_run(loop, ND_SECOND_US) >= 0);
        }
}

static void run_once(sd_event *loop) {
        assert_true(sd_event_run(loop, patience_us) > 0);
}

static void a_busy_port_is_logged_once_and_opened_when_it_is_free([[maybe_unused]] void **state) {
        nd_autofree char *where = nullptr, *expected = nullptr;
        struct cri_metrics_endpoint *scrape;
        sd_event *loop = nullptr;
        uint16_t port = 0;
        int holder = occupy(&port);

        nd_log_set_sink(keep);
        assert_true(sd_event_new(&loop) >= 0);
        where = nd_format("127.0.0.1:%u", port);
        scrape = cri_metrics_endpoint_new(&(struct cri_metrics_endpoint_settings) {
                .loop = loop, .where = where, .retry_us = ND_MS_US, .format = format});
        run_until_logged(loop, 1);
        expected = nd_format("warning: metrics are not served; retrying (address=%s): listen on %s: Address already in use; "
                             "'ss -lntp sport = :%u' shows which process has the port",
                             where, where, port);
        expect_contains(lines.items[0], expected);
        run_once(loop);
        run_once(loop);
        assert_int_equal(lines.count, 1);

        (void) close(holder);
        run_until_logged(loop, 2);
        free(expected);
        expected = nd_format("notice: metrics are served (address=%s)", where);
        assert_string_equal(lines.items[1], expected);
        cri_metrics_endpoint_free(scrape);
        sd_event_unref(loop);
        nd_log_set_sink(nullptr);
        nd_strings_done(&lines);
        lines = (struct nd_strings) {};
}

static void off_means_none([[maybe_unused]] void **state) {
        assert_null(cri_metrics_endpoint_new(&(struct cri_metrics_endpoint_settings) {.where = "off"}));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_busy_port_is_logged_once_and_opened_when_it_is_free),
                cmocka_unit_test(off_means_none),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
