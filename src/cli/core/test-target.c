/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <stdio.h>

#include "base/text.h"
#include "cli/core/target.h"

/* A small list of pods, valid as long as the test. */
enum { MOST = 8 };

static Nodens__V1__PodEntry pods[MOST];
static Nodens__V1__PodEntry *pod_list[MOST];
static Nodens__V1__ContainerEntry containers[MOST];
static Nodens__V1__ContainerEntry *container_list[MOST];
static Nodens__V1__PodsAnswer answer;
static size_t container_count;

static void add_pod(const char *id, const char *namespace, const char *name, uint64_t created) {
        Nodens__V1__PodEntry *pod = &pods[answer.n_pods];

        nodens__v1__pod_entry__init(pod);
        pod->id = (char *) id;
        pod->namespace_ = (char *) namespace;
        pod->name = (char *) name;
        pod->created_at = created;
        pod->containers = &container_list[container_count];
        pod_list[answer.n_pods++] = pod;
}

/* Adds it to the last pod. */
static void add_container(const char *id, const char *name, uint64_t created) {
        Nodens__V1__ContainerEntry *container = &containers[container_count];

        nodens__v1__container_entry__init(container);
        container->id = (char *) id;
        container->name = (char *) name;
        container->created_at = created;
        container_list[container_count++] = container;
        pods[answer.n_pods - 1].n_containers++;
}

static int set_up([[maybe_unused]] void **state) {
        nodens__v1__pods_answer__init(&answer);
        answer.pods = pod_list;
        container_count = 0;
        add_pod("aaaa1111", "default", "web", 1);
        add_container("c0de0001", "nginx", 10);
        add_container("c0de0002", "nginx", 20);
        add_container("c0de0003", "log", 11);
        add_pod("bbbb2222", "test", "web", 2);
        add_container("c0de0004", "nginx", 30);
        add_pod("cccc3333", "default", "job", 3);
        add_container("c0de0005", "run", 40);
        add_pod("dddd4444", "default", "job", 4);
        pods[2].uid = pods[3].uid = (char *) "uid-of-job";
        return 0;
}

static const char *meant(const char *name, const char *container, bool previous) {
        nd_autoerror struct nd_error *error = nullptr;
        static char text[512];
        struct cli_target target;

        error = cli_target_container(&answer, name, container, previous, &target);
        (void) snprintf(text, sizeof text, "%s", error ? nd_error_text(error) : target.container->id);
        return text;
}

static void a_container_is_found_by_all_forms_of_its_name([[maybe_unused]] void **state) {
        assert_string_equal(meant("default/web/nginx", nullptr, false), "c0de0002");
        assert_string_equal(meant("test/web", nullptr, false), "c0de0004");
        assert_string_equal(meant("web/log", nullptr, false), "c0de0003");
        assert_string_equal(meant("job", nullptr, false), "c0de0005");
        assert_string_equal(meant("uid-of-job", nullptr, false), "c0de0005");
        assert_string_equal(meant("bbbb", nullptr, false), "c0de0004");
        assert_string_equal(meant("c0de0001", nullptr, false), "c0de0001");
        assert_string_equal(meant("default/web", "log", false), "c0de0003");
        assert_string_equal(meant("aaaa/nginx", nullptr, true), "c0de0001");
}

static void an_ambiguous_name_is_rejected_with_a_list([[maybe_unused]] void **state) {
        assert_string_equal(
                meant("web", nullptr, false),
                "'web' is ambiguous; it matches several containers: test/web/nginx, default/web/nginx, default/web/log");
        assert_string_equal(meant("web/nginx", nullptr, false),
                            "'web/nginx' is ambiguous; it matches several containers: test/web/nginx, default/web/nginx");
        assert_string_equal(meant("default/web", nullptr, false),
                            "'default/web' is ambiguous; it matches several containers: default/web/nginx, default/web/log");
        expect_contains(meant("c0de", nullptr, false), "several containers");
}

static void a_missing_object_is_reported_with_the_existing_ones([[maybe_unused]] void **state) {
        expect_contains(meant("missing", nullptr, false), "no pod or container named 'missing'; see 'nodens pods'");
        assert_string_equal(meant("test/web/log", nullptr, false), "pod test/web has no such container; it has nginx");
        assert_string_equal(meant("dddd", nullptr, false),
                            "pod default/job has no containers; 'journalctl -u nodens-cri POD=job' "
                            "shows requests that failed");
        expect_contains(meant("test/web", nullptr, true), "has no previous container");
        expect_contains(meant("ccc", nullptr, false), "no pod or container");
        expect_contains(meant("a/b/c/d", nullptr, false), "use [NAMESPACE/]POD[/CONTAINER]");
        expect_contains(meant("a//b", nullptr, false), "use [NAMESPACE/]POD[/CONTAINER]");
        expect_contains(meant("", nullptr, false), "use [NAMESPACE/]POD[/CONTAINER]");
}

static void a_pod_is_all_its_sandboxes_newest_first([[maybe_unused]] void **state) {
        struct cli_target_pods found = {};

        expect_ok(cli_target_pod(&answer, "job", TARGET_NAMES_PREFIX, &found));
        assert_int_equal(found.count, 2);
        assert_string_equal(found.items[0]->id, "dddd4444");
        nd_vector_done(&found);
        expect_ok(cli_target_pod(&answer, "cccc3", TARGET_NAMES_PREFIX, &found));
        assert_int_equal(found.count, 1);
        nd_vector_done(&found);
        expect_error(cli_target_pod(&answer, "web", TARGET_NAMES_PREFIX, &found), ND_INVALID,
                     "'web' is ambiguous; it matches several pods: default/web, test/web");
        expect_error(cli_target_pod(&answer, "default/web/nginx", TARGET_NAMES_PREFIX, &found), ND_INVALID,
                     "invalid pod name");
        expect_error(cli_target_pod(&answer, "other/web", TARGET_NAMES_PREFIX, &found), ND_NOT_FOUND, "no pod named");
        assert_int_equal(found.count, 0);
}

static void the_beginning_of_a_name_is_enough_where_it_is_unambiguous([[maybe_unused]] void **state) {
        add_pod("eeee5555", "default", "web-7f9c4d-x2x9z", 5);
        add_container("c0de0006", "server", 50);
        assert_string_equal(meant("web-7", nullptr, false), "c0de0006");
        assert_string_equal(meant("default/web-", nullptr, false), "c0de0006");
        assert_string_equal(meant("j", nullptr, false), "c0de0005");
        assert_string_equal(meant("uid-", nullptr, false), "c0de0005");
        assert_string_equal(meant("default/web/l", nullptr, false), "c0de0003");
        assert_string_equal(meant("web/lo", nullptr, false), "c0de0003");
        assert_string_equal(meant("default/web", "l", false), "c0de0003");
        assert_string_equal(meant("web-/serv", nullptr, false), "c0de0006");
        /* the namespace is not abbreviated */
        expect_contains(meant("def/web-", nullptr, false), "no pod or container named");
}

static void a_whole_name_is_preferred_to_the_beginning_of_another([[maybe_unused]] void **state) {
        add_pod("eeee5555", "test", "web-7f9c4d-x2x9z", 5);
        add_container("c0de0006", "nginx", 50);
        assert_string_equal(meant("test/web", nullptr, false), "c0de0004");
        assert_string_equal(meant("test/web/ng", nullptr, false), "c0de0004");
        expect_contains(meant("test/we", nullptr, false),
                        "'test/we' is ambiguous; it matches several containers: test/web-7f9c4d-x2x9z/nginx, test/web/nginx");
}

static void a_pod_that_must_be_named_in_full_is_not_found_by_the_beginning_of_its_name([[maybe_unused]] void **state) {
        struct cli_target_pods found = {};

        expect_ok(cli_target_pod(&answer, "jo", TARGET_NAMES_PREFIX, &found));
        nd_vector_done(&found);
        expect_error(cli_target_pod(&answer, "jo", TARGET_NAMES_WHOLE, &found), ND_NOT_FOUND, "no pod named 'jo'");
        expect_error(cli_target_pod(&answer, "default/jo", TARGET_NAMES_WHOLE, &found), ND_NOT_FOUND, "no pod named");
        expect_ok(cli_target_pod(&answer, "job", TARGET_NAMES_WHOLE, &found));
        nd_vector_done(&found);
        expect_ok(cli_target_pod(&answer, "cccc3", TARGET_NAMES_WHOLE, &found));
        assert_int_equal(found.count, 1);
        nd_vector_done(&found);
}

static void a_missing_name_is_reported_with_similar_ones([[maybe_unused]] void **state) {
        struct cli_target_pods found = {};

        assert_string_equal(meant("wbe", nullptr, false),
                            "no pod or container named 'wbe'; similar: default/web, test/web; see 'nodens pods'");
        assert_string_equal(meant("other/web", nullptr, false),
                            "no pod or container named 'other/web'; similar: default/web, test/web; see 'nodens pods'");
        assert_string_equal(meant("default/web/c", nullptr, false),
                            "pod default/web has no such container; it has nginx, log");
        expect_error(cli_target_pod(&answer, "other/web", TARGET_NAMES_PREFIX, &found), ND_NOT_FOUND,
                     "no pod named 'other/web'; similar: default/web, test/web; see 'nodens pods'");
        expect_error(cli_target_pod(&answer, "jbo", TARGET_NAMES_PREFIX, &found), ND_NOT_FOUND, "similar: default/job;");
}

static void names_in_errors_are_sanitized([[maybe_unused]] void **state) {
        pods[0].name = (char *) "evil\033[2J";
        assert_string_equal(
                meant("aaaa", nullptr, false),
                "'aaaa' is ambiguous; it matches several containers: default/evil?[2J/nginx, default/evil?[2J/log");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(a_container_is_found_by_all_forms_of_its_name, set_up),
                cmocka_unit_test_setup(an_ambiguous_name_is_rejected_with_a_list, set_up),
                cmocka_unit_test_setup(a_missing_object_is_reported_with_the_existing_ones, set_up),
                cmocka_unit_test_setup(a_pod_is_all_its_sandboxes_newest_first, set_up),
                cmocka_unit_test_setup(the_beginning_of_a_name_is_enough_where_it_is_unambiguous, set_up),
                cmocka_unit_test_setup(a_whole_name_is_preferred_to_the_beginning_of_another, set_up),
                cmocka_unit_test_setup(a_pod_that_must_be_named_in_full_is_not_found_by_the_beginning_of_its_name, set_up),
                cmocka_unit_test_setup(a_missing_name_is_reported_with_similar_ones, set_up),
                cmocka_unit_test_setup(names_in_errors_are_sanitized, set_up),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
