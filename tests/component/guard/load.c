/* SPDX-License-Identifier: Apache-2.0 */
/* load.c - reviews for an admission webhook, over keep-alive connections, as an API server sends
 * them
 *
 *      load PORT PATH FILE CONNECTIONS SECONDS [RATE]
 *
 * FILE has a review on every line. Each connection is a thread that begins at a line of its own,
 * sends one, reads the answer and continues: at full speed or, with a rate, at its share of that
 * many a second. Prints a line of JSON: number, rate, and the times from the first byte sent to the
 * last byte received, in microseconds. An answer with another status than 200 ends the run. */
#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
        LINES = 100000,
        ANSWER = 1 << 20,
        TIMES = 1 << 22, /* of one connection */
};

struct body {
        char *request; /* including its head */
        size_t length;
};

struct connection {
        pthread_t thread;
        unsigned number;
        gnutls_session_t session;
        uint32_t *times;
        size_t count, allowed;
        char *answer;
};

static struct {
        uint16_t port;
        const char *path;
        unsigned connections, seconds, rate;
        struct body *bodies;
        size_t body_count;
        gnutls_certificate_credentials_t credentials;
        uint64_t begin_ns, end_ns;
} plan;

static uint64_t now_ns(void) {
        struct timespec now;

        (void) clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t) now.tv_sec * 1000000000 + (uint64_t) now.tv_nsec;
}

[[noreturn]] static void die(const char *what) {
        (void) fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
        exit(1);
}

static void *room_for(size_t count, size_t size) {
        void *room = calloc(count, size);

        if (!room)
                die("memory");
        return room;
}

static void read_bodies(const char *path) {
        FILE *file = fopen(path, "re");
        char *line = nullptr;
        size_t capacity = 0;
        ssize_t length;

        if (!file)
                die(path);
        plan.bodies = room_for(LINES, sizeof *plan.bodies);
        while (plan.body_count < LINES && (length = getline(&line, &capacity, file)) > 0) {
                struct body *body = &plan.bodies[plan.body_count++];
                int made = asprintf(
                        &body->request,
                        "POST %s HTTP/1.1\r\nHost: guard\r\nContent-Type: application/json\r\nContent-Length: %zd\r\n\r\n%.*s",
                        plan.path, length - 1, (int) length - 1, line);

                if (made < 0)
                        die("memory");
                body->length = (size_t) made;
        }
        free(line);
        (void) fclose(file);
        if (plan.body_count == 0)
                die("no reviews");
}

static void open_connection(struct connection *c) {
        struct sockaddr_in to = {
                .sin_family = AF_INET, .sin_port = htons(plan.port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

        if (fd < 0 || connect(fd, (struct sockaddr *) &to, sizeof to) < 0)
                die("connect");
        (void) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        (void) gnutls_init(&c->session, GNUTLS_CLIENT);
        (void) gnutls_set_default_priority(c->session);
        (void) gnutls_credentials_set(c->session, GNUTLS_CRD_CERTIFICATE, plan.credentials);
        gnutls_transport_set_int(c->session, fd);
        if (gnutls_handshake(c->session) < 0)
                die("handshake");
}

static void send_all(struct connection *c, const struct body *body) {
        for (size_t sent = 0; sent < body->length;) {
                ssize_t n = gnutls_record_send(c->session, body->request + sent, body->length - sent);

                if (n <= 0)
                        die("send");
                sent += (size_t) n;
        }
}

/* Returns the length of an answer whose head ends at @end, or 0 while it is unknown. A chunked one
 * ends with an empty chunk, and JSON contains no such line ends. */
static size_t answer_length(const struct connection *c, size_t have, const char *end) {
        static const char last[] = "\r\n0\r\n\r\n";
        const char *length = strcasestr(c->answer, "\r\ncontent-length:"),
                   *chunked = strcasestr(c->answer, "\r\ntransfer-encoding: chunked");

        if (strncmp(c->answer, "HTTP/1.1 200", 12) == 0 && chunked && chunked < end)
                return have >= strlen(last) && strcmp(c->answer + have - strlen(last), last) == 0 ? have : 0;
        if (!length || length > end || strncmp(c->answer, "HTTP/1.1 200", 12) != 0) {
                (void) fprintf(stderr, "load: answered: %s\n", c->answer);
                exit(1);
        }
        return (size_t) (end - c->answer) + 4 + strtoul(length + 17, nullptr, 10);
}

/* Receives one answer, head and body. */
static void receive(struct connection *c) {
        size_t have = 0, need = 0;

        while (need == 0 || have < need) {
                ssize_t n = gnutls_record_recv(c->session, c->answer + have, ANSWER - 1 - have);
                const char *end;

                if (n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED)
                        continue;
                if (n <= 0)
                        die("receive");
                have += (size_t) n;
                c->answer[have] = '\0';
                end = need > 0 ? nullptr : strstr(c->answer, "\r\n\r\n");
                if (end)
                        need = answer_length(c, have, end);
        }
        c->allowed += strstr(c->answer, "\"allowed\":true") != nullptr || strstr(c->answer, "\"allowed\": true") != nullptr;
}

static void sleep_until(uint64_t when_ns) {
        struct timespec when = {.tv_sec = (time_t) (when_ns / 1000000000), .tv_nsec = (long) (when_ns % 1000000000)};

        (void) clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, nullptr);
}

static void *work(void *userdata) {
        struct connection *c = userdata;
        uint64_t step = plan.rate > 0 ? UINT64_C(1000000000) * plan.connections / plan.rate : 0;
        uint64_t due = plan.begin_ns + (step > 0 ? step * c->number / plan.connections : 0), begun;

        sleep_until(plan.begin_ns);
        for (size_t i = c->number * plan.body_count / plan.connections; c->count < TIMES; i++) {
                if (step > 0)
                        sleep_until(due);
                due += step;
                begun = now_ns();
                if (begun >= plan.end_ns)
                        break;
                send_all(c, &plan.bodies[i % plan.body_count]);
                receive(c);
                c->times[c->count++] = (uint32_t) ((now_ns() - begun) / 1000);
        }
        return nullptr;
}

static int compare(const void *a, const void *b) {
        uint32_t x = *(const uint32_t *) a, y = *(const uint32_t *) b;

        return (x > y) - (x < y);
}

static void report(const struct connection *all) {
        size_t count = 0, allowed = 0, at = 0;
        uint32_t *times;

        for (unsigned i = 0; i < plan.connections; i++) {
                count += all[i].count;
                allowed += all[i].allowed;
        }
        times = room_for(count + 1, sizeof *times);
        for (unsigned i = 0; i < plan.connections; i++) {
                memcpy(times + at, all[i].times, all[i].count * sizeof *times);
                at += all[i].count;
        }
        qsort(times, count, sizeof *times, compare);
        printf("{\"reviews\": %zu, \"allowed\": %zu, \"per_second\": %.0f, \"p50_us\": %u, \"p90_us\": %u, \"p99_us\": %u, \"p999_us\": %u, "
               "\"max_us\": %u}\n",
               count, allowed, (double) count / plan.seconds, times[count / 2], times[count * 9 / 10], times[count * 99 / 100],
               times[count * 999 / 1000], times[count > 0 ? count - 1 : 0]);
        free(times);
}

int main(int argc, char **argv) {
        struct connection *all;

        if (argc < 6) {
                (void) fputs("load PORT PATH FILE CONNECTIONS SECONDS [RATE]\n", stderr);
                return 2;
        }
        plan.port = (uint16_t) strtoul(argv[1], nullptr, 10);
        plan.path = argv[2];
        plan.connections = (unsigned) strtoul(argv[4], nullptr, 10);
        plan.seconds = (unsigned) strtoul(argv[5], nullptr, 10);
        plan.rate = argc > 6 ? (unsigned) strtoul(argv[6], nullptr, 10) : 0;
        read_bodies(argv[3]);
        (void) gnutls_certificate_allocate_credentials(&plan.credentials);
        all = room_for(plan.connections, sizeof *all);
        for (unsigned i = 0; i < plan.connections; i++) {
                all[i] = (struct connection) {
                        .number = i, .times = room_for(TIMES, sizeof(uint32_t)), .answer = room_for(1, ANSWER)};
                open_connection(&all[i]);
        }
        plan.begin_ns = now_ns() + 100000000;
        plan.end_ns = plan.begin_ns + (uint64_t) plan.seconds * 1000000000;
        for (unsigned i = 0; i < plan.connections; i++)
                if (pthread_create(&all[i].thread, nullptr, work, &all[i]) != 0)
                        die("thread");
        for (unsigned i = 0; i < plan.connections; i++)
                (void) pthread_join(all[i].thread, nullptr);
        report(all);
        return 0;
}
