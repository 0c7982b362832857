/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/cluster/namespace-fetch.h"

#include "base/clock.h"
#include "base/json.h"

enum {
        OBJECT_BYTES = 8 << 20,
};

static constexpr uint64_t fetch_timeout_us = 2 * ND_SECOND_US;

struct pending_fetch {
        struct guard_store *store;
        char *name;
        void (*done)(const struct nd_error *error, void *userdata);
        void *userdata;
};

static void on_answer(const struct nd_api_answer *answer, void *userdata) {
        nd_autoerror struct nd_error *error = nullptr;
        struct pending_fetch *fetch = userdata;
        nd_autojson yyjson_doc *doc = nullptr;

        if (!answer->error)
                error = nd_json_parse(answer->body, answer->length, OBJECT_BYTES, &doc);
        /* the watch may have been faster; then its version is newer */
        if (!answer->error && !error && !guard_store_namespace(fetch->store, fetch->name))
                guard_store_put_namespace(fetch->store, yyjson_doc_get_root(doc));
        fetch->done(answer->error ? answer->error : error, fetch->userdata);
        free(fetch->name);
        free(fetch);
}

void guard_namespace_fetch(struct nd_api *api, struct guard_store *store, const char *name, uint64_t share,
                           void (*done)(const struct nd_error *error, void *userdata), void *userdata) {
        struct pending_fetch *fetch = nd_new(struct pending_fetch);
        nd_autotext struct nd_text path = ND_TEXT(4096);

        *fetch = (struct pending_fetch) {.store = store, .name = nd_strdup(name), .done = done, .userdata = userdata};
        nd_text_add(&path, "/api/v1/namespaces/");
        nd_api_escape(&path, name);
        (void) nd_api_send(api, &(struct nd_api_request) {.path = nd_text_get(&path),
                                                          .timeout_us = fetch_timeout_us,
                                                          .ceiling = OBJECT_BYTES,
                                                          .share = share,
                                                          .done = on_answer,
                                                          .userdata = fetch});
}
