/* SPDX-License-Identifier: Apache-2.0 */
/* allocator.c - see allocator.h
 *
 * Theory of operation
 *   Leadership is a Lease that is renewed every @tick_interval_us. Another guard takes it when it
 *   has not changed for @LEASE_SECONDS by that guard's own clock. Leadership only saves work. What
 *   prevents a block from being given twice is the record, a ConfigMap with one bit per block: it
 *   is written with the version that was read, before any namespace is annotated, so of two guards
 *   that both believe they lead one fails and reads it again. The namespace is then patched with
 *   the version that was seen, so an annotation by another writer is not overwritten.
 *      @IDLE -> @READING the record -> @WRITING it with blocks for the namespaces that have none
 *            -> @ANNOTATING the namespaces -> @IDLE
 *   A guard that dies between writing and annotating leaves bits without a namespace. So do
 *   namespaces that are deleted. While leading, a sweep frees a bit that no namespace had in two
 *   sweeps in a row: later than any request of a former leader can arrive.
 * Invariant  a namespace is annotated with a block only when its bit is in the record. */
#include "guard/cluster/allocator.h"

#include "base/assert.h"
#include "base/clock.h"
#include "guard/cluster/ranges.h"
#include "net/api-objects.h"

enum {
        LEASE_SECONDS = 15,
        BATCH = 200, /* namespaces per write of the record */
        /* concurrent patches of namespaces; more would only queue in a busy API server until all of
         * them time out */
        AT_ONCE = 20,
        PATH_BYTES = 1024,
        BODY_BYTES = 64 << 10,
        OBJECT_BYTES = 4 << 20,
};

static constexpr uint64_t tick_interval_us = 3 * ND_SECOND_US;
static constexpr uint64_t request_timeout_us = 5 * ND_SECOND_US;
static constexpr uint64_t sweep_interval_us = 60 * ND_SECOND_US;
#define LEASE "nodens-guard-ranges"
#define RECORD "nodens-guard-ranges"

/* A patch in flight of one namespace's annotations. */
struct pending_patch {
        struct guard_allocator *allocator;
        char *name;
        uint32_t block;
};

struct guard_allocator {
        struct guard_allocator_settings settings;
        sd_event_source *timer, *wake_timer;
        /* the lease */
        char *seen;        /* its changing parts: holder and time */
        uint64_t seen_us;  /* when it was seen to change last */
        uint64_t until_us; /* end of our leadership; 0: we do not lead */
        bool asking;
        /* the record */
        enum { IDLE, READING, WRITING, ANNOTATING } step;
        struct guard_ranges ranges, unused; /* unused: bits without a namespace at the last sweep */
        char *version;                      /* of the record; nullptr: must be read */
        bool dirty;                         /* memory differs from the written record */
        /* namespace -> block + 1, from the assignment until the store shows it */
        struct nd_map assigned;
        unsigned annotating;
        size_t annotated; /* position in the map of this round of annotating */
        uint64_t swept_us;
};

static void work(struct guard_allocator *a);

static void log_event(struct guard_allocator *a, const char *what, const struct nd_error *error) {
        if (a->settings.log)
                a->settings.log(what, error, a->settings.userdata);
}

bool guard_allocator_leads(const struct guard_allocator *a) {
        return a->until_us > nd_clock_us();
}

static void send(struct guard_allocator *a, const char *method, const char *path, const char *body, const char *content_type,
                 void (*done)(const struct nd_api_answer *answer, void *userdata), void *userdata) {
        (void) nd_api_send(a->settings.api, &(struct nd_api_request) {.method = method,
                                                                      .path = path,
                                                                      .body = body,
                                                                      .content_type = content_type,
                                                                      .timeout_us = request_timeout_us,
                                                                      .ceiling = OBJECT_BYTES,
                                                                      .done = done,
                                                                      .userdata = userdata});
}

static char *path_of(const struct guard_allocator *a, const char *group, const char *resource, const char *name) {
        return nd_format("%s/namespaces/%s/%s%s%s", group, a->settings.namespace, resource, *name ? "/" : "", name);
}

static void write_head(struct nd_json_out *out, const char *api, const char *kind, const char *name, const char *version) {
        nd_json_open(out, nullptr, '{');
        nd_json_string(out, "apiVersion", api);
        nd_json_string(out, "kind", kind);
        nd_json_open(out, "metadata", '{');
        nd_json_string(out, "name", name);
        if (version)
                nd_json_string(out, "resourceVersion", version);
        nd_json_close(out, '}');
}

/* ---- the lease ---- */

static void on_lease_written(const struct nd_api_answer *answer, void *userdata) {
        struct guard_allocator *a = userdata;
        bool led = a->until_us > 0;

        a->asking = false;
        if (answer->error)
                return; /* another guard was faster, or the next tick retries */
        a->until_us = nd_clock_us() + (LEASE_SECONDS - 5) * ND_SECOND_US;
        if (!led) {
                log_event(a, "became the leader that allocates ID ranges to namespaces", nullptr);
                free(nd_take_ptr(a->version)); /* another leader may have written it since, */
                /* and given away blocks that we chose before and did not write */
                nd_map_done(&a->assigned);
                a->swept_us = nd_clock_us();
                a->unused = (struct guard_ranges) {};
        }
        work(a);
}

static void write_lease(struct guard_allocator *a, const char *version) {
        nd_autofree char *path = path_of(a, "/apis/coordination.k8s.io/v1", "leases", version ? LEASE : "");
        nd_autotext struct nd_text body = ND_TEXT(BODY_BYTES);
        struct nd_json_out out = {.text = &body};
        char now[ND_CLOCK_TEXT];

        write_head(&out, "coordination.k8s.io/v1", "Lease", LEASE, version);
        nd_json_open(&out, "spec", '{');
        nd_json_string(&out, "holderIdentity", a->settings.identity);
        nd_json_number(&out, "leaseDurationSeconds", LEASE_SECONDS);
        nd_json_string(&out, "renewTime", nd_clock_text_us(nd_clock_wall_ns(), now));
        nd_json_close(&out, '}');
        nd_json_close(&out, '}');
        send(a, version ? "PUT" : "POST", path, nd_text_get(&body), nullptr, on_lease_written, a);
}

static void consider(struct guard_allocator *a, yyjson_val *lease) {
        yyjson_val *spec = yyjson_obj_get(lease, "spec");
        const char *holder = yyjson_get_str(yyjson_obj_get(spec, "holderIdentity"));
        const char *renewed = yyjson_get_str(yyjson_obj_get(spec, "renewTime"));
        nd_autofree char *now = nd_format("%s %s", holder ? holder : "", renewed ? renewed : "");

        if (!a->seen || !nd_streq(a->seen, now)) {
                nd_strset(&a->seen, now);
                a->seen_us = nd_clock_us();
        }
        if (holder && nd_streq(holder, a->settings.identity)) {
                write_lease(a, nd_api_version(lease));
                return;
        }
        a->until_us = 0;
        if (!holder || !*holder || nd_clock_us() - a->seen_us > LEASE_SECONDS * ND_SECOND_US)
                write_lease(a, nd_api_version(lease));
        else
                a->asking = false;
}

static void on_lease(const struct nd_api_answer *answer, void *userdata) {
        nd_autoerror struct nd_error *error = nullptr;
        struct guard_allocator *a = userdata;
        nd_autojson yyjson_doc *doc = nullptr;

        if (answer->status == 404) {
                write_lease(a, nullptr);
                return;
        }
        if (!answer->error)
                error = nd_json_parse(answer->body, answer->length, OBJECT_BYTES, &doc);
        if (answer->error || error)
                a->asking = false;
        else
                consider(a, yyjson_doc_get_root(doc));
}

static int on_tick(sd_event_source *source, [[maybe_unused]] uint64_t now, void *userdata) {
        nd_autofree char *path = nullptr;
        struct guard_allocator *a = userdata;

        (void) sd_event_source_set_time_relative(source, tick_interval_us);
        (void) sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        if (a->until_us > 0 && !guard_allocator_leads(a)) {
                a->until_us = 0;
                log_event(a, "lost the leadership for allocating ID ranges", nullptr);
        }
        if (!a->asking) {
                a->asking = true;
                path = path_of(a, "/apis/coordination.k8s.io/v1", "leases", LEASE);
                send(a, "GET", path, nullptr, nullptr, on_lease, a);
        }
        work(a);
        return 0;
}

/* ---- the record ---- */

/* Blocks that namespaces have are taken, even if the record does not contain them. */
static void take_annotated(struct guard_allocator *a) {
        const struct nd_map_slot *slot;

        for (size_t at = 0; (slot = nd_map_next(&a->settings.store->namespaces.map, &at));) {
                const struct guard_namespace *namespace = slot->value;
                uint32_t block = namespace->uid_range ? guard_ranges_block(namespace->uid_range) : GUARD_RANGE_NONE;

                if (block == GUARD_RANGE_NONE || guard_ranges_has(&a->ranges, block))
                        continue;
                guard_ranges_take(&a->ranges, block);
                a->dirty = true;
        }
        for (size_t at = 0; (slot = nd_map_next(&a->assigned, &at));)
                guard_ranges_take(&a->ranges, (uint32_t) ((uintptr_t) slot->value - 1));
}

static struct nd_error *read_record(struct guard_allocator *a, const struct nd_api_answer *answer) {
        nd_autojson yyjson_doc *doc = nullptr;
        yyjson_val *blocks;

        nd_try(nd_json_parse(answer->body, answer->length, OBJECT_BYTES, &doc));
        blocks = yyjson_obj_get(yyjson_obj_get(yyjson_doc_get_root(doc), "data"), "blocks");
        nd_try(nd_error_wrap(
                guard_ranges_decode(yyjson_is_str(blocks) ? yyjson_get_str(blocks) : "", yyjson_get_len(blocks), &a->ranges),
                "ConfigMap '" RECORD "'"));
        nd_strset(&a->version, nd_api_version(yyjson_doc_get_root(doc)));
        return nullptr;
}

static void on_record(const struct nd_api_answer *answer, void *userdata) {
        nd_autoerror struct nd_error *error = nullptr;
        struct guard_allocator *a = userdata;

        a->step = IDLE;
        if (answer->status == 404) {
                a->ranges = (struct guard_ranges) {};
                nd_strset(&a->version, "");
        } else if (!answer->error) {
                error = read_record(a, answer);
        }
        if (error || (answer->error && answer->status != 404)) {
                log_event(a, "cannot read the record of ID ranges", error ? error : answer->error);
                return; /* the next tick retries */
        }
        a->dirty = false;
        take_annotated(a);
        work(a);
}

static void read_record_again(struct guard_allocator *a) {
        nd_autofree char *path = path_of(a, "/api/v1", "configmaps", RECORD);

        a->step = READING;
        send(a, "GET", path, nullptr, nullptr, on_record, a);
}

/* ---- annotating ---- */

/* The watch will report the same soon. Until then reviews need not wait, and no namespace is
 * patched twice. */
static void store_annotations(struct guard_allocator *a, const struct pending_patch *patch) {
        struct guard_namespace *known = nd_map_get(&a->settings.store->namespaces.map, patch->name);
        char text[GUARD_RANGE_TEXT];

        if (!known || known->uid_range)
                return;
        guard_ranges_uids(patch->block, text);
        known->uid_range = nd_strdup(text);
        if (!known->supplemental_groups)
                known->supplemental_groups = known->uid_range;
        guard_ranges_mcs(patch->block, text);
        if (!known->mcs)
                known->mcs = nd_strdup(text);
}

static void annotate_more(struct guard_allocator *a);

static void on_annotated(const struct nd_api_answer *answer, void *userdata) {
        struct pending_patch *patch = userdata;
        struct guard_allocator *a = patch->allocator;

        if (!answer->error) {
                store_annotations(a, patch);
        } else if (answer->status == 404) { /* it was deleted; a sweep frees the block */
                (void) nd_map_remove(&a->assigned, patch->name);
        } else if (answer->status != 409) {
                log_event(a, "cannot annotate a namespace with its ID range", answer->error);
        }
        free(patch->name);
        free(patch);
        nd_assert(a->annotating > 0);
        a->annotating--;
        annotate_more(a);
        if (a->annotating == 0)
                guard_allocator_wake(a);
}

static void annotate_one(struct guard_allocator *a, const char *name, const struct guard_namespace *namespace,
                         uint32_t block) {
        char uids[GUARD_RANGE_TEXT], mcs[GUARD_RANGE_TEXT];
        struct pending_patch *patch = nd_new(struct pending_patch);
        nd_autotext struct nd_text body = ND_TEXT(BODY_BYTES), path = ND_TEXT(PATH_BYTES);
        struct nd_json_out out = {.text = &body};

        *patch = (struct pending_patch) {.allocator = a, .name = nd_strdup(name), .block = block};
        guard_ranges_uids(block, uids);
        guard_ranges_mcs(block, mcs);
        nd_json_open(&out, nullptr, '{');
        nd_json_open(&out, "metadata", '{');
        nd_json_string(&out, "resourceVersion", nd_kube_or_empty(namespace->version));
        nd_json_open(&out, "annotations", '{');
        nd_json_string(&out, ND_SCC_ANNOTATION_UIDS, uids);
        nd_json_string(&out, ND_SCC_ANNOTATION_GROUPS, uids);
        if (!namespace->mcs)
                nd_json_string(&out, ND_SCC_ANNOTATION_MCS, mcs);
        nd_json_close(&out, '}');
        nd_json_close(&out, '}');
        nd_json_close(&out, '}');
        nd_text_add(&path, "/api/v1/namespaces/");
        nd_api_escape(&path, name);
        a->annotating++;
        send(a, "PATCH", nd_text_get(&path), nd_text_get(&body), "application/merge-patch+json", on_annotated, patch);
}

/* A namespace that is skipped, because the map changed or leadership was lost, is annotated in a
 * later round. */
static void annotate_more(struct guard_allocator *a) {
        const struct nd_map_slot *slot;

        while (a->annotating < AT_ONCE && guard_allocator_leads(a) && (slot = nd_map_next(&a->assigned, &a->annotated))) {
                const struct guard_namespace *namespace = guard_store_namespace(a->settings.store, slot->key);

                if (namespace && !namespace->uid_range)
                        annotate_one(a, slot->key, namespace, (uint32_t) ((uintptr_t) slot->value - 1));
        }
        if (a->annotating == 0)
                a->step = IDLE;
}

static void annotate_all(struct guard_allocator *a) {
        a->step = ANNOTATING;
        a->annotated = 0;
        annotate_more(a);
}

/* ---- writing ---- */

static void on_written(const struct nd_api_answer *answer, void *userdata) {
        nd_autoerror struct nd_error *error = nullptr;
        struct guard_allocator *a = userdata;
        nd_autojson yyjson_doc *doc = nullptr;

        a->step = IDLE;
        if (!answer->error)
                error = nd_json_parse(answer->body, answer->length, OBJECT_BYTES, &doc);
        /* whether it was written is unknown: read it again before any namespace is annotated */
        if (answer->error || error) {
                free(nd_take_ptr(a->version));
                nd_map_done(&a->assigned);
                if (answer->status != 409)
                        log_event(a, "cannot write the record of ID ranges", answer->error ? answer->error : error);
                return;
        }
        nd_strset(&a->version, nd_api_version(yyjson_doc_get_root(doc)));
        a->dirty = false;
        annotate_all(a);
}

static void write_record(struct guard_allocator *a) {
        bool there = *a->version;
        nd_autofree char *path = path_of(a, "/api/v1", "configmaps", there ? RECORD : ""),
                         *blocks = guard_ranges_encode(&a->ranges);
        nd_autotext struct nd_text body = ND_TEXT(BODY_BYTES);
        struct nd_json_out out = {.text = &body};

        write_head(&out, "v1", "ConfigMap", RECORD, there ? a->version : nullptr);
        nd_json_open(&out, "data", '{');
        nd_json_string(&out, "blocks", blocks);
        nd_json_close(&out, '}');
        nd_json_close(&out, '}');
        a->step = WRITING;
        send(a, there ? "PUT" : "POST", path, nd_text_get(&body), nullptr, on_written, a);
}

/* ---- deciding on the next step ---- */

/* Drops assignments that the store shows, or whose namespace is gone. */
static void drop_annotated(struct guard_allocator *a) {
        nd_vector(char *) old = {};
        const struct nd_map_slot *slot;

        for (size_t at = 0; (slot = nd_map_next(&a->assigned, &at));) {
                const struct guard_namespace *namespace = guard_store_namespace(a->settings.store, slot->key);

                if (!namespace || namespace->uid_range)
                        nd_vector_push(&old, nd_strdup(slot->key));
        }
        nd_vector_each (name, &old) {
                (void) nd_map_remove(&a->assigned, *name);
                free(*name);
        }
        nd_vector_done(&old);
}

/* Chooses blocks for namespaces that have none. Returns whether there are namespaces to
 * annotate. */
static bool assign(struct guard_allocator *a) {
        const struct nd_map_slot *slot;

        for (size_t at = 0; a->assigned.count < BATCH && (slot = nd_map_next(&a->settings.store->namespaces.map, &at));) {
                const struct guard_namespace *namespace = slot->value;
                uint32_t block;

                if (namespace->uid_range || nd_map_has(&a->assigned, slot->key))
                        continue;
                block = guard_ranges_next(&a->ranges);
                if (block == GUARD_RANGE_NONE) {
                        log_event(a, "cannot allocate an ID range to a namespace: all ranges are taken", nullptr);
                        break;
                }
                (void) nd_map_put(&a->assigned, slot->key, (void *) (uintptr_t) (block + 1));
                a->dirty = true;
        }
        return a->assigned.count > 0;
}

/* Frees blocks that no namespace had in two sweeps. */
static void sweep(struct guard_allocator *a) {
        struct guard_ranges used = {}, unused = {};
        const struct nd_map_slot *slot;

        if (nd_clock_us() - a->swept_us < sweep_interval_us)
                return;
        a->swept_us = nd_clock_us();
        for (size_t at = 0; (slot = nd_map_next(&a->settings.store->namespaces.map, &at));) {
                const struct guard_namespace *namespace = slot->value;

                if (namespace->uid_range)
                        guard_ranges_take(&used, guard_ranges_block(namespace->uid_range));
        }
        for (size_t at = 0; (slot = nd_map_next(&a->assigned, &at));)
                guard_ranges_take(&used, (uint32_t) ((uintptr_t) slot->value - 1));
        for (uint32_t block = 0; block < GUARD_RANGE_BLOCKS; block++) {
                if (!guard_ranges_has(&a->ranges, block) || guard_ranges_has(&used, block))
                        continue;
                if (!guard_ranges_has(&a->unused, block)) {
                        guard_ranges_take(&unused, block);
                        continue;
                }
                guard_ranges_release(&a->ranges, block);
                a->dirty = true;
        }
        a->unused = unused;
}

static void work(struct guard_allocator *a) {
        if (!guard_allocator_leads(a) || a->step != IDLE)
                return;
        if (!a->version) {
                read_record_again(a);
                return;
        }
        drop_annotated(a);
        sweep(a);
        if (!assign(a) && !a->dirty)
                return;
        if (a->dirty)
                write_record(a);
        else
                annotate_all(a);
}

static int on_wake([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t now, void *userdata) {
        work(userdata);
        return 0;
}

/* With a short delay, so that namespaces which arrive together share one round. */
void guard_allocator_wake(struct guard_allocator *a) {
        int enabled = SD_EVENT_OFF;

        if (sd_event_source_get_enabled(a->wake_timer, &enabled) > 0 && enabled != SD_EVENT_OFF)
                return;
        (void) sd_event_source_set_time_relative(a->wake_timer, 20 * ND_MS_US);
        (void) sd_event_source_set_enabled(a->wake_timer, SD_EVENT_ONESHOT);
}

struct guard_allocator *guard_allocator_new(const struct guard_allocator_settings *settings) {
        struct guard_allocator *a = nd_new(struct guard_allocator);
        sd_event *loop = nd_api_loop(settings->api);

        a->settings = *settings;
        if (sd_event_add_time_relative(loop, &a->timer, CLOCK_MONOTONIC, 0, 0, on_tick, a) < 0 ||
            sd_event_add_time_relative(loop, &a->wake_timer, CLOCK_MONOTONIC, 0, ND_MS_US, on_wake, a) < 0)
                abort(); /* out of memory, as everywhere */
        return a;
}

void guard_allocator_free(struct guard_allocator *a) {
        if (!a)
                return;
        sd_event_source_disable_unref(a->timer);
        sd_event_source_disable_unref(a->wake_timer);
        nd_map_done(&a->assigned);
        free(a->seen);
        free(a->version);
        free(a);
}
