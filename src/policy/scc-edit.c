/* SPDX-License-Identifier: Apache-2.0 */
/* scc-edit.c - see scc-edit.h
 *
 * Errors name their field by a path of the pod; this file reads the paths that scc-strategies.c,
 * scc-profiles.c and scc-volumes.c write. A path that it does not know is left alone. */
#include "policy/scc-edit.h"

#include <string.h>

#include "policy/scc-fitting.h"

enum {
        LIST_TEXT = 4096,
};

/* One error while its field is looked for. */
struct edit {
        const struct nd_scc *scc;
        struct nd_pod *pod;
        struct nd_arena *arena;
        struct nd_advice_edit *ret;
};

static bool removed(const struct edit *e, const char *path) {
        *e->ret = (struct nd_advice_edit) {.path = nd_arena_strdup(e->arena, path)};
        return true;
}

static bool changed(const struct edit *e, const char *path, const char *value) {
        *e->ret = (struct nd_advice_edit) {.path = nd_arena_strdup(e->arena, path), .value = value};
        return true;
}

/* Skips a word at the beginning of the path. */
static bool take(const char **path, const char *word) {
        if (!nd_has_prefix(*path, word))
                return false;
        *path += strlen(word);
        return true;
}

/* Skips "LIST[NUMBER]"; the number is below count. */
static bool take_item(const char **path, const char *list, size_t count, size_t *ret) {
        const char *at = *path;
        size_t number = 0;

        if (!take(&at, list) || !take(&at, "[") || *at < '0' || *at > '9')
                return false;
        for (; *at >= '0' && *at <= '9' && number < count; at++)
                number = number * 10 + (size_t) (*at - '0');
        if (number >= count || !take(&at, "]"))
                return false;
        *path = at;
        *ret = number;
        return true;
}

/* ---- fields that pods and containers have ---- */

static bool clear_text(const char **text) {
        bool was = *text;

        *text = nullptr;
        return was;
}

static bool clear_int(struct nd_shape_int *number) {
        bool was = number->set;

        *number = (struct nd_shape_int) {};
        return was;
}

static bool clear_switch(enum nd_shape_switch *value) {
        bool was = *value != ND_UNSET;

        *value = ND_UNSET;
        return was;
}

#define clear_object(object)                                                                                                  \
        ({                                                                                                                    \
                bool was = *(object);                                                                                         \
                *(object) = nullptr;                                                                                          \
                was;                                                                                                          \
        })

/* The fields of both kinds of contexts; nullptr: this kind does not have it. */
struct shared {
        struct nd_shape_int *user, *group;
        enum nd_shape_switch *non_root;
        struct nd_pod_selinux **selinux;
        struct nd_pod_profile **seccomp, **apparmor;
        struct nd_pod_windows **windows;
};

/* Returns the name of the removed field; nullptr: it was not set. */
static const char *clear_shared(const struct shared *s, const char *field) {
        if (nd_streq(field, "runAsUser"))
                return clear_int(s->user) ? field : nullptr;
        if (nd_streq(field, "runAsGroup"))
                return clear_int(s->group) ? field : nullptr;
        if (nd_streq(field, "runAsNonRoot"))
                return clear_switch(s->non_root) ? field : nullptr;
        if (nd_has_prefix(field, "seLinuxOptions"))
                return clear_object(s->selinux) ? "seLinuxOptions" : nullptr;
        if (nd_streq(field, "seccompProfile"))
                return clear_object(s->seccomp) ? field : nullptr;
        if (nd_streq(field, "appArmorProfile"))
                return clear_object(s->apparmor) ? field : nullptr;
        if (nd_streq(field, "windowsOptions.hostProcess"))
                return clear_object(s->windows) ? field : nullptr;
        return nullptr;
}

static const char *clear_of_pod(struct nd_pod_context *context, const char *field) {
        const struct shared s = {&context->run_as_user, &context->run_as_group, &context->run_as_non_root, &context->selinux,
                                 &context->seccomp,     &context->apparmor,     &context->windows};

        return clear_shared(&s, field);
}

static const char *clear_of_container(struct nd_pod_container_context *context, const char *field) {
        const struct shared s = {&context->run_as_user, &context->run_as_group, &context->run_as_non_root, &context->selinux,
                                 &context->seccomp,     &context->apparmor,     &context->windows};

        return clear_shared(&s, field);
}

/* ---- containers ---- */

static bool is_addable(const struct nd_scc *scc, const char *capability) {
        return nd_shape_texts_have(&scc->default_add, capability) ||
               nd_shape_texts_have(&scc->allowed_capabilities, capability);
}

/* Keeps the capabilities that the constraint allows. */
static bool edit_capabilities(const struct edit *e, struct nd_pod_container_context *context, const char *path) {
        nd_autotext struct nd_text left = ND_TEXT(LIST_TEXT);
        struct nd_pod_capabilities *own;
        struct nd_shape_texts kept = {};

        if (!context->capabilities)
                return false;
        own = nd_arena_new(e->arena, struct nd_pod_capabilities);
        *own = *context->capabilities;
        kept.items = nd_arena_alloc(e->arena, own->add.count + 1, sizeof *kept.items);
        for (size_t i = 0; i < own->add.count; i++) {
                if (!is_addable(e->scc, own->add.items[i]))
                        continue;
                nd_text_addf(&left, "%s%s", kept.count > 0 ? ", " : "", nd_field_json(e->arena, own->add.items[i]));
                kept.items[kept.count++] = own->add.items[i];
        }
        if (kept.count == own->add.count)
                return false;
        own->add = kept;
        context->capabilities = own;
        return kept.count > 0 ? changed(e, path, nd_arena_format(e->arena, "[%s]", nd_text_get(&left))) : removed(e, path);
}

static bool clear_own(struct nd_pod_container_context *context, const char *field) {
        if (nd_streq(field, "privileged"))
                return clear_switch(&context->privileged);
        if (nd_streq(field, "allowPrivilegeEscalation"))
                return clear_switch(&context->allow_privilege_escalation);
        if (nd_streq(field, "readOnlyRootFilesystem"))
                return clear_switch(&context->read_only_root);
        return nd_streq(field, "procMount") && clear_text(&context->proc_mount);
}

static bool edit_container(const struct edit *e, struct nd_pod_container *container, const char *path, const char *field) {
        struct nd_pod_container_context *context = nd_pod_container_own_context(container, e->arena);
        const char *name;

        if (nd_streq(field, "capabilities.add"))
                return edit_capabilities(e, context, path);
        if (clear_own(context, field))
                return removed(e, path);
        name = clear_of_container(context, field);
        if (name)
                return removed(e, nd_arena_format(e->arena, "%.*s%s", (int) (strlen(path) - strlen(field)), path, name));
        name = clear_of_pod(nd_pod_own_context(e->pod, e->arena), field);
        return name && removed(e, nd_arena_format(e->arena, "spec.securityContext.%s", name));
}

static bool edit_port(const struct edit *e, struct nd_pod_container *container, const char *path, const char *rest) {
        struct nd_pod_port *ports;
        size_t number;

        if (!take_item(&rest, "ports", container->ports.count, &number) || !nd_streq(rest, ".hostPort"))
                return false;
        ports = nd_arena_alloc(e->arena, container->ports.count, sizeof *ports);
        memcpy(ports, container->ports.items, container->ports.count * sizeof *ports);
        ports[number].host_port = (struct nd_shape_int) {};
        container->ports.items = ports;
        return removed(e, path);
}

/* ---- the pod ---- */

/* The copy keeps a safe sysctl and a harmless volume, so that the indices of the others stay. */
static bool edit_sysctl(const struct edit *e, const char *path, const char *rest) {
        struct nd_pod_context *context = nd_pod_own_context(e->pod, e->arena);
        struct nd_pod_sysctl *sysctls;
        size_t number;

        if (!take_item(&rest, "sysctls", context->sysctls.count, &number) || *rest)
                return false;
        sysctls = nd_arena_alloc(e->arena, context->sysctls.count, sizeof *sysctls);
        memcpy(sysctls, context->sysctls.items, context->sysctls.count * sizeof *sysctls);
        sysctls[number].name = "kernel.shm_rmid_forced";
        context->sysctls.items = sysctls;
        return removed(e, path);
}

static bool edit_volume(const struct edit *e, const char *rest) {
        struct nd_pod_volume *volume;
        size_t number;

        if (!take_item(&rest, "volumes", e->pod->spec.volumes.count, &number))
                return false;
        volume = &e->pod->spec.volumes.items[number];
        if (volume->sources == nd_pod_volume_bit(ND_VOLUME_EMPTY_DIR))
                return false;
        *volume = (struct nd_pod_volume) {.name = volume->name, .sources = nd_pod_volume_bit(ND_VOLUME_EMPTY_DIR)};
        return removed(e, nd_arena_format(e->arena, "spec.volumes[%zu]", number));
}

static bool edit_context(const struct edit *e, const char *path, const char *field) {
        struct nd_pod_context *context = nd_pod_own_context(e->pod, e->arena);
        const char *name;

        if (nd_streq(field, "fsGroup"))
                return clear_int(&context->fs_group) && removed(e, path);
        if (nd_streq(field, "supplementalGroups")) {
                bool was = context->supplemental_groups.items;

                context->supplemental_groups = (struct nd_shape_ints) {};
                return was && removed(e, path);
        }
        if (nd_streq(field, "supplementalGroupsPolicy"))
                return clear_text(&context->supplemental_groups_policy) && removed(e, path);
        if (edit_sysctl(e, path, field))
                return true;
        name = clear_of_pod(context, field);
        return name && removed(e, nd_arena_format(e->arena, "spec.securityContext.%s", name));
}

static bool clear_flag(const struct edit *e, bool *flag, const char *path) {
        bool was = *flag;

        *flag = false;
        return was && removed(e, path);
}

static bool edit_spec(const struct edit *e, const char *path, const char *rest) {
        struct nd_pod_spec *spec = &e->pod->spec;

        if (nd_streq(rest, "hostNetwork"))
                return clear_flag(e, &spec->host_network, path);
        if (nd_streq(rest, "hostPID"))
                return clear_flag(e, &spec->host_pid, path);
        if (nd_streq(rest, "hostIPC"))
                return clear_flag(e, &spec->host_ipc, path);
        if (nd_streq(rest, "hostUsers") && spec->host_users != ND_OFF) {
                spec->host_users = ND_OFF;
                return changed(e, path, "false");
        }
        return edit_volume(e, rest);
}

static bool edit_annotation(const struct edit *e, const char *path, const char *key) {
        struct nd_shape_pairs *pairs = &e->pod->metadata.annotations;

        for (size_t i = 0; i < pairs->count; i++) {
                size_t length = strlen(pairs->items[i].key);

                if (strncmp(key, pairs->items[i].key, length) != 0 || !nd_streq(key + length, "]"))
                        continue;
                memmove(&pairs->items[i], &pairs->items[i + 1], (pairs->count - i - 1) * sizeof *pairs->items);
                pairs->count--;
                return removed(e, path);
        }
        return false;
}

bool nd_scc_edit(const struct nd_scc *scc, const struct nd_field_error *error, struct nd_pod *pod, struct nd_arena *arena,
                 struct nd_advice_edit *ret) {
        const struct edit e = {.scc = scc, .pod = pod, .arena = arena, .ret = ret};
        const char *path = error->path, *rest = path;
        struct nd_pod_container *container;

        if (take(&rest, "metadata.annotations["))
                return edit_annotation(&e, path, rest);
        if (!take(&rest, "spec."))
                return false;
        for (size_t i = 0; (container = nd_pod_container(&pod->spec, i)); i++) {
                const char *at = rest;
                size_t number, found;
                const char *list = nd_pod_container_list(&pod->spec, i, &number);

                if (!take_item(&at, list, SIZE_MAX / 16, &found) || found != number || !take(&at, "."))
                        continue;
                return take(&at, "securityContext.") ? edit_container(&e, container, path, at)
                                                     : edit_port(&e, container, path, at);
        }
        return take(&rest, "securityContext.") ? edit_context(&e, path, rest) : edit_spec(&e, path, rest);
}
