/* SPDX-License-Identifier: Apache-2.0 */
/* replicas.c - see replicas.h
 *
 * Theory of operation
 *   The own Lease is patched every @renew_interval_us, and at once when the object changes. The
 *   others are listed often while a floor is being changed, rarely otherwise. A replica counts as
 *   live until its Lease did not change for its own lifetime, by the clock of the observer: clocks
 *   of hosts need not agree. The lifetime is longer than the time after which a replica without
 *   contact stops to decide. Leases that did not change for @forget_us are deleted.
 * Invariant  an answer of guard_replicas_missing() is from a list that was requested after the own
 *            Lease was written with the current object. */
#include "guard/floor/replicas.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/vector.h"
#include "net/api-objects.h"

enum {
        BODY_BYTES = 8 << 10,
        PATH_BYTES = 1024,
        LIST_BYTES = 8 << 20,
        REPLICAS = 500,
        LIFETIME_LEAST = 10,
        LIFETIME_MOST = 700,
};

static constexpr uint64_t tick_us = 1 * ND_SECOND_US;
static constexpr uint64_t renew_interval_us = 5 * ND_SECOND_US;
static constexpr uint64_t rare_interval_us = 60 * ND_SECOND_US;
static constexpr uint64_t request_timeout_us = 5 * ND_SECOND_US;
static constexpr uint64_t forget_us = 600 * ND_SECOND_US;
#define LABEL "security.nodens.io/guard"
#define LABEL_QUERY "security.nodens.io%%2Fguard" /* in a format */

struct replica {
        char *renewed; /* its renewTime */
        char *holder;
        char *object;
        uint64_t since_us; /* when it was seen to change last */
        uint64_t lifetime_us;
        uint64_t listed; /* number of the last list that had it */
};

struct guard_replicas {
        struct guard_replicas_settings settings;
        sd_event_source *timer;
        char *name; /* of the own Lease */
        char *object;
        char *written; /* object in the Lease as written last; nullptr: none was */
        bool writing, listing, often;
        uint64_t renewed_us, asked_us;
        char *asked; /* @written when the list was requested */
        char *known; /* the same of the last list that was read; nullptr: none */
        struct nd_map replicas;
        uint64_t lists;
        bool troubled;
};

static void work(struct guard_replicas *r);

static void free_replica(struct replica *replica) {
        free(replica->renewed);
        free(replica->holder);
        free(replica->object);
        free(replica);
}

static void report(struct guard_replicas *r, const char *what, const struct nd_error *error) {
        if (r->settings.log && !r->troubled)
                r->settings.log(what, error, r->settings.userdata);
        r->troubled = true;
}

static char *path_of(const struct guard_replicas *r, const char *name, const char *query) {
        return nd_format("/apis/coordination.k8s.io/v1/namespaces/%s/leases%s%s%s", r->settings.namespace, *name ? "/" : "",
                         name, query);
}

/* ---- the own Lease ---- */

static void write_lease(const struct guard_replicas *r, struct nd_text *text) {
        struct nd_json_out out = {.text = text};
        char now[ND_CLOCK_TEXT];

        nd_json_open(&out, nullptr, '{');
        nd_json_string(&out, "apiVersion", "coordination.k8s.io/v1");
        nd_json_string(&out, "kind", "Lease");
        nd_json_open(&out, "metadata", '{');
        nd_json_string(&out, "name", r->name);
        nd_json_open(&out, "labels", '{');
        nd_json_string(&out, LABEL, r->settings.role);
        nd_json_close(&out, '}');
        nd_json_open(&out, "annotations", '{');
        nd_json_string(&out, GUARD_REPLICAS_ANNOTATION, r->object);
        nd_json_close(&out, '}');
        nd_json_close(&out, '}');
        nd_json_open(&out, "spec", '{');
        nd_json_string(&out, "holderIdentity", r->settings.identity);
        nd_json_number(&out, "leaseDurationSeconds", r->settings.lifetime_s);
        nd_json_string(&out, "renewTime", nd_clock_text_us(nd_clock_wall_ns(), now));
        nd_json_close(&out, '}');
        nd_json_close(&out, '}');
}

static void send_lease(struct guard_replicas *r, bool create);

static void on_written(const struct nd_api_answer *answer, void *userdata) {
        struct guard_replicas *r = userdata;

        r->writing = false;
        if (answer->status == 404 && answer->error) {
                send_lease(r, true);
                return;
        }
        if (answer->error) {
                free(nd_take_ptr(r->written));
                report(r,
                       "cannot report the version floor on which this guard acts, in a Lease; `nodens-guard manifest rbac` "
                       "prints the rights that it needs",
                       answer->error);
                return;
        }
        r->troubled = false;
        work(r);
}

static void on_created(const struct nd_api_answer *answer, void *userdata) {
        struct guard_replicas *r = userdata;

        r->writing = false;
        if (answer->error)
                free(nd_take_ptr(r->written));
        if (answer->error && answer->status != 409)
                report(r, "cannot create the Lease of this guard", answer->error);
        if (!answer->error)
                work(r);
}

/* The Lease belongs to this process alone, so a patch without a version is right. */
static void send_lease(struct guard_replicas *r, bool create) {
        nd_autofree char *path = path_of(r, create ? "" : r->name, "");
        nd_autotext struct nd_text body = ND_TEXT(BODY_BYTES);

        write_lease(r, &body);
        r->writing = true;
        r->renewed_us = nd_clock_us();
        nd_strset(&r->written, r->object);
        (void) nd_api_send(r->settings.api,
                           &(struct nd_api_request) {.method = create ? "POST" : "PATCH",
                                                     .path = path,
                                                     .body = nd_text_get(&body),
                                                     .content_type = create ? nullptr : "application/merge-patch+json",
                                                     .timeout_us = request_timeout_us,
                                                     .done = create ? on_created : on_written,
                                                     .userdata = r});
}

/* ---- the others ---- */

static void on_deleted([[maybe_unused]] const struct nd_api_answer *answer, [[maybe_unused]] void *userdata) {
}

static void delete_lease(struct guard_replicas *r, const char *name) {
        nd_autotext struct nd_text path = ND_TEXT(PATH_BYTES);

        nd_text_addf(&path, "/apis/coordination.k8s.io/v1/namespaces/%s/leases/", r->settings.namespace);
        nd_api_escape(&path, name);
        (void) nd_api_send(r->settings.api, &(struct nd_api_request) {.method = "DELETE",
                                                                      .path = nd_text_get(&path),
                                                                      .timeout_us = request_timeout_us,
                                                                      .done = on_deleted});
}

static void take_lease(struct guard_replicas *r, yyjson_val *lease) {
        yyjson_val *metadata = yyjson_obj_get(lease, "metadata"), *spec = yyjson_obj_get(lease, "spec");
        struct replica *replica = nd_map_get(&r->replicas, nd_api_name(lease));
        nd_autofree char *renewed = nd_json_copy(spec, "renewTime"), *holder = nd_json_copy(spec, "holderIdentity");
        nd_autofree char *object = nd_json_copy(yyjson_obj_get(metadata, "annotations"), GUARD_REPLICAS_ANNOTATION);
        uint64_t lifetime = yyjson_get_uint(yyjson_obj_get(spec, "leaseDurationSeconds"));

        if (!replica) {
                replica = nd_new(struct replica);
                (void) nd_map_put(&r->replicas, nd_api_name(lease), replica);
        }
        if (!replica->renewed || !nd_streq(replica->renewed, renewed))
                replica->since_us = nd_clock_us();
        lifetime = lifetime < LIFETIME_LEAST ? LIFETIME_LEAST : lifetime > LIFETIME_MOST ? LIFETIME_MOST : lifetime;
        nd_strset(&replica->renewed, renewed);
        nd_strset(&replica->holder, *holder ? holder : nd_api_name(lease));
        nd_strset(&replica->object, object);
        replica->lifetime_us = lifetime * ND_SECOND_US;
        replica->listed = r->lists;
}

/* Drops replicas whose Lease is gone, and deletes Leases of replicas that are. */
static void drop_replicas(struct guard_replicas *r) {
        nd_vector(char *) gone = {};
        const struct nd_map_slot *slot;

        for (size_t at = 0; (slot = nd_map_next(&r->replicas, &at));) {
                const struct replica *replica = slot->value;

                if (replica->listed == r->lists && nd_clock_us() - replica->since_us < forget_us)
                        continue;
                if (replica->listed == r->lists)
                        delete_lease(r, slot->key);
                nd_vector_push(&gone, nd_strdup(slot->key));
        }
        nd_vector_each (name, &gone) {
                free_replica(nd_map_remove(&r->replicas, *name));
                free(*name);
        }
        nd_vector_done(&gone);
}

static void on_list(const struct nd_api_answer *answer, void *userdata) {
        nd_cleanup(nd_api_page_done) struct nd_api_page page = {};
        nd_autoerror struct nd_error *error = nullptr;
        struct guard_replicas *r = userdata;
        yyjson_arr_iter items;
        yyjson_val *item;

        r->listing = false;
        if (!answer->error)
                error = nd_api_page_parse(answer->body, answer->length, &page);
        if (answer->error || error) {
                report(r, "cannot list the Leases of other guards", answer->error ? answer->error : error);
                return;
        }
        if (*page.continuation) {
                report(r, "too many Leases of guards: the version floor cannot be settled", nullptr);
                return;
        }
        r->lists++;
        items = yyjson_arr_iter_with(page.items);
        while ((item = yyjson_arr_iter_next(&items)))
                take_lease(r, item);
        drop_replicas(r);
        free(r->known);
        r->known = nd_take_ptr(r->asked);
        if (r->settings.changed)
                r->settings.changed(r->settings.userdata);
}

static void list_leases(struct guard_replicas *r) {
        nd_autofree char *query = nd_format("?labelSelector=" LABEL_QUERY "&limit=%d", REPLICAS),
                         *path = path_of(r, "", query);

        r->listing = true;
        r->asked_us = nd_clock_us();
        nd_strset(&r->asked, r->written);
        (void) nd_api_send(r->settings.api, &(struct nd_api_request) {.path = path,
                                                                      .timeout_us = request_timeout_us,
                                                                      .ceiling = LIST_BYTES,
                                                                      .done = on_list,
                                                                      .userdata = r});
}

/* ---- deciding on the next step ---- */

static bool is_written(const struct guard_replicas *r) {
        return r->written && !r->writing && nd_streq(r->written, r->object);
}

static void work(struct guard_replicas *r) {
        uint64_t now_us = nd_clock_us();

        if (!r->writing && (!r->written || !nd_streq(r->written, r->object) || now_us - r->renewed_us >= renew_interval_us))
                send_lease(r, false);
        if (is_written(r) && !r->listing &&
            (r->asked_us == 0 || now_us - r->asked_us >= (r->often ? tick_us : rare_interval_us) ||
             (r->often && (!r->known || !nd_streq(r->known, r->object)))))
                list_leases(r);
}

static int on_tick(sd_event_source *source, [[maybe_unused]] uint64_t now, void *userdata) {
        (void) sd_event_source_set_time_relative(source, tick_us);
        (void) sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        work(userdata);
        return 0;
}

void guard_replicas_act_on(struct guard_replicas *r, const char *object) {
        if (nd_streq(r->object, object))
                return;
        nd_strset(&r->object, object);
        work(r);
}

void guard_replicas_observe(struct guard_replicas *r, bool often) {
        bool begins = often && !r->often;

        r->often = often;
        if (begins)
                work(r);
}

const char *guard_replicas_missing(const struct guard_replicas *r) {
        const struct nd_map_slot *slot;
        uint64_t now_us = nd_clock_us();
        bool has_own = false;

        if (!r->known || !nd_streq(r->known, r->object))
                return r->settings.identity;
        for (size_t at = 0; (slot = nd_map_next(&r->replicas, &at));) {
                const struct replica *replica = slot->value;

                has_own = has_own || nd_streq(slot->key, r->name);
                if (now_us - replica->since_us < replica->lifetime_us && !nd_streq(replica->object, r->object))
                        return replica->holder;
        }
        return has_own ? nullptr : r->settings.identity;
}

struct guard_replicas *guard_replicas_new(const struct guard_replicas_settings *settings) {
        struct guard_replicas *r = nd_new(struct guard_replicas);

        r->settings = *settings;
        r->object = nd_strdup("");
        r->name = nd_format("nodens-%s-%016" PRIx64, settings->role, settings->number);
        if (sd_event_add_time_relative(nd_api_loop(settings->api), &r->timer, CLOCK_MONOTONIC, 0, 0, on_tick, r) < 0)
                abort(); /* out of memory, as everywhere */
        return r;
}

void guard_replicas_free(struct guard_replicas *r) {
        const struct nd_map_slot *slot;

        if (!r)
                return;
        sd_event_source_disable_unref(r->timer);
        for (size_t at = 0; (slot = nd_map_next(&r->replicas, &at));)
                free_replica(slot->value);
        nd_map_done(&r->replicas);
        free(r->name);
        free(r->object);
        free(r->written);
        free(r->asked);
        free(r->known);
        free(r);
}
