/* SPDX-License-Identifier: Apache-2.0 */
/* bench.c - the cost of one review without its network: a pod is decoded, evaluated, and matched
 * with constraints
 *
 *      bench [CONSTRAINTS]      the defaults and so many more, which do not fit (default 486: 500
 *                               in all) */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "policy/podsecurity.h"
#include "policy/scc.h"

enum {
        ROUNDS = 20000,
        MORE = 486,
        MOST = 5000,
};

/* An ordinary pod of about 3 kB, with a cluster's additions. */
static char *make_pod(void) {
        nd_autotext struct nd_text json = ND_TEXT(1 << 16);

        nd_text_add(
                &json,
                "{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"web-5f\", \"namespace\": \"shop\", \"labels\": "
                "{\"app\": \"web\", \"pod-template-hash\": \"5f\"}, \"annotations\": {\"a.example/b\": \"c\"}, \"managedFields\": [");
        for (int i = 0; i < 20; i++)
                nd_text_addf(
                        &json,
                        "%s{\"manager\": \"kube-controller-manager\", \"operation\": \"Update\", \"fieldsV1\": {\"f:spec\": {\"f:x%d\": {}}}}",
                        i > 0 ? ", " : "", i);
        nd_text_add(
                &json,
                "]}, \"spec\": {\"serviceAccountName\": \"default\", \"volumes\": [{\"name\": \"t\", \"projected\": {\"sources\": "
                "[{\"serviceAccountToken\": {\"path\": \"token\"}}]}}], \"containers\": [");
        for (int i = 0; i < 3; i++)
                nd_text_addf(
                        &json,
                        "%s{\"name\": \"c%d\", \"image\": \"registry.example/web:1\", \"env\": [{\"name\": \"A\", \"value\": \"b\"}], "
                        "\"resources\": {\"limits\": {\"cpu\": \"1\"}}, \"volumeMounts\": [{\"name\": \"t\", \"mountPath\": \"/t\"}]}",
                        i > 0 ? ", " : "", i);
        nd_text_add(&json, "]}}");
        return nd_strdup(nd_text_get(&json));
}

static void report(const char *what, uint64_t started, size_t rounds) {
        double us = (double) (nd_clock_ns() - started) / 1000 / (double) rounds;

        printf("%-44s %8.2f us, %8.0f/s\n", what, us, 1000000 / us);
}

static bool is_for_all_users(const struct nd_scc *scc, [[maybe_unused]] void *userdata) {
        return nd_has_prefix(scc->metadata.name, "restricted-v");
}

static void decode(const char *json, struct nd_arena *arena, struct nd_pod *ret) {
        if (nd_pod_decode(json, strlen(json), arena, ret))
                abort();
}

static void bench_decode(const char *json) {
        uint64_t started = nd_clock_ns();
        nd_autoarena struct nd_arena arena = {};

        for (int i = 0; i < ROUNDS; i++) {
                struct nd_pod pod;

                nd_arena_reset(&arena);
                decode(json, &arena, &pod);
        }
        report("decode", started, ROUNDS);
}

static void bench_podsecurity(const char *json) {
        nd_autoarena struct nd_arena kept = {}, arena = {};
        struct nd_podsecurity_findings findings;
        struct nd_pod pod;
        uint64_t started;

        decode(json, &kept, &pod);
        started = nd_clock_ns();
        for (int i = 0; i < ROUNDS; i++) {
                nd_arena_reset(&arena);
                nd_podsecurity_evaluate(
                        &(struct nd_podsecurity_rule) {.level = ND_LEVEL_RESTRICTED, .version = ND_POLICY_LATEST}, &pod,
                        &arena, &findings);
        }
        report("pod security, restricted", started, ROUNDS);
}

static void bench_choice(const char *json, const struct nd_scc *const *sccs, size_t count, const char *what) {
        nd_autoarena struct nd_arena kept = {};
        const struct nd_scc_set set = nd_scc_set_make(sccs, count, &kept);
        const struct nd_scc_request request = {.set = &set,
                                               .namespace = {.uid_range = "1000650000/10000", .mcs = "s0:c26,c5"},
                                               .window = ND_SCC_WINDOW,
                                               .may_use = is_for_all_users};
        uint64_t started = nd_clock_ns();
        nd_autoarena struct nd_arena arena = {};

        for (int i = 0; i < ROUNDS / 10; i++) {
                nd_cleanup(nd_scc_choice_done) struct nd_scc_choice choice = {};
                struct nd_pod pod;

                nd_arena_reset(&arena);
                decode(json, &arena, &pod);
                nd_scc_choose(&request, &pod, &arena, &choice);
                if (!choice.scc || !nd_streq(choice.scc->metadata.name, "restricted-v2"))
                        abort();
        }
        report(what, started, ROUNDS / 10);
}

int main(int argc, char **argv) {
        static const struct nd_scc *sccs[MOST];
        static struct nd_scc more[MOST];
        static const char *none[] = {"none"};
        nd_autofree char *title = nullptr;
        nd_autofree char *json = make_pod();
        size_t count = nd_scc_default_count;
        uint32_t extra = MORE;

        if (argc > 1 && (nd_text_parse_u32(argv[1], &extra) < 0 || extra > MOST - count))
                return EXIT_FAILURE;
        for (size_t i = 0; i < count; i++)
                sccs[i] = &nd_scc_defaults[i].scc;
        printf("a pod of %zu bytes with 3 containers\n", strlen(json));
        bench_decode(json);
        bench_podsecurity(json);
        bench_choice(json, sccs, count, "decode and choose, default constraints");
        /* stricter than all others, so that each of them is tried first */
        for (uint32_t i = 0; i < extra; i++) {
                more[i] = (struct nd_scc) {.metadata = {.name = "extra"},
                                           .user = {.type = "MustRunAs", .uid = ND_INT(7)},
                                           .selinux = {.type = "RunAsAny"},
                                           .fs_group = {.type = "RunAsAny"},
                                           .supplemental_groups = {.type = "RunAsAny"},
                                           .volumes = {.items = none, .count = 1}};
                sccs[count++] = &more[i];
        }
        title = nd_format("decode and choose, %zu constraints", count);
        bench_choice(json, sccs, count, title);
        return EXIT_SUCCESS;
}
