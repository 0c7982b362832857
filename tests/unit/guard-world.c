/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/guard-world.h>

#include <string.h>

#include "guard/install/install-manifest.h"

static void put(struct guard_world *world, yyjson_val *object) {
        yyjson_val *kind = yyjson_obj_get(object, "kind");

        if (yyjson_equals_str(kind, "SecurityContextConstraints"))
                guard_store_put_constraint(&world->store, object);
        else if (yyjson_equals_str(kind, "Namespace"))
                guard_store_put_namespace(&world->store, object);
        else if (yyjson_equals_str(kind, "Node"))
                guard_store_put_node(&world->store, object);
        else if (yyjson_equals_str(kind, "NodeVersionFloor"))
                guard_store_put_floor(&world->store, object);
        else if (yyjson_equals_str(kind, "RuntimeClass"))
                guard_store_put_runtime_class(&world->store, object);
        else if (yyjson_equals_str(kind, "ClusterRole"))
                guard_rbac_put_role(&world->rbac, GUARD_SCOPE_CLUSTER, object);
        else if (yyjson_equals_str(kind, "ClusterRoleBinding"))
                guard_rbac_put_binding(&world->rbac, GUARD_SCOPE_CLUSTER, object);
        else if (yyjson_equals_str(kind, "Role"))
                guard_rbac_put_role(&world->rbac, GUARD_SCOPE_NAMESPACE, object);
        else if (yyjson_equals_str(kind, "RoleBinding"))
                guard_rbac_put_binding(&world->rbac, GUARD_SCOPE_NAMESPACE, object);
        else
                abort();
}

void guard_world_tell(struct guard_world *world, const char *json) {
        nd_autojson yyjson_doc *doc = nullptr;

        if (nd_json_parse(json, strlen(json), 1 << 20, &doc))
                abort();
        put(world, yyjson_doc_get_root(doc));
}

void guard_world_make(struct guard_world *ret) {
        nd_autotext struct nd_text text = ND_TEXT(4 << 20);
        char *rest, *next;

        guard_store_init(&ret->store);
        guard_standards_init(&ret->standards);
        ret->store.standards = &ret->standards;
        guard_rbac_init(&ret->rbac, "security.nodens.io");
        guard_install_manifest_write(GUARD_INSTALL_CONSTRAINTS,
                                     &(struct guard_install_settings) {.group = "security.nodens.io"}, &text);
        for (rest = text.bytes; rest; rest = next) {
                next = strstr(rest, "\n---\n");
                if (next) {
                        *next = '\0';
                        next += strlen("\n---\n");
                }
                guard_world_tell(ret, rest);
        }
}

void guard_world_done(struct guard_world *world) {
        guard_store_done(&world->store);
        guard_rbac_done(&world->rbac);
        guard_standards_done(&world->standards);
}
