/* SPDX-License-Identifier: Apache-2.0 */
/* A cluster, {"facts": [[KIND, OBJECT], ...], "workloads": [[KIND, OBJECT], ...]}, with numbers of
 * kinds: a workload that is ready asks for nothing of the host, and other verdicts have reasons. */
#include <string.h>

#include <unit/fuzz.h>

#include "policy/audit.h"
#include "policy/hostusers.h"

enum {
        CEILING = 1 << 18,
        OBJECTS = 64,
};

static enum nd_audit_kind kind_at(yyjson_val *pair) {
        uint64_t number = yyjson_get_uint(yyjson_arr_get(pair, 0));

        return number < ND_AUDIT_KINDS ? (enum nd_audit_kind) number : ND_AUDIT_KINDS;
}

static void require_ready(const struct nd_audit_workload *workload, const struct nd_audit_readiness *found) {
        const struct nd_pod_spec *spec = &workload->pod.spec;
        const struct nd_pod_container *c;

        fuzz_require(found->reason_count == 0 && !found->left_alone);
        fuzz_require(!spec->host_pid && !spec->host_ipc && !spec->host_network && spec->host_users == ND_UNSET);
        for (size_t i = 0; i < spec->init_containers.count + spec->containers.count; i++) {
                c = nd_pod_container(spec, i);
                fuzz_require(c->volume_devices.count == 0);
                fuzz_require(!c->security || c->security->privileged != ND_ON);
                fuzz_require(!c->security || !c->security->run_as_user.set || c->security->run_as_user.value < ND_SCC_WINDOW);
        }
        for (size_t i = 0; i < spec->volumes.count; i++)
                fuzz_require(!(spec->volumes.items[i].sources &
                               (nd_pod_volume_bit(ND_VOLUME_HOST_PATH) | nd_pod_volume_bit(ND_VOLUME_NFS))));
}

static void try_workload(const struct nd_audit_cluster *cluster, yyjson_val *pair) {
        nd_autoarena struct nd_arena arena = {};
        struct nd_audit_workload workload;
        struct nd_audit_readiness found;
        struct nd_audit_findings findings;
        enum nd_audit_kind kind = kind_at(pair);
        nd_autoerror struct nd_error *error = nullptr;

        if (kind < ND_AUDIT_DEPLOYMENT || kind >= ND_AUDIT_KINDS)
                return;
        error = nd_audit_workload_decode(kind, yyjson_arr_get(pair, 1), &arena, &workload);
        if (error)
                return;
        nd_audit_find(cluster, &workload, &arena, &findings);
        for (size_t i = 0; i < findings.count; i++)
                fuzz_require(findings.items[i].topic < ND_AUDIT_TOPICS && *findings.items[i].text);
        nd_audit_judge(cluster, &workload, &arena, &found);
        fuzz_require(found.verdict < ND_AUDIT_VERDICTS);
        fuzz_require(found.verdict == ND_AUDIT_YES || found.verdict == ND_AUDIT_ALREADY || found.reason_count > 0);
        if (found.verdict == ND_AUDIT_YES)
                require_ready(&workload, &found);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_autoarena struct nd_arena arena = {};
        nd_cleanup(nd_audit_cluster_done) struct nd_audit_cluster cluster = {.arena = &arena, .minimum = ND_FLOOR_REQUIRED};
        nd_autojson yyjson_doc *doc = nullptr;
        nd_autoerror struct nd_error *error = nd_json_parse((const char *) data, size, CEILING, &doc);
        yyjson_val *root = error ? nullptr : yyjson_doc_get_root(doc), *facts = yyjson_obj_get(root, "facts");
        yyjson_val *workloads = yyjson_obj_get(root, "workloads");

        if (error)
                return 0;
        for (size_t i = 0; i < yyjson_arr_size(facts) && i < OBJECTS; i++) {
                yyjson_val *pair = yyjson_arr_get(facts, i);
                enum nd_audit_kind kind = kind_at(pair);

                if (kind < ND_AUDIT_DEPLOYMENT)
                        /* hostile objects are refused, and leave the others as they are */
                        nd_ignore(nd_audit_put(&cluster, kind, yyjson_arr_get(pair, 1)));
                if (kind < ND_AUDIT_KINDS)
                        cluster.known[kind] = true;
        }
        nd_audit_settle(&cluster);
        nd_vector_each (grant, &cluster.grants) {
                struct nd_audit_finding found;

                (void) nd_audit_find_grant(&cluster, *grant, &arena, &found);
        }
        for (size_t i = 0; i < yyjson_arr_size(workloads) && i < OBJECTS; i++)
                try_workload(&cluster, yyjson_arr_get(workloads, i));
        return 0;
}
