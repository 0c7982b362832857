/* SPDX-License-Identifier: Apache-2.0 */
/* Labels and annotations of a namespace, as an object of strings: there always is a policy, invalid
 * labels never make it laxer, and a block of IDs is never empty. */
#include <string.h>

#include <unit/fuzz.h>

#include "kube/selector.h"
#include "policy/podsecurity.h"
#include "policy/scc.h"

static const struct nd_shape_field metadata_fields[] = {
        {.name = "labels", .kind = ND_SHAPE_PAIRS, .offset = offsetof(struct nd_kube_metadata, labels)},
        {.name = "annotations", .kind = ND_SHAPE_PAIRS, .offset = offsetof(struct nd_kube_metadata, annotations)},
        {},
};
static const struct nd_shape metadata_shape = {.size = sizeof(struct nd_kube_metadata), .fields = metadata_fields};

static void try_labels(const struct nd_shape_pairs *labels, struct nd_arena *arena) {
        nd_cleanup(nd_field_errors_done) struct nd_field_errors errors = {.arena = arena};
        const struct nd_podsecurity_rule lax = {.version = ND_POLICY_LATEST};
        struct nd_podsecurity_policy policy;
        const char *enforce = nd_shape_pairs_get(labels, ND_PODSECURITY_PREFIX "enforce");

        nd_podsecurity_of_labels(labels, ND_PODSECURITY_PREFIX, &(struct nd_podsecurity_policy) {lax, lax, lax}, &policy,
                                 &errors);
        if (enforce && !nd_streq(enforce, "privileged") && !nd_streq(enforce, "baseline"))
                fuzz_require(policy.enforce.level == ND_LEVEL_RESTRICTED);
        fuzz_require(errors.items.count <= 6);
}

static void try_annotations(const struct nd_shape_pairs *annotations, struct nd_arena *arena) {
        struct nd_scc_namespace namespace = nd_scc_namespace_of(annotations);

        for (size_t i = 0; i < nd_scc_default_count; i++) {
                const struct nd_scc *scc = &nd_scc_defaults[i].scc;
                struct nd_scc bound;
                nd_autoerror struct nd_error *error = nd_scc_bind(scc, &namespace, arena, &bound);

                if (error)
                        continue;
                if (nd_streq(bound.user.type, "MustRunAsRange"))
                        fuzz_require(bound.user.min.set && bound.user.max.set && bound.user.min.value <= bound.user.max.value);
                nd_list_each(range, &bound.supplemental_groups.ranges)
                        fuzz_require(range->min.value <= range->max.value && range->max.value <= UINT32_MAX);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_autoarena struct nd_arena arena = {};
        nd_autojson yyjson_doc *doc = nullptr;
        struct nd_kube_metadata metadata = {};
        struct nd_selector selector = {};
        nd_autoerror struct nd_error *error = nd_json_parse((const char *) data, size, 1 << 16, &doc);

        if (error)
                return 0;
        error = nd_shape_decode(&metadata_shape, yyjson_doc_get_root(doc), &arena, &metadata);
        if (error)
                return 0;
        try_labels(&metadata.labels, &arena);
        try_annotations(&metadata.annotations, &arena);
        error = nd_shape_decode(&nd_selector_shape, yyjson_doc_get_root(doc), &arena, &selector);
        if (!error)
                (void) nd_selector_matches(&selector, &metadata.labels);
        return 0;
}
