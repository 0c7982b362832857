/* SPDX-License-Identifier: Apache-2.0 */
/* api-watch.h - lists and watches all objects of one kind */
#pragma once

#include "base/json.h"
#include "net/api-client.h"

struct nd_api_watch;

struct nd_api_watch_settings {
        const char *path; /* "/api/v1/namespaces"; the text must outlive the watch */
        /* Selectors, escaped: "fieldSelector=spec.nodeName%3Da"; must outlive the watch, too.
         * nullptr: all objects. */
        const char *query;
        unsigned page; /* objects per page; use few for large objects; 0: 500 */
        /* nd_api_watch_is_current() turns false after this time without input; 0: not used. */
        uint64_t stale_us;
        /* A list begins: an object without a put() until listed() no longer exists. */
        void (*begin)(void *userdata);
        /* New, changed, or listed again unchanged. */
        void (*put)(yyjson_val *object, void *userdata);
        void (*removed)(yyjson_val *object, void *userdata);
        void (*listed)(void *userdata);
        /* For the log: the watch retries by itself. */
        void (*trouble)(const struct nd_error *error, void *userdata);
        void *userdata;
};

struct nd_api_watch *nd_api_watch_new(struct nd_api *api, const struct nd_api_watch_settings *settings);
void nd_api_watch_free(struct nd_api_watch *watch);

/* Lists everything again, starting in the next loop iteration. */
void nd_api_watch_relist(struct nd_api_watch *watch);

bool nd_api_watch_is_synced(const struct nd_api_watch *watch); /* a list was completed once */
/* A list is running or comes next. */
bool nd_api_watch_is_listing(const struct nd_api_watch *watch);

/* Whether the API server sent something in the last stale_us, on the watch or in response to a
 * small list: a quiet cluster stays current, an unreachable one does not. */
bool nd_api_watch_is_current(const struct nd_api_watch *watch);

/* Whether the cache is at most 90 seconds old: the API server sent something on the watch, if only
 * the beginning of its response. */
bool nd_api_watch_is_fresh(const struct nd_api_watch *watch);
