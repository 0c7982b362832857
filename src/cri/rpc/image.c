/* SPDX-License-Identifier: Apache-2.0 */
/* image.c - runtime.v1.ImageService
 *
 * An image's ID is always the digest of its config: the kubelet compares PullImage's image_ref with
 * Image.id and with the status of containers. For an unknown image ImageStatus returns an empty
 * response and RemoveImage succeeds; only PullImage can fail. */
#include <cri.pb-c.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/json.h"
#include "cri/core/parts.h"
#include "cri/image/image-gc.h"
#include "cri/image/pull.h"
#include "cri/rpc/methods.h"
#include "cri/rpc/response.h"
#include "oci/config.h"
#include "oci/reference.h"
#include "oci/store.h"

/* ---- image messages ---- */

/* The message of one image (first member) and the data it points to. */
struct image_message {
        Runtime__V1__Image image;
        Runtime__V1__ImageSpec spec;
        Runtime__V1__Int64Value uid;
        struct nd_oci_user user;
        char id[ND_DIGEST_TEXT];
};

static void image_message_done(struct image_message *m) {
        nd_oci_user_done(&m->user);
}

/* The user in the image's config: a number or a name, never both; neither means root. */
static void fill_user(const struct nd_image *image, struct image_message *m) {
        nd_autoerror struct nd_error *error = nd_oci_user_parse(image->user, &m->user);

        if (error)
                return; /* reported when a container is created, not in a list */
        if (m->user.has_uid) {
                m->uid.value = m->user.uid;
                m->image.uid = &m->uid;
        } else if (m->user.user) {
                m->image.username = m->user.user;
        }
}

static void fill_image(const struct nd_image *image, struct image_message *m) {
        *m = (struct image_message) {.image = RUNTIME__V1__IMAGE__INIT,
                                     .spec = RUNTIME__V1__IMAGE_SPEC__INIT,
                                     .uid = RUNTIME__V1__INT64_VALUE__INIT};
        m->image.id = (char *) nd_digest_text(&image->id, m->id);
        m->image.repo_tags = image->tags.items;
        m->image.n_repo_tags = image->tags.count;
        m->image.repo_digests = image->digests.items;
        m->image.n_repo_digests = image->digests.count;
        /* the kubelet rejects an image of size 0 */
        m->image.size = image->size > 0 ? image->size : 1;
        m->image.pinned = image->pinned;
        m->spec.image = m->image.id;
        m->image.spec = &m->spec;
        fill_user(image, m);
}

/* ---- lists ---- */

struct list {
        nd_vector(struct image_message *) messages;
};

static void list_done(struct list *list) {
        nd_vector_each (message, &list->messages) {
                image_message_done(*message);
                free(*message);
        }
        nd_vector_done(&list->messages);
}

static void add_image(const struct nd_image *image, struct list *list) {
        struct image_message *message = nd_new(struct image_message);

        fill_image(image, message);
        nd_vector_push(&list->messages, message);
}

static const char *filter_of(const Runtime__V1__ImageFilter *filter) {
        return filter && filter->image && filter->image->image[0] ? filter->image->image : nullptr;
}

/* Collects all images, or the image named by a filter. An invalid filter matches nothing. */
static void collect(const struct cri_parts *parts, const char *filter, struct list *list) {
        const struct nd_image *image = nullptr;

        if (filter) {
                nd_ignore(nd_oci_store_find(parts->images, filter, &image));
                if (image)
                        add_image(image, list);
                return;
        }
        for (size_t at = 0; (image = nd_oci_store_next(parts->images, &at));)
                add_image(image, list);
}

static void handle_list(struct nd_grpc_call *call, const char *bytes, size_t length, void *userdata) {
        cri_response_autofree ProtobufCMessage *request =
                cri_response_decode(call, &runtime__v1__list_images_request__descriptor, bytes, length);
        Runtime__V1__ListImagesResponse answer = RUNTIME__V1__LIST_IMAGES_RESPONSE__INIT;
        nd_cleanup(list_done) struct list list = {};

        if (!request)
                return;
        collect(userdata, filter_of(((Runtime__V1__ListImagesRequest *) request)->filter), &list);
        answer.n_images = list.messages.count;
        /* each starts with its message */
        answer.images = (Runtime__V1__Image **) list.messages.items;
        cri_response_with(call, &answer.base);
}

static void handle_stream(struct nd_grpc_call *call, const char *bytes, size_t length, void *userdata) {
        enum { PER_MESSAGE = 64 };
        cri_response_autofree ProtobufCMessage *request =
                cri_response_decode(call, &runtime__v1__stream_images_request__descriptor, bytes, length);
        nd_cleanup(list_done) struct list list = {};

        if (!request)
                return;
        collect(userdata, filter_of(((Runtime__V1__StreamImagesRequest *) request)->filter), &list);
        for (size_t i = 0; i < list.messages.count; i += PER_MESSAGE) {
                Runtime__V1__StreamImagesResponse answer = RUNTIME__V1__STREAM_IMAGES_RESPONSE__INIT;
                size_t left = list.messages.count - i;

                answer.n_images = left < PER_MESSAGE ? left : PER_MESSAGE;
                answer.images = (Runtime__V1__Image **) list.messages.items + i;
                cri_response_send(call, &answer.base);
        }
        nd_grpc_call_finish(call, nullptr);
}

/* ---- one image ---- */

/* The info of a verbose ImageStatus: layers and config. */
static char *image_info(const struct nd_image *image) {
        nd_autofree struct nd_digest *chains = nd_calloc(image->layer_count, sizeof *chains);
        nd_autotext struct nd_text text = ND_TEXT(1 << 20);
        struct nd_json_out out = {.text = &text};
        char digest[ND_DIGEST_TEXT];

        nd_image_chains(image, chains);
        nd_json_open(&out, nullptr, '{');
        nd_json_open(&out, "layers", '[');
        for (size_t i = 0; i < image->layer_count; i++)
                nd_json_string(&out, nullptr, nd_digest_text(&chains[i], digest));
        nd_json_close(&out, ']');
        nd_json_string(&out, "user", image->user);
        if (image->artifact_type)
                nd_json_string(&out, "artifactType", image->artifact_type);
        nd_json_close(&out, '}');
        return nd_text_steal(&text);
}

/* True if a request names an image; otherwise finishes the call. */
static bool names_image(struct nd_grpc_call *call, const Runtime__V1__ImageSpec *spec) {
        if (spec && spec->image[0])
                return true;
        nd_grpc_call_finish(call, nd_error_new(ND_INVALID, 0, "the request names no image"));
        return false;
}

static void handle_status(struct nd_grpc_call *call, const char *bytes, size_t length, void *userdata) {
        cri_response_autofree ProtobufCMessage *request =
                cri_response_decode(call, &runtime__v1__image_status_request__descriptor, bytes, length);
        const Runtime__V1__ImageStatusRequest *r = (const Runtime__V1__ImageStatusRequest *) request;
        Runtime__V1__ImageStatusResponse answer = RUNTIME__V1__IMAGE_STATUS_RESPONSE__INIT;
        Runtime__V1__ImageStatusResponse__InfoEntry info = RUNTIME__V1__IMAGE_STATUS_RESPONSE__INFO_ENTRY__INIT;
        Runtime__V1__ImageStatusResponse__InfoEntry *infos[] = {&info};
        nd_autofree char *text = nullptr;
        struct cri_parts *parts = userdata;
        const struct nd_image *image = nullptr;
        struct nd_error *error;
        nd_cleanup(image_message_done) struct image_message message = {};

        if (!request || !names_image(call, r->image))
                return;
        error = nd_oci_store_find(parts->images, r->image->image, &image);
        if (error) {
                nd_grpc_call_finish(call, error);
                return;
        }
        if (image) {
                fill_image(image, &message);
                answer.image = &message.image;
                if (r->verbose) {
                        text = image_info(image);
                        info.key = (char *) "info";
                        info.value = text;
                        answer.n_info = 1;
                        answer.info = infos;
                }
        }
        cri_response_with(call, &answer.base);
}

/* A RemoveImage call that waits until the disk space is freed. */
struct removing {
        struct nd_grpc_call *call;
        struct cri_image_gc_wait *wait;
};

static void on_removed(void *userdata) {
        Runtime__V1__RemoveImageResponse answer = RUNTIME__V1__REMOVE_IMAGE_RESPONSE__INIT;
        nd_autofree struct removing *removing = userdata;

        nd_grpc_call_on_cancel(removing->call, nullptr, nullptr);
        cri_response_with(removing->call, &answer.base);
}

static void on_removing_cancelled(void *userdata) {
        nd_autofree struct removing *removing = userdata;

        cri_image_gc_wait_cancel(removing->wait);
        nd_grpc_call_finish(removing->call, nullptr);
}

static void handle_remove(struct nd_grpc_call *call, const char *bytes, size_t length, void *userdata) {
        cri_response_autofree ProtobufCMessage *request =
                cri_response_decode(call, &runtime__v1__remove_image_request__descriptor, bytes, length);
        const Runtime__V1__RemoveImageRequest *r = (const Runtime__V1__RemoveImageRequest *) request;
        const struct nd_image *image = nullptr;
        struct cri_parts *parts = userdata;
        struct removing *removing;
        struct nd_error *error;

        if (!request || !names_image(call, r->image))
                return;
        error = nd_oci_store_find(parts->images, r->image->image, &image);
        if (!error && image)
                error = nd_oci_store_remove(parts->images, &image->id);
        if (error) {
                nd_grpc_call_finish(call, error);
                return;
        }
        removing = nd_new(struct removing);
        removing->call = call;
        removing->wait = cri_image_gc_wait(parts->image_gc, on_removed, removing);
        nd_grpc_call_on_cancel(call, on_removing_cancelled, removing);
}

/* ---- filesystem ---- */

static void handle_fs_info(struct nd_grpc_call *call, const char *bytes, size_t length, void *userdata) {
        cri_response_autofree ProtobufCMessage *request =
                cri_response_decode(call, &runtime__v1__image_fs_info_request__descriptor, bytes, length);
        Runtime__V1__ImageFsInfoResponse answer = RUNTIME__V1__IMAGE_FS_INFO_RESPONSE__INIT;
        Runtime__V1__FilesystemUsage usage = RUNTIME__V1__FILESYSTEM_USAGE__INIT;
        Runtime__V1__FilesystemIdentifier id = RUNTIME__V1__FILESYSTEM_IDENTIFIER__INIT;
        Runtime__V1__UInt64Value used = RUNTIME__V1__UINT64_VALUE__INIT, inodes = RUNTIME__V1__UINT64_VALUE__INIT;
        struct cri_parts *parts = userdata;
        struct nd_oci_store_usage sum = nd_oci_store_usage(parts->images);

        if (!request)
                return;
        used.value = sum.bytes;
        inodes.value = sum.inodes;
        id.mountpoint = parts->config.images;
        usage.timestamp = (int64_t) nd_clock_wall_ns();
        usage.fs_id = &id;
        usage.used_bytes = &used; /* the kubelet panics without it */
        usage.inodes_used = &inodes;
        answer.n_image_filesystems = answer.n_container_filesystems = 1;
        answer.image_filesystems = answer.container_filesystems = (Runtime__V1__FilesystemUsage *[]) {&usage};
        cri_response_with(call, &answer.base);
}

/* ---- pulls ---- */

/* A call that waits for its image. */
struct waiting {
        struct nd_grpc_call *call;
        struct cri_pull_request *pending;
};

/* The kubelet matches the beginning of an unknown error's text, which appears in the pod's
 * events. */
static struct nd_error *for_kubelet(struct nd_error *error) {
        if (nd_error_code(error) == ND_UNAVAILABLE)
                return nd_error_recode(nd_error_wrap(error, "RegistryUnavailable"), ND_UNKNOWN);
        return error;
}

static void on_pulled(struct nd_error *error, const struct nd_strings *image_ids, void *userdata) {
        Runtime__V1__PullImageResponse answer = RUNTIME__V1__PULL_IMAGE_RESPONSE__INIT;
        struct waiting *waiting = userdata;
        struct nd_grpc_call *call = waiting->call;

        free(waiting);
        nd_grpc_call_on_cancel(call, nullptr, nullptr);
        if (error) {
                nd_grpc_call_finish(call, for_kubelet(error));
                return;
        }
        answer.image_ref = image_ids->items[0];
        cri_response_with(call, &answer.base);
}

static void on_cancel(void *userdata) {
        struct waiting *waiting = userdata;

        cri_pull_request_cancel(waiting->pending);
        nd_grpc_call_finish(waiting->call, nullptr);
        free(waiting);
}

static const char *text_or_null(const char *text) {
        return text && *text ? text : nullptr;
}

static void handle_pull(struct nd_grpc_call *call, const char *bytes, size_t length, void *userdata) {
        static const struct cri_pull_listener listener = {.end = on_pulled};
        cri_response_autofree ProtobufCMessage *request =
                cri_response_decode(call, &runtime__v1__pull_image_request__descriptor, bytes, length);
        const Runtime__V1__PullImageRequest *r = (const Runtime__V1__PullImageRequest *) request;
        struct cri_pull_credentials credentials = {};
        struct cri_parts *parts = userdata;
        struct waiting *waiting;
        struct nd_error *error;

        if (!request || !names_image(call, r->image))
                return;
        if (r->auth)
                credentials = (struct cri_pull_credentials) {.username = text_or_null(r->auth->username),
                                                             .password = text_or_null(r->auth->password),
                                                             .auth = text_or_null(r->auth->auth),
                                                             .server_address = text_or_null(r->auth->server_address),
                                                             .identity_token = text_or_null(r->auth->identity_token),
                                                             .registry_token = text_or_null(r->auth->registry_token)};
        waiting = nd_new(struct waiting);
        waiting->call = call;
        error = cri_puller_pull(parts->puller, r->image->image, r->auth ? &credentials : nullptr, &listener, waiting,
                                &waiting->pending);
        if (error) {
                free(waiting);
                nd_grpc_call_finish(call, error);
                return;
        }
        nd_grpc_call_on_cancel(call, on_cancel, waiting);
}

const struct nd_grpc_method cri_rpc_image_methods[] = {
        {"/runtime.v1.ImageService/ListImages", handle_list},
        {"/runtime.v1.ImageService/StreamImages", handle_stream},
        {"/runtime.v1.ImageService/ImageStatus", handle_status},
        {"/runtime.v1.ImageService/PullImage", handle_pull},
        {"/runtime.v1.ImageService/RemoveImage", handle_remove},
        {"/runtime.v1.ImageService/ImageFsInfo", handle_fs_info},
        {},
};
