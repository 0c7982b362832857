/* SPDX-License-Identifier: Apache-2.0 */
/* fetcher.c - see fetcher.h
 *
 * Theory of operation
 *   send_request() sends one request of a fetch. When it ends, request_ended() chooses by the
 *   outcome: done, the same server again (with a token, or after a delay), the target of a
 *   redirect, or the next server. Redirects are followed here and not by libcurl, because a request
 *   to another origin must carry nothing that belongs to the first: no Authorization, no configured
 *   header, no client certificate. A 401 from such an origin is a failure, not a challenge.
 *   A token request is made synchronously and blocks the loop for at most @token_timeout_s; other
 *   responses wait in the kernel meanwhile.
 *   The failure of each server is collected in @failures or, for a 404, in @not_found; they become
 *   the error message. It never contains the query string or user of a URL; events.c redacts once
 *   more.
 * Owns       the fetches, until their done() was called. */
#include "pull/fetch/fetcher.h"

#include <ctype.h>
#include <curl/curl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/text.h"
#include "net/broker.h"

enum {
        REDIRECTS = 5,
        ATTEMPTS = 4, /* per server without a new byte */
        /* bytes per second, over the no-progress timeout; slower servers are dropped */
        SLOWEST = 512,
        RECEIVE_BUFFER = 128 * 1024,
        FAILURES_TEXT = 4096,
        OTHERS_TEXT = 200, /* of the other servers' failures, when one has answered 404 */
        HEADER_TEXT = 512,
};

static constexpr long token_timeout_s = 30;
static constexpr unsigned connect_timeout_s = 30;

struct fetch {
        struct pull_fetcher *fetcher;
        struct pull_fetch_plan plan; /* owns its strings */
        CURL *easy;                  /* nullptr between two requests */
        struct curl_slist *headers;
        size_t host;     /* index of the current server */
        char *url;       /* of the current request */
        bool at_origin;  /* the current URL is the server's own, not a redirect's */
        bool authorized; /* a challenge of this server was answered */
        unsigned redirects, attempts;
        uint64_t not_before_us; /* delay before the next request */

        /* state of the current response */
        long status;
        bool good;      /* its body goes to the plan */
        uint64_t asked; /* the requested offset */
        uint64_t skip;  /* bytes that we already have, from a server without range support */
        uint64_t received;
        uint64_t range_start;
        bool has_range;
        char content_type[HEADER_TEXT];
        struct pull_challenge challenge;
        struct nd_error *error; /* the plan's own error, which stopped the response */
        char curl_error[CURL_ERROR_SIZE];

        struct nd_text failures;
        struct nd_text not_found;
        enum nd_error_code code; /* code of the failures, or of @not_found */
};

struct pull_fetcher {
        struct pull_fetcher_settings settings;
        CURLM *multi;
        nd_vector(struct fetch *) fetches;
};

static void end_request(struct fetch *f) {
        if (f->easy) {
                (void) curl_multi_remove_handle(f->fetcher->multi, f->easy);
                curl_easy_cleanup(nd_take_ptr(f->easy));
        }
        curl_slist_free_all(nd_take_ptr(f->headers));
}

static void fetch_free(struct fetch *f) {
        end_request(f);
        free((char *) f->plan.path);
        free((char *) f->plan.repository);
        free((char *) f->plan.accept);
        free(f->url);
        pull_challenge_done(&f->challenge);
        nd_error_free(f->error);
        nd_text_done(&f->failures);
        nd_text_done(&f->not_found);
        free(f);
}

void pull_fetcher_free(struct pull_fetcher *fetcher) {
        if (!fetcher)
                return;
        nd_vector_each (f, &fetcher->fetches) {
                fetch_free(*f);
        }
        nd_vector_done(&fetcher->fetches);
        (void) curl_multi_cleanup(fetcher->multi);
        free(fetcher);
}

struct nd_error *pull_fetcher_new(const struct pull_fetcher_settings *settings, struct pull_fetcher **ret) {
        struct pull_fetcher *fetcher = nd_new(struct pull_fetcher);

        fetcher->settings = *settings;
        fetcher->multi = curl_multi_init();
        if (!fetcher->multi) {
                free(fetcher);
                return nd_error_new(ND_INTERNAL, ENOMEM, "initialize libcurl");
        }
        *ret = fetcher;
        return nullptr;
}

static const struct pull_host *host_of(const struct fetch *f) {
        return &f->fetcher->settings.hosts->items[f->host];
}

/* A server that could not be asked says nothing about the image. */
static bool is_outage(enum nd_error_code code) {
        return code == ND_UNAVAILABLE || code == ND_DEADLINE;
}

/* Adds a server's failure to the message. */
[[gnu::format(printf, 3, 4)]] static void add_failure(struct fetch *f, enum nd_error_code code, const char *format, ...) {
        struct nd_text *text = code == ND_NOT_FOUND ? &f->not_found : &f->failures;
        nd_autofree char *curl_error = nullptr;
        va_list arguments;

        va_start(arguments, format);
        curl_error = nd_format_va(format, arguments);
        va_end(arguments);
        nd_text_addf(text, "%s%s: %s", text->length > 0 ? "; " : "", host_of(f)->authority, curl_error);
        if (f->not_found.length == 0 || !is_outage(code))
                f->code = code;
}

/* The error of all servers. The answer that one does not have the image is not lost between the
 * reasons for which others could not be asked. */
static struct nd_error *failure(const struct fetch *f) {
        size_t length = f->failures.length;

        if (f->code == ND_OK)
                return nd_error_new(ND_NOT_FOUND, 0, "no configured server has the required capability");
        if (f->not_found.length == 0)
                return nd_error_new(f->code, 0, "%s", nd_text_get(&f->failures));
        if (length == 0)
                return nd_error_new(f->code, 0, "%s", nd_text_get(&f->not_found));
        /* Another server has answered, too: access denied, wrong data. */
        if (f->code != ND_NOT_FOUND)
                return nd_error_new(f->code, 0, "%s; %s", f->failures.bytes, f->not_found.bytes);
        return nd_error_new(f->code, 0, "%s; %.*s%s", f->not_found.bytes, OTHERS_TEXT, f->failures.bytes,
                            length > OTHERS_TEXT ? "..." : "");
}

/* ---- libcurl callbacks ---- */

/* Returns the trimmed value of a header with this name. */
static bool header_value(const char *line, size_t length, const char *name, const char **ret, size_t *ret_length) {
        size_t n = strlen(name);

        if (length <= n || strncasecmp(line, name, n) != 0 || line[n] != ':')
                return false;
        line += n + 1;
        length -= n + 1;
        while (length > 0 && (*line == ' ' || *line == '\t')) {
                line++;
                length--;
        }
        while (length > 0 && strchr(" \t\r\n", line[length - 1]))
                length--;
        *ret = line;
        *ret_length = length;
        return true;
}

static void reset_response(struct fetch *f) {
        f->has_range = false;
        f->content_type[0] = '\0';
        pull_challenge_done(&f->challenge);
}

static size_t on_header(char *line, size_t size, size_t count, void *userdata) {
        struct fetch *f = userdata;
        size_t length = size * count, n;
        const char *value;

        if (length > 5 && strncmp(line, "HTTP/", 5) == 0)
                reset_response(f);
        if (header_value(line, length, "Content-Type", &value, &n) && n < sizeof f->content_type) {
                memcpy(f->content_type, value, n);
                f->content_type[n] = '\0';
        }
        if (header_value(line, length, "Content-Range", &value, &n)) {
                char text[64];
                unsigned long long start;

                (void) snprintf(text, sizeof text, "%.*s", (int) (n < 63 ? n : 63), value);
                /* NOLINTNEXTLINE(cert-err34-c): eighteen digits fit */
                f->has_range = sscanf(text, "bytes %18llu-", &start) == 1;
                f->range_start = f->has_range ? start : 0;
        }
        if (header_value(line, length, "WWW-Authenticate", &value, &n))
                /* an invalid challenge is skipped */
                nd_ignore(pull_challenge_parse(value, n, &f->challenge));
        return length;
}

/* Checks at the first bytes of a body that it is what we requested. */
static struct nd_error *begin_body(struct fetch *f) {
        struct pull_fetch_head head = {.content_type = f->content_type, .length = UINT64_MAX};
        curl_off_t length = -1;

        (void) curl_easy_getinfo(f->easy, CURLINFO_RESPONSE_CODE, &f->status);
        f->good = f->status == 200 || f->status == 206;
        if (!f->good)
                return nullptr;
        if (f->status == 206 && (!f->has_range || f->range_start != f->asked))
                return nd_error_new(ND_DATA_LOSS, 0, "%s sent another range than requested", host_of(f)->authority);
        f->skip = f->status == 200 ? f->asked : 0;
        (void) curl_easy_getinfo(f->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
        if (length >= 0)
                head.length = (uint64_t) length < f->skip ? 0 : (uint64_t) length - f->skip;
        return f->plan.head ? f->plan.head(f->plan.userdata, &head) : nullptr;
}

static size_t on_body(char *bytes, size_t size, size_t count, void *userdata) {
        struct fetch *f = userdata;
        size_t length = size * count, skipped;

        if (f->received == 0)
                f->error = begin_body(f);
        f->received += length;
        if (f->error)
                return 0;
        if (!f->good)
                return f->received > 64 * 1024 ? 0 : length; /* an error page, which is not used */
        skipped = length < f->skip ? length : (size_t) f->skip;
        f->skip -= skipped;
        if (length > skipped) {
                f->attempts = 0;
                f->error = f->plan.body(f->plan.userdata, bytes + skipped, length - skipped);
        }
        return f->error ? 0 : length;
}

/* ---- connections of the host, for a rootless node ---- */

/* Asks the broker, and uses our own network if it refuses: that has rules of its own. The broker
 * waits for the server, a few seconds at most; other downloads wait with it. */
static curl_socket_t on_open_socket(void *userdata, curlsocktype purpose, struct curl_sockaddr *address) {
        struct pull_fetcher *fetcher = userdata;
        int fd = purpose == CURLSOCKTYPE_IPCXN && fetcher->settings.broker >= 0
                         ? nd_broker_ask(fetcher->settings.broker, &address->addr, address->addrlen)
                         : -ENOTSUP;

        if (fd == -ETIMEDOUT || fd == -EPROTO)
                fetcher->settings.broker = -EBADF;
        return fd >= 0 ? fd : socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/* The broker's streams are connected, and not of the family that libcurl asked for. */
static int on_socket_options([[maybe_unused]] void *userdata, curl_socket_t fd, [[maybe_unused]] curlsocktype purpose) {
        socklen_t length = sizeof(int);
        int domain = 0;

        return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 && domain == AF_UNIX
                       ? CURL_SOCKOPT_ALREADY_CONNECTED
                       : CURL_SOCKOPT_OK;
}

static void use_broker(struct pull_fetcher *fetcher, CURL *easy) {
        if (fetcher->settings.broker < 0)
                return;
        (void) curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
        (void) curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, fetcher);
        (void) curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, on_socket_options);
}

/* ---- a request ---- */

static void set_transport(struct pull_fetcher *fetcher, CURL *easy, size_t host, bool at_origin, char *curl_error) {
        const struct pull_host *h = &fetcher->settings.hosts->items[host];
        bool plain = nd_has_prefix(h->url, "http://");

        (void) curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
        (void) curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, plain ? "http,https" : "https");
        (void) curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long) CURL_HTTP_VERSION_1_1);
        (void) curl_easy_setopt(easy, CURLOPT_USERAGENT, "nodens/" ND_VERSION);
        (void) curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, (long) RECEIVE_BUFFER);
        (void) curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
        (void) curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT,
                                (long) (h->dial_seconds > 0 ? h->dial_seconds : connect_timeout_s));
        (void) curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, (long) SLOWEST);
        (void) curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, (long) fetcher->settings.no_progress_seconds);
        (void) curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, curl_error);
        (void) curl_easy_setopt(easy, CURLOPT_CAPATH, nullptr);
        (void) curl_easy_setopt(easy, CURLOPT_CAINFO, fetcher->settings.ca[host]);
        use_broker(fetcher, easy);
        if (h->skip_verify) {
                (void) curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
                (void) curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
        }
        if (at_origin && fetcher->settings.client[host]) {
                (void) curl_easy_setopt(easy, CURLOPT_SSLCERT, fetcher->settings.client[host]);
                (void) curl_easy_setopt(easy, CURLOPT_SSLKEY, fetcher->settings.client[host]);
        }
}

static void add_header(struct curl_slist **list, const char *line) {
        struct curl_slist *longer = curl_slist_append(*list, line);

        if (longer)
                *list = longer;
}

static void set_headers(struct fetch *f) {
        const struct pull_host *host = host_of(f);

        if (f->plan.accept) {
                nd_autofree char *accept = nd_format("Accept: %s", f->plan.accept);

                add_header(&f->headers, accept);
        }
        if (f->at_origin) {
                nd_autofree char *value = pull_auth_header(f->fetcher->settings.auth, host, f->plan.repository);
                nd_autofree char *line = value ? nd_format("Authorization: %s", value) : nullptr;

                if (line)
                        add_header(&f->headers, line);
                nd_vector_each (header, &host->headers) {
                        add_header(&f->headers, *header);
                }
        }
        (void) curl_easy_setopt(f->easy, CURLOPT_HTTPHEADER, f->headers);
}

static void send_request(struct fetch *f) {
        char range[32];

        f->easy = curl_easy_init();
        if (!f->easy)
                abort(); /* like any failed small allocation */
        set_transport(f->fetcher, f->easy, f->host, f->at_origin, f->curl_error);
        f->asked = f->plan.offset ? f->plan.offset(f->plan.userdata) : 0;
        f->received = f->skip = 0;
        f->status = 0;
        f->good = false;
        f->curl_error[0] = '\0';
        set_headers(f);
        if (f->asked > 0) {
                (void) snprintf(range, sizeof range, "%llu-", (unsigned long long) f->asked);
                (void) curl_easy_setopt(f->easy, CURLOPT_RANGE, range);
        }
        (void) curl_easy_setopt(f->easy, CURLOPT_URL, f->url);
        (void) curl_easy_setopt(f->easy, CURLOPT_TIMEOUT, (long) f->plan.deadline_seconds);
        (void) curl_easy_setopt(f->easy, CURLOPT_HEADERFUNCTION, on_header);
        (void) curl_easy_setopt(f->easy, CURLOPT_HEADERDATA, f);
        (void) curl_easy_setopt(f->easy, CURLOPT_WRITEFUNCTION, on_body);
        (void) curl_easy_setopt(f->easy, CURLOPT_WRITEDATA, f);
        (void) curl_easy_setopt(f->easy, CURLOPT_PRIVATE, f);
        (void) curl_multi_add_handle(f->fetcher->multi, f->easy);
}

/* Points a fetch to a server's own URL; false when no further server has the capability. */
static bool select_host(struct fetch *f, size_t host) {
        const struct pull_hosts *hosts = f->fetcher->settings.hosts;

        while (host < hosts->count && !(hosts->items[host].capabilities & f->plan.capability))
                host++;
        if (host >= hosts->count)
                return false;
        f->host = host;
        free(f->url);
        f->url = nd_format("%s%s", hosts->items[host].url, f->plan.path);
        f->at_origin = true;
        f->redirects = 0;
        return true;
}

static void finish(struct fetch *f, struct nd_error *error) {
        struct pull_fetcher *fetcher = f->fetcher;

        for (size_t i = 0; i < fetcher->fetches.count; i++)
                if (fetcher->fetches.items[i] == f) {
                        fetcher->fetches.items[i] = fetcher->fetches.items[--fetcher->fetches.count];
                        break;
                }
        f->plan.done(f->plan.userdata, error);
        fetch_free(f);
}

static void next_host(struct fetch *f) {
        f->attempts = 0;
        f->authorized = false;
        if (select_host(f, f->host + 1))
                return send_request(f);
        finish(f, failure(f));
}

void pull_fetch_start(struct pull_fetcher *fetcher, const struct pull_fetch_plan *plan) {
        struct fetch *f = nd_new(struct fetch);

        f->fetcher = fetcher;
        f->plan = *plan;
        f->plan.path = nd_strdup(plan->path);
        f->plan.repository = nd_strdup(plan->repository);
        f->plan.accept = plan->accept ? nd_strdup(plan->accept) : nullptr;
        f->failures = f->not_found = ND_TEXT(FAILURES_TEXT);
        nd_vector_push(&fetcher->fetches, f);
        if (select_host(f, 0))
                return send_request(f);
        finish(f, nd_error_new(ND_NOT_FOUND, 0, "no configured server has the required capability"));
}

/* ---- tokens ---- */

static size_t on_token(char *bytes, size_t size, size_t count, void *userdata) {
        struct nd_text *text = userdata;

        nd_text_append(text, bytes, size * count);
        return text->overflow ? 0 : size * count;
}

static struct nd_error *perform_token_request(struct fetch *f, const struct pull_token_request *request,
                                              struct nd_text *answer) {
        CURL *easy = curl_easy_init();
        struct curl_slist *headers = nullptr;
        nd_autofree char *line = request->authorization ? nd_format("Authorization: %s", request->authorization) : nullptr;
        char curl_error[CURL_ERROR_SIZE] = "";
        long status = 0;
        CURLcode code;

        if (!easy)
                return nd_error_new(ND_INTERNAL, ENOMEM, "initialize libcurl");
        set_transport(f->fetcher, easy, f->host, false, curl_error);
        (void) curl_easy_setopt(easy, CURLOPT_TIMEOUT, token_timeout_s);
        (void) curl_easy_setopt(easy, CURLOPT_URL, request->url);
        if (line)
                add_header(&headers, line);
        (void) curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
        if (request->body)
                (void) curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request->body);
        (void) curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_token);
        (void) curl_easy_setopt(easy, CURLOPT_WRITEDATA, answer);
        code = curl_easy_perform(easy);
        (void) curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
        curl_easy_cleanup(easy);
        curl_slist_free_all(headers);
        if (code != CURLE_OK)
                return nd_error_new(ND_UNAVAILABLE, 0, "token server: %s",
                                    curl_error[0] ? curl_error : curl_easy_strerror(code));
        if (status != 200)
                return nd_error_new(status == 401 || status == 403 ? ND_DENIED : ND_UNAVAILABLE, 0,
                                    "token server returned status %ld", status);
        return nullptr;
}

static struct nd_error *authorize(struct fetch *f) {
        nd_cleanup(pull_token_request_done) struct pull_token_request request = {};
        nd_autotext struct nd_text answer = ND_TEXT(TOKEN_BYTES);
        struct pull_auth *auth = f->fetcher->settings.auth;

        nd_try(pull_auth_respond(auth, host_of(f), f->plan.repository, &f->challenge, &request));
        if (!request.url)
                return nullptr;
        nd_try(perform_token_request(f, &request, &answer));
        return pull_auth_store_token(auth, host_of(f), f->plan.repository, nd_text_get(&answer), answer.length);
}

/* ---- responses ---- */

static void send_after(struct fetch *f, unsigned pause_ms) {
        f->not_before_us = nd_clock_us() + pause_ms * ND_MS_US;
        if (pause_ms == 0)
                send_request(f);
}

/* Returns scheme://host:port of a URL, with an explicit port; nullptr when it is not http, has a
 * user or is invalid. */
static char *origin_of(const char *url) {
        CURLU *parts = curl_url();
        char *scheme = nullptr, *host = nullptr, *port = nullptr, *user = nullptr, *origin = nullptr;

        if (parts && curl_url_set(parts, CURLUPART_URL, url, CURLU_DISALLOW_USER) == CURLUE_OK &&
            curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
            curl_url_get(parts, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
            curl_url_get(parts, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) == CURLUE_OK &&
            curl_url_get(parts, CURLUPART_USER, &user, 0) != CURLUE_OK &&
            (nd_streq(scheme, "https") || nd_streq(scheme, "http")))
                origin = nd_format("%s://%s:%s", scheme, host, port);
        for (char *at = origin; at && *at; at++)
                *at = (char) tolower((unsigned char) *at);
        curl_free(scheme);
        curl_free(host);
        curl_free(port);
        curl_free(user);
        curl_url_cleanup(parts);
        return origin;
}

/* Follows a redirect, or records why not. */
static void redirect(struct fetch *f, const char *location) {
        nd_autofree char *copy = location ? nd_strdup(location) : nullptr, *here = origin_of(host_of(f)->url),
                         *there = copy ? origin_of(copy) : nullptr;

        if (!there || ++f->redirects > REDIRECTS || (nd_has_prefix(f->url, "https:") && !nd_has_prefix(there, "https:"))) {
                add_failure(f, ND_UNAVAILABLE, "%s",
                            !there                     ? "invalid redirect, or one to a URL with a user"
                            : f->redirects > REDIRECTS ? "too many redirects"
                                                       : "redirect from https to http");
                return next_host(f);
        }
        f->at_origin = here && nd_streq(here, there);
        free(f->url);
        f->url = nd_take_ptr(copy);
        send_request(f);
}

static void on_unauthorized(struct fetch *f) {
        nd_autoerror struct nd_error *error = nullptr;

        if (!f->at_origin) {
                add_failure(f, ND_DENIED, "the target of its redirect requires credentials");
                return next_host(f);
        }
        if (f->authorized) {
                add_failure(f, ND_DENIED, "it rejected the credentials (401)");
                return next_host(f);
        }
        error = authorize(f);
        if (error) {
                add_failure(f, nd_error_code(error), "%s", nd_error_text(error));
                return next_host(f);
        }
        f->authorized = true;
        send_request(f);
}

/* Retries a server that is busy or failing, unless another server can be tried at once. */
static void retry_or_next_host(struct fetch *f, enum nd_error_code code, const char *curl_error) {
        static const unsigned pauses_ms[ATTEMPTS] = {250, 500, 1000, 2000};

        if (f->attempts + 1 < ATTEMPTS && (f->host + 1 == f->fetcher->settings.hosts->count || f->attempts == 0)) {
                f->authorized = false;
                (void) select_host(f, f->host); /* a redirect's target may have expired */
                return send_after(f, pauses_ms[f->attempts++]);
        }
        add_failure(f, code, "%s", curl_error);
        next_host(f);
}

static void on_response(struct fetch *f, const char *location) {
        char curl_error[64];

        switch (f->status) {
        case 200:
        case 206:
                if (f->received == 0) /* libcurl does not call on_body() for an empty body */
                        f->error = begin_body(f);
                if (!f->error && f->plan.check)
                        f->error = f->plan.check(f->plan.userdata);
                end_request(f);
                if (!f->error)
                        return finish(f, nullptr);
                add_failure(f, nd_error_code(f->error), "%s", nd_error_text(f->error));
                nd_error_done(&f->error);
                return next_host(f);
        case 301:
        case 302:
        case 303:
        case 307:
        case 308:
                return redirect(f, location);
        case 401:
                return on_unauthorized(f);
        case 403:
                add_failure(f, ND_DENIED, "access denied (403)");
                return next_host(f);
        case 404:
                add_failure(f, ND_NOT_FOUND, "not found (404)");
                return next_host(f);
        default:
                (void) snprintf(curl_error, sizeof curl_error, "status %ld", f->status);
                if (f->status == 429 || f->status >= 500)
                        return retry_or_next_host(f, ND_UNAVAILABLE, curl_error);
                add_failure(f, ND_UNAVAILABLE, "%s", curl_error);
                return next_host(f);
        }
}

static void request_ended(struct fetch *f, CURLcode code) {
        nd_autofree char *location = nullptr;
        char *url = nullptr;

        (void) curl_easy_getinfo(f->easy, CURLINFO_RESPONSE_CODE, &f->status);
        (void) curl_easy_getinfo(f->easy, CURLINFO_REDIRECT_URL, &url);
        location = url ? nd_strdup(url) : nullptr;
        if (f->error) { /* ours: another server cannot fix a full disk, but wrong data */
                end_request(f);
                if (f->plan.offset || nd_error_code(f->error) == ND_INTERNAL)
                        return finish(f, nd_error_wrap(nd_take_ptr(f->error), "%s", host_of(f)->authority));
                add_failure(f, nd_error_code(f->error), "%s", nd_error_text(f->error));
                nd_error_done(&f->error);
                return next_host(f);
        }
        if (code == CURLE_OK || (code == CURLE_WRITE_ERROR && f->status >= 300)) {
                if (f->status != 200 && f->status != 206)
                        end_request(f);
                return on_response(f, location);
        }
        end_request(f);
        if (code == CURLE_OPERATION_TIMEDOUT)
                return retry_or_next_host(f, ND_DEADLINE, f->curl_error[0] ? f->curl_error : "timed out");
        if (code == CURLE_PEER_FAILED_VERIFICATION) { /* a retry would get the same certificate */
                add_failure(f, ND_UNAVAILABLE, "its certificate is not trusted (%s)",
                            f->curl_error[0] ? f->curl_error : curl_easy_strerror(code));
                return next_host(f);
        }
        retry_or_next_host(f, ND_UNAVAILABLE, f->curl_error[0] ? f->curl_error : curl_easy_strerror(code));
}

static void start_delayed(struct pull_fetcher *fetcher) {
        uint64_t now = nd_clock_us();

        nd_vector_each (f, &fetcher->fetches) {
                if (!(*f)->easy && (*f)->not_before_us <= now)
                        send_request(*f);
        }
}

static int shorter_for_delayed(const struct pull_fetcher *fetcher, int timeout_ms) {
        uint64_t now = nd_clock_us();

        nd_vector_each (f, &fetcher->fetches) {
                if (!(*f)->easy && (*f)->not_before_us > now && (*f)->not_before_us - now < (uint64_t) timeout_ms * ND_MS_US)
                        timeout_ms = (int) (((*f)->not_before_us - now) / ND_MS_US) + 1;
        }
        return timeout_ms;
}

/* Returns true when some request has ended. */
static bool take_messages(struct pull_fetcher *fetcher) {
        CURLMsg *message;
        bool any = false;
        int left;

        while ((message = curl_multi_info_read(fetcher->multi, &left)))
                if (message->msg == CURLMSG_DONE) {
                        struct fetch *f = nullptr;
                        CURLcode result = message->data.result;

                        (void) curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &f);
                        request_ended(f, result);
                        any = true;
                }
        return any;
}

struct nd_error *pull_fetcher_wait(struct pull_fetcher *fetcher, struct pollfd *also, size_t count, int timeout_ms) {
        struct curl_waitfd extra[8] = {};
        CURLMcode code;
        int running;

        for (size_t i = 0; i < count && i < nd_count_of(extra); i++)
                extra[i] = (struct curl_waitfd) {.fd = also[i].fd, .events = CURL_WAIT_POLLIN};
        start_delayed(fetcher);
        code = curl_multi_perform(fetcher->multi, &running);
        if (code == CURLM_OK) {
                /* Checks for ended requests before the wait, which would delay them. */
                bool ended = take_messages(fetcher);

                code = curl_multi_poll(fetcher->multi, extra, (unsigned) count,
                                       ended ? 0 : shorter_for_delayed(fetcher, timeout_ms), nullptr);
        }
        if (code == CURLM_OK)
                code = curl_multi_perform(fetcher->multi, &running);
        if (code != CURLM_OK)
                return nd_error_new(ND_INTERNAL, 0, "libcurl: %s", curl_multi_strerror(code));
        for (size_t i = 0; i < count && i < nd_count_of(extra); i++)
                also[i].revents = extra[i].revents ? POLLIN : 0;
        (void) take_messages(fetcher);
        return nullptr;
}
