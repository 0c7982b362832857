/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/controller/store.h"

#include "base/log.h"
#include "net/api-objects.h"

enum {
        NODES_PER_PAGE = 25, /* a node's status is long */
        OBJECTS_PER_PAGE = 200,
};

static const char *const paths[] = {
        [KIND_SERVICE] = "/api/v1/services",
        [KIND_SLICE] = "/apis/discovery.k8s.io/v1/endpointslices",
        [KIND_POD] = "/api/v1/pods",
        [KIND_NODE] = "/api/v1/nodes",
};
static_assert(nd_count_of(paths) == KINDS);

static void drop_entry(void *entry, void *userdata) {
        const struct rootless_store_kind *kind = userdata;

        switch (kind->kind) {
        case KIND_SERVICE:
                rootless_service_free(entry);
                break;
        case KIND_SLICE:
                rootless_slice_free(entry);
                break;
        case KIND_POD:
                rootless_pod_free(entry);
                break;
        case KIND_NODE:
                rootless_node_info_free(entry);
                break;
        case KINDS:
                break;
        }
}

static struct nd_api_entry *read_entry(const struct rootless_store_kind *kind, yyjson_val *object) {
        const char *node_name = kind->store->settings.node_name;

        switch (kind->kind) {
        case KIND_SERVICE:
                return (struct nd_api_entry *) rootless_service_read(object);
        case KIND_SLICE:
                return (struct nd_api_entry *) rootless_slice_read(object, node_name);
        case KIND_POD:
                return (struct nd_api_entry *) rootless_pod_read(object, node_name);
        case KIND_NODE:
                return (struct nd_api_entry *) rootless_node_info_read(object);
        case KINDS:
                break;
        }
        return nullptr;
}

/* ---- events of a watch ---- */

static void forget_trouble(struct rootless_store_kind *kind) {
        free(nd_take_ptr(kind->trouble));
}

static void changed(struct rootless_store_kind *kind) {
        if (kind->kind != KIND_NODE)
                kind->store->settings.changed(kind->store->settings.userdata);
}

static void on_begin(void *userdata) {
        struct rootless_store_kind *kind = userdata;

        kind->ignored = 0;
        nd_api_table_begin(&kind->table);
}

static char *key_of(yyjson_val *object) {
        return nd_format("%s/%s", nd_api_namespace(object), nd_api_name(object));
}

static void on_removed(yyjson_val *object, void *userdata) {
        struct rootless_store_kind *kind = userdata;
        nd_autofree char *key = key_of(object);

        if (!nd_map_has(&kind->table.map, key))
                return;
        nd_api_table_remove(&kind->table, key);
        changed(kind);
}

/* Nothing but Nodes is kept of objects that ask for nothing. */
static void on_put(yyjson_val *object, void *userdata) {
        struct rootless_store_kind *kind = userdata;
        struct nd_api_entry *entry = read_entry(kind, object);
        nd_autofree char *key = key_of(object);

        forget_trouble(kind);
        if (!entry) {
                on_removed(object, kind);
                return;
        }
        if (kind->table.map.count >= STORE_OBJECTS && !nd_map_has(&kind->table.map, key)) {
                if (kind->ignored++ == 0)
                        nd_log(ND_LOG_WARNING, "too many objects; ignoring the rest", nd_field("path", paths[kind->kind]));
                drop_entry(entry, kind);
                return;
        }
        nd_api_table_put(&kind->table, key, entry);
        if (kind->kind == KIND_NODE)
                kind->store->settings.node_changed((const struct rootless_node_info *) entry, kind->store->settings.userdata);
        changed(kind);
}

static void on_listed(void *userdata) {
        struct rootless_store_kind *kind = userdata;

        nd_api_table_listed(&kind->table);
        forget_trouble(kind);
        changed(kind);
}

/* Logged once until an object arrives again: the watch retries without limit. That the API server
 * does not respond or refuses the credentials concerns all watches, and is logged elsewhere. */
static void on_trouble(const struct nd_error *error, void *userdata) {
        struct rootless_store_kind *kind = userdata;
        int status = nd_error_errno(error);
        bool is_of_kind = status >= 400 && status != 401;
        nd_autofree char *text =
                nd_format("cannot read %s: %s%s", paths[kind->kind], nd_error_text(error),
                          status == 403 ? "; `nodens-rootless manifest` prints the rights that the controller needs" : "");

        nd_log(is_of_kind && !kind->trouble ? ND_LOG_WARNING : ND_LOG_DEBUG, text);
        if (is_of_kind)
                nd_strset(&kind->trouble, text);
}

/* ---- starting ---- */

static void start_kind(struct rootless_store *store, enum rootless_kind number) {
        struct rootless_store_kind *kind = &store->kinds[number];

        *kind = (struct rootless_store_kind) {.store = store, .kind = number, .table = {.drop = drop_entry, .userdata = kind}};
        if (number == KIND_NODE && !store->settings.has_nodes)
                return;
        if (number == KIND_POD) /* the name is checked: nothing in it needs an escape */
                kind->query = nd_format("fieldSelector=spec.nodeName%%3D%s", store->settings.node_name);
        kind->watch = nd_api_watch_new(
                store->settings.api,
                &(struct nd_api_watch_settings) {.path = paths[number],
                                                 .query = kind->query,
                                                 .page = number == KIND_NODE ? NODES_PER_PAGE : OBJECTS_PER_PAGE,
                                                 .begin = on_begin,
                                                 .put = on_put,
                                                 .removed = on_removed,
                                                 .listed = on_listed,
                                                 .trouble = on_trouble,
                                                 .userdata = kind});
}

void rootless_store_start(struct rootless_store *store, const struct rootless_store_settings *settings) {
        store->settings = *settings;
        for (enum rootless_kind kind = 0; kind < KINDS; kind++)
                start_kind(store, kind);
}

void rootless_store_done(struct rootless_store *store) {
        for (enum rootless_kind kind = 0; kind < KINDS; kind++) {
                nd_api_watch_free(nd_take_ptr(store->kinds[kind].watch));
                if (store->kinds[kind].table.drop)
                        nd_api_table_done(&store->kinds[kind].table);
                free(nd_take_ptr(store->kinds[kind].query));
                free(nd_take_ptr(store->kinds[kind].trouble));
        }
}

/* ---- state ---- */

bool rootless_store_is_synced(const struct rootless_store *store) {
        for (enum rootless_kind kind = 0; kind < KIND_NODE; kind++)
                if (!store->kinds[kind].watch || !nd_api_watch_is_synced(store->kinds[kind].watch))
                        return false;
        return true;
}

const char *rootless_store_trouble(const struct rootless_store *store) {
        for (enum rootless_kind kind = 0; kind < KINDS; kind++)
                if (store->kinds[kind].trouble)
                        return store->kinds[kind].trouble;
        return nullptr;
}

const struct rootless_service *rootless_store_service(const struct rootless_store *store, const char *name) {
        return nd_map_get(&store->kinds[KIND_SERVICE].table.map, name);
}

static const void **values_of(const struct nd_map *map) {
        const void **values = nd_calloc(map->count > 0 ? map->count : 1, sizeof *values);
        const struct nd_map_slot *slot;
        size_t count = 0;

        for (size_t at = 0; (slot = nd_map_next(map, &at));)
                values[count++] = slot->value;
        return values;
}

struct rootless_wanted rootless_store_decide(const struct rootless_store *store, const struct rootless_port_policy *policy) {
        const struct nd_map *services = &store->kinds[KIND_SERVICE].table.map, *pods = &store->kinds[KIND_POD].table.map;
        nd_autofree const void **service_list = values_of(services), **pod_list = values_of(pods);
        nd_cleanup(nd_map_done) struct nd_map local = {};
        const struct nd_map_slot *slot;

        for (size_t at = 0; (slot = nd_map_next(&store->kinds[KIND_SLICE].table.map, &at));)
                (void) nd_map_put(&local, ((const struct rootless_slice *) slot->value)->service, slot->value);
        return rootless_wanted_decide(
                &(struct rootless_cluster_objects) {.services = (const struct rootless_service *const *) service_list,
                                                    .service_count = services->count,
                                                    .local = &local,
                                                    .pods = (const struct rootless_pod *const *) pod_list,
                                                    .pod_count = pods->count},
                policy);
}
