/* SPDX-License-Identifier: Apache-2.0 */
/* A SubjectAccessReview: access is never granted, a locked node gets only what the table of the
 * authorizer leaves, and the answer is JSON. */
#include <string.h>

#include <unit/fuzz.h>
#include <unit/guard-world.h>

#include "guard/authorizer/authorizer.h"

static struct guard_world world;

static void make_world(void) {
        static bool made;

        if (made)
                return;
        made = true;
        guard_world_make(&world);
        guard_world_tell(&world,
                         "{\"kind\":\"NodeVersionFloor\",\"metadata\":{\"name\":\"cluster\",\"generation\":1},\"spec\":"
                         "{\"minimumKubeletVersion\":\"1.30.0\"},\"status\":{\"minimumKubeletVersion\":\"1.30.0\"}}");
        guard_world_tell(&world,
                         "{\"kind\":\"Node\",\"metadata\":{\"name\":\"old\"},\"status\":{\"nodeInfo\":{\"kubeletVersion\":"
                         "\"v1.29.6\"}}}");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_autoarena struct nd_arena arena = {};
        nd_autotext struct nd_text text = ND_TEXT(32 << 20);
        nd_autojson yyjson_doc *doc = nullptr;
        struct guard_access_request request;
        nd_autoerror struct nd_error *error = guard_access_request_decode((const char *) data, size, &arena, &request);
        const char *denial;

        make_world();
        if (error)
                return 0;
        denial = guard_authorizer_decide(&world.store, true, &request, &arena);
        if (request.has_resource && nd_shape_texts_have(&request.user.groups, "system:nodes") && !denial)
                fuzz_require(nd_streq(request.resource, "nodes") || nd_streq(request.resource, "subjectaccessreviews"));
        guard_access_request_answer(denial, &text);
        error = nd_json_parse(nd_text_get(&text), text.length, 32 << 20, &doc);
        fuzz_require(!error && strstr(nd_text_get(&text), "\"allowed\": false"));
        return 0;
}
