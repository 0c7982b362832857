/* SPDX-License-Identifier: Apache-2.0 */
/* source.c - see audit.h
 *
 * Theory of operation
 *   A cluster is read list by list, in pages, and each page is freed before the next one is
 *   requested: memory does not grow with the cluster. Files are parsed once and kept. The server is
 *   not trusted to end: pages, bytes of a page and the time of the whole run are limited. */
#include <string.h>

#include "base/clock.h"
#include "cli/audit/audit.h"
#include "cli/core/api-ask.h"
#include "cli/core/input.h"
#include "net/api-objects.h"

enum {
        TRIES = 4,
        RETRY_SECONDS = 5, /* longest wait for a server that is busy */
        PATH_BYTES = 64 << 10,
        LIST_DEPTH = 3, /* lists in lists */
};

static constexpr uint64_t request_timeout_us = 60 * ND_SECOND_US;

struct cli_audit_source {
        sd_event *loop;
        struct nd_api *api; /* nullptr: files */
        uint64_t until_us;
        nd_vector(yyjson_doc *) docs;
};

void cli_audit_source_free(struct cli_audit_source *source) {
        if (!source)
                return;
        nd_api_free(source->api);
        sd_event_unref(source->loop);
        nd_vector_each (doc, &source->docs)
                yyjson_doc_free(*doc);
        nd_vector_done(&source->docs);
        free(source);
}

static void source_done(struct cli_audit_source **source) {
        cli_audit_source_free(*source);
}

/* ---- requests ---- */

static struct nd_error *time_left(const struct cli_audit_source *source, uint64_t *ret) {
        uint64_t now = nd_clock_us();

        if (now >= source->until_us)
                return nd_error_new(ND_DEADLINE, 0, "the time of --timeout is over");
        *ret = source->until_us - now < request_timeout_us ? source->until_us - now : request_timeout_us;
        return nullptr;
}

static bool is_busy(const struct cli_api_reply *reply) {
        return reply->status == 429 || reply->status == 503;
}

static void pause_for(const struct cli_api_reply *reply) {
        (void) sleep(reply->retry_after_s > 0 && reply->retry_after_s < RETRY_SECONDS ? (unsigned) reply->retry_after_s : 1);
}

struct nd_error *cli_audit_source_ask(struct cli_audit_source *source, const char *method, const char *path,
                                      const char *content_type, const char *body, long *ret_status, yyjson_doc **ret) {
        struct nd_api_request request = {
                .method = method, .path = path, .body = body, .content_type = content_type, .ceiling = ND_API_PAGE_BYTES};
        struct cli_api_reply reply = {};

        for (unsigned i = 0; i < TRIES; i++) {
                nd_error_free(nd_take_ptr(reply.error));
                nd_try(nd_error_wrap(time_left(source, &request.timeout_us), "%s", path));
                nd_try(nd_error_wrap(cli_api_ask(source->api, &request, &reply), "%s", path));
                if (!is_busy(&reply))
                        break;
                pause_for(&reply);
        }
        if (ret_status)
                *ret_status = reply.status;
        if (reply.error)
                return nd_error_wrap(reply.error, "%s", path);
        *ret = reply.doc;
        return nullptr;
}

/* ---- lists of a cluster ---- */

struct paging {
        struct cli_audit_source *source;
        enum nd_audit_kind kind;
        char *continuation; /* of the next page; nullptr = the first or none */
        unsigned pages;
};

static struct nd_error *read_page(struct paging *paging, yyjson_doc **ret, long *ret_status) {
        nd_autotext struct nd_text path = ND_TEXT(PATH_BYTES);
        const char *list = nd_audit_resources[paging->kind].path;

        nd_text_addf(&path, "%s?limit=%d", list, AUDIT_PAGE);
        if (paging->continuation) {
                nd_text_add(&path, "&continue=");
                nd_api_escape(&path, paging->continuation);
        }
        if (path.overflow || ++paging->pages > AUDIT_PAGES)
                return nd_error_new(ND_EXHAUSTED, 0, "%s: more than %d pages", list, AUDIT_PAGES);
        return cli_audit_source_ask(paging->source, nullptr, nd_text_get(&path), nullptr, nullptr, ret_status, ret);
}

/* A server that repeats a token would never end. */
static struct nd_error *turn_page(struct paging *paging, yyjson_val *root) {
        yyjson_val *more = yyjson_obj_get(yyjson_obj_get(root, "metadata"), "continue");
        char *next = yyjson_get_len(more) > 0 ? nd_strdup(yyjson_get_str(more)) : nullptr;
        bool repeated = next && paging->continuation && nd_streq(next, paging->continuation);

        free(paging->continuation);
        paging->continuation = next;
        if (repeated)
                return nd_error_new(ND_INVALID, 0, "%s: the server repeats a page", nd_audit_resources[paging->kind].path);
        return nullptr;
}

static void take_items(yyjson_val *items, void (*take)(yyjson_val *object, void *userdata), void *userdata) {
        yyjson_arr_iter iter = yyjson_arr_iter_with(items);

        for (yyjson_val *item; (item = yyjson_arr_iter_next(&iter));)
                take(item, userdata);
}

static struct nd_error *read_list(struct paging *paging, void (*take)(yyjson_val *object, void *userdata), void *userdata,
                                  bool *ret_exists) {
        do {
                nd_autojson yyjson_doc *doc = nullptr;
                long status = 0;
                struct nd_error *error = read_page(paging, &doc, &status);

                if (error && status == 404 && nd_audit_resources[paging->kind].optional) {
                        nd_error_free(error);
                        *ret_exists = false;
                        return nullptr;
                }
                nd_try(error);
                take_items(yyjson_obj_get(yyjson_doc_get_root(doc), "items"), take, userdata);
                nd_try(turn_page(paging, yyjson_doc_get_root(doc)));
        } while (paging->continuation);
        *ret_exists = true;
        return nullptr;
}

/* ---- files ---- */

/* A walk through the objects of files. */
struct walk {
        enum nd_audit_kind kind;
        void (*take)(yyjson_val *object, void *userdata);
        void *userdata;
        size_t found;
};

/* Items of a List have a kind, those of a PodList have not. */
static void walk_list(struct walk *walk, yyjson_val *object, unsigned depth) {
        nd_autofree char *kind = nd_strdup(nd_json_text(object, "kind"));
        yyjson_arr_iter iter = yyjson_arr_iter_with(yyjson_obj_get(object, "items"));
        enum nd_audit_kind items;

        kind[strlen(kind) - strlen("List")] = '\0';
        items = nd_audit_kind_of(nd_json_text(object, "apiVersion"), kind);
        for (yyjson_val *item; (item = yyjson_arr_iter_next(&iter));) {
                const char *own = nd_json_text(item, "kind");
                size_t length = strlen(own);
                bool list = length >= 4 && nd_streq(own + length - 4, "List");

                if (list && depth < LIST_DEPTH) {
                        walk_list(walk, item, depth + 1);
                } else if ((*own ? nd_audit_kind_of(nd_json_text(item, "apiVersion"), own) : items) == walk->kind) {
                        walk->found++;
                        walk->take(item, walk->userdata);
                }
        }
}

static void walk_doc(struct walk *walk, yyjson_val *root) {
        const char *kind = nd_json_text(root, "kind");
        size_t length = strlen(kind);

        if (length >= 4 && nd_streq(kind + length - 4, "List")) {
                walk_list(walk, root, 0);
        } else if (nd_audit_kind_of(nd_json_text(root, "apiVersion"), kind) == walk->kind) {
                walk->found++;
                walk->take(root, walk->userdata);
        }
}

struct nd_error *cli_audit_source_each(struct cli_audit_source *source, enum nd_audit_kind kind,
                                       void (*take)(yyjson_val *object, void *userdata), void *userdata, bool *ret_exists) {
        struct walk walk = {.kind = kind, .take = take, .userdata = userdata};
        struct paging paging = {.source = source, .kind = kind};
        struct nd_error *error;

        if (source->api) {
                error = read_list(&paging, take, userdata, ret_exists);
                free(paging.continuation);
                return error;
        }
        nd_vector_each (doc, &source->docs)
                walk_doc(&walk, yyjson_doc_get_root(*doc));
        *ret_exists = walk.found > 0;
        return nullptr;
}

/* ---- opening ---- */

static struct nd_error *read_files(struct cli_audit_source *source, char **files, int count) {
        size_t total = 0;

        for (int i = 0; i < count; i++) {
                nd_autofree char *bytes = nullptr;
                yyjson_doc *doc = nullptr;
                size_t length = 0;

                nd_try(cli_input_read(files[i], AUDIT_BYTES, &bytes, &length));
                total += length;
                if (total > AUDIT_TOTAL)
                        return nd_error_new(ND_EXHAUSTED, 0, "more than %d bytes in all files", AUDIT_TOTAL);
                nd_try(nd_error_wrap(nd_json_parse(bytes ? bytes : "", length, AUDIT_BYTES, &doc), "%s", files[i]));
                nd_vector_push(&source->docs, doc);
        }
        return nullptr;
}

struct nd_error *cli_audit_source_open(const struct cli_audit_place *place, struct cli_audit_source **ret) {
        nd_cleanup(source_done) struct cli_audit_source *source = nd_new(struct cli_audit_source);
        nd_cleanup(nd_kubeconfig_done) struct nd_kubeconfig kubeconfig = {};
        int r;

        source->until_us = nd_clock_us() + place->timeout_s * ND_SECOND_US;
        if (place->file_count > 0) {
                nd_try(read_files(source, place->files, place->file_count));
        } else {
                r = sd_event_new(&source->loop);
                if (r < 0)
                        return nd_error_new(ND_INTERNAL, -r, "create an event loop");
                nd_try(nd_kubeconfig_find(place->kubeconfig, &kubeconfig));
                nd_try(nd_api_new(source->loop, &kubeconfig, &source->api));
        }
        *ret = nd_take_ptr(source);
        return nullptr;
}
