/* SPDX-License-Identifier: Apache-2.0 */
/* cluster.c - see cluster.h
 *
 * Theory of operation
 *   Requests are sequential: each one is sent and the loop runs until the response arrives. Access
 *   is checked only for constraints that fit, and results are cached for the next pod. With --as
 *   the subject is another user (SubjectAccessReview), else the kubeconfig's own user
 *   (SelfSubjectAccessReview). */
#include "cli/lint/cluster.h"

#include <string.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/vector.h"
#include "cli/core/api-ask.h"
#include "net/api-objects.h"

enum {
        PAGE = 500,
        BODY_BYTES = 64 << 10,
};

#define ACCOUNT "system:serviceaccount:"

static constexpr uint64_t request_timeout_us = 20 * ND_SECOND_US;

struct person {
        const char *name;
        struct nd_shape_texts groups;
        bool self;
};

struct cli_lint_cluster {
        struct nd_arena *arena;
        sd_event *loop;
        struct nd_api *api;
        const char *group; /* API group of the constraints */
        const char *name;  /* of the namespace */
        struct nd_scc_namespace namespace;
        nd_vector(struct nd_scc *) constraints;
        struct person user;
        struct nd_map rights; /* cache: subject and constraint -> 1 + allowed */
        struct nd_error *error;
};

void cli_lint_cluster_free(struct cli_lint_cluster *cluster) {
        if (!cluster)
                return;
        nd_api_free(cluster->api);
        sd_event_unref(cluster->loop);
        nd_vector_done(&cluster->constraints);
        nd_map_done(&cluster->rights);
        nd_error_free(cluster->error);
        free(cluster);
}

/* ---- sequential requests ---- */

static struct nd_error *ask(struct cli_lint_cluster *cluster, const char *path, const char *body, long *ret_status,
                            yyjson_doc **ret) {
        struct nd_api_request request = {.method = body ? "POST" : "GET",
                                         .path = path,
                                         .body = body,
                                         .timeout_us = request_timeout_us,
                                         .ceiling = ND_API_PAGE_BYTES};
        struct cli_api_reply reply = {};

        nd_try(cli_api_ask(cluster->api, &request, &reply));
        if (ret_status)
                *ret_status = reply.status;
        if (reply.error)
                return nd_error_wrap(reply.error, "%s", path);
        *ret = reply.doc;
        return nullptr;
}

/* ---- constraints and the namespace ---- */

static struct nd_error *take_page(struct cli_lint_cluster *cluster, yyjson_val *root) {
        yyjson_arr_iter items = yyjson_arr_iter_with(yyjson_obj_get(root, "items"));
        yyjson_val *item;

        while ((item = yyjson_arr_iter_next(&items))) {
                struct nd_scc *scc = nd_arena_new(cluster->arena, struct nd_scc);

                nd_try(nd_error_wrap(nd_scc_decode(item, cluster->arena, scc), "constraint '%s'", nd_api_name(item)));
                nd_vector_push(&cluster->constraints, scc);
        }
        return nullptr;
}

static struct nd_error *list_constraints(struct cli_lint_cluster *cluster, long *ret_status) {
        nd_autofree char *continuation = nullptr;

        do {
                nd_autotext struct nd_text path = ND_TEXT(BODY_BYTES);
                nd_autojson yyjson_doc *doc = nullptr;
                yyjson_val *more;

                nd_text_addf(&path, "/apis/%s/v1/securitycontextconstraints?limit=%u", cluster->group, (unsigned) PAGE);
                if (continuation) {
                        nd_text_add(&path, "&continue=");
                        nd_api_escape(&path, continuation);
                }
                nd_try(ask(cluster, nd_text_get(&path), nullptr, ret_status, &doc));
                nd_try(take_page(cluster, yyjson_doc_get_root(doc)));
                more = yyjson_obj_get(yyjson_obj_get(yyjson_doc_get_root(doc), "metadata"), "continue");
                free(nd_take_ptr(continuation));
                if (yyjson_get_len(more) > 0)
                        continuation = nd_strdup(yyjson_get_str(more));
        } while (continuation);
        return nullptr;
}

/* A cluster with nodens-guard, or OpenShift. */
static struct nd_error *find_constraints(struct cli_lint_cluster *cluster) {
        static const char *const groups[] = {"security.nodens.io", "security.openshift.io"};

        for (size_t i = 0; i < nd_count_of(groups); i++) {
                nd_autoerror struct nd_error *error = nullptr;
                long status = 0;

                cluster->group = groups[i];
                error = list_constraints(cluster, &status);
                if (error && status == 404)
                        continue;
                return nd_take_ptr(error);
        }
        return nd_error_new(ND_NOT_FOUND, 0, "the cluster has no security context constraints of %s or %s", groups[0],
                            groups[1]);
}

struct named {
        struct nd_kube_metadata metadata;
};

static const struct nd_shape_field named_fields[] = {
        {.name = "metadata",
         .kind = ND_SHAPE_INLINE,
         .offset = offsetof(struct named, metadata),
         .of = &nd_kube_metadata_shape},
        {},
};
static const struct nd_shape named_shape = {.size = sizeof(struct named), .fields = named_fields};

static struct nd_error *read_namespace(struct cli_lint_cluster *cluster) {
        nd_autotext struct nd_text path = ND_TEXT(BODY_BYTES);
        struct named named = {};
        nd_autojson yyjson_doc *doc = nullptr;

        nd_text_add(&path, "/api/v1/namespaces/");
        nd_api_escape(&path, cluster->name);
        nd_try(ask(cluster, nd_text_get(&path), nullptr, nullptr, &doc));
        nd_try(nd_shape_decode(&named_shape, yyjson_doc_get_root(doc), cluster->arena, &named));
        cluster->namespace = nd_scc_namespace_of(&named.metadata.annotations);
        return nullptr;
}

/* ---- the user ---- */

/* Sets the groups that an API server derives from a service account's name. */
static void set_groups(struct cli_lint_cluster *cluster, const char *name, struct person *person) {
        const char *namespace = nd_has_prefix(name, ACCOUNT) ? name + strlen(ACCOUNT) : nullptr;
        const char **groups = nd_arena_alloc(cluster->arena, 3, sizeof *groups);

        person->groups.items = groups;
        groups[person->groups.count++] = "system:authenticated";
        if (!namespace)
                return;
        groups[person->groups.count++] = "system:serviceaccounts";
        groups[person->groups.count++] =
                nd_arena_format(cluster->arena, "system:serviceaccounts:%.*s", (int) strcspn(namespace, ":"), namespace);
}

struct identity {
        const char *name;
        struct nd_shape_texts groups;
};

static const struct nd_shape_field identity_fields[] = {
        {.name = "username", .kind = ND_SHAPE_TEXT, .offset = offsetof(struct identity, name)},
        {.name = "groups", .kind = ND_SHAPE_TEXTS, .offset = offsetof(struct identity, groups)},
        {},
};
static const struct nd_shape identity_shape = {.size = sizeof(struct identity), .fields = identity_fields};

static struct nd_error *find_user(struct cli_lint_cluster *cluster, const char *as) {
        static const char question[] = "{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"SelfSubjectReview\"}";
        struct identity identity = {};
        nd_autojson yyjson_doc *doc = nullptr;

        if (as) {
                cluster->user.name = nd_arena_strdup(cluster->arena, as);
                set_groups(cluster, as, &cluster->user);
                return nullptr;
        }
        nd_try(ask(cluster, "/apis/authentication.k8s.io/v1/selfsubjectreviews", question, nullptr, &doc));
        nd_try(nd_shape_decode(&identity_shape, yyjson_obj_get(yyjson_obj_get(yyjson_doc_get_root(doc), "status"), "userInfo"),
                               cluster->arena, &identity));
        cluster->user = (struct person) {.name = nd_kube_or_empty(identity.name), .groups = identity.groups, .self = true};
        return nullptr;
}

/* ---- access reviews ---- */

static bool is_listed(const struct nd_scc *scc, const struct person *person) {
        for (size_t i = 0; i < person->groups.count; i++)
                if (nd_shape_texts_have(&scc->groups, person->groups.items[i]))
                        return true;
        return nd_shape_texts_have(&scc->users, person->name);
}

static void write_question(const struct cli_lint_cluster *cluster, const struct nd_scc *scc, const struct person *person,
                           struct nd_text *text) {
        struct nd_json_out out = {.text = text};

        nd_json_open(&out, nullptr, '{');
        nd_json_string(&out, "apiVersion", "authorization.k8s.io/v1");
        nd_json_string(&out, "kind", person->self ? "SelfSubjectAccessReview" : "SubjectAccessReview");
        nd_json_open(&out, "spec", '{');
        if (!person->self) {
                nd_json_string(&out, "user", person->name);
                nd_json_open(&out, "groups", '[');
                for (size_t i = 0; i < person->groups.count; i++)
                        nd_json_string(&out, nullptr, person->groups.items[i]);
                nd_json_close(&out, ']');
        }
        nd_json_open(&out, "resourceAttributes", '{');
        nd_json_string(&out, "namespace", cluster->name);
        nd_json_string(&out, "verb", "use");
        nd_json_string(&out, "group", cluster->group);
        nd_json_string(&out, "resource", "securitycontextconstraints");
        nd_json_string(&out, "name", nd_kube_or_empty(scc->metadata.name));
        nd_json_close(&out, '}');
        nd_json_close(&out, '}');
        nd_json_close(&out, '}');
}

static struct nd_error *ask_right(struct cli_lint_cluster *cluster, const struct nd_scc *scc, const struct person *person,
                                  bool *ret) {
        nd_autofree char *path = nd_format("/apis/authorization.k8s.io/v1/%ssubjectaccessreviews", person->self ? "self" : "");
        nd_autotext struct nd_text body = ND_TEXT(BODY_BYTES);
        nd_autojson yyjson_doc *doc = nullptr;

        write_question(cluster, scc, person, &body);
        nd_try(ask(cluster, path, nd_text_get(&body), nullptr, &doc));
        *ret = yyjson_is_true(yyjson_obj_get(yyjson_obj_get(yyjson_doc_get_root(doc), "status"), "allowed"));
        return nullptr;
}

static bool has_right(struct cli_lint_cluster *cluster, const struct nd_scc *scc, const struct person *person) {
        nd_autofree char *key = nd_format("%s\n%s", person->name, nd_kube_or_empty(scc->metadata.name));
        uintptr_t known = (uintptr_t) nd_map_get(&cluster->rights, key);
        struct nd_error *error = nullptr;
        bool allowed = is_listed(scc, person);

        if (known > 0)
                return known > 1;
        if (!allowed)
                error = ask_right(cluster, scc, person, &allowed);
        if (error && !cluster->error)
                cluster->error = nd_error_wrap(error, "access review for '%s'", person->name);
        else
                nd_error_free(error);
        (void) nd_map_put(&cluster->rights, key, (void *) (uintptr_t) (allowed ? 2 : 1));
        return allowed;
}

bool cli_lint_cluster_may_use(struct cli_lint_cluster *cluster, const struct nd_scc *scc, const struct nd_pod *pod) {
        struct person account = {};
        const char *name = nd_kube_or_empty(pod->spec.service_account);

        if (has_right(cluster, scc, &cluster->user))
                return true;
        account.name = nd_arena_format(cluster->arena, ACCOUNT "%s:%s", cluster->name, *name ? name : "default");
        set_groups(cluster, account.name, &account);
        return has_right(cluster, scc, &account);
}

const struct nd_error *cli_lint_cluster_error(const struct cli_lint_cluster *cluster) {
        return cluster->error;
}

const struct nd_scc *cli_lint_cluster_constraint(const struct cli_lint_cluster *cluster, size_t number) {
        return number < cluster->constraints.count ? cluster->constraints.items[number] : nullptr;
}

struct nd_scc_namespace cli_lint_cluster_namespace(const struct cli_lint_cluster *cluster) {
        return cluster->namespace;
}

static void cluster_done(struct cli_lint_cluster **cluster) {
        cli_lint_cluster_free(*cluster);
}

struct nd_error *cli_lint_cluster_open(const struct cli_lint_cluster_settings *settings, struct nd_arena *arena,
                                       struct cli_lint_cluster **ret) {
        nd_cleanup(cluster_done) struct cli_lint_cluster *cluster = nd_new(struct cli_lint_cluster);
        nd_cleanup(nd_kubeconfig_done) struct nd_kubeconfig kubeconfig = {};
        int r = sd_event_new(&cluster->loop);

        if (r < 0)
                return nd_error_new(ND_INTERNAL, -r, "create an event loop");
        cluster->arena = arena;
        nd_try(nd_kubeconfig_find(settings->kubeconfig, &kubeconfig));
        nd_try(nd_api_new(cluster->loop, &kubeconfig, &cluster->api));
        cluster->name = nd_arena_strdup(arena, settings->namespace                             ? settings->namespace
                                               : kubeconfig.namespace && *kubeconfig.namespace ? kubeconfig.namespace
                                                                                               : "default");
        nd_try(find_constraints(cluster));
        nd_try(read_namespace(cluster));
        nd_try(find_user(cluster, settings->as));
        *ret = nd_take_ptr(cluster);
        return nullptr;
}
