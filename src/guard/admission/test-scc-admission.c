/* SPDX-License-Identifier: Apache-2.0 */
/* Admission of pods with the default constraints and roles. tests/component/guard has the same on a
 * real API server. */
#include "guard/admission/scc-admission.h"

#include <unit/expect.h>
#include <unit/guard-world.h>

#include "base/log.h"
#include "guard/admission/scc-refusal.h"

struct asking {
        const char *operation;        /* nullptr: CREATE */
        const char *group, *resource; /* nullptr: pods */
        const char *subresource;
        const char *user; /* nullptr: alice */
        const char *pod;
        const char *old;
        bool dry_run;
        const char *live;
        enum guard_mode hook_mode;
        bool validating;
        bool stale; /* the RBAC index */
        bool rbac_decides;
        bool response; /* the API server's result of every access review */
        size_t batch;  /* maximum of checks per decision; 0: no limit */
};

static struct nd_error *read_review(const struct asking *asking, struct nd_arena *arena, struct guard_review *ret) {
        nd_autofree char *text = nd_format(
                "{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"request\":{\"uid\":\"u\",\"operation\":\"%s\","
                "\"resource\":{\"group\":\"%s\",\"resource\":\"%s\"},\"subResource\":\"%s\",\"namespace\":\"n\",\"name\":\"p\",\"dryRun\":%s,"
                "\"userInfo\":{\"username\":\"%s\",\"groups\":[\"system:authenticated\"]},\"object\":%s,\"oldObject\":%s}}",
                asking->operation ? asking->operation : "CREATE", nd_kube_or_empty(asking->group),
                asking->resource ? asking->resource : "pods", nd_kube_or_empty(asking->subresource),
                asking->dry_run ? "true" : "false", asking->user ? asking->user : "alice", asking->pod ? asking->pod : "null",
                asking->old ? asking->old : "null");

        return guard_review_decode(text, strlen(text), arena, ret);
}

/* Returns the number of checks, then "allowed" with the patch and the warnings, or the denial. */
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

static void expect_part(char *text, const char *part) {
        nd_autofree char *owned = text;

        expect_contains(owned, part);
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

static void the_manifest_contains_the_default_constraints_of_the_code([[maybe_unused]] void **state) {
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

/* The order of constraints decides, not that of results, and constraints after an allowed one are
 * not checked. */
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
        /* anyuid comes first by its priority and fits, so the API server is queried about it */
        expect_part(admitted(&world, (struct asking) {.pod = POD(C)}), "1 allowed [");
        expect_part(admitted(&world, (struct asking) {.pod = POD(C), .rbac_decides = true}), "0 allowed [");
        expect_part(admitted(&world, (struct asking) {.pod = POD(C)}), "\"security.nodens.io/scc\": \"restricted-v2\"");
        /* the mutating webhook was not called, or another one removed what it filled in */
        expect_part(
                admitted(&world, (struct asking) {.pod = POD(C), .validating = true}),
                " restricted-v2 admits the pod only with its defaults, which the mutating webhook did not fill in: create "
                "the pod again; unable to validate against any security context constraint: [provider restricted-v2: would "
                "have to change the pod");
}

static void without_a_fresh_index_the_api_server_is_queried([[maybe_unused]] void **state) {
        nd_cleanup(guard_world_done) struct guard_world world = {};

        make(&world, "enforce");
        expect_part(admitted(&world, (struct asking) {.pod = POD(C), .stale = true, .response = true}), "allowed [");
        expect_part(admitted(&world, (struct asking) {.pod = POD(C), .stale = true}),
                    "11 pod would be admitted by restricted-v3 in a user namespace, but no schedulable node");
}

static void access_is_checked_only_for_constraints_that_fit([[maybe_unused]] void **state) {
        nd_cleanup(guard_world_done) struct guard_world world = {};

        make(&world, "enforce");
        /* only hostaccess and privileged fit; access to the rest is not checked */
        expect_part(admitted(&world, (struct asking) {.pod = POD("\"hostPID\":true," C)}), "2 pod would be admitted by");
        expect_part(admitted(&world, (struct asking) {.pod = POD("\"hostPID\":true," C), .response = true}), "allowed [");
}

static void metadata_updates_pass_except_for_our_annotations([[maybe_unused]] void **state) {
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
        expect_part(
                admitted(&world, (struct asking) {.operation = "UPDATE", .pod = forged, .old = strong, .validating = true}),
                "security.nodens.io/scc of a pod cannot be changed");
}

#define FITTING                                                                                                                     \
        "\"securityContext\":{\"fsGroup\":1000650000,\"seLinuxOptions\":{\"level\":\"s0:c26,c5\"},\"seccompProfile\":{\"type\":"    \
        "\"RuntimeDefault\"}},\"containers\":[{\"name\":\"c\",\"securityContext\":{\"runAsUser\":1000650000,\"runAsNonRoot\":true," \
        "\"allowPrivilegeEscalation\":false,\"capabilities\":{\"drop\":[\"ALL\"]}}}]"

static void exec_is_decided_by_the_rights_of_the_requesting_user([[maybe_unused]] void **state) {
        nd_cleanup(guard_world_done) struct guard_world world = {};
        struct asking asking = {.operation = "CONNECT", .subresource = "exec", .validating = true};

        make(&world, "enforce");
        asking.live = POD("\"serviceAccountName\":\"s\",\"hostPID\":true," C);
        expect_part(admitted(&world, asking),
                    "exec operation is not allowed because the pod's security context exceeds your permissions");
        asking.live = POD(FITTING);
        expect_text(admitted(&world, asking), "0 allowed");
        asking.live = nullptr; /* no such pod: the API server reports that itself */
        expect_text(admitted(&world, asking), "0 allowed");
}

/* A container without a user runs as its image says, possibly as root: the fields that
 * restricted-v2 would have filled in are missing. */
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
                expect_part(admitted(&world, asking), "exec operation is not allowed");
                asking.response = true; /* alice may use anyuid */
                expect_part(admitted(&world, asking), "allowed");
        }
}

static void the_stricter_mode_of_hook_and_label_applies([[maybe_unused]] void **state) {
        static const char *const labels[] = {"off", "warn"};
        struct asking asking = {.pod = POD("\"hostPID\":true," C), .hook_mode = GUARD_MODE_ENFORCE, .validating = true};

        for (size_t i = 0; i < nd_count_of(labels); i++) {
                nd_cleanup(guard_world_done) struct guard_world world = {};

                make(&world, labels[i]);
                expect_part(admitted(&world, asking), "unable to validate");
        }
        for (enum guard_mode mode = GUARD_MODE_OFF; mode <= GUARD_MODE_ENFORCE; mode++) {
                nd_cleanup(guard_world_done) struct guard_world world = {};

                make(&world, "enforce");
                asking.hook_mode = mode;
                expect_part(admitted(&world, asking), "unable to validate");
        }
}

static void windows_pods_need_a_constraint_for_host_access([[maybe_unused]] void **state) {
#define WINDOWS "\"os\":{\"name\":\"windows\"},"
        nd_cleanup(guard_world_done) struct guard_world world = {};
        struct asking asking = {
                .pod = POD(WINDOWS "\"hostNetwork\":true,\"securityContext\":{\"windowsOptions\":{\"hostProcess\":true}}," C)};

        make(&world, "enforce");
        expect_part(admitted(&world, asking), "Host process containers are not allowed");
        asking = (struct asking) {.operation = "CONNECT", .subresource = "exec", .validating = true, .live = asking.pod};
        expect_part(admitted(&world, asking), "exec operation is not allowed");
        asking = (struct asking) {.pod = POD(WINDOWS "\"volumes\":[{\"name\":\"v\",\"hostPath\":{}}]," C), .validating = true};
        expect_part(admitted(&world, asking), "hostPath volumes are not allowed");
        asking = (struct asking) {.pod = POD(WINDOWS C), .rbac_decides = true, .validating = true};
        expect_text(admitted(&world, asking), "0 allowed");
}

static void only_ephemeral_containers_are_filled_in_an_update([[maybe_unused]] void **state) {
        nd_cleanup(guard_world_done) struct guard_world world = {};
        struct asking asking = {.operation = "UPDATE", .subresource = "ephemeralcontainers", .old = POD(FITTING)};

        make(&world, "enforce");
        asking.pod = POD(FITTING ",\"ephemeralContainers\":[{\"name\":\"e\"}]");
        expect_part(admitted(&world, asking),
                    "0 allowed [{\"op\": \"add\", \"path\": \"/spec/ephemeralContainers/0/securityContext\"");
        asking.pod = POD(FITTING ",\"ephemeralContainers\":[{\"name\":\"e\",\"securityContext\":{\"privileged\":true}}]");
        expect_part(admitted(&world, asking), "Privileged containers are not allowed");
}

static void warn_mode_neither_patches_nor_denies([[maybe_unused]] void **state) {
        nd_cleanup(guard_world_done) struct guard_world world = {};

        make(&world, "warn");
        expect_text(admitted(&world, (struct asking) {.pod = POD("\"hostPID\":true," C)}), "0 allowed");
        expect_part(admitted(&world, (struct asking) {.pod = POD("\"hostPID\":true," C), .validating = true}),
                    "allowed warning: would be refused");
        expect_text(admitted(&world, (struct asking) {.pod = POD(C), .validating = true}), "1 allowed");
}

static void namespaces_in_mode_off_and_mirror_pods_are_not_mutated([[maybe_unused]] void **state) {
        static const char mirror[] =
                "{\"kind\":\"Pod\",\"metadata\":{\"annotations\":{\"kubernetes.io/config.mirror\":\"h\"}},\"spec\":{" C "}}";
        nd_cleanup(guard_world_done) struct guard_world off = {}, on = {};

        make(&off, "off");
        expect_text(admitted(&off, (struct asking) {.pod = POD("\"hostPID\":true," C), .validating = true}), "0 allowed");
        make(&on, "enforce");
        expect_text(admitted(&on, (struct asking) {.pod = mirror}), "0 allowed");
        expect_part(admitted(&on, (struct asking) {.pod = mirror, .validating = true}), "unable to validate");
}

static void an_unknown_label_value_enforces([[maybe_unused]] void **state) {
        nd_cleanup(guard_world_done) struct guard_world world = {};

        make(&world, "enfroce");
        expect_part(admitted(&world, (struct asking) {.pod = POD("\"hostPID\":true," C)}), "unable to validate");
}

static void user_namespaces_are_set_if_a_node_offers_them([[maybe_unused]] void **state) {
        nd_cleanup(guard_world_done) struct guard_world world = {};
        struct asking root = {.pod = POD("\"containers\":[{\"name\":\"c\",\"securityContext\":{\"runAsUser\":0}}]"),
                              .response = true};

        make(&world, "enforce");
        guard_world_tell(
                &world,
                "{\"kind\":\"RoleBinding\",\"metadata\":{\"name\":\"b\",\"namespace\":\"n\"},\"roleRef\":{\"kind\":\"ClusterRole\","
                "\"name\":\"nodens:scc:userns-root\"},\"subjects\":[{\"kind\":\"User\",\"name\":\"alice\"}]}");
        root.response = false;
        expect_part(admitted(&world, root), "unable to validate");
        guard_world_tell(
                &world,
                "{\"kind\":\"Node\",\"metadata\":{\"name\":\"a\"},\"spec\":{\"unschedulable\":true},\"status\":{\"runtimeHandlers\":"
                "[{\"name\":\"\",\"features\":{\"userNamespaces\":true}}]}}");
        expect_part(admitted(&world, root), "unable to validate");
        guard_world_tell(&world, "{\"kind\":\"Node\",\"metadata\":{\"name\":\"a\"},\"status\":{\"runtimeHandlers\":"
                                 "[{\"name\":\"\",\"features\":{\"userNamespaces\":true}}]}}");
        expect_part(admitted(&world, root), "{\"op\": \"add\", \"path\": \"/spec/hostUsers\", \"value\": false}");
        guard_world_tell(&world, "{\"kind\":\"Node\",\"metadata\":{\"name\":\"a\"},\"status\":{}}");
        expect_part(admitted(&world, root), "unable to validate");
}

static void a_pod_created_before_its_ranges_may_retry([[maybe_unused]] void **state) {
        nd_cleanup(guard_world_done) struct guard_world world = {};

        guard_world_make(&world);
        guard_world_tell(
                &world,
                "{\"kind\":\"Namespace\",\"metadata\":{\"name\":\"n\",\"labels\":{\"security.nodens.io/constraints\":\"enforce\"}}}");
        expect_part(admitted(&world, (struct asking) {.pod = POD(C), .rbac_decides = true}),
                    "has no ranges of user IDs yet; try again");
        /* a pod that no range would make fit is denied */
        expect_part(admitted(&world, (struct asking) {.pod = POD("\"hostPID\":true," C), .rbac_decides = true}),
                    "unable to validate");
}

static void an_unknown_namespace_is_requested([[maybe_unused]] void **state) {
        nd_cleanup(guard_world_done) struct guard_world world = {};
        nd_autoarena struct nd_arena arena = {};
        struct guard_review review;
        struct guard_admission a = {.store = &world.store, .rbac = &world.rbac, .review = &review, .arena = &arena};

        guard_world_make(&world);
        expect_ok(read_review(&(struct asking) {.pod = POD(C)}, &arena, &review));
        assert_int_equal(guard_admission_needs(&a), GUARD_ADMISSION_NEEDS_NAMESPACE);
        expect_part(admitted(&world, (struct asking) {.pod = POD(C)}), "try again");
}

/* ---- what a refused user reads ---- */

#define ROOT "\"containers\":[{\"name\":\"c\",\"securityContext\":{\"runAsUser\":0}}]"
#define NODE                                                                                                                  \
        "{\"kind\":\"Node\",\"metadata\":{\"name\":\"a\"},\"status\":{\"runtimeHandlers\":[{\"name\":\"\",\"features\":"      \
        "{\"userNamespaces\":true}}]}}"
#define UNABLE "; unable to validate against any security context constraint: ["

static void a_refusal_begins_with_what_to_do([[maybe_unused]] void **state) {
        nd_cleanup(guard_world_done) struct guard_world world = {};
        nd_autofree char *text = nullptr;

        make(&world, "enforce");
        guard_world_tell(&world, NODE);
        text = admitted(&world,
                        (struct asking) {.pod = POD("\"serviceAccountName\":\"default\"," ROOT), .rbac_decides = true});
        assert_true(nd_has_prefix(
                text,
                "0 pod would be admitted by userns-root in a user namespace, but serviceaccount n:default may not use it "
                "(kubectl create rolebinding userns-root-default -n n --clusterrole nodens:scc:userns-root "
                "--serviceaccount n:default); a new grant takes effect within seconds; or by restricted-v2 without "
                "spec.containers[0].securityContext.runAsUser" UNABLE "provider restricted-v3: "
                "spec.containers[0].securityContext.runAsUser: Invalid value: 0: must be in the ranges: [1000, 65534]"));
        expect_contains(text, " others: nodens lint --json --as alice --namespace n FILE]");
        assert_in_range(strlen(text), 1, GUARD_REFUSAL_BYTES + 2);
        /* the namespace's user, if the pod has no service account */
        expect_part(admitted(&world, (struct asking) {.pod = POD(ROOT), .rbac_decides = true}),
                    "but user alice may not use it (kubectl create rolebinding userns-root-alice -n n --clusterrole "
                    "nodens:scc:userns-root --user alice)");
}

static void a_refusal_says_that_no_node_offers_user_namespaces([[maybe_unused]] void **state) {
        nd_cleanup(guard_world_done) struct guard_world world = {};
        nd_autofree char *text = nullptr, *own = nullptr;

        make(&world, "enforce");
        guard_world_tell(
                &world,
                "{\"kind\":\"RoleBinding\",\"metadata\":{\"name\":\"b\",\"namespace\":\"n\"},\"roleRef\":{\"kind\":\"ClusterRole\","
                "\"name\":\"nodens:scc:userns-root\"},\"subjects\":[{\"kind\":\"User\",\"name\":\"alice\"}]}");
        text = admitted(&world, (struct asking) {.pod = POD(ROOT), .rbac_decides = true});
        assert_true(nd_has_prefix(text, "0 pod would be admitted by userns-root in a user namespace, but no schedulable node "
                                        "offers user namespaces; or by restricted-v2 without "
                                        "spec.containers[0].securityContext.runAsUser" UNABLE));
        /* hostUsers: true is the pod's own decision */
        own = admitted(&world, (struct asking) {.pod = POD("\"hostUsers\":true," ROOT), .rbac_decides = true});
        assert_null(strstr(own, "no schedulable node"));
}

static void access_to_the_host_is_removed_before_it_is_granted([[maybe_unused]] void **state) {
        nd_cleanup(guard_world_done) struct guard_world world = {};
        nd_autofree char *text = nullptr;

        make(&world, "enforce");
        /* advice does not need a fresh index */
        text = admitted(&world, (struct asking) {.pod = POD("\"hostPID\":true," C), .stale = true});
        assert_true(nd_has_prefix(text, "2 pod would be admitted by restricted-v2 without spec.hostPID; as it is it needs "
                                        "hostaccess, which user alice may not use" UNABLE));
        assert_null(strstr(text, "kubectl"));
}

static void no_advice_leads_to_the_next_refusal([[maybe_unused]] void **state) {
        static const char *const pods[] = {POD(ROOT), POD("\"hostUsers\":true," ROOT), POD("\"hostPID\":true," ROOT)};

        for (int node = 0; node < 2; node++) {
                nd_cleanup(guard_world_done) struct guard_world world = {};

                make(&world, "enforce");
                if (node)
                        guard_world_tell(&world, NODE);
                for (size_t i = 0; i < nd_count_of(pods); i++) {
                        nd_autofree char *text = admitted(&world, (struct asking) {.pod = pods[i], .rbac_decides = true});

                        assert_null(strstr(text, "with spec.hostUsers: false"));
                        assert_null(strstr(text, "provider userns-root: "));
                }
        }
}

static void hostile_names_are_quoted_and_make_no_command([[maybe_unused]] void **state) {
        nd_cleanup(guard_world_done) struct guard_world world = {};
        nd_autofree char *text = nullptr;

        make(&world, "enforce");
        guard_world_tell(&world, NODE);
        text = admitted(&world, (struct asking) {.pod = POD("\"serviceAccountName\":\"a\\u001b[31m; reboot\"," ROOT),
                                                 .user = "x`reboot`",
                                                 .rbac_decides = true});
        expect_contains(text, "but serviceaccount \"n:a\\x1b[31m; reboot\" may not use it (grant it the verb use on "
                              "securitycontextconstraints.security.nodens.io userns-root)");
        assert_null(strstr(text, "kubectl"));
        assert_null(strstr(text, "--as"));
        assert_null(strchr(text, 0x1b));
}

static void a_refusal_is_short_however_long_the_names_are([[maybe_unused]] void **state) {
        nd_cleanup(guard_world_done) struct guard_world world = {};
        nd_autotext struct nd_text name = ND_TEXT(4000), pod = ND_TEXT(1 << 20);
        nd_autofree char *text = nullptr;

        make(&world, "enforce");
        for (int i = 0; i < 1000; i++)
                nd_text_add(&name, "\xc3\xa4");
        nd_text_addf(&pod, "{\"kind\":\"Pod\",\"metadata\":{},\"spec\":{\"serviceAccountName\":\"%s\",\"containers\":[",
                     nd_text_get(&name));
        for (int i = 0; i < 50; i++)
                nd_text_addf(
                        &pod,
                        "%s{\"securityContext\":{\"privileged\":true,\"runAsUser\":%d,\"capabilities\":{\"add\":[\"%s\"]}}}",
                        i > 0 ? "," : "", i, nd_text_get(&name));
        nd_text_add(&pod, "]}}");
        text = admitted(&world, (struct asking) {.pod = nd_text_get(&pod), .user = nd_text_get(&name), .rbac_decides = true});
        assert_in_range(strlen(text), 100, GUARD_REFUSAL_BYTES + 2);
        assert_true(nd_text_utf8_valid(text, strlen(text)));
        expect_contains(text, "...");
}

static void exec_names_the_constraint_that_the_user_lacks([[maybe_unused]] void **state) {
        nd_cleanup(guard_world_done) struct guard_world world = {};
        struct asking asking = {.operation = "CONNECT", .subresource = "exec", .validating = true, .rbac_decides = true};

        make(&world, "enforce");
        asking.live = POD("\"serviceAccountName\":\"s\",\"hostPID\":true," FITTING);
        expect_part(admitted(&world, asking),
                    "exceeds your permissions: the pod as it is fits privileged, which user alice may not use" UNABLE
                    "provider restricted-v2: spec.hostPID: Invalid value: true: Host PID is not allowed to be used");
}

/* ---- templates and labels ---- */

#define DEPLOYMENT(spec)                                                                                                      \
        "{\"kind\":\"Deployment\",\"metadata\":{\"name\":\"web\"},\"spec\":{\"template\":{\"metadata\":{},\"spec\":{" spec    \
        "}}}}"

static void a_template_gets_a_warning_if_its_pods_would_be_refused([[maybe_unused]] void **state) {
        static const char *const modes[] = {"warn", "enforce", "off"};
        static const char *const expected[] = {
                "would be refused if security.nodens.io/constraints were enforce: ", "will be refused: ", nullptr};
        struct asking asking = {.group = "apps", .resource = "deployments", .validating = true, .rbac_decides = true};

        for (size_t i = 0; i < nd_count_of(modes); i++) {
                nd_cleanup(guard_world_done) struct guard_world world = {};
                nd_autofree char *text = nullptr;

                make(&world, modes[i]);
                guard_world_tell(&world, NODE);
                asking.pod = DEPLOYMENT(ROOT);
                text = admitted(&world, asking);
                if (expected[i]) {
                        assert_true(nd_has_prefix(text,
                                                  "0 allowed warning: pods of Deployment web with serviceaccount n:default "));
                        expect_contains(text, expected[i]);
                        expect_contains(text, "pod would be admitted by userns-root in a user namespace, but serviceaccount "
                                              "n:default may not use it (kubectl ");
                        expect_contains(text, "without spec.template.spec.containers[0].securityContext.runAsUser");
                        expect_contains(text,
                                        "--as system:serviceaccount:kube-system:replicaset-controller --namespace n FILE]");
                } else {
                        assert_string_equal(text, "0 allowed");
                }
                asking.pod = DEPLOYMENT(C);
                expect_text(admitted(&world, asking), "0 allowed");
        }
}

/* Alice may use userns-root, but she does not create the pods. */
static void the_pods_of_a_template_are_created_by_a_controller([[maybe_unused]] void **state) {
        nd_cleanup(guard_world_done) struct guard_world world = {};
        struct asking asking = {.group = "apps",
                                .resource = "deployments",
                                .pod = DEPLOYMENT("\"serviceAccountName\":\"robot\"," ROOT),
                                .validating = true,
                                .rbac_decides = true};

        make(&world, "warn");
        guard_world_tell(&world, NODE);
        guard_world_tell(
                &world,
                "{\"kind\":\"RoleBinding\",\"metadata\":{\"name\":\"a\",\"namespace\":\"n\"},\"roleRef\":{\"kind\":\"ClusterRole\","
                "\"name\":\"nodens:scc:userns-root\"},\"subjects\":[{\"kind\":\"User\",\"name\":\"alice\"}]}");
        expect_part(admitted(&world, asking), "warning: pods of Deployment web with serviceaccount n:robot would be refused");
        guard_world_tell(
                &world,
                "{\"kind\":\"RoleBinding\",\"metadata\":{\"name\":\"b\",\"namespace\":\"n\"},\"roleRef\":{\"kind\":\"ClusterRole\","
                "\"name\":\"nodens:scc:userns-root\"},\"subjects\":[{\"kind\":\"ServiceAccount\",\"name\":\"robot\"}]}");
        expect_text(admitted(&world, asking), "0 allowed");
        asking.dry_run = true;
        expect_text(
                admitted(&world, asking),
                "0 allowed warning: pods of Deployment web with serviceaccount n:robot would be admitted by userns-root as "
                "user 0 in a user namespace");
}

static void every_kind_of_workload_is_judged([[maybe_unused]] void **state) {
        static const struct {
                const char *group, *resource, *kind, *before, *after;
        } kinds[] = {
                {"", "podtemplates", "PodTemplate", "\"template\":", ""},
                {"", "replicationcontrollers", "ReplicationController", "\"spec\":{\"template\":", "}"},
                {"apps", "daemonsets", "DaemonSet", "\"spec\":{\"template\":", "}"},
                {"apps", "deployments", "Deployment", "\"spec\":{\"template\":", "}"},
                {"apps", "replicasets", "ReplicaSet", "\"spec\":{\"template\":", "}"},
                {"apps", "statefulsets", "StatefulSet", "\"spec\":{\"template\":", "}"},
                {"batch", "cronjobs", "CronJob", "\"spec\":{\"jobTemplate\":{\"spec\":{\"template\":", "}}}"},
                {"batch", "jobs", "Job", "\"spec\":{\"template\":", "}"},
        };
        nd_cleanup(guard_world_done) struct guard_world world = {};

        make(&world, "warn");
        for (size_t i = 0; i < nd_count_of(kinds); i++) {
                nd_autofree char *object =
                        nd_format("{\"kind\":\"%s\",\"metadata\":{\"name\":\"w\"},%s{\"spec\":{\"hostPID\":true," C "}}%s}",
                                  kinds[i].kind, kinds[i].before, kinds[i].after);
                nd_autofree char *part = nd_format(
                        "0 allowed warning: pods of %s w with serviceaccount n:default would be refused", kinds[i].kind);
                struct asking asking = {.group = kinds[i].group,
                                        .resource = kinds[i].resource,
                                        .pod = object,
                                        .validating = true,
                                        .rbac_decides = true};

                expect_part(admitted(&world, asking), part);
                asking.subresource = "status";
                expect_text(admitted(&world, asking), "0 allowed");
                asking.subresource = nullptr;
                /* its owner was judged */
                asking.user = "system:serviceaccount:kube-system:deployment-controller";
                expect_text(admitted(&world, asking), "0 allowed");
                asking.user = nullptr;
                asking.group = "example.org"; /* another resource of this name */
                expect_text(admitted(&world, asking), "0 allowed");
        }
}

#define LABELLED(labels) "{\"kind\":\"Namespace\",\"metadata\":{\"name\":\"p\",\"labels\":{" labels "}}}"

static void unknown_values_of_our_labels_are_refused_when_they_are_written([[maybe_unused]] void **state) {
        nd_cleanup(guard_world_done) struct guard_world world = {};
        struct asking asking = {.resource = "namespaces", .validating = true};

        make(&world, "enforce");
        asking.pod = LABELLED("\"security.nodens.io/constraints\":\"enforced\"");
        expect_text(admitted(&world, asking),
                    "0 Namespace \"p\" is invalid: metadata.labels[security.nodens.io/constraints]: Invalid value: "
                    "\"enforced\": must be one of off, warn, enforce");
        asking.pod = LABELLED("\"security.nodens.io/user-namespaces\":\"requir\"");
        expect_part(admitted(&world, asking), "Invalid value: \"requir\": must be one of default, require");
        asking.pod =
                LABELLED("\"security.nodens.io/constraints\":\"warn\",\"security.nodens.io/user-namespaces\":\"default\"");
        expect_text(admitted(&world, asking), "0 allowed");
        /* a value that is there already does not prevent other changes */
        asking.operation = "UPDATE";
        asking.old = LABELLED("\"security.nodens.io/constraints\":\"enforced\"");
        asking.pod = LABELLED("\"a\":\"b\",\"security.nodens.io/constraints\":\"enforced\"");
        expect_text(admitted(&world, asking), "0 allowed");
        asking.pod = LABELLED("\"security.nodens.io/constraints\":\"enfroce\"");
        expect_part(admitted(&world, asking), "\"enfroce\": must be one of");
}

static char *last_line;
static unsigned line_count;

static void keep_line([[maybe_unused]] enum nd_log_level level, const char *line) {
        free(last_line);
        last_line = nd_strdup(line);
        line_count++;
}

static void an_unknown_label_value_is_logged_once_with_its_meaning([[maybe_unused]] void **state) {
        nd_cleanup(guard_world_done) struct guard_world world = {};

        nd_log_set_sink(keep_line);
        make(&world, "enfroce");
        assert_int_equal(line_count, 1);
        expect_contains(last_line, "a label of a namespace has an unknown value");
        expect_contains(last_line, "namespace=n until_then=\"constraints are enforced\"");
        expect_contains(last_line, "must be one of off, warn, enforce");
        /* listed again */
        guard_world_tell(
                &world,
                "{\"kind\":\"Namespace\",\"metadata\":{\"name\":\"n\",\"labels\":{\"security.nodens.io/constraints\":\"enfroce\"}}}");
        assert_int_equal(line_count, 1);
        guard_world_tell(
                &world,
                "{\"kind\":\"Namespace\",\"metadata\":{\"name\":\"n\",\"labels\":{\"security.nodens.io/constraints\":\"x\"}}}");
        assert_int_equal(line_count, 2);
        nd_log_set_sink(nullptr);
        free(nd_take_ptr(last_line));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_manifest_contains_the_default_constraints_of_the_code),
                cmocka_unit_test(access_checks_in_batches_lead_to_the_same_verdict),
                cmocka_unit_test(a_new_pod_is_filled_and_then_fits),
                cmocka_unit_test(without_a_fresh_index_the_api_server_is_queried),
                cmocka_unit_test(access_is_checked_only_for_constraints_that_fit),
                cmocka_unit_test(metadata_updates_pass_except_for_our_annotations),
                cmocka_unit_test(exec_is_decided_by_the_rights_of_the_requesting_user),
                cmocka_unit_test(only_ephemeral_containers_are_filled_in_an_update),
                cmocka_unit_test(warn_mode_neither_patches_nor_denies),
                cmocka_unit_test(exec_takes_a_live_pod_as_it_is),
                cmocka_unit_test(the_stricter_mode_of_hook_and_label_applies),
                cmocka_unit_test(windows_pods_need_a_constraint_for_host_access),
                cmocka_unit_test(namespaces_in_mode_off_and_mirror_pods_are_not_mutated),
                cmocka_unit_test(an_unknown_label_value_enforces),
                cmocka_unit_test(user_namespaces_are_set_if_a_node_offers_them),
                cmocka_unit_test(a_pod_created_before_its_ranges_may_retry),
                cmocka_unit_test(an_unknown_namespace_is_requested),
                cmocka_unit_test(a_refusal_begins_with_what_to_do),
                cmocka_unit_test(a_refusal_says_that_no_node_offers_user_namespaces),
                cmocka_unit_test(access_to_the_host_is_removed_before_it_is_granted),
                cmocka_unit_test(no_advice_leads_to_the_next_refusal),
                cmocka_unit_test(hostile_names_are_quoted_and_make_no_command),
                cmocka_unit_test(a_refusal_is_short_however_long_the_names_are),
                cmocka_unit_test(exec_names_the_constraint_that_the_user_lacks),
                cmocka_unit_test(a_template_gets_a_warning_if_its_pods_would_be_refused),
                cmocka_unit_test(the_pods_of_a_template_are_created_by_a_controller),
                cmocka_unit_test(every_kind_of_workload_is_judged),
                cmocka_unit_test(unknown_values_of_our_labels_are_refused_when_they_are_written),
                cmocka_unit_test(an_unknown_label_value_is_logged_once_with_its_meaning),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
