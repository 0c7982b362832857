/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/admission/label-admission.h"

#include "guard/core/labels.h"

enum {
        COMPLAINT_BYTES = 1024,
};

/* Returns what is wrong with the labels; "" if nothing is. */
static const char *complaint(const struct nd_shape_pairs *labels, struct nd_arena *arena) {
        nd_cleanup(nd_field_errors_done) struct nd_field_errors errors = {.arena = arena};
        nd_autotext struct nd_text text = ND_TEXT(COMPLAINT_BYTES);
        struct guard_labels read;

        guard_labels_read(labels, GUARD_MODE_OFF, &read, &errors);
        nd_field_errors_print(&errors, &text);
        return errors.items.count > 0 ? nd_arena_strdup(arena, nd_text_get(&text)) : "";
}

void guard_labels_decide(const struct guard_review *review, struct nd_arena *arena, struct guard_response *ret) {
        const char *now, *before;

        *ret = (struct guard_response) {.allowed = true};
        if ((review->operation != GUARD_CREATE && review->operation != GUARD_UPDATE) || *review->subresource)
                return;
        now = complaint(&review->labels, arena);
        before = review->operation == GUARD_UPDATE ? complaint(&review->old_labels, arena) : "";
        if (*now && !nd_streq(now, before))
                guard_response_deny(
                        ret, 422, "Invalid",
                        nd_arena_format(arena, "Namespace %s is invalid: %s", nd_field_text(arena, review->name), now));
}
