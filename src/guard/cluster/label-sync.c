/* SPDX-License-Identifier: Apache-2.0 */
/* label-sync.c - see label-sync.h
 *
 * Theory of operation
 *   Every @tick_interval_us the leader looks for namespaces that opt in and were not looked at
 *   since namespace, constraints, roles or bindings changed, or for @again_interval_us, in which
 *   service accounts may have changed. It lists the service accounts of each, computes the level
 *   and compares it with the labels in the store. A level that differs is written by server-side
 *   apply, without force, with a field manager for each label: so the API server refuses to change
 *   a label that another writer owns, and the other labels are written nevertheless. The uid in the
 *   patch keeps it from a namespace that was created again without opting in.
 *   Nothing is written on grounds of data that may be old: neither while the watches are not
 *   current nor while bindings are missing in the index.
 * Owns  @checks, and the requests in flight; nd_api_stop() ends them before this object.
 * Invariant  at most @AT_ONCE namespaces are looked at, each with at most three requests. */
#include "guard/cluster/label-sync.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"
#include "net/api-objects.h"
#include "policy/scc-level.h"

enum {
        AT_ONCE = 8,
        ACCOUNTS_PER_PAGE = 500,
        ACCOUNTS = 20000, /* of a namespace; one with more is left alone */
        LIST_BYTES = 8 << 20,
        PATH_BYTES = 4096,
        BODY_BYTES = 4096,
};

static constexpr uint64_t tick_interval_us = 2 * ND_SECOND_US;
static constexpr uint64_t again_interval_us = 60 * ND_SECOND_US;
static constexpr uint64_t request_timeout_us = 10 * ND_SECOND_US;
#define MANAGER "nodens-guard-pod-security-"

static const char *const kinds[] = {"enforce", "warn", "audit"};
static_assert(nd_count_of(kinds) == GUARD_SYNCED_LABELS);

enum verdict {
        UNKNOWN,
        SYNCED,
        PENDING,
        FOREIGN,
};

/* What is known about one namespace. */
struct check {
        struct guard_label_sync *sync;
        char *name;
        /* of the last look */
        uint64_t looked_us, rbac_changes, constraint_changes;
        char *version; /* of the namespace */
        enum verdict verdict;
        /* of the look in progress */
        bool is_busy;
        unsigned writing; /* requests in flight */
        size_t accounts;
        bool has_level;
        enum nd_podsecurity_level level;
        char *reported; /* what was logged last */
};

struct guard_label_sync {
        struct guard_label_sync_settings settings;
        sd_event_source *timer;
        struct nd_map checks; /* namespace -> struct check */
        unsigned in_flight;
        uint64_t written;
        bool troubled; /* the last request failed, and this was logged */
};

bool guard_label_sync_may_write(const char *namespace, const char *own) {
        return !nd_has_prefix(namespace, "kube-") && !nd_has_prefix(namespace, "openshift-") && !nd_streq(namespace, own);
}

static void check_free(struct check *check) {
        free(check->name);
        free(check->version);
        free(check->reported);
        free(check);
}

static struct guard_store *store_of(const struct guard_label_sync *s) {
        return s->settings.watches->settings.store;
}

static const struct guard_rbac *rbac_of(const struct guard_label_sync *s) {
        return s->settings.watches->settings.rbac;
}

static const struct guard_synced *labels_of(const struct check *check) {
        const struct guard_namespace *namespace = guard_store_namespace(store_of(check->sync), check->name);

        return namespace ? namespace->synced : nullptr;
}

/* ---- reports ---- */

/* Once for each text, so that a namespace that stays as it is does not fill the log. */
static void report(struct check *check, const char *text) {
        if (check->reported && nd_streq(check->reported, text))
                return;
        nd_strset(&check->reported, text);
        nd_log(ND_LOG_INFO, text, nd_field("namespace", check->name));
}

static void note_failure(struct guard_label_sync *s, const struct nd_error *error) {
        if (!s->troubled && s->settings.log)
                s->settings.log("cannot synchronize labels of pod security", error, s->settings.userdata);
        s->troubled = true;
}

/* ---- the level ---- */

static bool may_use(const struct check *check, const struct nd_scc *scc, const struct guard_subject *subject) {
        return guard_subject_is_listed(subject, scc) ||
               guard_rbac_allows(rbac_of(check->sync), subject, check->name, scc->metadata.name);
}

/* Adds what a service account may use. */
static void add_account(struct check *check, const char *account) {
        const struct nd_scc_set *set = guard_store_set(store_of(check->sync));
        nd_autoarena struct nd_arena arena = {};
        struct guard_subject subject = guard_subject_of_account(check->name, account, true, &arena);

        for (size_t i = 0; i < set->count; i++) {
                enum nd_podsecurity_level level = nd_scc_level(set->plain[i]);

                if ((check->has_level && level >= check->level) || !may_use(check, set->plain[i], &subject))
                        continue;
                check->level = level;
                check->has_level = true;
        }
}

/* ---- writing ---- */

static void end_look(struct check *check, enum verdict verdict) {
        check->verdict = verdict;
        check->is_busy = false;
}

static void on_written(const struct nd_api_answer *answer, void *userdata) {
        struct check *check = userdata;
        struct guard_label_sync *s = check->sync;

        nd_assert(s->in_flight > 0 && check->writing > 0);
        s->in_flight--;
        check->writing--;
        if (!answer->error) {
                s->written++;
                s->troubled = false;
        } else if (answer->status == 409) {
                check->verdict = FOREIGN;
        } else if (answer->status != 404) {
                note_failure(s, answer->error);
                check->looked_us = 0; /* again in the next tick */
        }
        if (check->writing == 0)
                end_look(check, check->verdict);
}

static void write_label(struct check *check, const struct guard_synced *labels, const char *kind) {
        nd_autotext struct nd_text path = ND_TEXT(PATH_BYTES), body = ND_TEXT(BODY_BYTES);
        nd_autofree char *label = nd_format(ND_PODSECURITY_PREFIX "%s", kind);
        nd_autofree char *version = nd_format(ND_PODSECURITY_PREFIX "%s-version", kind);
        struct nd_json_out out = {.text = &body};

        nd_text_add(&path, "/api/v1/namespaces/");
        nd_api_escape(&path, check->name);
        nd_text_addf(&path, "?fieldManager=" MANAGER "%s", kind);
        nd_json_open(&out, nullptr, '{');
        nd_json_string(&out, "apiVersion", "v1");
        nd_json_string(&out, "kind", "Namespace");
        nd_json_open(&out, "metadata", '{');
        nd_json_string(&out, "name", check->name);
        nd_json_string(&out, "uid", labels->uid);
        nd_json_open(&out, "labels", '{');
        nd_json_string(&out, label, nd_podsecurity_level_name(check->level));
        nd_json_string(&out, version, "latest");
        nd_json_close(&out, '}');
        nd_json_close(&out, '}');
        nd_json_close(&out, '}');
        check->sync->in_flight++;
        check->writing++;
        (void) nd_api_send(check->sync->settings.api, &(struct nd_api_request) {.method = "PATCH",
                                                                                .path = nd_text_get(&path),
                                                                                .body = nd_text_get(&body),
                                                                                .content_type = "application/apply-patch+yaml",
                                                                                .timeout_us = request_timeout_us,
                                                                                .ceiling = LIST_BYTES,
                                                                                .done = on_written,
                                                                                .userdata = check});
}

static bool has_level(const struct guard_synced *labels, size_t kind, enum nd_podsecurity_level level) {
        return labels->levels[kind] && nd_streq(labels->levels[kind], nd_podsecurity_level_name(level));
}

static void write_labels(struct check *check, const struct guard_synced *labels) {
        nd_autofree char *text =
                nd_format("%s: pod security %s, by the constraints that its service accounts may use",
                          check->sync->settings.writes ? "labelling a namespace" : "would label a namespace (dry run)",
                          nd_podsecurity_level_name(check->level));

        report(check, text);
        check->verdict = PENDING;
        for (size_t kind = 0; check->sync->settings.writes && kind < nd_count_of(kinds); kind++)
                if (!has_level(labels, kind, check->level))
                        write_label(check, labels, kinds[kind]);
        if (check->writing == 0)
                end_look(check, PENDING);
}

static void compare(struct check *check) {
        const struct guard_synced *labels = labels_of(check);
        bool is_right = true;

        if (!labels || !check->has_level) { /* no service account, or none that may use anything */
                if (check->accounts == 0)
                        check->looked_us = 0; /* a new namespace: again in the next tick */
                end_look(check, UNKNOWN);
                return;
        }
        for (size_t kind = 0; kind < nd_count_of(kinds); kind++)
                is_right &= has_level(labels, kind, check->level);
        if (is_right)
                end_look(check, SYNCED);
        else
                write_labels(check, labels);
}

/* ---- service accounts ---- */

static void list_accounts(struct check *check, const char *continuation);

static struct nd_error *read_page(struct check *check, const struct nd_api_answer *answer, char **ret_continuation) {
        nd_cleanup(nd_api_page_done) struct nd_api_page page = {};
        yyjson_arr_iter items;
        yyjson_val *item;

        nd_try(nd_api_page_parse(answer->body, answer->length, &page));
        items = yyjson_arr_iter_with(page.items);
        while ((item = yyjson_arr_iter_next(&items)))
                add_account(check, nd_api_name(item));
        check->accounts += yyjson_arr_size(page.items);
        if (*page.continuation && check->accounts > ACCOUNTS)
                return nd_error_new(ND_INVALID, 0, "namespace '%s' has more than %d service accounts", check->name, ACCOUNTS);
        *ret_continuation = *page.continuation ? nd_strdup(page.continuation) : nullptr;
        return nullptr;
}

static void on_accounts(const struct nd_api_answer *answer, void *userdata) {
        struct check *check = userdata;
        struct guard_label_sync *s = check->sync;
        nd_autofree char *continuation = nullptr;
        nd_autoerror struct nd_error *error = nullptr;

        nd_assert(s->in_flight > 0);
        s->in_flight--;
        if (!answer->error)
                error = read_page(check, answer, &continuation);
        if (answer->error || error) {
                if (answer->status != 404)
                        note_failure(s, error ? error : answer->error);
                if (answer->error)
                        check->looked_us = 0; /* again in the next tick */
                end_look(check, UNKNOWN);
                return;
        }
        s->troubled = false;
        if (continuation)
                list_accounts(check, continuation);
        else
                compare(check);
}

static void list_accounts(struct check *check, const char *continuation) {
        nd_autotext struct nd_text path = ND_TEXT(PATH_BYTES);

        nd_text_add(&path, "/api/v1/namespaces/");
        nd_api_escape(&path, check->name);
        nd_text_addf(&path, "/serviceaccounts?limit=%d", ACCOUNTS_PER_PAGE);
        if (continuation) {
                nd_text_add(&path, "&continue=");
                nd_api_escape(&path, continuation);
        }
        check->sync->in_flight++;
        (void) nd_api_send(check->sync->settings.api, &(struct nd_api_request) {.path = nd_text_get(&path),
                                                                                .timeout_us = request_timeout_us,
                                                                                .ceiling = LIST_BYTES,
                                                                                .done = on_accounts,
                                                                                .userdata = check});
}

/* ---- rounds ---- */

static bool leads(const struct guard_label_sync *s) {
        const struct guard_watches *w = s->settings.watches;

        return !w->allocator || guard_allocator_leads(w->allocator);
}

static bool may_decide(const struct guard_label_sync *s) {
        const struct guard_watches *w = s->settings.watches;

        return leads(s) && guard_watches_are_ready(w) && guard_watches_have_fresh_rbac(w) && guard_watches_have_whole_rbac(w);
}

static bool is_due(const struct check *check, const struct guard_synced *labels, uint64_t now_us) {
        const struct guard_label_sync *s = check->sync;

        return !check->is_busy &&
               (check->looked_us == 0 || now_us - check->looked_us >= again_interval_us ||
                check->rbac_changes != rbac_of(s)->changes || check->constraint_changes != store_of(s)->constraint_changes ||
                !nd_streq(nd_kube_or_empty(check->version), labels->version));
}

static void look(struct check *check, const struct guard_synced *labels, uint64_t now_us) {
        check->looked_us = now_us;
        check->rbac_changes = rbac_of(check->sync)->changes;
        check->constraint_changes = store_of(check->sync)->constraint_changes;
        nd_strset(&check->version, labels->version);
        check->is_busy = true;
        check->accounts = 0;
        check->has_level = false;
        list_accounts(check, nullptr);
}

static struct check *check_of(struct guard_label_sync *s, const char *name) {
        struct check *check = nd_map_get(&s->checks, name);

        if (check)
                return check;
        check = nd_new(struct check);
        check->sync = s;
        check->name = nd_strdup(name);
        (void) nd_map_put(&s->checks, name, check);
        return check;
}

/* Namespaces that do not opt in any more, or are gone. */
static void forget_others(struct guard_label_sync *s) {
        nd_vector(struct check *) gone = {};
        const struct nd_map_slot *slot;

        for (size_t at = 0; (slot = nd_map_next(&s->checks, &at));) {
                struct check *check = slot->value;

                if (!check->is_busy && !labels_of(check))
                        nd_vector_push(&gone, check);
        }
        nd_vector_each (check, &gone) {
                (void) nd_map_remove(&s->checks, (*check)->name);
                check_free(*check);
        }
        nd_vector_done(&gone);
}

static void look_at_all(struct guard_label_sync *s) {
        uint64_t now_us = nd_clock_us();
        const struct nd_map_slot *slot;

        for (size_t at = 0; s->in_flight < AT_ONCE && (slot = nd_map_next(&store_of(s)->namespaces.map, &at));) {
                const struct guard_namespace *namespace = slot->value;
                struct check *check;

                if (!namespace->synced || !guard_label_sync_may_write(slot->key, s->settings.namespace))
                        continue;
                check = check_of(s, slot->key);
                if (is_due(check, namespace->synced, now_us))
                        look(check, namespace->synced, now_us);
        }
}

static int on_tick(sd_event_source *source, [[maybe_unused]] uint64_t now, void *userdata) {
        struct guard_label_sync *s = userdata;

        (void) sd_event_source_set_time_relative(source, tick_interval_us);
        (void) sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        forget_others(s);
        if (may_decide(s))
                look_at_all(s);
        return 0;
}

struct guard_label_sync *guard_label_sync_new(const struct guard_label_sync_settings *settings) {
        struct guard_label_sync *s = nd_new(struct guard_label_sync);

        s->settings = *settings;
        if (sd_event_add_time_relative(nd_api_loop(settings->api), &s->timer, CLOCK_MONOTONIC, 0, 0, on_tick, s) < 0)
                abort(); /* out of memory, as everywhere */
        return s;
}

void guard_label_sync_free(struct guard_label_sync *s) {
        const struct nd_map_slot *slot;

        if (!s)
                return;
        sd_event_source_disable_unref(s->timer);
        for (size_t at = 0; (slot = nd_map_next(&s->checks, &at));)
                check_free(slot->value);
        nd_map_done(&s->checks);
        free(s);
}

struct guard_label_sync_counts guard_label_sync_count(const struct guard_label_sync *s) {
        struct guard_label_sync_counts counts = {};
        const struct nd_map_slot *slot;

        if (!s)
                return counts;
        counts.written = s->written;
        for (size_t at = 0; leads(s) && (slot = nd_map_next(&s->checks, &at));) {
                const struct check *check = slot->value;

                counts.synced += check->verdict == SYNCED;
                counts.pending += check->verdict == PENDING;
                counts.foreign += check->verdict == FOREIGN;
        }
        return counts;
}
