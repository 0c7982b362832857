/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/cluster/namespace-fetch.h"

enum {
        OBJECT_BYTES = 8 << 20,
};

#define TIMEOUT_US (2 * UINT64_C(1000000))

struct errand {
        struct guard_daemon *guard;
        char *name;
        void (*done)(const struct nd_error *error, void *userdata);
        void *userdata;
};

static void on_answer(const struct nd_api_answer *answer, void *userdata) {
        nd_autoerror struct nd_error *error = nullptr;
        struct errand *errand = userdata;
        nd_autojson doc = nullptr;

        if (!answer->error)
                error = nd_json_parse(answer->body, answer->length, OBJECT_BYTES, &doc);
        /* the watch may have been faster, and then it knows better */
        if (!answer->error && !error && !guard_store_namespace(&errand->guard->store, errand->name))
                guard_store_put_namespace(&errand->guard->store, yyjson_doc_get_root(doc));
        errand->done(answer->error ? answer->error : error, errand->userdata);
        free(errand->name);
        free(errand);
}

void guard_namespace_fetch(struct guard_daemon *guard, const char *name, uint64_t share,
                           void (*done)(const struct nd_error *error, void *userdata), void *userdata) {
        struct errand *errand = nd_new(struct errand);
        nd_autotext path = ND_TEXT(4096);

        *errand = (struct errand) {.guard = guard, .name = nd_strdup(name), .done = done, .userdata = userdata};
        nd_text_add(&path, "/api/v1/namespaces/");
        nd_api_escape(&path, name);
        (void) nd_api_send(guard->api, &(struct nd_api_request) {.path = nd_text_get(&path),
                                                                 .timeout_us = TIMEOUT_US,
                                                                 .ceiling = OBJECT_BYTES,
                                                                 .share = share,
                                                                 .done = on_answer,
                                                                 .userdata = errand});
}
