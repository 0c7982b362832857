/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/install/scc-import.h"

#include <unit/expect.h>

struct said {
        struct nd_text text;
};

static void on_report(size_t line, const char *text, void *userdata) {
        struct said *said = userdata;

        nd_text_addf(&said->text, "%zu: %s\n", line, text);
}

static void said_done(struct said *said) {
        nd_text_done(&said->text);
}

#define HEAD "apiVersion: security.openshift.io/v1\nkind: SecurityContextConstraints\n"
#define STRATEGIES                                                                                                            \
        "runAsUser: {type: MustRunAs, uid: 33}\nfsGroup: {type: RunAsAny}\nsupplementalGroups: {type: RunAsAny}\n"            \
        "seLinuxContext: {type: MustRunAs}\n"

static struct guard_import read_text(const char *yaml, bool all, struct nd_text *text, struct said *said) {
        struct guard_import import = {.group = "security.nodens.io", .all = all, .report = on_report, .userdata = said};

        *said = (struct said) {.text = ND_TEXT(4096)};
        *text = ND_TEXT(1 << 20);
        expect_ok(guard_import_read(&import, yaml, strlen(yaml), text));
        return import;
}

static void a_constraint_gets_the_guards_group_and_a_role([[maybe_unused]] void **state) {
        nd_cleanup(said_done) struct said said = {};
        nd_autotext struct nd_text text = {};
        struct guard_import import =
                read_text(HEAD "metadata: {name: web, uid: x, resourceVersion: \"5\", annotations: {a: b, "
                               "kubectl.kubernetes.io/last-applied-configuration: x}}\n" STRATEGIES "users: [alice]\n",
                          false, &text, &said);

        assert_int_equal(import.imported, 1);
        assert_string_equal(nd_text_get(&said.text), "");
        assert_non_null(strstr(nd_text_get(&text), "\"apiVersion\": \"security.nodens.io/v1\""));
        assert_non_null(strstr(nd_text_get(&text), "\"a\": \"b\""));
        assert_non_null(strstr(nd_text_get(&text), "\"uid\": 33"));
        assert_non_null(strstr(nd_text_get(&text), "\"nodens:scc:web\""));
        assert_null(strstr(nd_text_get(&text), "resourceVersion"));
        assert_null(strstr(nd_text_get(&text), "last-applied"));
}

static void unknown_fields_are_reported_with_their_path([[maybe_unused]] void **state) {
        nd_cleanup(said_done) struct said said = {};
        nd_autotext struct nd_text text = {};
        struct guard_import import =
                read_text("---\n" HEAD "metadata: {name: web}\nfuture: 1\nrunAsUser: {type: RunAsAny, more: 2}\n"
                          "fsGroup: {type: MustRunAs, ranges: [{min: 1, max: 2, step: 3}]}\n"
                          "supplementalGroups: {type: RunAsAny}\nseLinuxContext: {type: RunAsAny}\n",
                          false, &text, &said);

        assert_int_equal(import.imported, 1);
        assert_string_equal(nd_text_get(&said.text), "2: constraint web: unknown field 'future' was left out\n"
                                                     "2: constraint web: unknown field 'runAsUser.more' was left out\n"
                                                     "2: constraint web: unknown field 'fsGroup.ranges.step' was left out\n");
        assert_null(strstr(nd_text_get(&text), "step"));
}

static void the_guards_own_constraints_stay([[maybe_unused]] void **state) {
        static const char yaml[] = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: security.openshift.io/v1\n"
                                   "  kind: SecurityContextConstraints\n  metadata: {name: anyuid}\n"
                                   "  runAsUser: {type: RunAsAny}\n  fsGroup: {type: RunAsAny}\n"
                                   "  supplementalGroups: {type: RunAsAny}\n  seLinuxContext: {type: MustRunAs}\n"
                                   "- {apiVersion: v1, kind: Secret, metadata: {name: s}}\n";
        nd_cleanup(said_done) struct said said = {}, again = {};
        nd_autotext struct nd_text text = {}, more = {};
        struct guard_import import = read_text(yaml, false, &text, &said), all = read_text(yaml, true, &more, &again);

        assert_int_equal(import.imported, 0);
        assert_int_equal(import.left_out, 2);
        assert_non_null(strstr(nd_text_get(&said.text), "the guard has its own of this name"));
        assert_non_null(strstr(nd_text_get(&said.text), "Secret 's' of v1 was left out"));
        assert_int_equal(all.imported, 1);
}

static void a_constraint_that_the_api_server_would_refuse_is_reported([[maybe_unused]] void **state) {
        nd_cleanup(said_done) struct said said = {};
        nd_autotext struct nd_text text = {};
        struct guard_import import =
                read_text(HEAD "metadata: {name: web}\nrunAsUser: {type: Sometimes}\nfsGroup: {type: RunAsAny}\n"
                               "supplementalGroups: {type: RunAsAny}\nseLinuxContext: {type: RunAsAny}\n",
                          false, &text, &said);

        assert_int_equal(import.invalid, 1);
        assert_non_null(strstr(nd_text_get(&said.text), "constraint web: runAsUser.type"));
        assert_string_equal(nd_text_get(&text), "");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_constraint_gets_the_guards_group_and_a_role),
                cmocka_unit_test(unknown_fields_are_reported_with_their_path),
                cmocka_unit_test(the_guards_own_constraints_stay),
                cmocka_unit_test(a_constraint_that_the_api_server_would_refuse_is_reported),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
