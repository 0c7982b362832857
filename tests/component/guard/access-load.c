/* SPDX-License-Identifier: Apache-2.0 */
/* access-load.c - SubjectAccessReviews for an API server, over one HTTP/2 connection
 *
 *      access-load URL CA TOKEN FILE IN_FLIGHT SECONDS
 *
 * FILE has a review on every line, TOKEN is a file. So many are in flight at any time; each answer
 * is followed by the next review. Prints a line of JSON: number, rate and times in microseconds. An
 * answer with another status than 201, or by another protocol than HTTP/2, ends the run. */
#include <curl/curl.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
        LINES = 100000,
        ANSWER = 64 << 10,
        TIMES = 1 << 22,
        IN_FLIGHT_MOST = 1000,
};

struct transfer {
        CURL *easy;
        uint64_t begun_ns;
        char answer[ANSWER];
        size_t length;
};

static struct {
        char **lines;
        size_t line_count, next;
        CURLM *multi;
        struct curl_slist *heads;
        uint64_t end_ns;
        uint32_t *times;
        size_t count, allowed, open;
} load;

static uint64_t now_ns(void) {
        struct timespec now;

        (void) clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t) now.tv_sec * 1000000000 + (uint64_t) now.tv_nsec;
}

[[noreturn]] static void die(const char *what, const char *why) {
        (void) fprintf(stderr, "access-load: %s: %s\n", what, why);
        exit(1);
}

static void *room_for(size_t count, size_t size) {
        void *room = calloc(count, size);

        if (!room)
                die("memory", strerror(errno));
        return room;
}

static void read_lines(const char *path) {
        FILE *file = fopen(path, "re");
        char *line = nullptr;
        size_t capacity = 0;
        ssize_t length;

        if (!file)
                die(path, strerror(errno));
        load.lines = room_for(LINES, sizeof *load.lines);
        while (load.line_count < LINES && (length = getline(&line, &capacity, file)) > 1) {
                line[length - 1] = '\0';
                load.lines[load.line_count++] = strdup(line);
        }
        free(line);
        (void) fclose(file);
        if (load.line_count == 0)
                die(path, "no reviews");
}

static void read_heads(const char *path) {
        char token[16 << 10], head[17 << 10];
        FILE *file = fopen(path, "re");
        size_t length = file ? fread(token, 1, sizeof token - 1, file) : 0;

        if (length == 0)
                die(path, "no token");
        token[length] = '\0';
        token[strcspn(token, "\r\n")] = '\0';
        (void) snprintf(head, sizeof head, "Authorization: Bearer %s", token);
        load.heads = curl_slist_append(curl_slist_append(nullptr, head), "Content-Type: application/json");
        (void) fclose(file);
}

static size_t on_bytes(const char *bytes, size_t size, size_t count, void *userdata) {
        struct transfer *t = userdata;

        if (size * count >= ANSWER - t->length)
                return 0;
        memcpy(t->answer + t->length, bytes, size * count);
        t->length += size * count;
        t->answer[t->length] = '\0';
        return size * count;
}

static void begin(struct transfer *t) {
        t->length = 0;
        t->begun_ns = now_ns();
        (void) curl_easy_setopt(t->easy, CURLOPT_POSTFIELDS, load.lines[load.next++ % load.line_count]);
        if (curl_multi_add_handle(load.multi, t->easy) != CURLM_OK)
                die("request", "cannot begin");
        load.open++;
}

static struct transfer *new_transfer(const char *url, const char *ca) {
        struct transfer *t = room_for(1, sizeof *t);

        t->easy = curl_easy_init();
        (void) curl_easy_setopt(t->easy, CURLOPT_URL, url);
        (void) curl_easy_setopt(t->easy, CURLOPT_CAINFO, ca);
        (void) curl_easy_setopt(t->easy, CURLOPT_HTTP_VERSION, (long) CURL_HTTP_VERSION_2TLS);
        (void) curl_easy_setopt(t->easy, CURLOPT_PIPEWAIT, 1L);
        (void) curl_easy_setopt(t->easy, CURLOPT_PROXY, "");
        (void) curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, load.heads);
        (void) curl_easy_setopt(t->easy, CURLOPT_WRITEFUNCTION, on_bytes);
        (void) curl_easy_setopt(t->easy, CURLOPT_WRITEDATA, t);
        (void) curl_easy_setopt(t->easy, CURLOPT_PRIVATE, t);
        return t;
}

static void on_done(CURL *easy, CURLcode result) {
        struct transfer *t = nullptr;
        long status = 0, version = 0;

        (void) curl_easy_getinfo(easy, CURLINFO_PRIVATE, &t);
        (void) curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
        (void) curl_easy_getinfo(easy, CURLINFO_HTTP_VERSION, &version);
        (void) curl_multi_remove_handle(load.multi, easy);
        load.open--;
        if (result != CURLE_OK)
                die("request", curl_easy_strerror(result));
        if (status != 201 || version != CURL_HTTP_VERSION_2_0)
                die("answered", t->length > 0 ? t->answer : "not by HTTP/2");
        if (now_ns() >= load.end_ns)
                return; /* answers after the end are not counted */
        if (load.count < TIMES)
                load.times[load.count++] = (uint32_t) ((now_ns() - t->begun_ns) / 1000);
        load.allowed += strstr(t->answer, "\"allowed\":true") != nullptr;
        begin(t);
}

static void run(void) {
        int running = 1;

        while (load.open > 0) {
                CURLMsg *message;
                int left;

                (void) curl_multi_perform(load.multi, &running);
                while ((message = curl_multi_info_read(load.multi, &left)))
                        if (message->msg == CURLMSG_DONE)
                                on_done(message->easy_handle, message->data.result);
                (void) curl_multi_poll(load.multi, nullptr, 0, 1000, nullptr);
        }
}

static int compare(const void *a, const void *b) {
        uint32_t x = *(const uint32_t *) a, y = *(const uint32_t *) b;

        return (x > y) - (x < y);
}

int main(int argc, char **argv) {
        unsigned in_flight, seconds;

        if (argc != 7) {
                (void) fputs("access-load URL CA TOKEN FILE IN_FLIGHT SECONDS\n", stderr);
                return 2;
        }
        in_flight = (unsigned) strtoul(argv[5], nullptr, 10);
        seconds = (unsigned) strtoul(argv[6], nullptr, 10);
        if (in_flight == 0 || in_flight > IN_FLIGHT_MOST || seconds == 0)
                die("usage", "invalid number");
        (void) curl_global_init(CURL_GLOBAL_DEFAULT);
        read_heads(argv[3]);
        read_lines(argv[4]);
        load.multi = curl_multi_init();
        load.times = room_for(TIMES, sizeof *load.times);
        load.end_ns = now_ns() + (uint64_t) seconds * 1000000000;
        for (unsigned i = 0; i < in_flight; i++)
                begin(new_transfer(argv[1], argv[2]));
        run();
        qsort(load.times, load.count, sizeof *load.times, compare);
        printf("{\"reviews\": %zu, \"allowed\": %zu, \"per_second\": %.0f, \"p50_us\": %u, \"p99_us\": %u}\n", load.count,
               load.allowed, (double) load.count / seconds, load.times[load.count / 2], load.times[load.count * 99 / 100]);
        return 0;
}
