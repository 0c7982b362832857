/* SPDX-License-Identifier: Apache-2.0 */
/* api-watch.c - see api-watch.h
 *
 * Theory of operation
 *   @LISTING requests page after page; the version on the last page starts @WATCHING. Every event
 *   and bookmark updates that version, so a watch that ends, as all do after some minutes, resumes
 *   where it was. Only an API server that no longer has the version (410) causes a new list. Any
 *   failure leads to @PAUSED, for a time that doubles up to @pause_most_us and has random jitter,
 *   so that replicas do not reconnect at the same time; a successful response resets it.
 *   API servers send a bookmark about every minute, but not while their store has not changed
 *   since the version that the watch began with. A watch that received nothing for @silence_us is
 *   therefore begun again from its version: the API server sends what the former one may have
 *   missed. If the response does not begin within @begin_us, the connection is dead and everything
 *   reconnects. Until it begins the cache may not count as fresh.
 *   A minute is long if a namespace's label decides whether a pod is refused. With @stale_us set, a
 *   quarter of that time without input triggers a check: a list of one object, which the API server
 *   answers from its store. Requests share a connection, so no response to the check means that the
 *   watch is dead as well, and everything reconnects. */
#include "net/api-watch.h"

#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "net/api-objects.h"

enum {
        PAGE = 500,
        WATCH_SECONDS = 300, /* plus up to as many again, at random */
};

static constexpr uint64_t pause_least_us = 250 * ND_MS_US;
static constexpr uint64_t pause_most_us = 10 * ND_SECOND_US;
static constexpr uint64_t silence_us = 80 * ND_SECOND_US;
static constexpr uint64_t begin_us = 20 * ND_SECOND_US;
static constexpr uint64_t list_timeout_us = 60 * ND_SECOND_US;

struct nd_api_watch {
        struct nd_api *api;
        struct nd_api_watch_settings settings;
        enum { LISTING, WATCHING, PAUSED } step;
        struct nd_api_call *call;
        sd_event_source *timer;
        struct nd_api_lines lines;
        char *version;      /* resourceVersion to watch from */
        char *continuation; /* token of the next page; nullptr: the first page */
        uint64_t pause_us, heard_us;
        uint64_t current_us; /* when the cache was last known to be complete */
        struct nd_api_call *check;
        sd_event_source *checker;   /* nullptr: no checks beside the watch */
        bool synced, relist, again; /* again: list once more after the current one */
        bool begun;                 /* the response of the watch */
};

static void start(struct nd_api_watch *w);

static uint64_t at_random(uint64_t below) {
        uint64_t number = 0;

        if (getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number)
                number = nd_clock_ns();
        return below > 0 ? number % below : 0;
}

static void arm(struct nd_api_watch *w, uint64_t after_us) {
        (void) sd_event_source_set_time_relative(w->timer, after_us);
        (void) sd_event_source_set_enabled(w->timer, SD_EVENT_ONESHOT);
}

static void pause_then_start(struct nd_api_watch *w, uint64_t at_least_us) {
        uint64_t pause = w->pause_us;

        w->step = PAUSED;
        w->pause_us = pause * 2 < pause_most_us ? pause * 2 : pause_most_us;
        pause = pause / 2 + at_random(pause);
        arm(w, pause > at_least_us ? pause : at_least_us);
}

static void trouble(struct nd_api_watch *w, const struct nd_error *error) {
        if (w->settings.trouble)
                w->settings.trouble(error, w->settings.userdata);
}

static void add_query(const struct nd_api_watch *w, struct nd_text *path) {
        if (w->settings.query)
                nd_text_addf(path, "&%s", w->settings.query);
}

/* ---- the list ---- */

static void take_page(struct nd_api_watch *w, const struct nd_api_page *page) {
        yyjson_arr_iter items = yyjson_arr_iter_with(page->items);
        yyjson_val *item;

        if (!w->continuation && w->settings.begin)
                w->settings.begin(w->settings.userdata);
        while ((item = yyjson_arr_iter_next(&items)))
                w->settings.put(item, w->settings.userdata);
        nd_strset(&w->version, page->version);
        free(nd_take_ptr(w->continuation));
        if (*page->continuation) {
                w->continuation = nd_strdup(page->continuation);
                return;
        }
        w->synced = true;
        w->current_us = nd_clock_us();
        w->relist = w->again;
        w->again = false;
        if (w->settings.listed)
                w->settings.listed(w->settings.userdata);
}

static void on_page(const struct nd_api_answer *answer, void *userdata) {
        nd_cleanup(nd_api_page_done) struct nd_api_page page = {};
        nd_autoerror struct nd_error *broken = nullptr;
        struct nd_api_watch *w = userdata;

        w->call = nullptr;
        if (!answer->error)
                broken = nd_api_page_parse(answer->body, answer->length, &page);
        if (answer->error || broken) {
                free(nd_take_ptr(w->continuation)); /* an incomplete list is useless */
                trouble(w, answer->error ? answer->error : broken);
                pause_then_start(w, answer->retry_after_s * ND_SECOND_US);
                return;
        }
        w->pause_us = pause_least_us;
        w->heard_us = nd_clock_us();
        take_page(w, &page);
        start(w);
}

static void list(struct nd_api_watch *w) {
        nd_autotext struct nd_text path = ND_TEXT(64 << 10);

        w->step = LISTING;
        nd_text_addf(&path, "%s?limit=%u", w->settings.path, w->settings.page > 0 ? w->settings.page : PAGE);
        add_query(w, &path);
        if (w->continuation) {
                nd_text_add(&path, "&continue=");
                nd_api_escape(&path, w->continuation);
        }
        w->call = nd_api_send(w->api, &(struct nd_api_request) {.path = nd_text_get(&path),
                                                                .timeout_us = list_timeout_us,
                                                                .ceiling = ND_API_PAGE_BYTES,
                                                                .done = on_page,
                                                                .userdata = w});
}

/* ---- the watch ---- */

static struct nd_error *on_event(enum nd_api_event event, yyjson_val *object, void *userdata) {
        struct nd_api_watch *w = userdata;
        const char *version = nd_api_version(object);

        if (event == ND_API_PUT)
                w->settings.put(object, w->settings.userdata);
        else if (event == ND_API_REMOVED)
                w->settings.removed(object, w->settings.userdata);
        if (*version)
                nd_strset(&w->version, version);
        w->pause_us = pause_least_us;
        return nullptr;
}

/* Events since the version follow at once. */
static void on_begun(void *userdata) {
        struct nd_api_watch *w = userdata;

        w->begun = true;
        w->heard_us = nd_clock_us();
        arm(w, silence_us);
}

static struct nd_error *on_piece(const char *bytes, size_t length, void *userdata) {
        struct nd_api_watch *w = userdata;

        w->heard_us = w->current_us = nd_clock_us();
        arm(w, silence_us);
        return nd_api_lines_feed(&w->lines, bytes, length);
}

static void on_watch_end(const struct nd_api_answer *answer, void *userdata) {
        struct nd_api_watch *w = userdata;

        w->call = nullptr;
        nd_api_lines_done(&w->lines);
        if (answer->error && nd_error_errno(answer->error) == 410)
                w->relist = true; /* the API server no longer has the events since then */
        else if (answer->error)
                trouble(w, answer->error);
        pause_then_start(w, answer->retry_after_s * ND_SECOND_US);
}

static void watch(struct nd_api_watch *w) {
        nd_autotext struct nd_text path = ND_TEXT(4096);

        w->step = WATCHING;
        w->lines = (struct nd_api_lines) {.take = on_event, .userdata = w};
        nd_text_addf(&path, "%s?watch=true&allowWatchBookmarks=true&timeoutSeconds=%u&resourceVersion=", w->settings.path,
                     (unsigned) (WATCH_SECONDS + at_random(WATCH_SECONDS)));
        nd_api_escape(&path, w->version);
        add_query(w, &path);
        w->begun = false;
        arm(w, begin_us);
        w->call = nd_api_send(w->api, &(struct nd_api_request) {.path = nd_text_get(&path),
                                                                .begun = on_begun,
                                                                .piece = on_piece,
                                                                .done = on_watch_end,
                                                                .userdata = w});
}

static void start(struct nd_api_watch *w) {
        if (!w->synced || w->continuation || w->relist)
                list(w);
        else
                watch(w);
}

/* Begins a silent watch again; other requests continue. */
static void resume(struct nd_api_watch *w) {
        nd_api_cancel(nd_take_ptr(w->call));
        nd_api_lines_done(&w->lines);
        start(w);
}

/* Reconnects the watch and all requests that share its connection. */
static void restart(struct nd_api_watch *w, const struct nd_error *why) {
        nd_api_cancel(nd_take_ptr(w->call));
        nd_api_renew(w->api); /* the connection is dead for all requests */
        nd_api_lines_done(&w->lines);
        trouble(w, why);
        start(w);
}

/* ---- checks beside a silent watch ---- */

static void on_check(const struct nd_api_answer *answer, void *userdata) {
        struct nd_api_watch *w = userdata;

        w->check = nullptr;
        if (w->step != WATCHING)
                return; /* the next list or watch is proof enough */
        if (!answer->error)
                w->current_us = nd_clock_us();
        else if (answer->status == 0)
                restart(w, answer->error);
        else
                trouble(w, answer->error); /* reachable, but the answer is an error */
}

static int on_checker(sd_event_source *source, [[maybe_unused]] uint64_t now, void *userdata) {
        struct nd_api_watch *w = userdata;
        uint64_t quarter_us = w->settings.stale_us / 4;
        nd_autotext struct nd_text path = ND_TEXT(4096);

        (void) sd_event_source_set_time_relative(source, quarter_us);
        (void) sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        if (w->check || w->step != WATCHING || nd_clock_us() - w->current_us < quarter_us)
                return 0;
        nd_text_addf(&path, "%s?limit=1", w->settings.path);
        add_query(w, &path);
        w->check = nd_api_send(w->api, &(struct nd_api_request) {.path = nd_text_get(&path),
                                                                 .timeout_us = quarter_us,
                                                                 .ceiling = ND_API_PAGE_BYTES,
                                                                 .done = on_check,
                                                                 .userdata = w});
        return 0;
}

/* A pause is over, or a watch received nothing for too long. */
static int on_timer([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t now, void *userdata) {
        struct nd_api_watch *w = userdata;

        if (w->step == WATCHING && w->begun) {
                resume(w);
        } else if (w->step == WATCHING) {
                nd_autoerror struct nd_error *silence =
                        nd_error_new(ND_DEADLINE, 0, "no response from the API server for %llu s",
                                     (unsigned long long) (begin_us / ND_SECOND_US));

                restart(w, silence);
        } else {
                start(w);
        }
        return 0;
}

struct nd_api_watch *nd_api_watch_new(struct nd_api *api, const struct nd_api_watch_settings *settings) {
        struct nd_api_watch *w = nd_new(struct nd_api_watch);

        w->api = api;
        w->settings = *settings;
        w->pause_us = pause_least_us;
        if (sd_event_add_time_relative(nd_api_loop(api), &w->timer, CLOCK_MONOTONIC, 0, ND_MS_US, on_timer, w) < 0)
                abort(); /* out of memory */
        if (settings->stale_us > 0 && sd_event_add_time_relative(nd_api_loop(api), &w->checker, CLOCK_MONOTONIC,
                                                                 settings->stale_us / 4, ND_MS_US, on_checker, w) < 0)
                abort();
        w->step = PAUSED;
        return w;
}

void nd_api_watch_free(struct nd_api_watch *w) {
        if (!w)
                return;
        nd_api_cancel(w->call);
        nd_api_cancel(w->check);
        sd_event_source_disable_unref(w->timer);
        sd_event_source_disable_unref(w->checker);
        nd_api_lines_done(&w->lines);
        free(w->version);
        free(w->continuation);
        free(w);
}

void nd_api_watch_relist(struct nd_api_watch *w) {
        w->again = w->step == LISTING;
        w->relist = true;
        if (w->step != WATCHING)
                return; /* the current list is followed by another, and so is a pause */
        nd_api_cancel(nd_take_ptr(w->call));
        nd_api_lines_done(&w->lines);
        w->step = PAUSED;
        arm(w, 0);
}

bool nd_api_watch_is_synced(const struct nd_api_watch *w) {
        return w->synced;
}

bool nd_api_watch_is_listing(const struct nd_api_watch *w) {
        return !w->synced || w->relist;
}

bool nd_api_watch_is_fresh(const struct nd_api_watch *w) {
        return w->synced && !w->relist && nd_clock_us() - w->heard_us < silence_us + 10 * ND_SECOND_US;
}

bool nd_api_watch_is_current(const struct nd_api_watch *w) {
        return w->synced && nd_clock_us() - w->current_us < w->settings.stale_us;
}
