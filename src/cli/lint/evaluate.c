/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/lint/cluster.h"
#include "cli/lint/lint.h"
#include "policy/hostusers.h"

/* The ranges that the guard assigns to the first namespace: offline there is no real one. */
static const struct nd_scc_namespace sample_namespace = {.uid_range = "1000000000/10000", .mcs = "s0:c1,c0"};

/* Some default constraints are for all users. For others the grants are unknown offline, so they
 * count as granted. */
static bool is_for_all_users(const struct nd_scc *scc, [[maybe_unused]] void *userdata) {
        for (size_t i = 0; i < nd_scc_default_count; i++)
                if (scc == &nd_scc_defaults[i].scc)
                        return nd_scc_defaults[i].for_all_users;
        return true;
}

struct access_question { /* an access review for one pod */
        struct cli_lint_cluster *cluster;
        const struct nd_pod *pod;
};

static bool is_allowed_in_cluster(const struct nd_scc *scc, void *userdata) {
        const struct access_question *asking = userdata;

        return cli_lint_cluster_may_use(asking->cluster, scc, asking->pod);
}

/* Priorities decide between several granted constraints. Here the question is which grant would be
 * enough, so the strictest one counts. */
static const struct nd_scc *strictest(const struct nd_scc_request *request, const struct nd_pod *pod, struct nd_arena *arena) {
        const struct nd_scc *best = nullptr;

        for (size_t i = 0; i < request->set->count; i++) {
                nd_cleanup(nd_scc_choice_done) struct nd_scc_choice choice = {};
                const struct nd_scc_set alone = {
                        .plain = &request->set->plain[i], .with_user_namespace = &request->set->plain[i], .count = 1};
                struct nd_scc_request one = *request;

                one.set = &alone;
                nd_scc_choose(&one, pod, arena, &choice);
                if (choice.scc && (!best || nd_scc_is_stricter(choice.scc, best)))
                        best = choice.scc;
        }
        return best;
}

static void find_constraint(struct cli_lint *lint, const struct nd_pod *pod, struct cli_lint_result *result) {
        nd_cleanup(nd_scc_choice_done) struct nd_scc_choice choice = {};
        struct access_question asking = {.cluster = lint->cluster, .pod = pod};
        struct nd_scc_request request = {.set = &lint->set,
                                         .namespace =
                                                 lint->cluster ? cli_lint_cluster_namespace(lint->cluster) : sample_namespace,
                                         .host_network_gate = lint->host_network,
                                         .window = ND_SCC_WINDOW,
                                         .may_use = lint->cluster ? is_allowed_in_cluster : is_for_all_users,
                                         .userdata = &asking};
        const struct nd_scc *scc;

        nd_scc_choose(&request, pod, &lint->arena, &choice);
        result->for_all_users = choice.scc;
        result->refusal = choice.refusal;
        request.may_use = nullptr;
        scc = choice.scc ? choice.scc : strictest(&request, pod, &lint->arena);
        result->constraint = scc ? nd_kube_or_empty(scc->metadata.name) : nullptr;
}

static void evaluate_side(struct cli_lint *lint, const struct cli_lint_subject *subject, enum cli_lint_side side,
                          struct cli_lint_result *result) {
        struct nd_pod *pod = nd_pod_copy(&subject->workload.pod, &lint->arena);

        result->obstacle = side == LINT_USERNS ? nd_hostusers_obstacle(pod, lint->host_network) : "";
        if (!cli_lint_has_containers(subject))
                result->obstacle = "an empty spec.containers";
        if (side == LINT_USERNS)
                pod->spec.host_users = ND_OFF;
        else if (pod->spec.host_users == ND_OFF)
                pod->spec.host_users = ND_UNSET;
        result->level = nd_podsecurity_level(pod, lint->version, &lint->arena);
        find_constraint(lint, pod, result);
}

/* What the API server would refuse, of what decides about a pod's users. */
static void find_invalid(struct cli_lint *lint, struct cli_lint_subject *subject) {
        nd_cleanup(nd_field_errors_done) struct nd_field_errors errors = {.arena = &lint->arena};
        nd_autotext struct nd_text text = ND_TEXT(64 << 10);

        if (!cli_lint_has_containers(subject))
                nd_field_add(&errors, ND_FIELD_REQUIRED, nullptr, "without containers there is nothing to check",
                             "spec.containers");
        nd_hostusers_validate(&subject->workload.pod, &(struct nd_hostusers_options) {.host_network = lint->host_network},
                              &errors);
        nd_vector_each (error, &errors.items)
                error->path = nd_arena_format(&lint->arena, "%s%s", subject->workload.prefix, error->path);
        nd_field_errors_print(&errors, &text);
        subject->invalid = nd_arena_strdup(&lint->arena, nd_text_get(&text));
        subject->invalid_field = errors.items.count > 0 ? errors.items.items[0].path : "";
}

void cli_lint_evaluate(struct cli_lint *lint, struct cli_lint_subject *subject) {
        const struct nd_pod *pod = &subject->workload.pod;
        struct nd_podsecurity_rule rule = {.version = lint->version};
        enum nd_podsecurity_level level;

        if (!lint->set.plain)
                lint->set = nd_scc_set_make(lint->sccs.items, lint->sccs.count, &lint->arena);
        subject->own = nd_pod_has_user_namespace(pod) ? LINT_USERNS : LINT_HOST;
        for (enum cli_lint_side side = 0; side < LINT_SIDES; side++)
                evaluate_side(lint, subject, side, &subject->sides[side]);
        find_invalid(lint, subject);
        if (!cli_lint_has_containers(subject))
                return;
        level = subject->sides[subject->own].level;
        subject->target = lint->has_level && lint->level > level ? lint->level : level;
        if (subject->target == level && level < ND_LEVEL_RESTRICTED)
                subject->target = level + 1;
        rule.level = subject->target;
        nd_podsecurity_evaluate(&rule, pod, &lint->arena, &subject->findings);
        nd_advice_find(pod, &rule, lint->host_network, &lint->arena, &subject->advice);
}

bool cli_lint_is_bad(const struct cli_lint *lint, const struct cli_lint_subject *subject) {
        return (lint->has_level && subject->sides[subject->own].level < lint->level) || subject->invalid[0] != '\0' ||
               (lint->strict && subject->unknown_count > 0) || subject->broken.count > 0;
}
