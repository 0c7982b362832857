/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of a pod, with the default constraints and roles. The same on a real API server:
 * tests/component/guard. */
#include "guard/admission/scc-admission.h"

#include <unit/expect.h>
#include <unit/guard-world.h>

struct asking {
        const char *operation; /* nullptr: CREATE */
        const char *subresource;
        const char *pod;
        const char *old;
        const char *live;
        enum guard_mode hook_mode;
        bool validating;
        bool stale; /* the index of RBAC */
        bool rbac_decides;
        bool response; /* what the API server says to every check */
        size_t batch;  /* how many may be asked at a time; 0: all */
};

static struct nd_error *read_review(const struct asking *asking, struct nd_arena *arena, struct guard_review *ret) {
        nd_autofree char *text = nd_format(
                "{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"request\":{\"uid\":\"u\",\"operation\":\"%s\","
                "\"resource\":{\"group\":\"\",\"resource\":\"pods\"},\"subResource\":\"%s\",\"namespace\":\"n\",\"name\":\"p\",\"userInfo\":"
                "{\"username\":\"alice\",\"groups\":[\"system:authenticated\"]},\"object\":%s,\"oldObject\":%s}}",
                asking->operation ? asking->operation : "CREATE", asking->subresource ? asking->subresource : "",
                asking->pod ? asking->pod : "null", asking->old ? asking->old : "null");

        return guard_review_decode(text, strlen(text), arena, ret);
}

/* "allowed", with the patch and the warnings behind it, or the refusal; before it how many checks
 * there were. */
static char *admitted(struct guard_world *world, struct asking asking) {
        nd_autoarena struct nd_arena arena = {};
        struct guard_review review;
        nd_cleanup(guard_admission_done) struct guard_admission a = {.store = &world->store,
                                                                     .rbac = &world->rbac,
                                                                     .rbac_is_fresh = !asking.stale,
                                                                     .rbac_decides = asking.rbac_decides,
                                                                     .window = ND_SCC_WINDOW,
                                                                     .phase = asking.validating ? GUARD_VALIDATING
                                                                                                : GUARD_MUTATING,
                                                                     .hook_mode = asking.hook_mode,
                                                                     .review = &review,
                                                                     .batch = asking.batch,
                                                                     .arena = &arena};
        struct guard_response response = {};
        nd_autotext struct nd_text text = ND_TEXT(1 << 20);

        expect_ok(read_review(&asking, &arena, &review));
        if (asking.live) {
                a.live = nd_arena_new(&arena, struct nd_pod);
                expect_ok(nd_pod_decode(asking.live, strlen(asking.live), &arena, a.live));
        }
        for (int round = 0; round < (asking.batch > 0 ? 200 : 4); round++) {
                guard_admission_decide(&a, &response);
                nd_vector_each (check, &a.checks) {
                        if (!check->answered)
                                check->allowed = asking.response;
                        check->answered = true;
                }
        }
        nd_text_addf(&text, "%zu %s", a.checks.count, response.allowed ? "allowed" : response.message);
        if (response.patch)
                nd_text_addf(&text, " %s", response.patch);
        for (size_t i = 0; i < response.warning_count; i++)
                nd_text_addf(&text, " warning: %s", response.warnings[i]);
        return nd_text_steal(&text);
}

static void expect_words(char *text, const char *words) {
        nd_autofree char *owned = text;

        expect_contains(owned, words);
}

#define RANGES                                                                                                                \
        "\"annotations\":{\"openshift.io/sa.scc.uid-range\":\"1000650000/10000\",\"openshift.io/sa.scc.mcs\":\"s0:c26,c5\"}"
#define POD(spec) "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\"},\"spec\":{" spec "}}"
#define C "\"containers\":[{\"name\":\"c\"}]"

static void make(struct guard_world *world, const char *mode) {
        nd_autofree char *namespace = nd_format(
                "{\"kind\":\"Namespace\",\"metadata\":{\"name\":\"n\",\"labels\":{\"security.nodens.io/constraints\":"
                "\"%s\"}," RANGES "}}",
                mode);

        guard_world_make(world);
        guard_world_tell(world, namespace);
}

static void the_manifest_says_what_the_code_does([[maybe_unused]] void **state) {
        nd_cleanup(guard_world_done) struct guard_world world = {};

        make(&world, "enforce");
        assert_int_equal(world.store.constraints.map.count, nd_scc_default_count);
        for (size_t i = 0; i < nd_scc_default_count; i++) {
                const struct nd_scc *ours = &nd_scc_defaults[i].scc,
                                    *read_back = guard_store_constraint(&world.store, ours->metadata.name);

                assert_non_null(read_back);
                assert_int_equal(nd_scc_points(ours), nd_scc_points(read_back));
                assert_int_equal(ours->volumes.count, read_back->volumes.count);
                assert_int_equal(nd_scc_requires_user_namespace(ours), nd_scc_requires_user_namespace(read_back));
                assert_int_equal(ours->allow_privilege_escalation, read_back->allow_privilege_escalation);
        }
}

static const char *without_count(const char *text) {
        return text + strcspn(text, " ");
}

/* The order of constraints decides, not that of answers; and what comes after a yes is not asked
 * about. */
static void access_checks_in_batches_lead_to_the_same_verdict([[maybe_unused]] void **state) {
        static const char *const pods[] = {POD(C), POD("\"hostUsers\":false," C), POD("\"hostPID\":true," C),
                                           POD("\"serviceAccountName\":\"robot\"," C)};
        nd_cleanup(guard_world_done) struct guard_world world = {};

        make(&world, "enforce");
        for (size_t i = 0; i < nd_count_of(pods); i++)
                for (int response = 0; response < 2; response++) {
                        nd_autofree char *whole =
                                admitted(&world, (struct asking) {.pod = pods[i], .stale = true, .response = response});

                        for (size_t batch = 1; batch < 8; batch += 3) {
                                nd_autofree char *few = admitted(
                                        &world,
                                        (struct asking) {.pod = pods[i], .stale = true, .response = response, .batch = batch});

                                assert_string_equal(without_count(few), without_count(whole));
                                if (response)
                                        assert_in_range(strtoul(few, nullptr, 10), 1, batch);
                                else
                                        assert_int_equal(strtoul(few, nullptr, 10), strtoul(whole, nullptr, 10));
                        }
                }
}

static void a_new_pod_is_filled_and_then_fits([[maybe_unused]] void **state) {
        nd_cleanup(guard_world_done) struct guard_world world = {};

        make(&world, "enforce");
        /* anyuid goes before by its priority, and would fit: about it the API server is asked */
        expect_words(admitted(&world, (struct asking) {.pod = POD(C)}), "1 allowed [");
        expect_words(admitted(&world, (struct asking) {.pod = POD(C), .rbac_decides = true}), "0 allowed [");
        expect_words(admitted(&world, (struct asking) {.pod = POD(C)}), "\"security.nodens.io/scc\": \"restricted-v2\"");
        expect_words(admitted(&world, (struct asking) {.pod = POD(C), .validating = true}), "would have to change the pod");
}

static void without_a_fresh_index_the_api_server_is_asked([[maybe_unused]] void **state) {
        nd_cleanup(guard_world_done) struct guard_world world = {};

        make(&world, "enforce");
        expect_words(admitted(&world, (struct asking) {.pod = POD(C), .stale = true, .response = true}), "allowed [");
        expect_words(admitted(&world, (struct asking) {.pod = POD(C), .stale = true}), "not usable by user or serviceaccount");
}

static void nothing_is_asked_about_what_does_not_fit([[maybe_unused]] void **state) {
        nd_cleanup(guard_world_done) struct guard_world world = {};

        make(&world, "enforce");
        /* hostaccess and privileged fit; of the rest nobody is asked */
        expect_words(admitted(&world, (struct asking) {.pod = POD("\"hostPID\":true," C)}), "2 unable to validate");
        expect_words(admitted(&world, (struct asking) {.pod = POD("\"hostPID\":true," C), .response = true}), "allowed [");
}

static void metadata_passes_but_for_our_annotations([[maybe_unused]] void **state) {
        static const char strong[] =
                "{\"kind\":\"Pod\",\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":{\"hostPID\":true," C "}}";
        static const char forged[] =
                "{\"kind\":\"Pod\",\"metadata\":{\"annotations\":{\"security.nodens.io/scc\":\"x\"}},\"spec\":{\"hostPID\":true," C
                "}}";
        nd_cleanup(guard_world_done) struct guard_world world = {};

        make(&world, "enforce");
        expect_text(admitted(&world, (struct asking) {.operation = "UPDATE",
                                                      .pod = strong,
                                                      .old = POD("\"hostPID\":true," C),
                                                      .validating = true}),
                    "0 allowed");
        expect_words(
                admitted(&world, (struct asking) {.operation = "UPDATE", .pod = forged, .old = strong, .validating = true}),
                "security.nodens.io/scc of a pod cannot be changed");
}

#define FITTING                                                                                                                     \
        "\"securityContext\":{\"fsGroup\":1000650000,\"seLinuxOptions\":{\"level\":\"s0:c26,c5\"},\"seccompProfile\":{\"type\":"    \
        "\"RuntimeDefault\"}},\"containers\":[{\"name\":\"c\",\"securityContext\":{\"runAsUser\":1000650000,\"runAsNonRoot\":true," \
        "\"allowPrivilegeEscalation\":false,\"capabilities\":{\"drop\":[\"ALL\"]}}}]"

static void exec_goes_by_the_rights_of_whoever_asks([[maybe_unused]] void **state) {
        nd_cleanup(guard_world_done) struct guard_world world = {};
        struct asking asking = {.operation = "CONNECT", .subresource = "exec", .validating = true};

        make(&world, "enforce");
        asking.live = POD("\"serviceAccountName\":\"s\",\"hostPID\":true," C);
        expect_words(admitted(&world, asking),
                     "exec operation is not allowed because the pod's security context exceeds your permissions");
        asking.live = POD(FITTING);
        expect_text(admitted(&world, asking), "0 allowed");
        asking.live = nullptr; /* there is no such pod: the API server will say so */
        expect_text(admitted(&world, asking), "0 allowed");
}

/* A container without a user runs as its image says, and that may be root: what restricted-v2 would
 * have filled in is not there. */
static void exec_takes_a_live_pod_as_it_is([[maybe_unused]] void **state) {
        static const char *const recorded[] = {"anyuid", "restricted-v2", ""};
        nd_cleanup(guard_world_done) struct guard_world world = {};
        struct asking asking = {.operation = "CONNECT", .subresource = "exec", .validating = true};

        make(&world, "enforce");
        for (size_t i = 0; i < nd_count_of(recorded); i++) {
                nd_autofree char *live = nd_format(
                        "{\"kind\":\"Pod\",\"metadata\":{\"annotations\":{\"security.nodens.io/scc\":\"%s\"}},\"spec\":{\"securityContext\":"
                        "{\"seLinuxOptions\":{\"level\":\"s0:c26,c5\"}},\"containers\":[{\"name\":\"c\",\"securityContext\":{\"capabilities\":"
                        "{\"drop\":[\"MKNOD\"]}}}]}}",
                        recorded[i]);

                asking.live = live;
                asking.response = false;
                expect_words(admitted(&world, asking), "exec operation is not allowed");
                asking.response = true; /* alice may use anyuid */
                expect_words(admitted(&world, asking), "allowed");
        }
}

static void the_stricter_one_of_hook_and_label_counts([[maybe_unused]] void **state) {
        static const char *const labels[] = {"off", "warn"};
        struct asking asking = {.pod = POD("\"hostPID\":true," C), .hook_mode = GUARD_MODE_ENFORCE, .validating = true};

        for (size_t i = 0; i < nd_count_of(labels); i++) {
                nd_cleanup(guard_world_done) struct guard_world world = {};

                make(&world, labels[i]);
                expect_words(admitted(&world, asking), "unable to validate");
        }
        for (enum guard_mode mode = GUARD_MODE_OFF; mode <= GUARD_MODE_ENFORCE; mode++) {
                nd_cleanup(guard_world_done) struct guard_world world = {};

                make(&world, "enforce");
                asking.hook_mode = mode;
                expect_words(admitted(&world, asking), "unable to validate");
        }
}

static void windows_pods_need_a_constraint_for_what_they_take_of_their_host([[maybe_unused]] void **state) {
#define WINDOWS "\"os\":{\"name\":\"windows\"},"
        nd_cleanup(guard_world_done) struct guard_world world = {};
        struct asking asking = {
                .pod = POD(WINDOWS "\"hostNetwork\":true,\"securityContext\":{\"windowsOptions\":{\"hostProcess\":true}}," C)};

        make(&world, "enforce");
        expect_words(admitted(&world, asking), "Host process containers are not allowed");
        asking = (struct asking) {.operation = "CONNECT", .subresource = "exec", .validating = true, .live = asking.pod};
        expect_words(admitted(&world, asking), "exec operation is not allowed");
        asking = (struct asking) {.pod = POD(WINDOWS "\"volumes\":[{\"name\":\"v\",\"hostPath\":{}}]," C), .validating = true};
        expect_words(admitted(&world, asking), "hostPath volumes are not allowed");
        asking = (struct asking) {.pod = POD(WINDOWS C), .rbac_decides = true, .validating = true};
        expect_text(admitted(&world, asking), "0 allowed");
}

static void ephemeral_containers_alone_are_filled([[maybe_unused]] void **state) {
        nd_cleanup(guard_world_done) struct guard_world world = {};
        struct asking asking = {.operation = "UPDATE", .subresource = "ephemeralcontainers", .old = POD(FITTING)};

        make(&world, "enforce");
        asking.pod = POD(FITTING ",\"ephemeralContainers\":[{\"name\":\"e\"}]");
        expect_words(admitted(&world, asking),
                     "0 allowed [{\"op\": \"add\", \"path\": \"/spec/ephemeralContainers/0/securityContext\"");
        asking.pod = POD(FITTING ",\"ephemeralContainers\":[{\"name\":\"e\",\"securityContext\":{\"privileged\":true}}]");
        expect_words(admitted(&world, asking), "Privileged containers are not allowed");
}

static void warnings_change_nothing([[maybe_unused]] void **state) {
        nd_cleanup(guard_world_done) struct guard_world world = {};

        make(&world, "warn");
        expect_text(admitted(&world, (struct asking) {.pod = POD("\"hostPID\":true," C)}), "0 allowed");
        expect_words(admitted(&world, (struct asking) {.pod = POD("\"hostPID\":true," C), .validating = true}),
                     "allowed warning: would be refused");
        expect_text(admitted(&world, (struct asking) {.pod = POD(C), .validating = true}), "1 allowed");
}

static void off_and_mirrors_are_left_alone([[maybe_unused]] void **state) {
        static const char mirror[] =
                "{\"kind\":\"Pod\",\"metadata\":{\"annotations\":{\"kubernetes.io/config.mirror\":\"h\"}},\"spec\":{" C "}}";
        nd_cleanup(guard_world_done) struct guard_world off = {}, on = {};

        make(&off, "off");
        expect_text(admitted(&off, (struct asking) {.pod = POD("\"hostPID\":true," C), .validating = true}), "0 allowed");
        make(&on, "enforce");
        expect_text(admitted(&on, (struct asking) {.pod = mirror}), "0 allowed");
        expect_words(admitted(&on, (struct asking) {.pod = mirror, .validating = true}), "unable to validate");
}

static void a_word_that_nobody_knows_enforces([[maybe_unused]] void **state) {
        nd_cleanup(guard_world_done) struct guard_world world = {};

        make(&world, "enfroce");
        expect_words(admitted(&world, (struct asking) {.pod = POD("\"hostPID\":true," C)}), "unable to validate");
}

static void user_namespaces_are_set_where_a_node_offers_them([[maybe_unused]] void **state) {
        nd_cleanup(guard_world_done) struct guard_world world = {};
        struct asking root = {.pod = POD("\"containers\":[{\"name\":\"c\",\"securityContext\":{\"runAsUser\":0}}]"),
                              .response = true};

        make(&world, "enforce");
        guard_world_tell(
                &world,
                "{\"kind\":\"RoleBinding\",\"metadata\":{\"name\":\"b\",\"namespace\":\"n\"},\"roleRef\":{\"kind\":\"ClusterRole\","
                "\"name\":\"nodens:scc:userns-root\"},\"subjects\":[{\"kind\":\"User\",\"name\":\"alice\"}]}");
        root.response = false;
        expect_words(admitted(&world, root), "unable to validate");
        guard_world_tell(
                &world,
                "{\"kind\":\"Node\",\"metadata\":{\"name\":\"a\"},\"spec\":{\"unschedulable\":true},\"status\":{\"runtimeHandlers\":"
                "[{\"name\":\"\",\"features\":{\"userNamespaces\":true}}]}}");
        expect_words(admitted(&world, root), "unable to validate");
        guard_world_tell(&world, "{\"kind\":\"Node\",\"metadata\":{\"name\":\"a\"},\"status\":{\"runtimeHandlers\":"
                                 "[{\"name\":\"\",\"features\":{\"userNamespaces\":true}}]}}");
        expect_words(admitted(&world, root), "{\"op\": \"add\", \"path\": \"/spec/hostUsers\", \"value\": false}");
        guard_world_tell(&world, "{\"kind\":\"Node\",\"metadata\":{\"name\":\"a\"},\"status\":{}}");
        expect_words(admitted(&world, root), "unable to validate");
}

static void a_pod_that_comes_before_its_ranges_may_try_again([[maybe_unused]] void **state) {
        nd_cleanup(guard_world_done) struct guard_world world = {};

        guard_world_make(&world);
        guard_world_tell(
                &world,
                "{\"kind\":\"Namespace\",\"metadata\":{\"name\":\"n\",\"labels\":{\"security.nodens.io/constraints\":\"enforce\"}}}");
        expect_words(admitted(&world, (struct asking) {.pod = POD(C), .rbac_decides = true}),
                     "has no ranges of user IDs yet; try again");
        /* what would be refused with any range is refused */
        expect_words(admitted(&world, (struct asking) {.pod = POD("\"hostPID\":true," C), .rbac_decides = true}),
                     "unable to validate");
}

static void a_namespace_that_is_not_known_is_wanted([[maybe_unused]] void **state) {
        nd_cleanup(guard_world_done) struct guard_world world = {};
        nd_autoarena struct nd_arena arena = {};
        struct guard_review review;
        struct guard_admission a = {.store = &world.store, .rbac = &world.rbac, .review = &review, .arena = &arena};

        guard_world_make(&world);
        expect_ok(read_review(&(struct asking) {.pod = POD(C)}, &arena, &review));
        assert_int_equal(guard_admission_needs(&a), GUARD_ADMISSION_NEEDS_NAMESPACE);
        expect_words(admitted(&world, (struct asking) {.pod = POD(C)}), "try again");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_manifest_says_what_the_code_does),
                cmocka_unit_test(access_checks_in_batches_lead_to_the_same_verdict),
                cmocka_unit_test(a_new_pod_is_filled_and_then_fits),
                cmocka_unit_test(without_a_fresh_index_the_api_server_is_asked),
                cmocka_unit_test(nothing_is_asked_about_what_does_not_fit),
                cmocka_unit_test(metadata_passes_but_for_our_annotations),
                cmocka_unit_test(exec_goes_by_the_rights_of_whoever_asks),
                cmocka_unit_test(ephemeral_containers_alone_are_filled),
                cmocka_unit_test(warnings_change_nothing),
                cmocka_unit_test(exec_takes_a_live_pod_as_it_is),
                cmocka_unit_test(the_stricter_one_of_hook_and_label_counts),
                cmocka_unit_test(windows_pods_need_a_constraint_for_what_they_take_of_their_host),
                cmocka_unit_test(off_and_mirrors_are_left_alone),
                cmocka_unit_test(a_word_that_nobody_knows_enforces),
                cmocka_unit_test(user_namespaces_are_set_where_a_node_offers_them),
                cmocka_unit_test(a_pod_that_comes_before_its_ranges_may_try_again),
                cmocka_unit_test(a_namespace_that_is_not_known_is_wanted),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
