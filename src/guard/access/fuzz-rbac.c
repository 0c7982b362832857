/* SPDX-License-Identifier: Apache-2.0 */
/* [{"kind": ..., "remove": true, ...object}, ...]: for any sequence, the index holds no bindings
 * after all were removed, and then allows nothing. */
#include <string.h>

#include <unit/fuzz.h>

#include "guard/access/rbac.h"

enum {
        CEILING = 1 << 16,
};

static void apply(struct guard_rbac *rbac, yyjson_val *object) {
        static const struct {
                const char *kind;
                enum guard_scope scope;
                bool binding;
        } kinds[] = {{"Role", GUARD_SCOPE_NAMESPACE, false},
                     {"ClusterRole", GUARD_SCOPE_CLUSTER, false},
                     {"RoleBinding", GUARD_SCOPE_NAMESPACE, true},
                     {"ClusterRoleBinding", GUARD_SCOPE_CLUSTER, true}};
        bool remove = yyjson_is_true(yyjson_obj_get(object, "remove"));

        for (size_t i = 0; i < nd_count_of(kinds); i++) {
                if (!yyjson_equals_str(yyjson_obj_get(object, "kind"), kinds[i].kind))
                        continue;
                if (kinds[i].binding)
                        (remove ? guard_rbac_remove_binding : guard_rbac_put_binding)(rbac, kinds[i].scope, object);
                else
                        (remove ? guard_rbac_remove_role : guard_rbac_put_role)(rbac, kinds[i].scope, object);
        }
}

static void drop_all(struct nd_api_table *table) {
        nd_api_table_begin(table);
        nd_api_table_listed(table);
        fuzz_require(table->map.count == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_cleanup(guard_rbac_done) struct guard_rbac rbac = {};
        nd_autoerror struct nd_error *error = nullptr;
        nd_autojson yyjson_doc *doc = nullptr;
        yyjson_arr_iter objects;
        yyjson_val *object;
        const char *group = "g";
        struct guard_subject subject = {.name = "alice", .uid = "", .groups = {.items = &group, .count = 1}};

        error = nd_json_parse((const char *) data, size, CEILING, &doc);
        if (error)
                return 0;
        guard_rbac_init(&rbac, "security.nodens.io");
        objects = yyjson_arr_iter_with(yyjson_doc_get_root(doc));
        while ((object = yyjson_arr_iter_next(&objects)))
                apply(&rbac, object);
        if (guard_rbac_allows(&rbac, &subject, "n", "anyuid"))
                fuzz_require(rbac.bound.count > 0 && rbac.roles[0].map.count + rbac.roles[1].map.count > 0);
        drop_all(&rbac.bindings[GUARD_SCOPE_NAMESPACE]);
        drop_all(&rbac.bindings[GUARD_SCOPE_CLUSTER]);
        fuzz_require(rbac.bound.count == 0);
        fuzz_require(!guard_rbac_allows(&rbac, &subject, "n", "anyuid"));
        return 0;
}
