/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/admission/patch.h"

#include <stdio.h>

#include "base/json.h"

enum {
        PATCH_BYTES = 4 << 20,
        PATH_BYTES = 1024,
};

struct patch {
        struct nd_json_out out;
        size_t count;
};

static void begin_operation(struct patch *p, const char *path) {
        nd_json_open(&p->out, nullptr, '{');
        nd_json_string(&p->out, "op", "add");
        nd_json_string(&p->out, "path", path);
        p->count++;
}

static void end_operation(struct patch *p) {
        nd_json_close(&p->out, '}');
}

/* All members are written through this struct: each as an operation of its own if the object
 * exists, or else within one operation that adds the whole object. */
struct target {
        struct patch *patch;
        char path[PATH_BYTES]; /* of the object */
        bool whole;            /* the object does not exist */
        bool open;             /* the operation that adds it is open */
};

static const char *member(struct target *t, const char *name, char *path) {
        if (t->whole) {
                if (!t->open) {
                        begin_operation(t->patch, t->path);
                        nd_json_open(&t->patch->out, "value", '{');
                        t->open = true;
                }
                return name;
        }
        (void) snprintf(path, PATH_BYTES, "%.900s/%s", t->path, name);
        begin_operation(t->patch, path);
        return "value";
}

static void end_member(struct target *t) {
        if (!t->whole)
                end_operation(t->patch);
}

static void close_target(struct target *t) {
        if (!t->open)
                return;
        nd_json_close(&t->patch->out, '}');
        end_operation(t->patch);
}

static void put_switch(struct target *t, const char *name, enum nd_shape_switch before, enum nd_shape_switch after) {
        char path[PATH_BYTES];

        if (before == after)
                return;
        nd_json_bool(&t->patch->out, member(t, name, path), after == ND_ON);
        end_member(t);
}

static void put_int(struct target *t, const char *name, struct nd_shape_int before, struct nd_shape_int after) {
        char path[PATH_BYTES];

        if (!after.set || (before.set && before.value == after.value))
                return;
        nd_json_signed(&t->patch->out, member(t, name, path), after.value);
        end_member(t);
}

static void put_text(struct target *t, const char *name, const char *before, const char *after) {
        char path[PATH_BYTES];

        if (nd_streq(nd_kube_or_empty(before), nd_kube_or_empty(after)))
                return;
        nd_json_string(&t->patch->out, member(t, name, path), after);
        end_member(t);
}

static void write_text_if(struct nd_json_out *out, const char *key, const char *value) {
        if (nd_kube_or_empty(value)[0] != '\0')
                nd_json_string(out, key, value);
}

static void put_selinux(struct target *t, const struct nd_pod_selinux *before, const struct nd_pod_selinux *after) {
        struct nd_json_out *out = &t->patch->out;
        char path[PATH_BYTES];

        if (before || !after)
                return;
        nd_json_open(out, member(t, "seLinuxOptions", path), '{');
        write_text_if(out, "user", after->user);
        write_text_if(out, "role", after->role);
        write_text_if(out, "type", after->type);
        write_text_if(out, "level", after->level);
        nd_json_close(out, '}');
        end_member(t);
}

static void put_seccomp(struct target *t, const struct nd_pod_profile *before, const struct nd_pod_profile *after) {
        struct nd_json_out *out = &t->patch->out;
        char path[PATH_BYTES];

        if (before || !after)
                return;
        nd_json_open(out, member(t, "seccompProfile", path), '{');
        write_text_if(out, "type", after->type);
        write_text_if(out, "localhostProfile", after->localhost);
        nd_json_close(out, '}');
        end_member(t);
}

static void write_list(struct nd_json_out *out, const char *key, const struct nd_shape_texts *texts) {
        nd_json_open(out, key, '[');
        for (size_t i = 0; i < texts->count; i++)
                nd_json_string(out, nullptr, texts->items[i]);
        nd_json_close(out, ']');
}

static void put_list(struct target *t, const char *name, const struct nd_shape_texts *before,
                     const struct nd_shape_texts *after) {
        char path[PATH_BYTES];

        if (nd_shape_texts_equal(before, after))
                return;
        write_list(&t->patch->out, member(t, name, path), after);
        end_member(t);
}

/* An object within an object: if the outer one is added as a whole, this one is a member of it. */
static void put_capabilities(struct target *t, const struct nd_pod_capabilities *before,
                             const struct nd_pod_capabilities *after) {
        struct nd_json_out *out = &t->patch->out;
        struct target inner = {.patch = t->patch};
        char path[PATH_BYTES];

        if (!after)
                return;
        if (before) {
                (void) snprintf(inner.path, sizeof inner.path, "%.900s/capabilities", t->path);
                put_list(&inner, "add", &before->add, &after->add);
                put_list(&inner, "drop", &before->drop, &after->drop);
                return;
        }
        nd_json_open(out, member(t, "capabilities", path), '{');
        if (after->add.count > 0)
                write_list(out, "add", &after->add);
        if (after->drop.count > 0)
                write_list(out, "drop", &after->drop);
        nd_json_close(out, '}');
        end_member(t);
}

static void put_container(struct patch *p, const char *list, size_t number, const struct nd_pod_container_context *before,
                          const struct nd_pod_container_context *after) {
        static const struct nd_pod_container_context none = {};
        struct target t = {.patch = p, .whole = !before};

        if (!after)
                return;
        (void) snprintf(t.path, sizeof t.path, "/spec/%s/%zu/securityContext", list, number);
        before = before ? before : &none;
        put_int(&t, "runAsUser", before->run_as_user, after->run_as_user);
        put_int(&t, "runAsGroup", before->run_as_group, after->run_as_group);
        put_switch(&t, "runAsNonRoot", before->run_as_non_root, after->run_as_non_root);
        put_switch(&t, "allowPrivilegeEscalation", before->allow_privilege_escalation, after->allow_privilege_escalation);
        put_switch(&t, "readOnlyRootFilesystem", before->read_only_root, after->read_only_root);
        put_capabilities(&t, before->capabilities, after->capabilities);
        put_selinux(&t, before->selinux, after->selinux);
        put_seccomp(&t, before->seccomp, after->seccomp);
        close_target(&t);
}

static void put_groups(struct target *t, const struct nd_shape_ints *before, const struct nd_shape_ints *after) {
        struct nd_json_out *out = &t->patch->out;
        char path[PATH_BYTES];

        if (before->count == after->count)
                return;
        nd_json_open(out, member(t, "supplementalGroups", path), '[');
        for (size_t i = 0; i < after->count; i++)
                nd_json_signed(out, nullptr, after->items[i]);
        nd_json_close(out, ']');
        end_member(t);
}

static void put_pod_context(struct patch *p, const struct nd_pod_context *before, const struct nd_pod_context *after) {
        static const struct nd_pod_context none = {};
        struct target t = {.patch = p, .path = "/spec/securityContext", .whole = !before};

        if (!after)
                return;
        before = before ? before : &none;
        put_int(&t, "fsGroup", before->fs_group, after->fs_group);
        put_groups(&t, &before->supplemental_groups, &after->supplemental_groups);
        put_text(&t, "supplementalGroupsPolicy", before->supplemental_groups_policy, after->supplemental_groups_policy);
        put_selinux(&t, before->selinux, after->selinux);
        put_seccomp(&t, before->seccomp, after->seccomp);
        close_target(&t);
}

/* Escapes a key for a JSON pointer (RFC 6901). */
static void escape_key(const char *key, struct nd_text *text) {
        for (; *key; key++)
                nd_text_append(text, *key == '~' ? "~0" : *key == '/' ? "~1" : key, *key == '~' || *key == '/' ? 2 : 1);
}

static void put_annotations(struct patch *p, const struct nd_pod *before, const struct nd_shape_pair *annotations,
                            size_t count) {
        bool whole = before->metadata.annotations.count == 0;

        for (size_t i = 0; i < count; i++) {
                nd_autotext struct nd_text path = ND_TEXT(PATH_BYTES);
                const char *there = nd_shape_pairs_get(&before->metadata.annotations, annotations[i].key);

                if (there && nd_streq(there, annotations[i].value))
                        continue;
                if (whole) { /* the first one adds the object */
                        begin_operation(p, "/metadata/annotations");
                        nd_json_open(&p->out, "value", '{');
                        nd_json_string(&p->out, annotations[i].key, annotations[i].value);
                        nd_json_close(&p->out, '}');
                        whole = false;
                } else {
                        nd_text_add(&path, "/metadata/annotations/");
                        escape_key(annotations[i].key, &path);
                        begin_operation(p, nd_text_get(&path));
                        nd_json_string(&p->out, "value", annotations[i].value);
                }
                end_operation(p);
        }
}

const char *guard_patch_make(const struct nd_pod *before, const struct nd_pod *after, const struct nd_shape_pair *annotations,
                             size_t annotation_count, struct nd_arena *arena) {
        nd_cleanup(nd_text_done) struct nd_text text = ND_TEXT(PATCH_BYTES);
        struct patch p = {.out = {.text = &text}};
        const struct nd_pod_container *a, *b;

        nd_json_open(&p.out, nullptr, '[');
        if (before->spec.host_users != after->spec.host_users) {
                begin_operation(&p, "/spec/hostUsers");
                nd_json_bool(&p.out, "value", after->spec.host_users == ND_ON);
                end_operation(&p);
        }
        put_pod_context(&p, before->spec.security, after->spec.security);
        for (size_t i = 0; (a = nd_pod_container(&before->spec, i)) && (b = nd_pod_container(&after->spec, i)); i++) {
                size_t number;
                const char *list = nd_pod_container_list(&before->spec, i, &number);

                put_container(&p, list, number, a->security, b->security);
        }
        put_annotations(&p, before, annotations, annotation_count);
        nd_json_close(&p.out, ']');
        return p.count > 0 && !text.overflow ? nd_arena_strdup(arena, nd_text_get(&text)) : nullptr;
}
