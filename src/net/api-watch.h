/* SPDX-License-Identifier: Apache-2.0 */
/* api-watch.h - all objects of a kind, and what happens to them */
#pragma once

#include "base/json.h"
#include "net/api-client.h"

struct nd_api_watch;

struct nd_api_watch_settings {
        const char *path;  /* "/api/v1/namespaces"; the text must outlive the watch */
        unsigned page;     /* objects per answer of a list; large objects want few; 0: 500 */
        uint64_t stale_us; /* after which nd_api_watch_is_current() ends where nothing is heard; 0: it is not asked for */
        /* A list begins: what is not put until listed() is not there any more. */
        void (*begin)(void *userdata);
        void (*put)(yyjson_val *object, void *userdata); /* new or changed, or merely listed again */
        void (*removed)(yyjson_val *object, void *userdata);
        void (*listed)(void *userdata);
        void (*trouble)(const struct nd_error *error, void *userdata); /* for the log: it goes on by itself */
        void *userdata;
};

struct nd_api_watch *nd_api_watch_new(struct nd_api *api, const struct nd_api_watch_settings *settings);
void nd_api_watch_free(struct nd_api_watch *watch);

/* Lists everything again, from the next turn of the loop on. */
void nd_api_watch_relist(struct nd_api_watch *watch);

bool nd_api_watch_is_synced(const struct nd_api_watch *watch);  /* was listed once */
bool nd_api_watch_is_listing(const struct nd_api_watch *watch); /* is being listed, or will be next */

/* Whether the API server was heard in the last stale_us, on the watch or by a small list that was answered beside it: a quiet cluster stays
 * current, one that cannot be reached does not. */
bool nd_api_watch_is_current(const struct nd_api_watch *watch);

/* What was told is not older than a minute and a half: the watch stands, and the API server was heard on it. */
bool nd_api_watch_is_fresh(const struct nd_api_watch *watch);
