/* SPDX-License-Identifier: Apache-2.0 */
/* watches.c - see watches.h
 *
 * Theory of operation
 *   Roles are listed before bindings, as only bindings to roles that grant something are kept (see
 *   rbac.h). When a role begins to grant something later, bindings are listed again, at most every
 *   @relist_interval_us; until then the index may allow, and its denials do not count.
 *   guard_watches_are_ready() is false until every list was read once, and again while namespaces
 *   and constraints are not known to be current (api-watch.h): a label that enforces may have been
 *   set meanwhile. */
#include "guard/cluster/watches.h"

#include "base/clock.h"
#include "base/log.h"
#include "net/api-objects.h"

enum {
        NODES_PER_PAGE = 25, /* a node's status is long */
        /* pages take most of the memory while the lists of all kinds are read */
        OBJECTS_PER_PAGE = 100,
};

/* The delay lets one list serve many new grants. */
static constexpr uint64_t relist_delay_us = 1 * ND_SECOND_US;
static constexpr uint64_t relist_interval_us = 10 * ND_SECOND_US;
/* An API server that has just started answers 403 until it has read roles and bindings. */
static constexpr uint64_t forbidden_us = 30 * ND_SECOND_US;

static void schedule_relist(struct guard_watches *w);

static bool is_of_roles(enum guard_kind kind) {
        return kind == GUARD_KIND_ROLE || kind == GUARD_KIND_CLUSTER_ROLE;
}

static bool is_of_bindings(enum guard_kind kind) {
        return kind == GUARD_KIND_BINDING || kind == GUARD_KIND_CLUSTER_BINDING;
}

static enum guard_scope scope_of(enum guard_kind kind) {
        return kind == GUARD_KIND_ROLE || kind == GUARD_KIND_BINDING ? GUARD_SCOPE_NAMESPACE : GUARD_SCOPE_CLUSTER;
}

static struct nd_api_table *table_of(const struct guard_watch *watch) {
        struct guard_store *store = watch->watches->settings.store;
        struct guard_rbac *rbac = watch->watches->settings.rbac;

        switch (watch->kind) {
        case GUARD_KIND_CONSTRAINT:
                return &store->constraints;
        case GUARD_KIND_NAMESPACE:
                return &store->namespaces;
        case GUARD_KIND_FLOOR:
                return &store->floors;
        case GUARD_KIND_NODE:
                return &store->nodes;
        case GUARD_KIND_RUNTIME_CLASS:
                return &store->runtime_classes;
        case GUARD_KIND_ROLE:
        case GUARD_KIND_CLUSTER_ROLE:
                return &rbac->roles[scope_of(watch->kind)];
        case GUARD_KIND_BINDING:
        case GUARD_KIND_CLUSTER_BINDING:
                return &rbac->bindings[scope_of(watch->kind)];
        case GUARD_KINDS:
                break;
        }
        abort();
}

/* ---- events of a watch ---- */

static void on_begin(void *userdata) {
        nd_api_table_begin(table_of(userdata));
}

static void forget_trouble(struct guard_watch *watch) {
        watch->forbidden_us = 0;
        watch->is_unavailable = false;
        if (watch->trouble)
                free(nd_take_ptr(watch->trouble));
}

static bool is_of_nodes(enum guard_kind kind) {
        return kind == GUARD_KIND_FLOOR || kind == GUARD_KIND_NODE;
}

static void report_nodes(const struct guard_watch *watch) {
        const struct guard_watches *w = watch->watches;

        if (is_of_nodes(watch->kind) && w->settings.nodes_changed)
                w->settings.nodes_changed(w->settings.userdata);
}

/* With another label of pools, nodes must be read again. */
static void put_floor(struct guard_watches *w, yyjson_val *object) {
        struct guard_store *store = w->settings.store;

        guard_store_put_floor(store, object);
        if (!store->pool_label_is_new)
                return;
        store->pool_label_is_new = false;
        if (w->kinds[GUARD_KIND_NODE].watch)
                nd_api_watch_relist(w->kinds[GUARD_KIND_NODE].watch);
}

static void on_put(yyjson_val *object, void *userdata) {
        struct guard_watch *watch = userdata;
        struct guard_watches *w = watch->watches;

        forget_trouble(watch);
        switch (watch->kind) {
        case GUARD_KIND_CONSTRAINT:
                guard_store_put_constraint(w->settings.store, object);
                break;
        case GUARD_KIND_NAMESPACE:
                guard_store_put_namespace(w->settings.store, object);
                if (w->allocator)
                        guard_allocator_wake(w->allocator);
                break;
        case GUARD_KIND_FLOOR:
                put_floor(w, object);
                break;
        case GUARD_KIND_NODE:
                guard_store_put_node(w->settings.store, object);
                break;
        case GUARD_KIND_RUNTIME_CLASS:
                guard_store_put_runtime_class(w->settings.store, object);
                break;
        case GUARD_KIND_ROLE:
        case GUARD_KIND_CLUSTER_ROLE:
                guard_rbac_put_role(w->settings.rbac, scope_of(watch->kind), object);
                schedule_relist(w);
                break;
        case GUARD_KIND_BINDING:
        case GUARD_KIND_CLUSTER_BINDING:
                guard_rbac_put_binding(w->settings.rbac, scope_of(watch->kind), object);
                break;
        case GUARD_KINDS:
                break;
        }
        report_nodes(watch);
}

static void on_removed(yyjson_val *object, void *userdata) {
        struct guard_watch *watch = userdata;
        struct guard_rbac *rbac = watch->watches->settings.rbac;

        if (is_of_roles(watch->kind))
                guard_rbac_remove_role(rbac, scope_of(watch->kind), object);
        else if (is_of_bindings(watch->kind))
                guard_rbac_remove_binding(rbac, scope_of(watch->kind), object);
        else
                nd_api_table_remove(table_of(watch), nd_api_name(object));
        report_nodes(watch);
}

static const char *remedy(const struct guard_watch *watch, int status) {
        if (status == 403)
                return "; `nodens-guard manifest rbac` prints the rights that the guard needs";
        if (status == 404 && (watch->kind == GUARD_KIND_CONSTRAINT || watch->kind == GUARD_KIND_FLOOR))
                return "; `nodens-guard manifest crd` prints the missing definition";
        return "";
}

/* Whether a 403 may be that of an API server that is starting: the rights were there before. */
static bool may_pass(struct guard_watch *watch, int status) {
        if (status != 403 || !nd_api_watch_is_synced(watch->watch))
                return false;
        if (watch->forbidden_us == 0)
                watch->forbidden_us = nd_clock_us();
        return nd_clock_us() - watch->forbidden_us < forbidden_us;
}

static void report_ready(struct guard_watches *w);

/* A missing definition means that the cluster has no floor. If the floor must not be read, all
 * relaxations are off too, but the authorizer cannot assume that the cluster has none. */
static void lack_floor(struct guard_watch *watch, int status) {
        watch->is_unavailable =
                status == 404 || (status == 403 && watch->watches->settings.kinds != GUARD_KINDS_OF_AUTHORIZER);
        if (status == 404) {
                nd_api_table_begin(table_of(watch));
                nd_api_table_listed(table_of(watch));
                report_nodes(watch);
        }
        report_ready(watch->watches);
}

/* Logged once until an object arrives again: the watch retries without limit. What concerns all
 * watches is logged by credentials.c: that the API server does not respond (no HTTP status), and
 * that it refuses the credentials. */
static void on_trouble(const struct nd_error *error, void *userdata) {
        struct guard_watch *watch = userdata;
        int status = nd_error_errno(error);
        nd_autofree char *text = nd_format("cannot read %s: %s%s", watch->path, nd_error_text(error), remedy(watch, status));
        bool is_of_kind = status >= 400 && status != 401 && !may_pass(watch, status);

        nd_log(is_of_kind && !watch->trouble ? ND_LOG_WARNING : ND_LOG_DEBUG, text);
        if (is_of_kind)
                nd_strset(&watch->trouble, text);
        if (is_of_kind && watch->kind == GUARD_KIND_FLOOR)
                lack_floor(watch, status);
}

static void on_listed(void *userdata);

/* ---- starting ---- */

static char *path_of(const struct guard_watches *w, enum guard_kind kind) {
        static const char *const paths[] = {
                [GUARD_KIND_CONSTRAINT] = nullptr, /* its group is configured */
                [GUARD_KIND_NAMESPACE] = "/api/v1/namespaces",
                [GUARD_KIND_FLOOR] = ("/apis/" GUARD_FLOOR_GROUP "/v1/nodeversionfloors"),
                [GUARD_KIND_NODE] = "/api/v1/nodes",
                [GUARD_KIND_RUNTIME_CLASS] = "/apis/node.k8s.io/v1/runtimeclasses",
                [GUARD_KIND_ROLE] = "/apis/rbac.authorization.k8s.io/v1/roles",
                [GUARD_KIND_CLUSTER_ROLE] = "/apis/rbac.authorization.k8s.io/v1/clusterroles",
                [GUARD_KIND_BINDING] = "/apis/rbac.authorization.k8s.io/v1/rolebindings",
                [GUARD_KIND_CLUSTER_BINDING] = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        };
        static_assert(nd_count_of(paths) == GUARD_KINDS);

        if (kind == GUARD_KIND_CONSTRAINT)
                return nd_format("/apis/%s/v1/securitycontextconstraints", w->settings.group);
        return nd_strdup(paths[kind]);
}

static bool is_wanted(const struct guard_watches *w, enum guard_kind kind) {
        return w->settings.kinds & GUARD_KIND_BIT(kind);
}

/* Kinds whose age decides. */
static bool may_be_stale(const struct guard_watches *w, enum guard_kind kind) {
        return kind <= GUARD_KIND_FLOOR || w->settings.kinds == GUARD_KINDS_OF_AUTHORIZER;
}

static void start_watch(struct guard_watches *w, enum guard_kind kind) {
        struct guard_watch *watch = &w->kinds[kind];

        *watch = (struct guard_watch) {.watches = w, .kind = kind, .path = path_of(w, kind)};
        watch->watch = nd_api_watch_new(
                w->settings.api,
                &(struct nd_api_watch_settings) {.path = watch->path,
                                                 .page = kind == GUARD_KIND_NODE ? NODES_PER_PAGE : OBJECTS_PER_PAGE,
                                                 .stale_us = may_be_stale(w, kind) ? w->settings.stale_us : 0,
                                                 .begin = on_begin,
                                                 .put = on_put,
                                                 .removed = on_removed,
                                                 .listed = on_listed,
                                                 .trouble = on_trouble,
                                                 .userdata = watch});
}

/* Bindings are listed after roles: most of them are to roles that grant nothing about constraints,
 * and are not kept. */
static void start_watches(struct guard_watches *w, bool bindings) {
        for (enum guard_kind kind = 0; kind < GUARD_KINDS; kind++)
                if (is_wanted(w, kind) && is_of_bindings(kind) == bindings && !w->kinds[kind].watch)
                        start_watch(w, kind);
        w->listing_generation = w->settings.rbac->role_generation;
}

static bool is_synced(const struct guard_watches *w, enum guard_kind kind) {
        return w->kinds[kind].watch && nd_api_watch_is_synced(w->kinds[kind].watch);
}

static bool is_listed(const struct guard_watches *w, enum guard_kind kind) {
        return is_synced(w, kind) && !nd_api_watch_is_listing(w->kinds[kind].watch);
}

/* ---- listing bindings again ---- */

static int on_relist([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t now, void *userdata) {
        struct guard_watches *w = userdata;

        w->relisted_us = nd_clock_us();
        w->listing_generation = w->settings.rbac->role_generation;
        for (enum guard_kind kind = GUARD_KIND_BINDING; kind <= GUARD_KIND_CLUSTER_BINDING; kind++)
                nd_api_watch_relist(w->kinds[kind].watch);
        return 0;
}

/* Bindings to roles that have begun to grant something were not kept. */
static void schedule_relist(struct guard_watches *w) {
        uint64_t since = nd_clock_us() - w->relisted_us, wait;
        int enabled = SD_EVENT_OFF;

        if (w->settings.rbac->role_generation == w->listing_generation || !is_synced(w, GUARD_KIND_BINDING) ||
            !is_synced(w, GUARD_KIND_CLUSTER_BINDING))
                return;
        if (sd_event_source_get_enabled(w->relist_timer, &enabled) >= 0 && enabled != SD_EVENT_OFF)
                return;
        wait = since > relist_interval_us ? relist_delay_us : relist_interval_us - since;
        (void) sd_event_source_set_time_relative(w->relist_timer, wait > relist_delay_us ? wait : relist_delay_us);
        (void) sd_event_source_set_enabled(w->relist_timer, SD_EVENT_ONESHOT);
}

static void report_ready(struct guard_watches *w) {
        if (w->ready || !guard_watches_are_ready(w))
                return;
        w->ready = true;
        w->settings.ready(w->settings.userdata);
}

static void on_listed(void *userdata) {
        struct guard_watch *watch = userdata;
        struct guard_watches *w = watch->watches;

        nd_api_table_listed(table_of(watch));
        forget_trouble(watch);
        if (is_synced(w, GUARD_KIND_ROLE) && is_synced(w, GUARD_KIND_CLUSTER_ROLE))
                start_watches(w, true);
        if (is_of_bindings(watch->kind) && is_listed(w, GUARD_KIND_BINDING) && is_listed(w, GUARD_KIND_CLUSTER_BINDING))
                w->listed_generation = w->listing_generation;
        schedule_relist(w);
        report_nodes(watch);
        report_ready(w);
}

/* ---- state ---- */

bool guard_watches_are_ready(const struct guard_watches *w) {
        for (enum guard_kind kind = 0; kind < GUARD_KINDS; kind++)
                if (is_wanted(w, kind) && !is_synced(w, kind) && !w->kinds[kind].is_unavailable)
                        return false;
        return guard_watches_are_current(w);
}

static bool is_current(const struct guard_watches *w, enum guard_kind kind) {
        return w->kinds[kind].watch && nd_api_watch_is_current(w->kinds[kind].watch);
}

bool guard_watches_are_current(const struct guard_watches *w) {
        if (w->settings.kinds == GUARD_KINDS_OF_AUTHORIZER)
                return is_current(w, GUARD_KIND_NODE) &&
                       (is_current(w, GUARD_KIND_FLOOR) || w->kinds[GUARD_KIND_FLOOR].is_unavailable);
        return is_current(w, GUARD_KIND_NAMESPACE) && is_current(w, GUARD_KIND_CONSTRAINT);
}

uint32_t guard_watches_gates_off(const struct guard_watches *w) {
        return is_synced(w, GUARD_KIND_FLOOR) && is_current(w, GUARD_KIND_FLOOR) ? guard_store_gates_off(w->settings.store)
                                                                                 : ND_FLOOR_ALL;
}

const char *guard_watches_trouble(const struct guard_watches *w) {
        for (enum guard_kind kind = 0; kind < GUARD_KINDS; kind++) {
                bool is_missing = !is_synced(w, kind) ||
                                  (kind <= GUARD_KIND_NAMESPACE && !nd_api_watch_is_current(w->kinds[kind].watch));

                if (is_missing && !w->kinds[kind].is_unavailable && w->kinds[kind].trouble)
                        return w->kinds[kind].trouble;
        }
        return nullptr;
}

bool guard_watches_have_fresh_rbac(const struct guard_watches *w) {
        for (enum guard_kind kind = GUARD_KIND_ROLE; kind <= GUARD_KIND_CLUSTER_BINDING; kind++)
                if (!w->kinds[kind].watch || !nd_api_watch_is_fresh(w->kinds[kind].watch))
                        return false;
        return true;
}

bool guard_watches_have_whole_rbac(const struct guard_watches *w) {
        return w->settings.rbac->role_generation == w->listed_generation;
}

struct nd_error *guard_watches_start(struct guard_watches *w, const struct guard_watches_settings *settings) {
        int r;

        w->settings = *settings;
        r = sd_event_add_time_relative(settings->loop, &w->relist_timer, CLOCK_MONOTONIC, 0, 0, on_relist, w);
        if (r >= 0)
                r = sd_event_source_set_enabled(w->relist_timer, SD_EVENT_OFF);
        if (r < 0)
                return nd_error_new(ND_INTERNAL, -r, "start the timer for listing bindings");
        start_watches(w, false);
        return nullptr;
}

void guard_watches_done(struct guard_watches *w) {
        w->relist_timer = sd_event_source_disable_unref(w->relist_timer);
        for (enum guard_kind kind = 0; kind < GUARD_KINDS; kind++) {
                nd_api_watch_free(nd_take_ptr(w->kinds[kind].watch));
                free(nd_take_ptr(w->kinds[kind].path));
                free(nd_take_ptr(w->kinds[kind].trouble));
        }
}
