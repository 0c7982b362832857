/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/image/pull-event.h"

#include "base/json-member.h"

void cri_pull_event_done(struct cri_pull_event *event) {
        nd_vector_each (image, &event->images) {
                nd_strings_done(&image->names);
        }
        nd_vector_done(&event->images);
        free(event->message);
        *event = (struct cri_pull_event) {};
}

/* A digest that may be absent or empty. */
static struct nd_error *take_digest(yyjson_val *object, const char *key, struct nd_digest *ret) {
        const char *text;

        nd_try(nd_json_member_text(object, key, ND_DIGEST_TEXT, &text));
        return text && *text ? nd_error_wrap(nd_digest_parse(text, ret), "%s", key) : nullptr;
}

static struct nd_error *need_digest(yyjson_val *object, const char *key, struct nd_digest *ret) {
        nd_try(take_digest(object, key, ret));
        return nd_digest_is_set(ret) ? nullptr : nd_error_new(ND_INVALID, 0, "'%s' is missing", key);
}

static struct nd_error *take_resolved(yyjson_val *root, struct cri_pull_event *event) {
        return need_digest(root, "digest", &event->digest);
}

static struct nd_error *take_layer(yyjson_val *root, struct cri_pull_event *event) {
        static const char *const states[] = {"waiting", "fetching", "unpacking", "exists", "done"};
        const char *state;

        nd_try(need_digest(root, "digest", &event->digest));
        nd_try(nd_json_member_number(root, "size", UINT64_MAX, &event->size));
        nd_try(nd_json_member_number(root, "done", UINT64_MAX, &event->done));
        nd_try(nd_json_member_text(root, "state", 16, &state));
        for (size_t i = 0; state && i < nd_count_of(states); i++)
                if (nd_streq(states[i], state))
                        event->state = states[i];
        return event->state ? nullptr : nd_error_new(ND_INVALID, 0, "unknown state of a layer");
}

static struct nd_error *take_image(yyjson_val *object, struct cri_pull_event *event) {
        struct cri_pull_image *image;

        /* first, so that the event owns the strings */
        nd_vector_push(&event->images, (struct cri_pull_image) {});
        image = &event->images.items[event->images.count - 1];
        nd_try(need_digest(object, "manifestDigest", &image->manifest));
        nd_try(take_digest(object, "indexDigest", &image->index));
        nd_try(need_digest(object, "configDigest", &image->config));
        return nd_json_member_strings(object, "names", 100, 1024, &image->names);
}

static struct nd_error *take_done(yyjson_val *root, struct cri_pull_event *event) {
        yyjson_val *images, *image;
        yyjson_arr_iter each;

        nd_try(nd_json_member_array(root, "images", PULL_IMAGES, &images));
        each = yyjson_arr_iter_with(images);
        while ((image = yyjson_arr_iter_next(&each)))
                nd_try(take_image(image, event));
        return event->images.count > 0 ? nullptr : nd_error_new(ND_INVALID, 0, "event 'done' has no image");
}

static struct nd_error *take_error(yyjson_val *root, struct cri_pull_event *event) {
        const char *message;
        uint64_t code = 0;

        nd_try(nd_json_member_number(root, "code", 16, &code));
        nd_try(nd_json_member_text(root, "message", PULL_MESSAGE, &message));
        if (code == 0 || !message)
                return nd_error_new(ND_INVALID, 0, "event 'error' has no valid code or message");
        event->code = (enum nd_error_code) code;
        event->message = nd_strdup(message);
        return nullptr;
}

static struct nd_error *take_unpacked(yyjson_val *root, struct cri_pull_event *event) {
        struct nd_layer *layer = &event->layer.layer;

        nd_try(need_digest(root, "chain", &event->layer.chain));
        nd_try(need_digest(root, "diffId", &layer->diff_id));
        nd_try(take_digest(root, "parent", &layer->parent));
        nd_try(nd_json_member_number(root, "size", ND_LAYER_SIZE, &layer->size));
        return nd_json_member_number(root, "inodes", ND_LAYER_SIZE, &layer->inodes);
}

static struct nd_error *take_nothing([[maybe_unused]] yyjson_val *root, [[maybe_unused]] struct cri_pull_event *event) {
        return nullptr;
}

struct nd_error *cri_pull_event_parse(enum cri_pull_party party, const char *line, size_t length, struct cri_pull_event *ret) {
        static const struct {
                const char *name;
                bool of[PULL_PARTIES];
                enum cri_pull_event_kind kind;
                struct nd_error *(*take)(yyjson_val *root, struct cri_pull_event *event);
        } kinds[] = {{"resolved", {[PULL_FETCHER] = true}, PULL_RESOLVED, take_resolved},
                     {"layer", {[PULL_FETCHER] = true}, PULL_LAYER, take_layer},
                     {"done", {[PULL_FETCHER] = true}, PULL_DONE, take_done},
                     {"unpacked", {[PULL_UNPACKER] = true}, PULL_UNPACKED, take_unpacked},
                     {"synced", {[PULL_UNPACKER] = true}, PULL_SYNCED, take_nothing},
                     {"error", {[PULL_FETCHER] = true, [PULL_UNPACKER] = true}, PULL_ERROR, take_error}};
        nd_cleanup(cri_pull_event_done) struct cri_pull_event event = {};
        nd_autojson yyjson_doc *doc = nullptr;
        yyjson_val *root;
        const char *name;

        nd_try(nd_json_parse(line, length, PULL_LINE, &doc));
        root = yyjson_doc_get_root(doc);
        if (!yyjson_is_obj(root))
                return nd_error_new(ND_INVALID, 0, "the line is not an object");
        nd_try(nd_json_member_text(root, "event", 16, &name));
        for (size_t i = 0; name && i < nd_count_of(kinds); i++)
                if (kinds[i].of[party] && nd_streq(kinds[i].name, name)) {
                        event.kind = kinds[i].kind;
                        nd_try(kinds[i].take(root, &event));
                        *ret = nd_take(event, (struct cri_pull_event) {});
                        return nullptr;
                }
        return nd_error_new(ND_INVALID, 0, "unknown event");
}
