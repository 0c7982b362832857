/* SPDX-License-Identifier: Apache-2.0 */
/* api-client.c - see api-client.h
 *
 * Theory of operation
 *   libcurl's multi interface reports which descriptors and which timer it waits for; they become
 *   sources of the event loop. libcurl must not be changed from within its own callbacks, and those
 *   call ours: so sending only queues a call, cancelling one that libcurl has only marks it, and a
 *   deferred source (on_settle) removes cancelled calls and submits new ones. A call is freed in
 *   one place, end_call().
 *   libcurl has at most @AT_ONCE calls; the others wait in a queue, and the wait counts towards
 *   their timeout. The next call is from the share with the fewest calls in progress, the oldest of
 *   these first; one share never has more than @SHARE_AT_ONCE. An HTTP/2 server gets all of them on
 *   one connection, but an HTTP/1 server would get a connection for each.
 *   Certificates and keys are passed to the TLS library as memfds, by their name under
 *   /proc/self/fd: libcurl with GnuTLS takes only paths.
 * Owns       the calls, until done() was called or they were cancelled. */
#include "net/api-client.h"

#include <curl/curl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/text.h"
#include "net/api-objects.h"
#include "sys/file.h"

enum {
        CONNECT_SECONDS = 10,
        KEEPALIVE_SECONDS = 20,
        AT_ONCE = 32,
        SHARE_AT_ONCE = 20,
        ANSWER_BYTES = 1 << 20,
        /* Bits of CURLINFO_SSL_VERIFYRESULT, which are those of GnuTLS. */
        VERIFY_SIGNER = 1 << 6,
        VERIFY_EXPIRED = 1 << 10,
};

enum state {
        CALL_WAITING,
        CALL_OPEN, /* submitted to libcurl */
        CALL_CANCELLED,
};

struct nd_api_call {
        struct nd_api *api;
        struct nd_api_call *next, *previous;
        struct queue *queue; /* the queue that holds it, or nullptr */
        enum state state;
        CURL *easy;
        struct curl_slist *headers;
        char *url, *body;
        struct nd_api_request request; /* without path and body, which belong to the caller */
        uint64_t sent_us;
        struct nd_text answer;
        struct nd_error *failure; /* an error of our own, not of libcurl or the server */
        char words[CURL_ERROR_SIZE];
};

struct queue {
        struct nd_api_call *first, *last;
        size_t count;
};

struct nd_api {
        sd_event *loop;
        CURLM *multi;
        sd_event_source *timer, *settle;
        struct queue waiting, open; /* open: submitted to libcurl */
        /* As named in errors and, unless its certificate is for another name, in URLs. */
        char *server;
        char *origin;                  /* prefix of URLs */
        struct curl_slist *connect_to; /* set if URLs name another host than the server */
        char *token;
        char *identity; /* see identity_of() */
        int ca_fd, certificate_fd, key_fd;
        bool insecure;
        bool renew; /* close all connections */
        void (*observe)(const struct nd_api_answer *answer, void *userdata);
        void *observer;
};

static void settle(struct nd_api *api) {
        (void) sd_event_source_set_enabled(api->settle, SD_EVENT_ONESHOT);
}

/* ---- queues ---- */

static void enqueue(struct queue *queue, struct nd_api_call *call) {
        call->queue = queue;
        call->previous = queue->last;
        *(queue->last ? &queue->last->next : &queue->first) = call;
        queue->last = call;
        queue->count++;
}

static void dequeue(struct nd_api_call *call) {
        struct queue *queue = nd_take_ptr(call->queue);

        if (!queue)
                return;
        *(call->previous ? &call->previous->next : &queue->first) = call->next;
        *(call->next ? &call->next->previous : &queue->last) = call->previous;
        call->next = call->previous = nullptr;
        queue->count--;
}

static size_t count_of_share(const struct queue *queue, uint64_t share) {
        size_t count = 0;

        for (const struct nd_api_call *call = queue->first; call; call = call->next)
                /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): an ended call is not queued */
                count += call->request.share == share;
        return count;
}

/* The next call to submit; nullptr: every waiting call belongs to a share that is at its limit. Our
 * own calls (share 0) come first. */
static struct nd_api_call *next_call(const struct queue *waiting, const struct queue *open) {
        struct nd_api_call *best = nullptr;
        size_t least = SHARE_AT_ONCE, count = 0;
        uint64_t counted = 0;

        for (struct nd_api_call *call = waiting->first; call && least > 0; call = call->next) {
                /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): likewise */
                if (call->request.share == 0)
                        return call;
                if (call->request.share != counted) { /* most of a long queue belong to one share */
                        counted = call->request.share;
                        count = count_of_share(open, counted);
                }
                if (count < least) {
                        best = call;
                        least = count;
                }
        }
        return best;
}

/* Same as dequeue(), in a form that the static analyzer can follow: the first call has no
 * predecessor. */
static struct nd_api_call *take_first(struct queue *queue) {
        struct nd_api_call *call = queue->first;

        if (call) {
                queue->first = call->next;
                *(call->next ? &call->next->previous : &queue->last) = nullptr;
                queue->count--;
                call->next = nullptr;
                call->queue = nullptr;
        }
        return call;
}

static void end_call(struct nd_api_call *call) {
        struct nd_api *api = call->api;

        dequeue(call);
        if (call->easy) {
                /* Harmless if the handle could not be added. */
                (void) curl_multi_remove_handle(api->multi, call->easy);
                settle(api); /* the next one may be submitted */
        }
        curl_easy_cleanup(call->easy);
        curl_slist_free_all(call->headers);
        free(call->url);
        free(call->body);
        nd_text_done(&call->answer);
        nd_error_free(call->failure);
        free(call);
}

static void end_all(struct queue *queue) {
        struct nd_api_call *call;

        while ((call = take_first(queue)))
                end_call(call);
}

static void free_token(struct nd_api *api) {
        if (api->token)
                explicit_bzero(api->token, strlen(api->token));
        free(nd_take_ptr(api->token));
}

void nd_api_free(struct nd_api *api) {
        if (!api)
                return;
        end_all(&api->open);
        end_all(&api->waiting);
        if (api->multi)
                (void) curl_multi_cleanup(api->multi);
        sd_event_source_disable_unref(api->timer);
        sd_event_source_disable_unref(api->settle);
        sd_event_unref(api->loop);
        nd_close_fd(&api->ca_fd);
        nd_close_fd(&api->certificate_fd);
        nd_close_fd(&api->key_fd);
        free(api->server);
        free(api->origin);
        curl_slist_free_all(api->connect_to);
        free_token(api);
        free(api->identity);
        free(api);
}

sd_event *nd_api_loop(struct nd_api *api) {
        return api->loop;
}

/* ---- completion ---- */

void nd_api_observe(struct nd_api *api, void (*observe)(const struct nd_api_answer *answer, void *userdata), void *userdata) {
        api->observe = observe;
        api->observer = userdata;
}

static enum nd_api_fault fault_of(const struct nd_api_call *call, CURLcode result) {
        long verified = 0;

        if (result == CURLE_OPERATION_TIMEDOUT)
                return ND_API_FAULT_TIMEOUT;
        if (result != CURLE_PEER_FAILED_VERIFICATION)
                return ND_API_FAULT_CONNECTION;
        (void) curl_easy_getinfo(call->easy, CURLINFO_SSL_VERIFYRESULT, &verified);
        return verified & VERIFY_EXPIRED  ? ND_API_FAULT_EXPIRED
               : verified & VERIFY_SIGNER ? ND_API_FAULT_SIGNER
                                          : ND_API_FAULT_CERTIFICATE;
}

/* libcurl's text names the memfds of the certificates, which mean nothing to a reader. */
static struct nd_error *no_response(struct nd_api_call *call, CURLcode result) {
        char *files = strstr(call->words, " (CAfile");

        if (files)
                *files = '\0';
        return nd_error_new(ND_UNAVAILABLE, 0, "%s: %s", call->api->server,
                            call->words[0] ? call->words : curl_easy_strerror(result));
}

static void tell(struct nd_api_call *call, CURLcode result) {
        nd_autoerror struct nd_error *error = nullptr;
        struct nd_api_answer answer = {.body = nd_text_get(&call->answer), .length = call->answer.length};
        curl_off_t after = 0;

        if (call->easy) {
                (void) curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &answer.status);
                (void) curl_easy_getinfo(call->easy, CURLINFO_RETRY_AFTER, &after);
        }
        answer.retry_after_s = after > 0 ? (uint64_t) after : 0;
        if (call->failure)
                error = nd_take_ptr(call->failure);
        else if (call->answer.overflow)
                error = nd_error_new(ND_EXHAUSTED, 0, "response exceeds %zu bytes", call->answer.ceiling);
        else if (result == CURLE_OPERATION_TIMEDOUT)
                error = nd_error_new(ND_DEADLINE, ETIMEDOUT, "%s", call->api->server);
        else if (result != CURLE_OK)
                error = no_response(call, result);
        else if (answer.status < 200 || answer.status > 299)
                error = nd_api_refusal(answer.status, answer.body, answer.length);
        answer.error = error;
        if (result != CURLE_OK && result != CURLE_WRITE_ERROR) /* which is our own */
                answer.fault = fault_of(call, result);
        /* what nd_api_stop() ends says nothing about the API server */
        if (call->api->observe && result != CURLE_ABORTED_BY_CALLBACK)
                call->api->observe(&answer, call->api->observer);
        call->request.done(&answer, call->request.userdata);
}

/* Ends a call that libcurl is not working on, and reports the result unless it was cancelled. */
static void conclude(struct nd_api_call *call, CURLcode result) {
        bool wanted = call->state != CALL_CANCELLED;

        call->state = CALL_CANCELLED; /* done() may cancel it, which then has no effect */
        if (wanted)
                tell(call, result);
        end_call(call);
}

/* Ends only the calls present now: done() may send new ones. */
static void conclude_all(struct queue *queue, CURLcode result) {
        for (size_t left = queue->count; left > 0 && queue->first; left--)
                conclude(take_first(queue), result);
}

static void collect(struct nd_api *api) {
        CURLMsg *message;
        int left;

        while ((message = curl_multi_info_read(api->multi, &left))) {
                struct nd_api_call *call = nullptr;
                CURLcode result = message->data.result;

                if (message->msg != CURLMSG_DONE)
                        continue;
                (void) curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **) &call);
                conclude(call, result);
        }
}

/* ---- libcurl in the loop ---- */

static int on_socket_ready([[maybe_unused]] sd_event_source *source, int fd, uint32_t events, void *userdata) {
        struct nd_api *api = userdata;
        int flags = 0, running;

        flags |= events & (EPOLLIN | EPOLLHUP) ? CURL_CSELECT_IN : 0;
        flags |= events & EPOLLOUT ? CURL_CSELECT_OUT : 0;
        flags |= events & EPOLLERR ? CURL_CSELECT_ERR : 0;
        (void) curl_multi_socket_action(api->multi, fd, flags, &running);
        collect(api);
        return 0;
}

static int on_timer([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t now, void *userdata) {
        struct nd_api *api = userdata;
        int running;

        (void) curl_multi_socket_action(api->multi, CURL_SOCKET_TIMEOUT, 0, &running);
        collect(api);
        return 0;
}

static int watch_socket([[maybe_unused]] CURL *easy, curl_socket_t fd, int what, void *userdata, void *of_socket) {
        uint32_t events = (what & CURL_POLL_IN ? EPOLLIN : 0) | (what & CURL_POLL_OUT ? EPOLLOUT : 0);
        sd_event_source *source = of_socket;
        struct nd_api *api = userdata;

        if (what == CURL_POLL_REMOVE) {
                sd_event_source_disable_unref(source);
                (void) curl_multi_assign(api->multi, fd, nullptr);
        } else if (source) {
                (void) sd_event_source_set_io_events(source, events);
        } else if (sd_event_add_io(api->loop, &source, fd, events, on_socket_ready, api) >= 0) {
                (void) curl_multi_assign(api->multi, fd, source);
        } else {
                return -1;
        }
        return 0;
}

static int set_timer([[maybe_unused]] CURLM *multi, long milliseconds, void *userdata) {
        struct nd_api *api = userdata;

        if (milliseconds < 0)
                return sd_event_source_set_enabled(api->timer, SD_EVENT_OFF) < 0 ? -1 : 0;
        if (sd_event_source_set_time_relative(api->timer, (uint64_t) milliseconds * ND_MS_US) < 0)
                return -1;
        return sd_event_source_set_enabled(api->timer, SD_EVENT_ONESHOT) < 0 ? -1 : 0;
}

static void set_callbacks(struct nd_api *api) {
        (void) curl_multi_setopt(api->multi, CURLMOPT_SOCKETFUNCTION, watch_socket);
        (void) curl_multi_setopt(api->multi, CURLMOPT_SOCKETDATA, api);
        (void) curl_multi_setopt(api->multi, CURLMOPT_TIMERFUNCTION, set_timer);
        (void) curl_multi_setopt(api->multi, CURLMOPT_TIMERDATA, api);
}

/* Connections belong to libcurl's multi handle and are closed with it. */
static void renew(struct nd_api *api) {
        api->renew = false;
        conclude_all(&api->open, CURLE_OPERATION_TIMEDOUT);
        (void) curl_multi_cleanup(api->multi);
        api->multi = curl_multi_init();
        if (!api->multi)
                abort(); /* out of memory */
        set_callbacks(api);
}

void nd_api_renew(struct nd_api *api) {
        api->renew = true;
        settle(api);
}

/* ---- a call ---- */

static size_t on_body(char *bytes, size_t size, size_t count, void *userdata) {
        struct nd_api_call *call = userdata;
        size_t length = size * count;
        long status = 0;

        if (call->state != CALL_OPEN)
                return CURL_WRITEFUNC_ERROR;
        (void) curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
        if (call->request.piece && status >= 200 && status <= 299) {
                call->failure = call->request.piece(bytes, length, call->request.userdata);
                return call->failure || call->state != CALL_OPEN ? CURL_WRITEFUNC_ERROR : length;
        }
        nd_text_append(&call->answer, bytes, length);
        return call->answer.overflow ? CURL_WRITEFUNC_ERROR : length;
}

/* Called with each line of the head; an empty one ends it. */
static size_t on_head(char *line, size_t size, size_t count, void *userdata) {
        struct nd_api_call *call = userdata;
        size_t length = size * count;
        long status = 0;

        (void) curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
        if (length == 2 && line[0] == '\r' && status >= 200 && status <= 299 && call->state == CALL_OPEN)
                call->request.begun(call->request.userdata);
        return length;
}

static void append(struct curl_slist **list, const char *line) {
        struct curl_slist *longer = curl_slist_append(*list, line);

        if (!longer)
                abort(); /* out of memory */
        *list = longer;
}

static void add_header(struct nd_api_call *call, const char *name, const char *value) {
        nd_autofree char *line = nd_format("%s: %.*s", name, (int) strcspn(value, "\r\n"), value);

        append(&call->headers, line);
        explicit_bzero(line, strlen(line));
}

/* The compiler checks only those libcurl options whose number is a constant, hence no loop. */
static const char *path_of(int fd, char path[static 32]) {
        (void) snprintf(path, 32, "/proc/self/fd/%d", fd);
        return path;
}

static void set_certificates(struct nd_api *api, CURL *easy) {
        char path[32];

        /* Reading a directory of certificates costs 8 MB. */
        (void) curl_easy_setopt(easy, CURLOPT_CAPATH, (char *) nullptr);
        /* the path of a memfd names another authority after nd_api_reload() */
        (void) curl_easy_setopt(easy, CURLOPT_CA_CACHE_TIMEOUT, 0L);
        if (api->ca_fd >= 0)
                (void) curl_easy_setopt(easy, CURLOPT_CAINFO, path_of(api->ca_fd, path));
        if (api->certificate_fd >= 0)
                (void) curl_easy_setopt(easy, CURLOPT_SSLCERT, path_of(api->certificate_fd, path));
        if (api->key_fd >= 0)
                (void) curl_easy_setopt(easy, CURLOPT_SSLKEY, path_of(api->key_fd, path));
}

static void set_transport(struct nd_api *api, CURL *easy) {
        (void) curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
        (void) curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, nd_has_prefix(api->server, "https:") ? "https" : "http");
        (void) curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long) CURL_HTTP_VERSION_2TLS);
        (void) curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L);
        (void) curl_easy_setopt(easy, CURLOPT_USERAGENT, "nodens/" ND_VERSION);
        (void) curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
        (void) curl_easy_setopt(easy, CURLOPT_PROXY, "");
        (void) curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, (long) CONNECT_SECONDS);
        (void) curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
        (void) curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, (long) KEEPALIVE_SECONDS);
        (void) curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, (long) KEEPALIVE_SECONDS);
        set_certificates(api, easy);
        if (api->connect_to)
                (void) curl_easy_setopt(easy, CURLOPT_CONNECT_TO, api->connect_to);
        if (api->insecure) {
                (void) curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
                (void) curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
        }
}

static void set_message(struct nd_api_call *call) {
        const struct nd_api_request *request = &call->request;

        (void) curl_easy_setopt(call->easy, CURLOPT_URL, call->url);
        (void) curl_easy_setopt(call->easy, CURLOPT_CUSTOMREQUEST, request->method ? request->method : "GET");
        if (call->body) {
                (void) curl_easy_setopt(call->easy, CURLOPT_POSTFIELDS, call->body);
                (void) curl_easy_setopt(call->easy, CURLOPT_POSTFIELDSIZE, (long) strlen(call->body));
                add_header(call, "Content-Type", request->content_type ? request->content_type : "application/json");
        }
        add_header(call, "Accept", "application/json");
        if (call->api->token) {
                nd_autofree char *bearer = nd_format("Bearer %s", call->api->token);

                add_header(call, "Authorization", bearer);
                explicit_bzero(bearer, strlen(bearer));
        }
        (void) curl_easy_setopt(call->easy, CURLOPT_HTTPHEADER, call->headers);
}

static void open_call(struct nd_api_call *call) {
        call->easy = curl_easy_init();
        if (!call->easy)
                abort();
        set_transport(call->api, call->easy);
        set_message(call);
        (void) curl_easy_setopt(call->easy, CURLOPT_PRIVATE, call);
        (void) curl_easy_setopt(call->easy, CURLOPT_ERRORBUFFER, call->words);
        (void) curl_easy_setopt(call->easy, CURLOPT_WRITEFUNCTION, on_body);
        (void) curl_easy_setopt(call->easy, CURLOPT_WRITEDATA, call);
        if (call->request.begun) {
                (void) curl_easy_setopt(call->easy, CURLOPT_HEADERFUNCTION, on_head);
                (void) curl_easy_setopt(call->easy, CURLOPT_HEADERDATA, call);
        }
}

/* ---- all calls ---- */

static void hand_over(struct nd_api_call *call, uint64_t left_us) {
        struct nd_api *api = call->api;

        enqueue(&api->open, call);
        call->state = CALL_OPEN;
        open_call(call);
        if (left_us > 0) /* libcurl counts from now; its minimum is one millisecond */
                (void) curl_easy_setopt(call->easy, CURLOPT_TIMEOUT_MS, left_us > ND_MS_US ? (long) (left_us / ND_MS_US) : 1L);
        if (curl_multi_add_handle(api->multi, call->easy) != CURLM_OK)
                conclude(call, CURLE_FAILED_INIT);
}

/* Submits a call, unless it timed out in the queue. */
static void serve(struct nd_api_call *call) {
        uint64_t waited_us = nd_clock_us() - call->sent_us, timeout_us = call->request.timeout_us;

        if (timeout_us > 0 && waited_us >= timeout_us)
                conclude(call, CURLE_OPERATION_TIMEDOUT);
        else
                hand_over(call, timeout_us > 0 ? timeout_us - waited_us : 0);
}

/* Removes cancelled calls from libcurl and submits new ones. */
static int on_settle([[maybe_unused]] sd_event_source *source, void *userdata) {
        struct nd_api *api = userdata;
        struct nd_api_call *next;

        if (api->renew)
                renew(api);
        for (struct nd_api_call *call = api->open.first; call; call = next) {
                next = call->next;
                if (call->state == CALL_CANCELLED)
                        end_call(call);
        }
        while (api->open.count < AT_ONCE && (next = next_call(&api->waiting, &api->open))) {
                dequeue(next);
                serve(next);
        }
        return 0;
}

/* A queued call holds only its strings; the libcurl handle is made when it is submitted. */
struct nd_api_call *nd_api_send(struct nd_api *api, const struct nd_api_request *request) {
        struct nd_api_call *call = nd_new(struct nd_api_call);

        call->api = api;
        call->request = *request;
        call->request.path = call->request.body = nullptr;
        call->url = nd_format("%s%s", api->origin, request->path);
        call->body = request->body ? nd_strdup(request->body) : nullptr;
        call->sent_us = nd_clock_us();
        call->answer = ND_TEXT(request->ceiling > 0 ? request->ceiling : ANSWER_BYTES);
        enqueue(&api->waiting, call);
        settle(api);
        return call;
}

void nd_api_stop(struct nd_api *api) {
        conclude_all(&api->open, CURLE_ABORTED_BY_CALLBACK);
        conclude_all(&api->waiting, CURLE_ABORTED_BY_CALLBACK);
}

void nd_api_cancel(struct nd_api_call *call) {
        if (!call)
                return;
        if (call->state == CALL_WAITING) {
                end_call(call);
                return;
        }
        call->state = CALL_CANCELLED;
        settle(call->api);
}

void nd_api_escape(struct nd_text *text, const char *part) {
        for (const char *c = part; *c; c++) {
                bool plain =
                        (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') || strchr("-._~", *c);

                if (plain)
                        nd_text_append(text, c, 1);
                else
                        nd_text_addf(text, "%%%02X", (unsigned) (unsigned char) *c);
        }
}

/* ---- the client ---- */

/* A memfd with this text; none if there is no text. */
static struct nd_error *memory_file(const char *text, int *ret) {
        nd_autoclose int fd = -EBADF;
        size_t length = text ? strlen(text) : 0;

        if (!text)
                return nullptr;
        fd = memfd_create("certificate", MFD_CLOEXEC);
        if (fd < 0 || write(fd, text, length) != (ssize_t) length)
                return nd_error_new(ND_INTERNAL, errno, "create memfd for a certificate");
        *ret = nd_take_fd(fd);
        return nullptr;
}

static struct nd_error *prepare(struct nd_api *api) {
        int r;

        api->multi = curl_multi_init();
        if (!api->multi)
                return nd_error_new(ND_INTERNAL, ENOMEM, "start libcurl");
        r = sd_event_add_time_relative(api->loop, &api->timer, CLOCK_MONOTONIC, 0, 1, on_timer, api);
        if (r >= 0)
                r = sd_event_source_set_enabled(api->timer, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_add_defer(api->loop, &api->settle, on_settle, api);
        if (r >= 0)
                r = sd_event_source_set_enabled(api->settle, SD_EVENT_OFF);
        if (r < 0)
                return nd_error_new(ND_INTERNAL, -r, "event loop");
        set_callbacks(api);
        return nullptr;
}

/* The certificate is for another name than the address: the name goes into URLs, and
 * CURLOPT_CONNECT_TO holds the address. */
static void set_server(struct nd_api *api, const struct nd_kubeconfig *config) {
        const char *host = strstr(config->server, "://") + 3, *path = strchr(host, '/');
        nd_autofree char *authority = path ? nd_strndup(host, (size_t) (path - host)) : nd_strdup(host);
        const char *bracket = strrchr(authority, ']'), *colon = strrchr(authority, ':');
        nd_autofree char *to = nullptr;

        nd_strset(&api->server, config->server);
        curl_slist_free_all(nd_take_ptr(api->connect_to));
        if (!config->tls_server_name) {
                nd_strset(&api->origin, config->server);
                return;
        }
        to = nd_format("::%s%s", authority, colon && colon > bracket ? "" : ":443");
        append(&api->connect_to, to);
        free(api->origin);
        api->origin = nd_format("https://%s%s", config->tls_server_name, path ? path : "");
}

/* What a connection depends on. */
static char *identity_of(const struct nd_kubeconfig *config) {
        return nd_format("%s\n%s\n%d\n%s\n%s", config->server, config->tls_server_name ? config->tls_server_name : "",
                         config->insecure, config->ca ? config->ca : "", config->certificate ? config->certificate : "");
}

static void set_token(struct nd_api *api, const struct nd_kubeconfig *config) {
        free_token(api);
        api->token = config->token ? nd_strdup(config->token) : nullptr;
}

static struct nd_error *set_identity(struct nd_api *api, const struct nd_kubeconfig *config) {
        nd_autoclose int ca_fd = -EBADF, certificate_fd = -EBADF, key_fd = -EBADF;

        nd_try(memory_file(config->ca, &ca_fd));
        nd_try(memory_file(config->certificate, &certificate_fd));
        nd_try(memory_file(config->key, &key_fd));
        nd_close_fd(&api->ca_fd);
        nd_close_fd(&api->certificate_fd);
        nd_close_fd(&api->key_fd);
        api->ca_fd = nd_take_fd(ca_fd);
        api->certificate_fd = nd_take_fd(certificate_fd);
        api->key_fd = nd_take_fd(key_fd);
        api->insecure = config->insecure;
        set_server(api, config);
        free(api->identity);
        api->identity = identity_of(config);
        return nullptr;
}

/* A new token is used by later requests. With another certificate or address everything reconnects:
 * a request that has no connection yet names the former memfds. */
struct nd_error *nd_api_reload(struct nd_api *api, const struct nd_kubeconfig *config) {
        nd_autofree char *identity = identity_of(config);

        if (!nd_streq(identity, api->identity)) {
                nd_try(set_identity(api, config));
                nd_api_renew(api);
        }
        set_token(api, config);
        return nullptr;
}

static void api_done(struct nd_api **api) {
        nd_api_free(*api);
}

struct nd_error *nd_api_new(sd_event *loop, const struct nd_kubeconfig *config, struct nd_api **ret) {
        nd_cleanup(api_done) struct nd_api *api = nd_new(struct nd_api);

        api->ca_fd = api->certificate_fd = api->key_fd = -EBADF;
        api->loop = sd_event_ref(loop);
        nd_try(set_identity(api, config));
        set_token(api, config);
        nd_try(prepare(api));
        *ret = nd_take_ptr(api);
        return nullptr;
}
