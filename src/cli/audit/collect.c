/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "cli/audit/audit.h"
#include "sys/file.h"

void cli_audit_done(struct cli_audit *audit) {
        nd_audit_cluster_done(&audit->cluster);
        cli_audit_source_free(audit->source);
        nd_map_done(&audit->owners);
        nd_map_done(&audit->item_index);
        nd_map_done(&audit->workload_index);
        nd_vector_done(&audit->items);
        nd_vector_done(&audit->workloads);
        nd_vector_done(&audit->namespaces);
        nd_vector_done(&audit->errors);
        nd_arena_done(&audit->arena);
}

void cli_audit_note(struct cli_audit *audit, struct nd_error *error) {
        nd_autoerror struct nd_error *owned = error;

        if (audit->error_count++ < AUDIT_ERRORS)
                nd_vector_push(&audit->errors, nd_arena_strdup(&audit->arena, nd_error_text(owned)));
}

/* ---- what was found ---- */

static const char *keep(struct cli_audit *audit, const char *text) {
        return text && *text ? nd_arena_strdup(&audit->arena, text) : "";
}

/* Returns the number of an entry; count: it is new. Entries beyond the limit are dropped. */
static bool index_of(struct cli_audit *audit, struct nd_map *index, const char *key, size_t count, size_t *ret) {
        uintptr_t number = (uintptr_t) nd_map_get(index, key);

        if (number > 0) {
                *ret = number - 1;
                return true;
        }
        if (count >= AUDIT_ITEMS) {
                audit->cut = true;
                return false;
        }
        (void) nd_map_put(index, key, (void *) (uintptr_t) (count + 1));
        *ret = count;
        return true;
}

/* The pods of one controller are one entry. */
static void add_item(struct cli_audit *audit, const struct cli_audit_item *item) {
        nd_autofree char *key = nd_format("%s\n%s\n%s\n%s\n%s", nd_audit_topic_name(item->topic), item->namespace, item->kind,
                                          item->name, item->text);
        size_t number;

        if (!index_of(audit, &audit->item_index, key, audit->items.count, &number))
                return;
        if (number == audit->items.count) {
                struct cli_audit_item kept = *item;

                kept.namespace = keep(audit, item->namespace);
                kept.kind = keep(audit, item->kind);
                kept.name = keep(audit, item->name);
                kept.text = keep(audit, item->text);
                kept.pod = keep(audit, item->pod);
                kept.pods = 0;
                nd_vector_push(&audit->items, kept);
        }
        audit->items.items[number].pods += item->pods;
}

static void add_workload(struct cli_audit *audit, const struct cli_audit_workload *workload) {
        nd_autofree char *key = nd_format("%s\n%s\n%s", workload->namespace, workload->kind, workload->name);
        struct nd_audit_readiness *readiness;
        size_t number;

        if (!index_of(audit, &audit->workload_index, key, audit->workloads.count, &number))
                return;
        if (number < audit->workloads.count) {
                /* another pod of a controller that is not judged itself: the worse verdict
                 * counts */
                readiness = &audit->workloads.items[number].readiness;
                if (workload->readiness.verdict <= readiness->verdict)
                        return;
        } else {
                nd_vector_push(&audit->workloads, ((struct cli_audit_workload) {.namespace = keep(audit, workload->namespace),
                                                                                .kind = keep(audit, workload->kind),
                                                                                .name = keep(audit, workload->name)}));
                readiness = &audit->workloads.items[number].readiness;
        }
        *readiness = workload->readiness;
        for (size_t i = 0; i < readiness->reason_count && i < ND_AUDIT_REASONS; i++)
                readiness->reasons[i] = keep(audit, readiness->reasons[i]);
        readiness->account = keep(audit, readiness->account);
}

/* ---- one pod or controller ---- */

static char *owner_key(const char *kind, const char *namespace, const char *name) {
        return nd_format("%s/%s/%s", kind, namespace, name);
}

/* A replica set belongs to a deployment, a job to a cron job: their pods are counted there. */
static void keep_owner(struct cli_audit *audit, const struct nd_audit_workload *workload) {
        nd_autofree char *key = nullptr;

        if (!*workload->owner || (workload->kind != ND_AUDIT_REPLICA_SET && workload->kind != ND_AUDIT_JOB))
                return;
        if (audit->owners.count >= AUDIT_OWNERS) {
                audit->cut = true;
                return;
        }
        key = owner_key(nd_audit_resources[workload->kind].kind, workload->namespace, workload->name);
        (void) nd_map_put(&audit->owners, key,
                          (void *) nd_arena_format(&audit->arena, "%s\n%s", workload->owner_kind, workload->owner));
}

/* The top of a chain of controllers. */
static void find_top(const struct cli_audit *audit, const struct nd_audit_workload *workload, struct nd_arena *arena,
                     const char **ret_kind, const char **ret_name) {
        nd_autofree char *key = owner_key(workload->owner_kind, workload->namespace, workload->owner);
        const char *above = *workload->owner ? nd_map_get(&audit->owners, key) : nullptr;

        *ret_kind = *workload->owner ? workload->owner_kind : nd_audit_resources[workload->kind].kind;
        *ret_name = *workload->owner ? workload->owner : workload->name;
        if (!above)
                return;
        *ret_kind = nd_arena_copy(arena, above, strcspn(above, "\n"));
        *ret_name = strchr(above, '\n') + 1;
}

static void find(struct cli_audit *audit, const struct nd_audit_workload *workload, struct nd_arena *arena) {
        struct nd_audit_findings found;
        struct cli_audit_item item = {.namespace = workload->namespace, .pod = ""};

        nd_audit_find(&audit->cluster, workload, arena, &found);
        if (found.count == 0)
                return;
        if (workload->kind == ND_AUDIT_POD) {
                find_top(audit, workload, arena, &item.kind, &item.name);
                item.pods = *workload->owner ? 1 : 0;
                item.pod = *workload->owner ? workload->name : "";
        } else {
                item.kind = nd_audit_resources[workload->kind].kind;
                item.name = workload->name;
        }
        for (size_t i = 0; i < found.count; i++) {
                item.topic = found.items[i].topic;
                item.severe = found.items[i].severe;
                item.text = found.items[i].text;
                add_item(audit, &item);
        }
}

/* Pods are judged by their controller's template, which is what comes back; a pod adds what only
 * its status shows. */
static void judge(struct cli_audit *audit, const struct nd_audit_workload *workload, struct nd_arena *arena) {
        struct cli_audit_workload judged = {.namespace = workload->namespace};
        bool only_status = workload->known_owner && workload->running_id >= ND_SCC_WINDOW;

        if (workload->finished || (workload->known_owner && !only_status))
                return;
        nd_audit_judge(&audit->cluster, workload, arena, &judged.readiness);
        if (only_status && judged.readiness.verdict == ND_AUDIT_ALREADY)
                return;
        find_top(audit, workload, arena, &judged.kind, &judged.name);
        if (workload->kind != ND_AUDIT_POD && !*workload->owner) {
                judged.kind = nd_audit_resources[workload->kind].kind;
                judged.name = workload->name;
        }
        add_workload(audit, &judged);
}

struct reading {
        struct cli_audit *audit;
        enum nd_audit_kind kind;
};

static const char *text_at(yyjson_val *object, const char *key) {
        const char *text = yyjson_get_str(yyjson_obj_get(yyjson_obj_get(object, "metadata"), key));

        return text ? text : "";
}

/* An object that cannot be read does not hide the others. */
static void note_object(struct reading *r, yyjson_val *object, struct nd_error *error) {
        if (error)
                cli_audit_note(r->audit, nd_error_wrap(error, "%s %s/%s", nd_audit_resources[r->kind].kind,
                                                       text_at(object, "namespace"), text_at(object, "name")));
}

static void take_workload(yyjson_val *object, void *userdata) {
        struct reading *r = userdata;
        nd_autoarena struct nd_arena arena = {};
        struct nd_audit_workload workload = {};
        struct nd_error *error = nd_audit_workload_decode(r->kind, object, &arena, &workload);

        r->audit->objects++;
        note_object(r, object, error);
        if (error)
                return;
        keep_owner(r->audit, &workload);
        find(r->audit, &workload, &arena);
        judge(r->audit, &workload, &arena);
}

static void take_fact(yyjson_val *object, void *userdata) {
        struct reading *r = userdata;

        r->audit->objects++;
        note_object(r, object, nd_audit_put(&r->audit->cluster, r->kind, object));
}

static void find_grants(struct cli_audit *audit) {
        nd_vector_each (grant, &audit->cluster.grants) {
                nd_autoarena struct nd_arena arena = {};
                struct nd_audit_finding found;

                if (nd_audit_find_grant(&audit->cluster, *grant, &arena, &found))
                        add_item(audit, &(struct cli_audit_item) {.topic = found.topic,
                                                                  .severe = found.severe,
                                                                  .namespace = (*grant)->namespace,
                                                                  .kind = (*grant)->kind,
                                                                  .name = (*grant)->name,
                                                                  .text = found.text,
                                                                  .pod = ""});
        }
        audit->cut |= audit->cluster.grants_cut;
}

/* Names beyond what DNS allows come from other parties, too: reports sort by bytes. */
static int compare_items(const void *a, const void *b) {
        const struct cli_audit_item *x = a, *y = b;
        int r = (int) x->topic - (int) y->topic;

        r = r != 0 ? r : strcmp(x->namespace, y->namespace);
        r = r != 0 ? r : strcmp(x->kind, y->kind);
        return r != 0 ? r : strcmp(x->name, y->name);
}

static int compare_workloads(const void *a, const void *b) {
        const struct cli_audit_workload *x = a, *y = b;
        int r = strcmp(x->namespace, y->namespace);

        r = r != 0 ? r : strcmp(x->kind, y->kind);
        return r != 0 ? r : strcmp(x->name, y->name);
}

static void sort(struct cli_audit *audit) {
        if (audit->items.count > 1)
                qsort(audit->items.items, audit->items.count, sizeof *audit->items.items, compare_items);
        if (audit->workloads.count > 1)
                qsort(audit->workloads.items, audit->workloads.count, sizeof *audit->workloads.items, compare_workloads);
}

void cli_audit_collect(struct cli_audit *audit) {
        for (enum nd_audit_kind kind = 0; kind < ND_AUDIT_KINDS; kind++) {
                struct reading r = {.audit = audit, .kind = kind};
                bool fact = kind < ND_AUDIT_DEPLOYMENT, exists = false;
                struct nd_error *error;

                if (kind == ND_AUDIT_DEPLOYMENT)
                        nd_audit_settle(&audit->cluster);
                error = cli_audit_source_each(audit->source, kind, fact ? take_fact : take_workload, &r, &exists);
                audit->cluster.known[kind] = !error;
                if (error)
                        cli_audit_note(audit, error);
        }
        find_grants(audit);
        sort(audit);
}

/* ---- IDs of images ---- */

static struct nd_error *take_image(struct cli_audit *audit, char *line, size_t number) {
        char *image = strchr(line, ' ');
        uint32_t id;

        if (*line == '\0' || *line == '#')
                return nullptr;
        if (audit->cluster.images.count >= AUDIT_IMAGES)
                return nd_error_new(ND_EXHAUSTED, 0, "more than %d images", AUDIT_IMAGES);
        if (image)
                *image++ = '\0';
        if (!image || !*image || nd_text_parse_u32(line, &id) < 0)
                return nd_error_new(ND_INVALID, 0, "line %zu: must be an ID and an image", number);
        (void) nd_map_put(&audit->cluster.images, image, (void *) ((uintptr_t) id + 1));
        return nullptr;
}

struct nd_error *cli_audit_read_images(struct cli_audit *audit, const char *path) {
        nd_autofree char *text = nullptr;
        size_t length, number = 0;

        nd_try(nd_file_read_any(path, AUDIT_BYTES, &text, &length));
        for (char *line = text, *next; line; line = next) {
                next = strchr(line, '\n');
                if (next)
                        *next++ = '\0';
                nd_try(nd_error_wrap(take_image(audit, line, ++number), "%s", path));
        }
        return nullptr;
}
