/* SPDX-License-Identifier: Apache-2.0 */
/* lint-live.c - see lint-live.h
 *
 * Theory of operation
 *   A command asks one thing after the other, so a request is sent and the loop run until it is answered. Rights are asked about where a
 *   constraint fits, and remembered for the next pod. The one who asks is named by --as, and then the API server is asked about somebody else
 *   (SubjectAccessReview); or is whoever the kubeconfig says, who may ask about himself (SelfSubjectAccessReview). */
#include "cli/lint-live.h"

#include <string.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/vector.h"
#include "net/api-client.h"
#include "net/api-objects.h"

enum {
        PAGE = 500,
        BODY_BYTES = 64 << 10,
};

#define TIMEOUT_US (20 * ND_SECOND_US)
#define ACCOUNT "system:serviceaccount:"

struct person {
        const char *name;
        struct nd_texts groups;
        bool self;
};

struct lint_live {
        struct nd_arena *arena;
        sd_event *loop;
        struct nd_api *api;
        const char *group; /* of the constraints */
        const char *name;  /* of the namespace */
        struct nd_scc_namespace namespace;
        nd_vector(struct nd_scc *) constraints;
        struct person user;
        struct nd_map rights; /* of whom and what -> one more than whether */
        struct nd_error *error;
};

void lint_live_free(struct lint_live *live) {
        if (!live)
                return;
        nd_api_free(live->api);
        sd_event_unref(live->loop);
        nd_vector_done(&live->constraints);
        nd_map_done(&live->rights);
        nd_error_free(live->error);
        free(live);
}

/* ---- one request after the other */

struct call {
        bool done;
        long status;
        struct nd_error *error;
        yyjson_doc *doc;
};

static void on_answer(const struct nd_api_answer *answer, void *userdata) {
        struct call *call = userdata;

        call->done = true;
        call->status = answer->status;
        if (answer->error)
                call->error = nd_error_received(nd_error_code(answer->error), nd_error_errno(answer->error),
                                                nd_error_text(answer->error));
        else
                call->error = nd_json_parse(answer->body, answer->length, ND_API_PAGE_BYTES, &call->doc);
}

static struct nd_error *ask(struct lint_live *live, const char *path, const char *body, long *ret_status, yyjson_doc **ret) {
        struct call call = {};
        int r = 0;

        (void) nd_api_send(live->api, &(struct nd_api_request) {.method = body ? "POST" : "GET",
                                                                .path = path,
                                                                .body = body,
                                                                .timeout_us = TIMEOUT_US,
                                                                .ceiling = ND_API_PAGE_BYTES,
                                                                .done = on_answer,
                                                                .userdata = &call});
        while (!call.done && r >= 0)
                r = sd_event_run(live->loop, UINT64_MAX);
        if (!call.done)
                return nd_error_new(ND_INTERNAL, -r, "event loop");
        if (ret_status)
                *ret_status = call.status;
        if (call.error)
                return nd_error_wrap(call.error, "%s", path);
        *ret = call.doc;
        return nullptr;
}

/* ---- constraints and the namespace */

static struct nd_error *take_page(struct lint_live *live, yyjson_val *root) {
        yyjson_arr_iter items = yyjson_arr_iter_with(yyjson_obj_get(root, "items"));
        yyjson_val *item;

        while ((item = yyjson_arr_iter_next(&items))) {
                struct nd_scc *scc = nd_arena_new(live->arena, struct nd_scc);

                nd_try(nd_error_wrap(nd_scc_decode(item, live->arena, scc), "constraint '%s'", nd_api_name(item)));
                nd_vector_push(&live->constraints, scc);
        }
        return nullptr;
}

static struct nd_error *list_constraints(struct lint_live *live, long *ret_status) {
        nd_autofree char *continuation = nullptr;

        do {
                nd_autotext path = ND_TEXT(BODY_BYTES);
                nd_autojson doc = nullptr;
                yyjson_val *more;

                nd_text_addf(&path, "/apis/%s/v1/securitycontextconstraints?limit=%u", live->group, (unsigned) PAGE);
                if (continuation) {
                        nd_text_add(&path, "&continue=");
                        nd_api_escape(&path, continuation);
                }
                nd_try(ask(live, nd_text_get(&path), nullptr, ret_status, &doc));
                nd_try(take_page(live, yyjson_doc_get_root(doc)));
                more = yyjson_obj_get(yyjson_obj_get(yyjson_doc_get_root(doc), "metadata"), "continue");
                free(nd_take_ptr(continuation));
                if (yyjson_get_len(more) > 0)
                        continuation = nd_strdup(yyjson_get_str(more));
        } while (continuation);
        return nullptr;
}

/* Of a cluster with the guard, or of OpenShift. */
static struct nd_error *find_constraints(struct lint_live *live) {
        static const char *const groups[] = {"security.nodens.io", "security.openshift.io"};

        for (size_t i = 0; i < nd_count_of(groups); i++) {
                nd_autoerror struct nd_error *error = nullptr;
                long status = 0;

                live->group = groups[i];
                error = list_constraints(live, &status);
                if (error && status == 404)
                        continue;
                return nd_take_ptr(error);
        }
        return nd_error_new(ND_NOT_FOUND, 0, "the cluster has no security context constraints, neither of %s nor of %s",
                            groups[0], groups[1]);
}

struct named {
        struct nd_metadata metadata;
};

static const struct nd_shape_field named_fields[] = {
        {.name = "metadata", .kind = ND_SHAPE_INLINE, .offset = offsetof(struct named, metadata), .of = &nd_metadata_shape},
        {},
};
static const struct nd_shape named_shape = {.size = sizeof(struct named), .fields = named_fields};

static struct nd_error *read_namespace(struct lint_live *live) {
        nd_autotext path = ND_TEXT(BODY_BYTES);
        struct named named = {};
        nd_autojson doc = nullptr;

        nd_text_add(&path, "/api/v1/namespaces/");
        nd_api_escape(&path, live->name);
        nd_try(ask(live, nd_text_get(&path), nullptr, nullptr, &doc));
        nd_try(nd_shape_decode(&named_shape, yyjson_doc_get_root(doc), live->arena, &named));
        live->namespace = nd_scc_namespace_of(&named.metadata.annotations);
        return nullptr;
}

/* ---- who asks */

/* The groups that an API server gives a service account by its name. */
static void set_groups(struct lint_live *live, const char *name, struct person *person) {
        const char *namespace = nd_has_prefix(name, ACCOUNT) ? name + strlen(ACCOUNT) : nullptr;
        const char **groups = nd_arena_alloc(live->arena, 3, sizeof *groups);

        person->groups.items = groups;
        groups[person->groups.count++] = "system:authenticated";
        if (!namespace)
                return;
        groups[person->groups.count++] = "system:serviceaccounts";
        groups[person->groups.count++] =
                nd_arena_format(live->arena, "system:serviceaccounts:%.*s", (int) strcspn(namespace, ":"), namespace);
}

struct identity {
        const char *name;
        struct nd_texts groups;
};

static const struct nd_shape_field identity_fields[] = {
        {.name = "username", .kind = ND_SHAPE_TEXT, .offset = offsetof(struct identity, name)},
        {.name = "groups", .kind = ND_SHAPE_TEXTS, .offset = offsetof(struct identity, groups)},
        {},
};
static const struct nd_shape identity_shape = {.size = sizeof(struct identity), .fields = identity_fields};

static struct nd_error *find_user(struct lint_live *live, const char *as) {
        static const char question[] = "{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"SelfSubjectReview\"}";
        struct identity identity = {};
        nd_autojson doc = nullptr;

        if (as) {
                live->user.name = nd_arena_strdup(live->arena, as);
                set_groups(live, as, &live->user);
                return nullptr;
        }
        nd_try(ask(live, "/apis/authentication.k8s.io/v1/selfsubjectreviews", question, nullptr, &doc));
        nd_try(nd_shape_decode(&identity_shape, yyjson_obj_get(yyjson_obj_get(yyjson_doc_get_root(doc), "status"), "userInfo"),
                               live->arena, &identity));
        live->user = (struct person) {.name = nd_or_empty(identity.name), .groups = identity.groups, .self = true};
        return nullptr;
}

/* ---- rights */

static bool is_listed(const struct nd_scc *scc, const struct person *person) {
        for (size_t i = 0; i < person->groups.count; i++)
                if (nd_texts_have(&scc->groups, person->groups.items[i]))
                        return true;
        return nd_texts_have(&scc->users, person->name);
}

static void write_question(const struct lint_live *live, const struct nd_scc *scc, const struct person *person,
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
        nd_json_string(&out, "namespace", live->name);
        nd_json_string(&out, "verb", "use");
        nd_json_string(&out, "group", live->group);
        nd_json_string(&out, "resource", "securitycontextconstraints");
        nd_json_string(&out, "name", nd_or_empty(scc->metadata.name));
        nd_json_close(&out, '}');
        nd_json_close(&out, '}');
        nd_json_close(&out, '}');
}

static struct nd_error *ask_right(struct lint_live *live, const struct nd_scc *scc, const struct person *person, bool *ret) {
        nd_autofree char *path = nd_format("/apis/authorization.k8s.io/v1/%ssubjectaccessreviews", person->self ? "self" : "");
        nd_autotext body = ND_TEXT(BODY_BYTES);
        nd_autojson doc = nullptr;

        write_question(live, scc, person, &body);
        nd_try(ask(live, path, nd_text_get(&body), nullptr, &doc));
        *ret = yyjson_is_true(yyjson_obj_get(yyjson_obj_get(yyjson_doc_get_root(doc), "status"), "allowed"));
        return nullptr;
}

static bool has_right(struct lint_live *live, const struct nd_scc *scc, const struct person *person) {
        nd_autofree char *key = nd_format("%s\n%s", person->name, nd_or_empty(scc->metadata.name));
        uintptr_t known = (uintptr_t) nd_map_get(&live->rights, key);
        struct nd_error *error = nullptr;
        bool allowed = is_listed(scc, person);

        if (known > 0)
                return known > 1;
        if (!allowed)
                error = ask_right(live, scc, person, &allowed);
        if (error && !live->error)
                live->error = nd_error_wrap(error, "cannot ask what '%s' may use", person->name);
        else
                nd_error_free(error);
        (void) nd_map_put(&live->rights, key, (void *) (uintptr_t) (allowed ? 2 : 1));
        return allowed;
}

bool lint_live_may_use(struct lint_live *live, const struct nd_scc *scc, const struct nd_pod *pod) {
        struct person account = {};
        const char *name = nd_or_empty(pod->spec.service_account);

        if (has_right(live, scc, &live->user))
                return true;
        account.name = nd_arena_format(live->arena, ACCOUNT "%s:%s", live->name, *name ? name : "default");
        set_groups(live, account.name, &account);
        return has_right(live, scc, &account);
}

const struct nd_error *lint_live_error(const struct lint_live *live) {
        return live->error;
}

const struct nd_scc *lint_live_constraint(const struct lint_live *live, size_t number) {
        return number < live->constraints.count ? live->constraints.items[number] : nullptr;
}

struct nd_scc_namespace lint_live_namespace(const struct lint_live *live) {
        return live->namespace;
}

static void live_done(struct lint_live **live) {
        lint_live_free(*live);
}

struct nd_error *lint_live_open(const struct lint_settings *settings, struct nd_arena *arena, struct lint_live **ret) {
        nd_cleanup(live_done) struct lint_live *live = nd_new(struct lint_live);
        nd_cleanup(nd_kubeconfig_done) struct nd_kubeconfig cluster = {};
        int r = sd_event_new(&live->loop);

        if (r < 0)
                return nd_error_new(ND_INTERNAL, -r, "event loop");
        live->arena = arena;
        nd_try(nd_kubeconfig_find(settings->kubeconfig, &cluster));
        nd_try(nd_api_new(live->loop, &cluster, &live->api));
        live->name = nd_arena_strdup(arena, settings->namespace                       ? settings->namespace
                                            : cluster.namespace && *cluster.namespace ? cluster.namespace
                                                                                      : "default");
        nd_try(find_constraints(live));
        nd_try(read_namespace(live));
        nd_try(find_user(live, settings->as));
        *ret = nd_take_ptr(live);
        return nullptr;
}
