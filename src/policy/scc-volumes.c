/* SPDX-License-Identifier: Apache-2.0 */
/* scc-volumes.c - compares a pod's volumes with a constraint */
#include "policy/scc-fitting.h"

static bool config_map_is_standard(const struct nd_pod_config_map_source *source) {
        static const struct {
                const char *name;
                const char *key;
        } standard[] = {{"kube-root-ca.crt", "ca.crt"}, {"openshift-service-ca.crt", "service-ca.crt"}};

        for (size_t i = 0; i < nd_count_of(standard); i++)
                if (nd_scc_is(source->name, standard[i].name))
                        return source->items.count == 1 && nd_scc_is(source->items.items[0].key, standard[i].key) &&
                               nd_scc_is(source->items.items[0].path, standard[i].key);
        return false;
}

static bool downward_is_standard(const struct nd_pod_downward_source *source) {
        nd_list_each(item, &source->items) if (!nd_scc_is(item->path, "namespace") || !item->field_ref ||
                                               !nd_scc_is(item->field_ref->api_version, "v1") ||
                                               !nd_scc_is(item->field_ref->field_path, "metadata.namespace")) return false;
        return true;
}

/* The volume that every pod gets for its service account: a constraint that allows secrets allows
 * it too. */
static bool is_service_account_volume(const struct nd_pod_projected *projected) {
        nd_list_each(source, &projected->sources) {
                if (!source->token && !source->config_map && !source->downward)
                        return false;
                if (source->token && (!nd_scc_is(source->token->path, "token") || !nd_scc_is(source->token->audience, "")))
                        return false;
                if (source->config_map && !config_map_is_standard(source->config_map))
                        return false;
                if (source->downward && !downward_is_standard(source->downward))
                        return false;
        }
        return true;
}

bool nd_scc_allows_source(const struct nd_scc *scc, const struct nd_pod_volume *volume, enum nd_pod_volume_source source) {
        if (nd_scc_allows_volume(scc, nd_scc_volume_type(source)))
                return true;
        return source == ND_VOLUME_PROJECTED && nd_scc_allows_volume(scc, "secret") && volume->projected &&
               is_service_account_volume(volume->projected);
}

static void validate_volume(struct nd_scc_fitting *f, const struct nd_pod_volume *volume, size_t number) {
        if (volume->sources == 0 && !nd_shape_texts_have(&f->scc->volumes, "*"))
                nd_field_add(f->errors, ND_FIELD_INVALID, "\"\"",
                             nd_arena_format(f->arena, "unknown volume type for volume: %s", nd_kube_or_empty(volume->name)),
                             "spec.volumes[%zu]", number);
        for (enum nd_pod_volume_source source = 0; source < ND_VOLUME_SOURCES; source++) {
                const char *type = nd_scc_volume_type(source);

                if (!(volume->sources & nd_pod_volume_bit(source)) || nd_scc_allows_source(f->scc, volume, source))
                        continue;
                nd_field_add(f->errors, ND_FIELD_INVALID, nd_field_text(f->arena, type),
                             nd_arena_format(f->arena, "%s volumes are not allowed to be used", type), "spec.volumes[%zu]",
                             number);
        }
}

static void validate_flex_volume(struct nd_scc_fitting *f, const struct nd_pod_volume *volume, size_t number) {
        if (!volume->flex || f->scc->flex_volumes.count == 0 || !nd_scc_allows_volume(f->scc, "flexVolume"))
                return;
        nd_list_each(allowed, &f->scc->flex_volumes) if (nd_scc_is(allowed->driver, volume->flex->driver)) return;
        nd_field_add(f->errors, ND_FIELD_INVALID, nd_field_text(f->arena, nd_kube_or_empty(volume->flex->driver)),
                     "Flexvolume driver is not allowed to be used", "spec.volumes[%zu].driver", number);
}

void nd_scc_validate_volumes(struct nd_scc_fitting *f) {
        for (size_t i = 0; i < f->pod->spec.volumes.count; i++) {
                validate_volume(f, &f->pod->spec.volumes.items[i], i);
                validate_flex_volume(f, &f->pod->spec.volumes.items[i], i);
        }
}
