/* SPDX-License-Identifier: Apache-2.0 */
/* image-gc.c - see image-gc.h
 *
 * Theory of operation
 *   The store collects unused layers and blobs and renames them into its trash, immediately and
 *   durably; emptying the trash may take long. One child at a time runs rm(1) on the next directory
 *   there, at low priority; the daemon itself never walks a tree. While an image is being pulled,
 *   the store collects nothing; the end of every pull wakes the collector again. Trash left by a
 *   killed daemon is found at the next start. The children of a killed helper may still write until
 *   they exit: a failed removal is retried after a second, a few times, and then only at the next
 *   wake-up.
 *   Waiters are notified when nothing is left to do for now: the kubelet measures the disk right
 *   after it has removed images, and evicts pods if that freed no space.
 * Owns       the child, and the list of waiters. */
#include "cri/image/image-gc.h"

#include "base/clock.h"
#include "base/log.h"
#include "cri/core/pod-table.h"
#include "oci/store.h"
#include "sys/child.h"

static constexpr uint64_t deadline_us = 600 * ND_SECOND_US;
static constexpr uint64_t pause_us = ND_SECOND_US;

enum {
        TRIES = 4, /* attempts, with a pause between them, before a warning is logged */
};

struct cri_image_gc_wait {
        struct cri_image_gc *image_gc;
        struct cri_image_gc_wait *next;
        cri_image_gc_callback done;
        void *userdata;
};

struct cri_image_gc {
        sd_event *loop;
        struct nd_oci_store *store;
        const struct cri_pod_table *pods;
        /* deferred to the end of the loop iteration: many wake-ups, one collection */
        sd_event_source *later;
        sd_event_source *again; /* retry timer */
        unsigned failures;      /* consecutive failures */
        struct nd_child *child;
        char *path; /* being removed */
        struct cri_image_gc_wait *waits;
};

static void empty_trash(struct cri_image_gc *image_gc);

static bool is_at_rest(const struct cri_image_gc *image_gc) {
        int later = SD_EVENT_OFF, again = SD_EVENT_OFF;

        (void) sd_event_source_get_enabled(image_gc->later, &later);
        (void) sd_event_source_get_enabled(image_gc->again, &again);
        return !image_gc->child && later == SD_EVENT_OFF && again == SD_EVENT_OFF;
}

/* A callback may wake the collector, wait again, or cancel another wait. */
static void tell_waits(struct cri_image_gc *image_gc) {
        while (image_gc->waits && is_at_rest(image_gc)) {
                struct cri_image_gc_wait *first = image_gc->waits, wait = *first;

                image_gc->waits = wait.next;
                free(first);
                wait.done(wait.userdata);
        }
}

static bool try_again(struct cri_image_gc *image_gc) {
        if (++image_gc->failures < TRIES && sd_event_source_set_time_relative(image_gc->again, pause_us) >= 0 &&
            sd_event_source_set_enabled(image_gc->again, SD_EVENT_ONESHOT) >= 0)
                return true;
        image_gc->failures = 0;
        return false;
}

static void on_child(struct nd_child_result *result, void *userdata) {
        struct cri_image_gc *image_gc = userdata;
        nd_autoerror struct nd_error *error = nd_child_result_error(result, "rm");
        nd_autofree char *path = nd_take_ptr(image_gc->path);

        image_gc->child = nullptr;
        nd_oci_store_trash_done(image_gc->store, path, !error);
        if (!error) {
                image_gc->failures = 0;
                empty_trash(image_gc);
        } else if (!try_again(image_gc)) {
                nd_log(ND_LOG_WARNING, "cannot remove trash of the image store", nd_field("path", path),
                       nd_field("error", nd_error_text(error)));
        }
        tell_waits(image_gc);
}

static struct nd_error *start_rm(struct cri_image_gc *image_gc) {
        const char *const argv[] = {"nice", "rm", "-rf", "--one-file-system", "--", image_gc->path, nullptr};

        return nd_child_start(image_gc->loop,
                              &(struct nd_child_plan) {.argv = argv, .deadline_us = deadline_us, .output_ceiling = 4096},
                              on_child, image_gc, &image_gc->child);
}

static void empty_trash(struct cri_image_gc *image_gc) {
        nd_autoerror struct nd_error *error = nullptr;

        if (image_gc->child)
                return;
        error = nd_oci_store_trash_take(image_gc->store, &image_gc->path);
        if (!error && image_gc->path)
                error = start_rm(image_gc);
        if (!error)
                return;
        nd_log(ND_LOG_WARNING, "cannot empty the image store's trash", nd_field("error", nd_error_text(error)));
        if (image_gc->path)
                nd_oci_store_trash_done(image_gc->store, image_gc->path, false);
        free(nd_take_ptr(image_gc->path));
}

/* A container uses its image's config, and its topmost layer with all layers below. */
static bool used_by_container(const struct nd_digest *digest, void *userdata) {
        const struct nd_map *used = userdata;
        char text[ND_DIGEST_TEXT];

        return nd_map_has(used, nd_digest_text(digest, text));
}

/* Collects the digests in use once, before the store asks for each layer: not layers times
 * containers. */
static void collect_used(const struct cri_pod_table *pods, struct nd_map *ret) {
        const struct nd_map_slot *slot;
        char text[ND_DIGEST_TEXT];

        for (size_t at = 0; (slot = nd_map_next(&pods->containers, &at));) {
                const struct cri_container *container = slot->value;

                (void) nd_map_put(ret, nd_digest_text(&container->image, text), slot->value);
                (void) nd_map_put(ret, nd_digest_text(&container->top, text), slot->value);
                nd_vector_each (layer, &container->mounted) {
                        (void) nd_map_put(ret, nd_digest_text(layer, text), slot->value);
                }
        }
}

static bool used_by_pod(uint32_t uid, void *userdata) {
        const struct cri_pod_table *pods = userdata;
        const struct nd_map_slot *slot;

        for (size_t at = 0; (slot = nd_map_next(&pods->sandboxes, &at));) {
                const struct cri_sandbox *sandbox = slot->value;

                if (sandbox->request.user_namespace && sandbox->request.uids.outside == uid)
                        return true;
        }
        return false;
}

static void trim_shifted(struct cri_image_gc *image_gc) {
        nd_autoerror struct nd_error *error = nd_oci_store_trim_shifted(image_gc->store, used_by_pod, (void *) image_gc->pods);

        if (error)
                nd_log(ND_LOG_WARNING, "cannot remove copies of image layers", nd_field("error", nd_error_text(error)));
}

static int on_later([[maybe_unused]] sd_event_source *source, void *userdata) {
        struct cri_image_gc *image_gc = userdata;
        struct nd_oci_store_collected collected = {};
        nd_cleanup(nd_map_done) struct nd_map used = {};
        nd_autoerror struct nd_error *error = nullptr;

        collect_used(image_gc->pods, &used);
        error = nd_oci_store_collect(image_gc->store, 0, used_by_container, &used, &collected);
        if (error)
                nd_log(ND_LOG_WARNING, "image garbage collection failed", nd_field("error", nd_error_text(error)));
        else if (collected.more)
                cri_image_gc_wake(image_gc);
        trim_shifted(image_gc);
        empty_trash(image_gc);
        tell_waits(image_gc);
        return 0;
}

static int on_again([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t now_us, void *userdata) {
        struct cri_image_gc *image_gc = userdata;

        empty_trash(image_gc);
        tell_waits(image_gc);
        return 0;
}

void cri_image_gc_wake(struct cri_image_gc *image_gc) {
        (void) sd_event_source_set_enabled(image_gc->later, SD_EVENT_ONESHOT);
}

struct cri_image_gc_wait *cri_image_gc_wait(struct cri_image_gc *image_gc, cri_image_gc_callback done, void *userdata) {
        struct cri_image_gc_wait *wait = nd_new(struct cri_image_gc_wait);

        *wait = (struct cri_image_gc_wait) {.image_gc = image_gc, .next = image_gc->waits, .done = done, .userdata = userdata};
        image_gc->waits = wait;
        cri_image_gc_wake(image_gc);
        return wait;
}

void cri_image_gc_wait_cancel(struct cri_image_gc_wait *wait) {
        struct cri_image_gc_wait **at = &wait->image_gc->waits;

        for (; *at && *at != wait; at = &(*at)->next)
                ;
        if (*at)
                *at = wait->next;
        free(wait);
}

struct nd_error *cri_image_gc_new(sd_event *loop, struct nd_oci_store *store, const struct cri_pod_table *pods,
                                  struct cri_image_gc **ret) {
        struct cri_image_gc *image_gc = nd_new(struct cri_image_gc);
        int r;

        image_gc->loop = sd_event_ref(loop);
        image_gc->store = store;
        image_gc->pods = pods;
        r = sd_event_add_defer(loop, &image_gc->later, on_later, image_gc);
        if (r >= 0)
                r = sd_event_add_time(loop, &image_gc->again, CLOCK_MONOTONIC, UINT64_MAX, 0, on_again, image_gc);
        if (r >= 0)
                r = sd_event_source_set_enabled(image_gc->again, SD_EVENT_OFF);
        if (r < 0) {
                cri_image_gc_free(image_gc);
                return nd_error_new(ND_INTERNAL, -r, "create the event sources of image garbage collection");
        }
        *ret = image_gc;
        return nullptr;
}

void cri_image_gc_free(struct cri_image_gc *image_gc) {
        if (!image_gc)
                return;
        for (struct cri_image_gc_wait *wait = image_gc->waits, *next; wait; wait = next) {
                next = wait->next;
                free(wait);
        }
        nd_child_cancel(image_gc->child);
        sd_event_source_disable_unref(image_gc->later);
        sd_event_source_disable_unref(image_gc->again);
        sd_event_unref(image_gc->loop);
        free(image_gc->path);
        free(image_gc);
}
