/* SPDX-License-Identifier: Apache-2.0 */
/* audit-cluster.h - facts about a cluster, for tests of audits */
#pragma once

#include <unit/expect.h>

#include "policy/audit.h"

struct setting {
        struct nd_arena arena;
        struct nd_audit_cluster cluster;
};

static inline void put(struct setting *s, enum nd_audit_kind kind, const char *json) {
        nd_autojson yyjson_doc *doc = nullptr;

        expect_ok(nd_json_parse(json, strlen(json), 1 << 20, &doc));
        expect_ok(nd_audit_put(&s->cluster, kind, yyjson_doc_get_root(doc)));
}

/* A cluster without objects, all of whose lists could be read. */
static inline void begin_empty(struct setting *s) {
        *s = (struct setting) {};
        s->cluster.arena = &s->arena;
        s->cluster.minimum = ND_FLOOR_REQUIRED;
        for (size_t i = 0; i < ND_AUDIT_KINDS; i++)
                s->cluster.known[i] = true;
}

static inline void end(struct setting *s) {
        nd_audit_cluster_done(&s->cluster);
        nd_arena_done(&s->arena);
}

static inline void decode(struct setting *s, enum nd_audit_kind kind, const char *json, struct nd_audit_workload *ret) {
        nd_autojson yyjson_doc *doc = nullptr;

        expect_ok(nd_json_parse(json, strlen(json), 1 << 20, &doc));
        expect_ok(nd_audit_workload_decode(kind, yyjson_doc_get_root(doc), &s->arena, ret));
}
