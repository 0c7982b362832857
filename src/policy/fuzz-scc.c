/* SPDX-License-Identifier: Apache-2.0 */
/* A constraint and a pod, {"scc": ..., "pod": ..., "namespace": {annotations}}: an admitted pod
 * fits again without a change, and contains nothing that the constraint forbids. There is advice
 * for every pod; what it says about constraints is true. */
#include <string.h>

#include <unit/fuzz.h>

#include "policy/advice.h"
#include "policy/scc-advice.h"
#include "policy/scc.h"

enum {
        CEILING = 1 << 18,
};

static void is_kept(const struct nd_scc *scc, const struct nd_pod *pod) {
        const struct nd_pod_container *c;

        fuzz_require(scc->allow_host_network || !pod->spec.host_network);
        fuzz_require(scc->allow_host_pid || !pod->spec.host_pid);
        fuzz_require(scc->allow_host_ipc || !pod->spec.host_ipc);
        fuzz_require(!nd_scc_requires_user_namespace(scc) || nd_pod_has_user_namespace(pod));
        for (size_t i = 0; (c = nd_pod_container(&pod->spec, i)); i++) {
                fuzz_require(scc->allow_privileged || !c->security || c->security->privileged != ND_ON);
                fuzz_require(scc->allow_privilege_escalation != ND_OFF || !c->security || nd_pod_is_windows(pod) ||
                             c->security->allow_privilege_escalation == ND_OFF);
                if (nd_pod_has_user_namespace(pod) && c->security && c->security->run_as_user.set)
                        fuzz_require(c->security->run_as_user.value >= 0 && c->security->run_as_user.value < ND_SCC_WINDOW);
        }
}

/* The first constraint is not usable: a grant is of this one, a change leads to another. */
static bool is_not_first(const struct nd_scc *scc, void *userdata) {
        return scc != userdata;
}

static void try_scc_advice(const struct nd_scc_request *request, const struct nd_pod *pod, struct nd_arena *arena,
                           bool refused) {
        struct nd_scc_request some = *request;
        struct nd_scc_advice advice;

        some.may_use = is_not_first;
        some.userdata = (void *) request->set->plain[0];
        nd_scc_advise(&some, pod, arena, &advice);
        fuzz_require(!refused || request->userns != ND_SCC_USERNS_ASKED || !advice.grant);
        fuzz_require(!advice.change || (advice.change != some.userdata && advice.edit_count > 0));
        fuzz_require(advice.near_count + advice.others <= request->set->count);
}

static void try_choice(const struct nd_scc *scc, const struct nd_pod *pod, const struct nd_scc_namespace *namespace,
                       struct nd_arena *arena) {
        const struct nd_scc *sccs[] = {scc, &nd_scc_defaults[1].scc, &nd_scc_defaults[2].scc};
        struct nd_scc_set set = nd_scc_set_make(sccs, nd_count_of(sccs), arena), one;
        struct nd_scc_request request = {
                .set = &set, .namespace = *namespace, .may_set_user_namespace = true, .window = ND_SCC_WINDOW};
        nd_cleanup(nd_scc_choice_done) struct nd_scc_choice choice = {}, again = {};

        nd_scc_choose(&request, pod, arena, &choice);
        try_scc_advice(&request, pod, arena, !choice.scc);
        fuzz_require(choice.scc ? choice.pod != nullptr && !choice.refusal : choice.refusal != nullptr);
        if (!choice.scc)
                return;
        is_kept(choice.scc, choice.pod);
        request.update = true;
        one = nd_scc_set_make(&choice.scc, 1, arena);
        request.set = &one;
        nd_scc_choose(&request, choice.pod, arena, &again);
        fuzz_require(again.scc == choice.scc);
}

/* A constraint that nd_scc_is_out() rules out does not fit. */
static void try_glance(const struct nd_scc *scc, const struct nd_pod *pod, const struct nd_scc_namespace *namespace,
                       struct nd_arena *arena) {
        nd_cleanup(nd_field_errors_done) struct nd_field_errors errors = {.arena = arena};
        struct nd_scc bound;
        nd_autoerror struct nd_error *error = nd_scc_bind(scc, namespace, arena, &bound);

        if (error || !nd_scc_is_out(scc, pod))
                return;
        nd_scc_fit(&bound, nd_pod_copy(pod, arena), ND_SCC_WINDOW, &errors);
        fuzz_require(errors.items.count > 0);
}

/* Advice reaches every level for any pod. */
static void try_advice(const struct nd_pod *pod, struct nd_arena *arena) {
        for (enum nd_podsecurity_level level = ND_LEVEL_PRIVILEGED; level <= ND_LEVEL_RESTRICTED; level++) {
                const struct nd_podsecurity_rule rule = {.level = level, .version = ND_POLICY_LATEST};
                nd_cleanup(nd_advice_done) struct nd_advice advice = {};
                struct nd_podsecurity_findings findings;

                nd_advice_find(pod, &rule, false, arena, &advice);
                fuzz_require(advice.reached);
                nd_podsecurity_evaluate(&rule, pod, arena, &findings);
                fuzz_require((advice.edits.count == 0) == (findings.count == 0));
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_autoarena struct nd_arena arena = {};
        nd_cleanup(nd_field_errors_done) struct nd_field_errors errors = {.arena = &arena};
        nd_autojson yyjson_doc *doc = nullptr;
        struct nd_kube_metadata namespace = {};
        struct nd_scc_namespace annotations;
        struct nd_pod pod = {};
        struct nd_scc scc;
        nd_autoerror struct nd_error *error = nd_json_parse((const char *) data, size, CEILING, &doc);
        yyjson_val *root = error ? nullptr : yyjson_doc_get_root(doc);

        if (error)
                return 0;
        if (!yyjson_obj_get(root, "scc") || !yyjson_obj_get(root, "pod"))
                return 0;
        error = nd_scc_decode(yyjson_obj_get(root, "scc"), &arena, &scc);
        if (!error)
                error = nd_shape_decode(&nd_pod_shape, yyjson_obj_get(root, "pod"), &arena, &pod);
        if (!error && yyjson_obj_get(root, "namespace"))
                error = nd_shape_decode(&nd_kube_metadata_shape, yyjson_obj_get(root, "namespace"), &arena, &namespace);
        if (error)
                return 0;
        nd_scc_validate(&scc, &errors);
        (void) nd_scc_points(&scc);
        try_advice(&pod, &arena);
        annotations = nd_scc_namespace_of(&namespace.annotations);
        try_glance(&scc, &pod, &annotations, &arena);
        try_choice(&scc, &pod, &annotations, &arena);
        return 0;
}
