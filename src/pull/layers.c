/* SPDX-License-Identifier: Apache-2.0 */
/* layers.c - see layers.h
 *
 * Theory of operation
 *   Each layer goes @WAITING -> @UNPACKING -> @UNPACKED -> @PLACING -> @DONE; @EXISTS is done from the start. advance() moves all of them by one
 *   look: downloads in the order of the layers, at most @parallel at once; an unpacker as soon as its download has begun and a
 *   processor is free; a layer is unpacked when its stream has the config's diff id and its download the manifest's digest. It is placed when
 *   all layers below are there. What is checked here gives good errors and early ends; what a layer is called, and whether it enters the
 *   store, is decided by the unpacker and the daemon.
 *   A download that an earlier pull began may hold anything. When its digest is wrong it is thrown away and the layer starts once more,
 *   under a new job number: nothing of the first try is looked at again.
 * Owns       blobs, one for each digest (images repeat layers), and the eventfds of running jobs. */
#include "pull/layers.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/clock.h"
#include "oci/layer.h"
#include "sys/file.h"

enum {
        EVENT_MS = 200, /* at most five events a second for a layer */
        WAIT_MS = 500,
};

enum state {
        WAITING,
        UNPACKING,
        UNPACKED,
        PLACING,
        DONE,
        EXISTS,
};

enum source_state {
        SOURCE_IDLE,
        SOURCE_CATCHING_UP,
        SOURCE_FETCHING,
        SOURCE_COMPLETE,
};

/* A blob and how it is filled. */
struct source {
        struct run *run;
        struct nd_blob blob;
        enum source_state state;
        bool again; /* it starts afresh after what an earlier pull left was wrong */
        char *path;
};

struct layer {
        enum state state;
        struct source *source;
        const struct nd_descriptor *descriptor;
        struct nd_digest diff_id, chain;
        uint32_t id;
        int event_fd;
        struct nd_unpack_answer answer;
        bool answered;
        uint64_t told_us;
};

struct run {
        struct nd_layers_place *place;
        struct layer *layers;
        size_t count;
        nd_vector(struct source *) sources;
        unsigned unpacking;
        unsigned unpackers; /* most at once */
        uint64_t unpacked_bytes;
        struct nd_error *error; /* the first one; it ends the run */
};

static void run_done(struct run *run) {
        for (size_t i = 0; i < run->count; i++) {
                nd_close_fd(&run->layers[i].event_fd);
                nd_error_free(run->layers[i].answer.error);
        }
        free(run->layers);
        nd_vector_each (source, &run->sources) {
                nd_blob_done(&(*source)->blob);
                free((*source)->path);
                free(*source);
        }
        nd_vector_done(&run->sources);
        nd_error_free(run->error);
}

static void fail(struct run *run, struct nd_error *error) {
        if (run->error)
                nd_error_free(error);
        else
                run->error = error;
}

static void tell(const struct run *run, struct layer *layer, const char *state, bool now) {
        uint64_t time = nd_clock_us();

        if (!now && time - layer->told_us < EVENT_MS * ND_MS_US)
                return;
        layer->told_us = time;
        nd_event_layer(run->place->events, &layer->descriptor->digest, layer->descriptor->size, state,
                       layer->source ? layer->source->blob.there : layer->descriptor->size);
}

/* ---- downloads */

static uint64_t source_offset(void *userdata) {
        const struct source *s = userdata;

        return s->blob.there;
}

static struct nd_error *source_head(void *userdata, const struct nd_fetch_head *head) {
        const struct source *s = userdata;
        unsigned long long whole = s->blob.there + head->length;

        if (head->length != UINT64_MAX && head->length != s->blob.size - s->blob.there)
                return nd_error_new(ND_DATA_LOSS, 0, "a layer would have %llu bytes, its manifest says %llu", whole,
                                    (unsigned long long) s->blob.size);
        return nullptr;
}

static struct nd_error *source_body(void *userdata, const char *bytes, size_t length) {
        struct source *s = userdata;

        nd_try(nd_blob_write(&s->blob, bytes, length));
        for (size_t i = 0; i < s->run->count; i++)
                if (s->run->layers[i].source == s)
                        tell(s->run, &s->run->layers[i], "fetching", false);
        return nullptr;
}

/* Starts every layer of a source once more, on an empty file. */
static void start_afresh(struct source *s) {
        struct run *run = s->run;

        s->again = true;
        s->state = SOURCE_CATCHING_UP;
        s->blob.resumed = false;
        nd_hash_start(s->blob.digest.kind, &s->blob.hash);
        for (size_t i = 0; i < run->count; i++) {
                struct layer *layer = &run->layers[i];

                if (layer->source != s || layer->state == WAITING || layer->state == EXISTS)
                        continue;
                if (layer->state == UNPACKING)
                        run->unpacking--;
                nd_unpacker_cancel(run->place->unpacker, layer->id); /* its answer will find no layer */
                nd_blob_ignore(&s->blob, layer->event_fd);
                nd_close_fd(&layer->event_fd);
                nd_error_done(&layer->answer.error);
                layer->answered = false;
                layer->id = UINT32_MAX;
                layer->state = WAITING;
        }
}

static void source_complete(struct source *s) {
        bool resumed = s->blob.resumed;
        struct nd_error *error = nd_blob_verify(&s->blob);

        s->state = SOURCE_COMPLETE;
        if (error && resumed && !s->again && s->run->place->fetcher) {
                nd_error_free(error);
                return start_afresh(s);
        }
        if (error)
                fail(s->run, error);
}

static void source_done(void *userdata, struct nd_error *error) {
        struct source *s = userdata;

        if (error)
                return fail(s->run, error);
        source_complete(s);
}

static void start_fetch(struct source *s) {
        s->state = SOURCE_FETCHING;
        nd_fetch_start(s->run->place->fetcher, &(struct nd_fetch_plan) {.path = s->path,
                                                                        .repository = s->run->place->repository,
                                                                        .capability = ND_HOST_PULL,
                                                                        .offset = source_offset,
                                                                        .head = source_head,
                                                                        .body = source_body,
                                                                        .done = source_done,
                                                                        .userdata = s});
}

/* Hashes what is on disk piece by piece, then goes to the network for the rest. */
static void catch_up(struct source *s) {
        bool more;
        struct nd_error *error = nd_blob_catch_up(&s->blob, &more);

        if (error)
                return fail(s->run, error);
        if (more)
                return;
        if (s->blob.there == s->blob.size)
                return source_complete(s);
        if (!s->run->place->fetcher)
                return fail(s->run, nd_error_new(ND_NOT_FOUND, 0, "the archive lacks a layer, or a part of it"));
        start_fetch(s);
}

static struct nd_error *open_source(struct source *s) {
        struct nd_layers_place *place = s->run->place;
        char hex[ND_DIGEST_HEX], text[ND_DIGEST_TEXT];

        s->state = SOURCE_CATCHING_UP;
        s->path = nd_format("/%s/blobs/%s", place->repository, nd_digest_text(&s->blob.digest, text));
        if (place->fetcher)
                return nd_blob_open(&s->blob, place->partial_fd, place->blobs_fd);
        /* An archive's blobs were written by import.c. */
        nd_autofree char *name = nd_format("archive-%s", nd_digest_hex(&s->blob.digest, hex));
        struct stat st;

        s->blob.fd = nd_sys->openat(place->blobs_fd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0);
        s->blob.reader = nd_sys->openat(place->blobs_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
        if (s->blob.fd < 0 || s->blob.reader < 0 || fstat(s->blob.fd, &st) < 0)
                return nd_error_new(ND_NOT_FOUND, errno, "the archive lacks the layer %s", text);
        if ((uint64_t) st.st_size != s->blob.size)
                return nd_error_new(ND_DATA_LOSS, 0, "the archive's layer %s has another size than its manifest says", text);
        s->blob.on_disk = s->blob.size;
        return nullptr;
}

static void move_sources(struct run *run, bool *ret_busy) {
        unsigned active = 0;

        nd_vector_each (item, &run->sources) {
                active += (*item)->state == SOURCE_CATCHING_UP || (*item)->state == SOURCE_FETCHING;
        }
        nd_vector_each (item, &run->sources) {
                struct source *s = *item;

                if (s->state == SOURCE_IDLE && active < run->place->parallel && !run->error) {
                        struct nd_error *error = open_source(s);

                        if (error)
                                return fail(run, error);
                        active++;
                }
                if (s->state == SOURCE_CATCHING_UP) {
                        catch_up(s);
                        *ret_busy = *ret_busy || s->state == SOURCE_CATCHING_UP;
                }
        }
}

/* ---- unpacking */

static struct nd_error *start_unpack(struct run *run, struct layer *layer, const struct nd_digest *parent) {
        struct nd_layers_place *place = run->place;

        layer->id = place->next_id++;
        layer->event_fd = eventfd(0, EFD_CLOEXEC);
        if (layer->event_fd < 0)
                return nd_error_new(nd_code_of_errno(errno), errno, "make a counter for an unpacker");
        nd_blob_listen(&layer->source->blob, layer->event_fd);
        layer->state = UNPACKING;
        run->unpacking++;
        return nd_unpacker_unpack(place->unpacker,
                                  &(struct nd_unpack_job) {.id = layer->id,
                                                           .blob_fd = layer->source->blob.reader,
                                                           .available_fd = layer->event_fd,
                                                           .blob_size = layer->source->blob.size,
                                                           .ceiling = place->total_bytes - run->unpacked_bytes,
                                                           .compression = layer->descriptor->compression,
                                                           .parent = parent});
}

/* The job's answer and the download's digest are both there: does the layer hold what the config promises? */
static struct nd_error *judge(struct run *run, struct layer *layer) {
        char wanted[ND_DIGEST_TEXT], found[ND_DIGEST_TEXT];

        if (layer->answer.error)
                return nd_error_wrap(nd_take_ptr(layer->answer.error), "layer %s",
                                     nd_digest_text(&layer->descriptor->digest, wanted));
        if (!nd_digest_equal(&layer->answer.digest, &layer->diff_id))
                return nd_error_new(ND_DATA_LOSS, 0, "a layer unpacks to %s, the image's config says %s",
                                    nd_digest_text(&layer->answer.digest, found), nd_digest_text(&layer->diff_id, wanted));
        run->unpacked_bytes += layer->answer.stream;
        if (run->unpacked_bytes > run->place->total_bytes)
                return nd_error_new(ND_EXHAUSTED, EFBIG, "the image unpacks to more than the %llu bytes that are allowed",
                                    (unsigned long long) run->place->total_bytes);
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
            (layer->source->blob.there > 0 || layer->source->state == SOURCE_COMPLETE))
                return start_unpack(run, layer, parent);
        /* An unpacker's complaint about a download that is not verified may be the download's fault: that error comes first. */
        if (layer->state == UNPACKING && layer->answered && layer->source->blob.verified) {
                run->unpacking--;
                nd_try(judge(run, layer));
        }
        if (layer->state == UNPACKED && lower_finished) {
                layer->state = PLACING;
                return nd_unpacker_place(run->place->unpacker, layer->id);
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

static struct nd_error *take_placed(struct run *run, struct layer *layer, struct nd_unpack_answer *answer) {
        char digest[ND_DIGEST_TEXT];

        if (answer->error)
                return nd_error_wrap(answer->error, "layer %s", nd_digest_text(&layer->descriptor->digest, digest));
        if (!nd_digest_equal(&answer->digest, &layer->chain))
                return nd_error_new(ND_INTERNAL, 0, "the unpacker placed another layer");
        layer->state = DONE;
        tell(run, layer, "done", true);
        return nullptr;
}

static struct nd_error *take_answer(struct run *run, struct nd_unpack_answer *answer) {
        for (size_t i = 0; i < run->count; i++) {
                struct layer *layer = &run->layers[i];

                if (layer->id != answer->id || finished(layer))
                        continue;
                if (answer->placed)
                        return take_placed(run, layer, answer);
                layer->answer = *answer;
                layer->answered = true;
                nd_blob_ignore(&layer->source->blob, layer->event_fd);
                nd_close_fd(&layer->event_fd);
                tell(run, layer, "unpacking", true);
                /* A fresh download is not going to mend what is broken in its first half: no need to fetch the rest. */
                if (answer->error && !layer->source->blob.resumed)
                        return judge(run, layer);
                return nullptr;
        }
        nd_error_free(answer->error); /* of a job that was cancelled */
        return nullptr;
}

static struct nd_error *wait_for_something(struct run *run, bool busy) {
        struct pollfd wait = {.fd = nd_unpacker_fd(run->place->unpacker), .events = POLLIN};
        struct nd_unpack_answer answer;
        bool there = true;

        if (run->place->fetcher)
                nd_try(nd_fetcher_wait(run->place->fetcher, &wait, 1, busy ? 0 : WAIT_MS));
        else
                (void) poll(&wait, 1, busy ? 0 : WAIT_MS);
        while (there && !run->error) {
                nd_try(nd_unpacker_receive(run->place->unpacker, &answer, &there));
                if (there)
                        nd_try(take_answer(run, &answer));
        }
        return nullptr;
}

/* ---- the whole */

static struct source *source_for(struct run *run, const struct nd_descriptor *descriptor) {
        struct source *s;

        nd_vector_each (known, &run->sources) {
                if (nd_digest_equal(&(*known)->blob.digest, &descriptor->digest) && (*known)->blob.size == descriptor->size)
                        return *known;
        }
        s = nd_new(struct source);
        s->run = run;
        nd_blob_init(&descriptor->digest, descriptor->size, &s->blob);
        nd_vector_push(&run->sources, s);
        return s;
}

static struct nd_error *prepare(struct run *run, const struct nd_manifest *manifest, const struct nd_image_config *config) {
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
                layer->chain = nd_chain_of(i > 0 ? &run->layers[i - 1].chain : nullptr, &layer->diff_id);
                nd_try(nd_unpacker_look(run->place->unpacker, &layer->chain, &found, &layer->answer.size,
                                        &layer->answer.inodes));
                if (found) {
                        layer->state = EXISTS;
                        tell(run, layer, "exists", true);
                        continue;
                }
                layer->source = source_for(run, layer->descriptor);
                total += layer->descriptor->size;
                tell(run, layer, "waiting", true);
        }
        if (total > run->place->total_bytes)
                return nd_error_new(ND_EXHAUSTED, EFBIG,
                                    "the image has %llu bytes to fetch, more than the %llu that are allowed",
                                    (unsigned long long) total, (unsigned long long) run->place->total_bytes);
        return nullptr;
}

/* What is left on disk of downloads goes only now: a pull that ends before would have to fetch them again. */
static void clean_up(struct run *run) {
        nd_vector_each (source, &run->sources) {
                if (run->place->fetcher)
                        nd_blob_remove(&(*source)->blob, run->place->partial_fd, run->place->blobs_fd);
        }
}

struct nd_error *nd_layers_run(struct nd_layers_place *place, const struct nd_manifest *manifest,
                               const struct nd_image_config *config, nd_layer_outcomes *ret) {
        nd_cleanup(run_done) struct run run = {.place = place};
        long processors = sysconf(_SC_NPROCESSORS_ONLN);

        run.unpackers = processors < 2 ? 2 : processors > 4 ? 4 : (unsigned) processors;
        nd_try(prepare(&run, manifest, config));
        while (!advance(&run) && !run.error) {
                bool busy = false;

                move_sources(&run, &busy);
                if (!run.error)
                        nd_try(wait_for_something(&run, busy));
        }
        if (run.error)
                return nd_take_ptr(run.error);
        clean_up(&run);
        for (size_t i = 0; i < run.count; i++)
                nd_vector_push(ret, ((struct nd_layer_outcome) {.diff_id = run.layers[i].diff_id,
                                                                .chain = run.layers[i].chain,
                                                                .size = run.layers[i].answer.size,
                                                                .inodes = run.layers[i].answer.inodes,
                                                                .is_new = run.layers[i].state == DONE}));
        return nullptr;
}
