/* SPDX-License-Identifier: Apache-2.0 */
/* node.c - nodens.v1.Node: RPCs for nodens' own programs beside the CRI */
#include <fcntl.h>
#include <nodens.pb-c.h>
#include <sys/stat.h>

#include "cri/core/parts.h"
#include "cri/image/image-gc.h"
#include "cri/image/pull.h"
#include "cri/rpc/methods.h"
#include "cri/rpc/response.h"
#include "oci/reference.h"
#include "oci/store.h"

/* ---- images ---- */

struct list {
        nd_vector(Nodens__V1__ImageEntry *) entries;
};

static bool uses(const struct cri_container *container, const struct nd_image *image) {
        struct nd_digest top = image->top ? nd_layers_entry_chain(image->top) : (struct nd_digest) {};

        nd_vector_each (volume, &container->mounted) {
                if (image->top && nd_digest_equal(volume, &top))
                        return true;
        }
        return nd_digest_equal(&container->image, &image->id);
}

/* Containers that were created from an image or have it as a volume, also exited ones: each keeps
 * its layers. */
static size_t count_users(const struct cri_parts *parts, const struct nd_image *image) {
        const struct nd_map_slot *slot;
        size_t count = 0;

        for (size_t at = 0; (slot = nd_map_next(&parts->pods.containers, &at));)
                count += uses(slot->value, image);
        return count;
}

static void add_image(const struct cri_parts *parts, const struct nd_image *image, struct list *list) {
        Nodens__V1__ImageEntry *entry = nd_new(Nodens__V1__ImageEntry);
        char id[ND_DIGEST_TEXT];

        nodens__v1__image_entry__init(entry);
        entry->id = nd_strdup(nd_digest_text(&image->id, id));
        entry->names = image->tags.items;
        entry->n_names = image->tags.count;
        entry->digests = image->digests.items;
        entry->n_digests = image->digests.count;
        entry->size = image->size;
        entry->pinned = image->pinned;
        entry->containers = (uint32_t) count_users(parts, image);
        nd_vector_push(&list->entries, entry);
}

static void list_done(struct list *list) {
        nd_vector_each (entry, &list->entries) {
                free((*entry)->id);
                free(*entry);
        }
        nd_vector_done(&list->entries);
}

static void handle_images(struct nd_grpc_call *call, [[maybe_unused]] const char *bytes, [[maybe_unused]] size_t length,
                          void *userdata) {
        Nodens__V1__ImagesAnswer answer = NODENS__V1__IMAGES_ANSWER__INIT;
        struct cri_parts *parts = userdata;
        const struct nd_image *image;
        struct list list = {};

        for (size_t at = 0; (image = nd_oci_store_next(parts->images, &at));)
                add_image(parts, image, &list);
        answer.n_images = list.entries.count;
        answer.images = list.entries.items;
        cri_response_with(call, &answer.base);
        list_done(&list);
}

/* ---- removal of images ---- */

/* A RemoveImage call that waits until the disk space is freed. */
struct removing {
        struct nd_grpc_call *call;
        struct cri_image_gc_wait *wait;
        struct nd_strings names;
        char id[ND_DIGEST_TEXT];
        uint64_t size;
        bool removed;
};

static void removing_free(struct removing *removing) {
        nd_strings_done(&removing->names);
        free(removing);
}

static void on_removed(void *userdata) {
        Nodens__V1__RemoveImageAnswer answer = NODENS__V1__REMOVE_IMAGE_ANSWER__INIT;
        struct removing *removing = userdata;

        nd_grpc_call_on_cancel(removing->call, nullptr, nullptr);
        answer.id = removing->id;
        answer.names = removing->names.items;
        answer.n_names = removing->names.count;
        answer.removed = removing->removed;
        answer.size = removing->size;
        cri_response_with(removing->call, &answer.base);
        removing_free(removing);
}

static void on_removing_cancelled(void *userdata) {
        struct removing *removing = userdata;

        cri_image_gc_wait_cancel(removing->wait);
        nd_grpc_call_finish(removing->call, nullptr);
        removing_free(removing);
}

/* The tag that a text means, if it means one of the image's. */
static const char *tag_of(const struct nd_image *image, const char *text) {
        nd_cleanup(nd_reference_done) struct nd_reference reference = {};
        nd_autoerror struct nd_error *error = nd_reference_parse(text, &reference);
        nd_autofree char *name = error ? nullptr : nd_reference_text(&reference);

        nd_vector_each (tag, &image->tags) {
                if (name && nd_streq(*tag, name))
                        return *tag;
        }
        return nullptr;
}

/* Removes the named tag if the image has others, else the image. Fills in what was removed. */
static struct nd_error *remove_image(struct cri_parts *parts, const char *text, bool force, struct removing *removing) {
        const struct nd_image *image = nullptr;
        const char *tag;
        size_t users;

        nd_try(nd_oci_store_find(parts->images, text, &image));
        if (!image)
                return nd_error_new(ND_NOT_FOUND, 0, "no image named '%s'; see 'nodens images'", text);
        (void) nd_digest_text(&image->id, removing->id);
        removing->size = image->size;
        tag = tag_of(image, text);
        if (tag && image->tags.count > 1) {
                nd_strings_add(&removing->names, tag);
                return nd_oci_store_untag(parts->images, tag);
        }
        users = count_users(parts, image);
        if (users > 0 && !force)
                return nd_error_new(ND_PRECONDITION, 0,
                                    "image '%s' is used by %zu container%s; remove %s first, or use --force", text, users,
                                    users == 1 ? "" : "s", users == 1 ? "it" : "them");
        nd_vector_each (name, &image->tags)
                nd_strings_add(&removing->names, *name);
        nd_vector_each (name, &image->digests)
                nd_strings_add(&removing->names, *name);
        removing->removed = true;
        return nd_oci_store_remove(parts->images, &image->id);
}

static void handle_remove_image(struct nd_grpc_call *call, const char *bytes, size_t length, void *userdata) {
        cri_response_autofree ProtobufCMessage *request =
                cri_response_decode(call, &nodens__v1__remove_image_request__descriptor, bytes, length);
        const Nodens__V1__RemoveImageRequest *r = (const Nodens__V1__RemoveImageRequest *) request;
        struct cri_parts *parts = userdata;
        struct removing *removing;
        struct nd_error *error;

        if (!request)
                return;
        removing = nd_new(struct removing);
        error = remove_image(parts, r->image, r->force, removing);
        if (error) {
                removing_free(removing);
                nd_grpc_call_finish(call, error);
                return;
        }
        removing->call = call;
        removing->wait = cri_image_gc_wait(parts->image_gc, on_removed, removing);
        nd_grpc_call_on_cancel(call, on_removing_cancelled, removing);
}

/* ---- pull and import ---- */

/* A caller that receives the progress of a pull. */
struct cri_event_follower {
        struct nd_grpc_call *call;
        struct cri_parts *parts;
        struct cri_pull_request *pending;
};

static void on_layer(const struct cri_pull_event *event, void *userdata) {
        enum { QUEUED_MOST = 64 << 10 };
        Nodens__V1__LayerProgress layer = NODENS__V1__LAYER_PROGRESS__INIT;
        Nodens__V1__PullProgress progress = NODENS__V1__PULL_PROGRESS__INIT;
        struct cri_event_follower *follower = userdata;
        char digest[ND_DIGEST_TEXT];

        /* A slow reader misses some progress, but never the result. */
        if (nd_grpc_call_queued(follower->call) > QUEUED_MOST)
                return;
        layer.digest = (char *) nd_digest_text(&event->digest, digest);
        layer.size = event->size;
        layer.done = event->done;
        layer.state = (char *) event->state;
        progress.n_layers = 1;
        progress.layers = (Nodens__V1__LayerProgress *[]) {&layer};
        cri_response_send(follower->call, &progress.base);
}

/* Sends the IDs and names of the images that were pulled. */
static void send_images(struct cri_event_follower *follower, const struct nd_strings *image_ids) {
        Nodens__V1__PullProgress progress = NODENS__V1__PULL_PROGRESS__INIT;
        struct list list = {};

        nd_vector_each (id, image_ids) {
                const struct nd_image *image = nullptr;

                /* The ID is sent anyway. */
                nd_ignore(nd_oci_store_find(follower->parts->images, *id, &image));
                if (image)
                        add_image(follower->parts, image, &list);
        }
        progress.n_image_ids = image_ids->count;
        progress.image_ids = image_ids->items;
        progress.n_images = list.entries.count;
        progress.images = list.entries.items;
        cri_response_send(follower->call, &progress.base);
        list_done(&list);
}

static void on_end(struct nd_error *error, const struct nd_strings *image_ids, void *userdata) {
        nd_autofree struct cri_event_follower *follower = userdata;

        nd_grpc_call_on_cancel(follower->call, nullptr, nullptr);
        if (!error)
                send_images(follower, image_ids);
        nd_grpc_call_finish(follower->call, error);
}

static void on_cancel(void *userdata) {
        struct cri_event_follower *follower = userdata;

        cri_pull_request_cancel(follower->pending);
        nd_grpc_call_finish(follower->call, nullptr);
        free(follower);
}

static const struct cri_pull_listener listener = {.layer = on_layer, .end = on_end};

/* Waits for the pull, or finishes the call with the error. */
static void follow(struct nd_grpc_call *call, struct nd_error *error, struct cri_event_follower *follower) {
        if (error) {
                free(follower);
                nd_grpc_call_finish(call, error);
                return;
        }
        nd_grpc_call_on_cancel(call, on_cancel, follower);
}

static struct cri_event_follower *new_follower(struct nd_grpc_call *call, struct cri_parts *parts) {
        struct cri_event_follower *follower = nd_new(struct cri_event_follower);

        follower->call = call;
        follower->parts = parts;
        return follower;
}

static void handle_pull(struct nd_grpc_call *call, const char *bytes, size_t length, void *userdata) {
        cri_response_autofree ProtobufCMessage *request =
                cri_response_decode(call, &nodens__v1__pull_request__descriptor, bytes, length);
        const Nodens__V1__PullRequest *r = (const Nodens__V1__PullRequest *) request;
        struct cri_parts *parts = userdata;
        struct cri_event_follower *follower;

        if (!request)
                return;
        follower = new_follower(call, parts);
        follow(call,
               cri_puller_pull(parts->puller, r->reference,
                               &(struct cri_pull_credentials) {.username = r->username, .password = r->password}, &listener,
                               follower, &follower->pending),
               follower);
}

static struct nd_error *open_archive(const char *path, int *ret_fd) {
        nd_autoclose int fd = -EBADF;
        struct stat st;

        if (path[0] != '/')
                return nd_error_new(ND_INVALID, 0, "'%s' is not an absolute path", path);
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
        if (fd < 0 || fstat(fd, &st) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "open '%s'", path);
        if (!S_ISREG(st.st_mode))
                return nd_error_new(ND_INVALID, 0, "'%s' is not a regular file", path);
        *ret_fd = nd_take_fd(fd);
        return nullptr;
}

static void handle_import(struct nd_grpc_call *call, const char *bytes, size_t length, void *userdata) {
        cri_response_autofree ProtobufCMessage *request =
                cri_response_decode(call, &nodens__v1__import_request__descriptor, bytes, length);
        const Nodens__V1__ImportRequest *r = (const Nodens__V1__ImportRequest *) request;
        struct cri_parts *parts = userdata;
        struct cri_event_follower *follower;
        struct nd_error *error;
        int archive = -EBADF;

        if (!request)
                return;
        follower = new_follower(call, parts);
        error = open_archive(r->path, &archive);
        if (!error)
                error = cri_puller_import(parts->puller, r->path, archive, &listener, follower, &follower->pending);
        follow(call, error, follower);
}

const struct nd_grpc_method cri_rpc_node_methods[] = {
        {"/nodens.v1.Node/Images", handle_images},
        {"/nodens.v1.Node/Pull", handle_pull},
        {"/nodens.v1.Node/Import", handle_import},
        {"/nodens.v1.Node/RemoveImage", handle_remove_image},
        {},
};
