/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/core/labels.h"

#include <unit/expect.h>

/* Returns "MODE USERNS" as numbers, then the errors and their consequence. */
static char *read_labels(const char *mode, const char *userns) {
        nd_autoarena struct nd_arena arena = {};
        nd_cleanup(nd_field_errors_done) struct nd_field_errors errors = {.arena = &arena};
        struct nd_shape_pair items[2];
        struct nd_shape_pairs labels = {.items = items};
        nd_autotext struct nd_text text = ND_TEXT(4096);
        struct guard_labels read;

        if (mode)
                items[labels.count++] = (struct nd_shape_pair) {.key = GUARD_LABEL_CONSTRAINTS, .value = mode};
        if (userns)
                items[labels.count++] = (struct nd_shape_pair) {.key = GUARD_LABEL_USER_NAMESPACES, .value = userns};
        guard_labels_read(&labels, GUARD_MODE_WARN, &read, &errors);
        nd_text_addf(&text, "%u %u ", (unsigned) read.mode, (unsigned) read.userns);
        nd_field_errors_print(&errors, &text);
        if (read.consequence)
                nd_text_addf(&text, ": %s", read.consequence);
        return nd_text_steal(&text);
}

static void known_values_have_their_meaning([[maybe_unused]] void **state) {
        expect_text(read_labels(nullptr, nullptr), "1 0 ");
        expect_text(read_labels("off", nullptr), "0 0 ");
        expect_text(read_labels("warn", "default"), "1 1 ");
        expect_text(read_labels("enforce", "require"), "2 2 ");
}

static void an_unknown_value_is_reported_and_taken_as_the_strictest([[maybe_unused]] void **state) {
        expect_text(read_labels("enforced", nullptr),
                    "2 0 metadata.labels[security.nodens.io/constraints]: Invalid value: \"enforced\": must be one of off, "
                    "warn, enforce: constraints are enforced");
        expect_text(read_labels(nullptr, "requir"),
                    "1 2 metadata.labels[security.nodens.io/user-namespaces]: Invalid value: \"requir\": must be one of "
                    "default, require: user namespaces are required");
        expect_text(read_labels("", "x"),
                    "2 2 [metadata.labels[security.nodens.io/constraints]: Invalid value: \"\": must be one of off, warn, "
                    "enforce, metadata.labels[security.nodens.io/user-namespaces]: Invalid value: \"x\": must be one of "
                    "default, require]: constraints are enforced and user namespaces are required");
}

static void an_empty_value_of_user_namespaces_means_none([[maybe_unused]] void **state) {
        expect_text(read_labels("warn", ""),
                    "1 0 metadata.labels[security.nodens.io/user-namespaces]: Invalid value: \"\": must be one of default, "
                    "require: the label has no effect");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(known_values_have_their_meaning),
                cmocka_unit_test(an_unknown_value_is_reported_and_taken_as_the_strictest),
                cmocka_unit_test(an_empty_value_of_user_namespaces_means_none),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
