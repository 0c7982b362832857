/* SPDX-License-Identifier: Apache-2.0 */
/* layers.c - see layers.h
 *
 * Theory of operation
 *   Each layer goes @WAITING -> @UNPACKING -> @UNPACKED -> @PLACING -> @DONE; @EXISTS is final from
 *   the start. advance() moves each of them by one step: downloads in the order of the layers, at
 *   most @parallel at once; an unpacker as soon as its download has begun and a processor is free.
 *   A layer is unpacked when its stream has the config's diff ID and its download the manifest's
 *   digest. It is placed when all layers below are placed. Checks here give good errors early; the
 *   unpacker and the daemon decide what a layer is called and whether it enters the store.
 *   The partial download of an earlier pull may contain anything. If its digest is wrong it is
 *   discarded and the layer starts again, with a new job ID: results of the first attempt are
 *   ignored.
 * Owns       blobs, one per digest (images repeat layers), and the eventfds of running jobs. */
#include "pull/fetch/layers.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/assert.h"
#include "base/clock.h"
#include "oci/layer.h"
#include "sys/file.h"

/* at most five events per second and layer */
static constexpr uint64_t event_interval_us = 200 * ND_MS_US;
static constexpr int wait_timeout_ms = 500;

enum state {
        WAITING,
        UNPACKING,
        UNPACKED,
        PLACING,
        DONE,
        EXISTS,
};

enum download_state {
        DOWNLOAD_IDLE,
        DOWNLOAD_REHASHING,
        DOWNLOAD_FETCHING,
        DOWNLOAD_COMPLETE,
};

/* A blob and its download. */
struct download {
        struct run *run;
        struct pull_blob blob;
        enum download_state state;
        bool restarted; /* restarted after a wrong partial download */
        char *path;
};

struct layer {
        enum state state;
        struct download *download;
        const struct nd_oci_descriptor *descriptor;
        struct nd_digest diff_id, chain;
        uint32_t id;
        int event_fd;
        struct pull_unpack_reply reply;
        bool replied;
        uint64_t reported_us;
};

struct run {
        struct pull_layers_context *context;
        struct layer *layers;
        size_t count;
        nd_vector(struct download *) downloads;
        unsigned unpacking;
        unsigned unpackers; /* limit of concurrent unpackers */
        uint64_t unpacked_bytes;
        struct nd_error *error; /* the first one; it ends the run */
};

static void run_done(struct run *run) {
        for (size_t i = 0; i < run->count; i++) {
                nd_close_fd(&run->layers[i].event_fd);
                nd_error_free(run->layers[i].reply.error);
        }
        free(run->layers);
        nd_vector_each (download, &run->downloads) {
                pull_blob_done(&(*download)->blob);
                free((*download)->path);
                free(*download);
        }
        nd_vector_done(&run->downloads);
        nd_error_free(run->error);
}

static void fail(struct run *run, struct nd_error *error) {
        if (run->error)
                nd_error_free(error);
        else
                run->error = error;
}

static void report_progress(const struct run *run, struct layer *layer, const char *state, bool now) {
        uint64_t time = nd_clock_us();

        if (!now && time - layer->reported_us < event_interval_us)
                return;
        layer->reported_us = time;
        pull_event_layer(run->context->events, &layer->descriptor->digest, layer->descriptor->size, state,
                         layer->download ? layer->download->blob.there : layer->descriptor->size);
}

/* ---- downloads ---- */

static uint64_t download_offset(void *userdata) {
        const struct download *s = userdata;

        return s->blob.there;
}

static struct nd_error *download_head(void *userdata, const struct pull_fetch_head *head) {
        const struct download *s = userdata;
        unsigned long long whole = s->blob.there + head->length;

        if (head->length != UINT64_MAX && head->length != s->blob.size - s->blob.there)
                return nd_error_new(ND_DATA_LOSS, 0,
                                    "size mismatch: a server offers a layer of %llu bytes, its manifest has %llu", whole,
                                    (unsigned long long) s->blob.size);
        return nullptr;
}

static struct nd_error *download_body(void *userdata, const char *bytes, size_t length) {
        struct download *s = userdata;

        nd_try(pull_blob_write(&s->blob, bytes, length));
        for (size_t i = 0; i < s->run->count; i++)
                if (s->run->layers[i].download == s)
                        report_progress(s->run, &s->run->layers[i], "fetching", false);
        return nullptr;
}

/* Restarts every layer of a download, with an empty file. */
static void restart_download(struct download *s) {
        struct run *run = s->run;

        s->restarted = true;
        s->state = DOWNLOAD_REHASHING;
        s->blob.resumed = false;
        nd_digest_hash_start(s->blob.digest.kind, &s->blob.hash);
        for (size_t i = 0; i < run->count; i++) {
                struct layer *layer = &run->layers[i];

                if (layer->download != s || layer->state == WAITING || layer->state == EXISTS)
                        continue;
                if (layer->state == UNPACKING)
                        run->unpacking--;
                /* its reply will be ignored */
                pull_unpack_client_cancel(run->context->unpacker, layer->id);
                pull_blob_unsubscribe(&s->blob, layer->event_fd);
                nd_close_fd(&layer->event_fd);
                nd_error_done(&layer->reply.error);
                layer->replied = false;
                layer->id = UINT32_MAX;
                layer->state = WAITING;
        }
}

static void download_complete(struct download *s) {
        bool resumed = s->blob.resumed;
        struct nd_error *error = pull_blob_verify(&s->blob);

        s->state = DOWNLOAD_COMPLETE;
        if (error && resumed && !s->restarted && s->run->context->fetcher) {
                nd_ignore(error); /* the partial download of an earlier pull was wrong */
                return restart_download(s);
        }
        if (error)
                fail(s->run, error);
}

static void download_done(void *userdata, struct nd_error *error) {
        struct download *s = userdata;

        if (error)
                return fail(s->run, error);
        download_complete(s);
}

static void start_fetch(struct download *s) {
        s->state = DOWNLOAD_FETCHING;
        pull_fetch_start(s->run->context->fetcher, &(struct pull_fetch_plan) {.path = s->path,
                                                                              .repository = s->run->context->repository,
                                                                              .capability = HOST_PULL,
                                                                              .offset = download_offset,
                                                                              .head = download_head,
                                                                              .body = download_body,
                                                                              .done = download_done,
                                                                              .userdata = s});
}

/* Hashes what is on disk piece by piece, then downloads the rest. */
static void rehash(struct download *s) {
        bool more;
        struct nd_error *error = pull_blob_rehash(&s->blob, &more);

        if (error)
                return fail(s->run, error);
        if (more)
                return;
        if (s->blob.there == s->blob.size)
                return download_complete(s);
        if (!s->run->context->fetcher)
                return fail(s->run, nd_error_new(ND_NOT_FOUND, 0, "a layer is missing from the archive, or incomplete"));
        start_fetch(s);
}

static struct nd_error *open_download(struct download *s) {
        struct pull_layers_context *context = s->run->context;
        char hex[ND_DIGEST_HEX], text[ND_DIGEST_TEXT];

        s->state = DOWNLOAD_REHASHING;
        s->path = nd_format("/%s/blobs/%s", context->repository, nd_digest_text(&s->blob.digest, text));
        if (context->fetcher)
                return pull_blob_open(&s->blob, context->partial_fd, context->blobs_fd);
        /* import.c has written an archive's blobs. */
        nd_autofree char *name = nd_format("archive-%s", nd_digest_hex(&s->blob.digest, hex));
        struct stat st;

        s->blob.fd = nd_sys->openat(context->blobs_fd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0);
        s->blob.reader = nd_sys->openat(context->blobs_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
        if (s->blob.fd < 0 || s->blob.reader < 0 || fstat(s->blob.fd, &st) < 0)
                return nd_error_new(ND_NOT_FOUND, errno, "layer %s is missing from the archive", text);
        if ((uint64_t) st.st_size != s->blob.size)
                return nd_error_new(ND_DATA_LOSS, 0, "the size of layer %s in the archive differs from its manifest", text);
        s->blob.on_disk = s->blob.size;
        return nullptr;
}

static void advance_downloads(struct run *run, bool *ret_busy) {
        unsigned active = 0;

        nd_vector_each (item, &run->downloads) {
                active += (*item)->state == DOWNLOAD_REHASHING || (*item)->state == DOWNLOAD_FETCHING;
        }
        nd_vector_each (item, &run->downloads) {
                struct download *s = *item;

                if (s->state == DOWNLOAD_IDLE && active < run->context->parallel && !run->error) {
                        struct nd_error *error = open_download(s);

                        if (error)
                                return fail(run, error);
                        active++;
                }
                if (s->state == DOWNLOAD_REHASHING) {
                        rehash(s);
                        *ret_busy = *ret_busy || s->state == DOWNLOAD_REHASHING;
                }
        }
}

/* ---- unpacking ---- */

static struct nd_error *start_unpack(struct run *run, struct layer *layer, const struct nd_digest *parent) {
        struct pull_layers_context *context = run->context;

        layer->id = context->next_id++;
        layer->event_fd = eventfd(0, EFD_CLOEXEC);
        if (layer->event_fd < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "create an eventfd for an unpacker");
        pull_blob_subscribe(&layer->download->blob, layer->event_fd);
        layer->state = UNPACKING;
        run->unpacking++;
        return pull_unpack_client_unpack(context->unpacker,
                                         &(struct pull_unpack_job) {.id = layer->id,
                                                                    .blob_fd = layer->download->blob.reader,
                                                                    .available_fd = layer->event_fd,
                                                                    .blob_size = layer->download->blob.size,
                                                                    .ceiling = context->total_bytes - run->unpacked_bytes,
                                                                    .compression = layer->descriptor->compression,
                                                                    .file = layer->descriptor->file,
                                                                    .parent = parent});
}

/* When the job's reply and the download's digest are both there: compares the layer with the
 * config. */
static struct nd_error *check_unpacked(struct run *run, struct layer *layer) {
        char wanted[ND_DIGEST_TEXT], found[ND_DIGEST_TEXT];

        if (layer->reply.error)
                return nd_error_wrap(nd_take_ptr(layer->reply.error), "layer %s",
                                     nd_digest_text(&layer->descriptor->digest, wanted));
        if (!nd_digest_equal(&layer->reply.digest, &layer->diff_id))
                return nd_error_new(ND_DATA_LOSS, 0, "diff ID mismatch: a layer unpacks to %s, the %s has %s",
                                    nd_digest_text(&layer->reply.digest, found),
                                    nd_digest_is_set(&layer->descriptor->diff_id) ? "artifact's manifest" : "image's config",
                                    nd_digest_text(&layer->diff_id, wanted));
        run->unpacked_bytes += layer->reply.stream;
        if (run->unpacked_bytes > run->context->total_bytes)
                return nd_error_new(ND_EXHAUSTED, EFBIG, "the image unpacks to more than the limit of %llu bytes",
                                    (unsigned long long) run->context->total_bytes);
        layer->state = UNPACKED;
        return nullptr;
}

static bool finished(const struct layer *layer) {
        return layer->state == DONE || layer->state == EXISTS;
}

static struct nd_error *advance_layer(struct run *run, size_t index, bool lower_finished) {
        struct layer *layer = &run->layers[index];
        const struct nd_digest *parent = index > 0 ? &run->layers[index - 1].chain : nullptr;

        if (layer->state == WAITING && run->unpacking < run->unpackers &&
            (layer->download->blob.there > 0 || layer->download->state == DOWNLOAD_COMPLETE))
                return start_unpack(run, layer, parent);
        /* An unpack error before the download is verified may be caused by the download, whose
         * error takes precedence. */
        if (layer->state == UNPACKING && layer->replied && layer->download->blob.verified) {
                nd_assert(run->unpacking > 0);
                run->unpacking--;
                nd_try(check_unpacked(run, layer));
        }
        if (layer->state == UNPACKED && lower_finished) {
                layer->state = PLACING;
                return pull_unpack_client_place(run->context->unpacker, layer->id);
        }
        return nullptr;
}

static bool advance(struct run *run) {
        bool all = true;

        for (size_t i = 0; i < run->count && !run->error; i++) {
                struct nd_error *error = advance_layer(run, i, all);

                if (error)
                        fail(run, error);
                all = all && finished(&run->layers[i]);
        }
        return all;
}

static struct nd_error *on_placed(struct run *run, struct layer *layer, struct pull_unpack_reply *reply) {
        char digest[ND_DIGEST_TEXT];

        if (reply->error)
                return nd_error_wrap(reply->error, "layer %s", nd_digest_text(&layer->descriptor->digest, digest));
        if (!nd_digest_equal(&reply->digest, &layer->chain))
                return nd_error_new(ND_INTERNAL, 0, "the unpacker placed another layer");
        layer->state = DONE;
        report_progress(run, layer, "done", true);
        return nullptr;
}

static struct nd_error *on_reply(struct run *run, struct pull_unpack_reply *reply) {
        for (size_t i = 0; i < run->count; i++) {
                struct layer *layer = &run->layers[i];

                if (layer->id != reply->id || finished(layer))
                        continue;
                if (reply->placed)
                        return on_placed(run, layer, reply);
                layer->reply = *reply;
                layer->replied = true;
                pull_blob_unsubscribe(&layer->download->blob, layer->event_fd);
                nd_close_fd(&layer->event_fd);
                report_progress(run, layer, "unpacking", true);
                /* More data cannot fix an invalid stream of a fresh download: do not fetch the
                 * rest. */
                if (reply->error && !layer->download->blob.resumed)
                        return check_unpacked(run, layer);
                return nullptr;
        }
        nd_error_free(reply->error); /* of a cancelled job */
        return nullptr;
}

static struct nd_error *wait_for_events(struct run *run, bool busy) {
        struct pollfd wait = {.fd = pull_unpack_client_fd(run->context->unpacker), .events = POLLIN};
        struct pull_unpack_reply reply;
        bool there = true;

        if (run->context->fetcher)
                nd_try(pull_fetcher_wait(run->context->fetcher, &wait, 1, busy ? 0 : wait_timeout_ms));
        else
                (void) poll(&wait, 1, busy ? 0 : wait_timeout_ms);
        while (there && !run->error) {
                nd_try(pull_unpack_client_receive(run->context->unpacker, &reply, &there));
                if (there)
                        nd_try(on_reply(run, &reply));
        }
        return nullptr;
}

/* ---- the whole image ---- */

static struct download *download_for(struct run *run, const struct nd_oci_descriptor *descriptor) {
        struct download *s;

        nd_vector_each (known, &run->downloads) {
                if (nd_digest_equal(&(*known)->blob.digest, &descriptor->digest) && (*known)->blob.size == descriptor->size)
                        return *known;
        }
        s = nd_new(struct download);
        s->run = run;
        pull_blob_init(&descriptor->digest, descriptor->size, &s->blob);
        nd_vector_push(&run->downloads, s);
        return s;
}

static struct nd_error *prepare(struct run *run, const struct nd_manifest *manifest, const struct nd_oci_config *config) {
        uint64_t total = 0;

        run->count = manifest->entries.count;
        run->layers = nd_calloc(run->count + 1, sizeof *run->layers);
        for (size_t i = 0; i < run->count; i++) {
                struct layer *layer = &run->layers[i];
                bool found;

                layer->event_fd = -EBADF;
                layer->id = UINT32_MAX;
                layer->descriptor = &manifest->entries.items[i];
                layer->diff_id = config->diff_ids.items[i];
                layer->chain = nd_layer_chain_of(i > 0 ? &run->layers[i - 1].chain : nullptr, &layer->diff_id);
                nd_try(pull_unpack_client_lookup(run->context->unpacker, &layer->chain, &found, &layer->reply.size,
                                                 &layer->reply.inodes));
                if (found) {
                        layer->state = EXISTS;
                        report_progress(run, layer, "exists", true);
                        continue;
                }
                layer->download = download_for(run, layer->descriptor);
                total += layer->descriptor->size;
                report_progress(run, layer, "waiting", true);
        }
        if (total > run->context->total_bytes)
                return nd_error_new(ND_EXHAUSTED, EFBIG, "the image has %llu bytes to fetch, more than the limit of %llu",
                                    (unsigned long long) total, (unsigned long long) run->context->total_bytes);
        return nullptr;
}

/* Removes the downloads only at the end: a pull that fails before can resume them. */
static void remove_blobs(struct run *run) {
        nd_vector_each (download, &run->downloads) {
                if (run->context->fetcher)
                        pull_blob_remove(&(*download)->blob, run->context->partial_fd, run->context->blobs_fd);
        }
}

struct nd_error *pull_layers_run(struct pull_layers_context *context, const struct nd_manifest *manifest,
                                 const struct nd_oci_config *config, struct pull_layer_results *ret) {
        nd_cleanup(run_done) struct run run = {.context = context};
        long processors = sysconf(_SC_NPROCESSORS_ONLN);

        run.unpackers = processors < 2 ? 2 : processors > 4 ? 4 : (unsigned) processors;
        nd_try(prepare(&run, manifest, config));
        while (!advance(&run) && !run.error) {
                bool busy = false;

                advance_downloads(&run, &busy);
                if (!run.error)
                        nd_try(wait_for_events(&run, busy));
        }
        if (run.error)
                return nd_take_ptr(run.error);
        remove_blobs(&run);
        for (size_t i = 0; i < run.count; i++)
                nd_vector_push(ret, ((struct pull_layer_result) {.diff_id = run.layers[i].diff_id,
                                                                 .chain = run.layers[i].chain,
                                                                 .size = run.layers[i].reply.size,
                                                                 .inodes = run.layers[i].reply.inodes,
                                                                 .is_new = run.layers[i].state == DONE}));
        return nullptr;
}
