/* SPDX-License-Identifier: Apache-2.0 */
/* An AdmissionReview, with the default constraints: a valid review is decided in both phases, and
 * the response is JSON. A denial has no patch, and neither has the validating phase. */
#include <string.h>

#include <unit/fuzz.h>
#include <unit/guard-world.h>

#include "guard/admission/podsecurity-admission.h"
#include "guard/admission/scc-admission.h"

enum {
        CEILING = 1 << 18,
};

static struct guard_world world;

static void make_world(void) {
        static bool made;

        if (made)
                return;
        made = true;
        guard_world_make(&world);
        guard_world_tell(
                &world,
                "{\"kind\":\"Namespace\",\"metadata\":{\"name\":\"n\",\"labels\":{\"security.nodens.io/constraints\":\"enforce\"},"
                "\"annotations\":{\"openshift.io/sa.scc.uid-range\":\"1000650000/10000\",\"openshift.io/sa.scc.mcs\":\"s0:c26,c5\"}}}");
        guard_world_tell(
                &world,
                "{\"kind\":\"Namespace\",\"metadata\":{\"name\":\"w\",\"labels\":{\"pod-security.nodens.io/enforce\":\"restricted\","
                "\"pod-security.nodens.io/audit\":\"baseline\",\"pod-security.nodens.io/warn-version\":\"x\"}}}");
        guard_world_tell(
                &world,
                "{\"kind\":\"Node\",\"metadata\":{\"name\":\"a\"},\"status\":{\"runtimeHandlers\":[{\"name\":\"\",\"features\":"
                "{\"userNamespaces\":true}}]}}");
}

static void check_response(const struct guard_response *response, const struct guard_review *review) {
        nd_autotext struct nd_text text = ND_TEXT(32 << 20);
        nd_autoerror struct nd_error *error = nullptr;
        nd_autojson yyjson_doc *doc = nullptr;
        nd_autojson yyjson_doc *patch = nullptr;

        guard_response_write(response, review->uid, &text);
        error = nd_json_parse(nd_text_get(&text), text.length, 32 << 20, &doc);
        fuzz_require(!error);
        if (!response->patch)
                return;
        fuzz_require(response->allowed);
        error = nd_json_parse(response->patch, strlen(response->patch), 32 << 20, &patch);
        fuzz_require(!error && yyjson_is_arr(yyjson_doc_get_root(patch)));
}

static void decide(const struct guard_review *review, enum guard_phase phase, enum guard_mode hook_mode, bool yes,
                   struct nd_arena *arena) {
        nd_cleanup(guard_admission_done) struct guard_admission a = {.store = &world.store,
                                                                     .rbac = &world.rbac,
                                                                     .rbac_is_fresh = true,
                                                                     .window = ND_SCC_WINDOW,
                                                                     .phase = phase,
                                                                     .hook_mode = hook_mode,
                                                                     .review = review,
                                                                     .arena = arena};
        struct guard_response response = {};

        for (int round = 0; round < 3; round++) {
                guard_admission_decide(&a, &response);
                nd_vector_each (check, &a.checks) {
                        check->answered = true;
                        check->allowed = yes;
                }
        }
        check_response(&response, review);
        fuzz_require(phase == GUARD_MUTATING || !response.patch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_autoarena struct nd_arena arena = {};
        nd_autoerror struct nd_error *error = nullptr;
        struct guard_review review;
        struct guard_response response;

        if (size > CEILING)
                return 0;
        make_world();
        error = guard_review_decode((const char *) data, size, &arena, &review);
        if (error)
                return 0;
        for (int yes = 0; yes < 2; yes++)
                for (enum guard_mode mode = GUARD_MODE_OFF; mode <= GUARD_MODE_ENFORCE; mode++) {
                        decide(&review, GUARD_MUTATING, mode, yes, &arena);
                        decide(&review, GUARD_VALIDATING, mode, yes, &arena);
                }
        guard_podsecurity_decide(&world.standards, &world.store, &review, &arena, &response);
        check_response(&response, &review);
        fuzz_require(!response.patch);
        return 0;
}
