/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/core/pod-table.h"

#include <string.h>
#include <sys/random.h>

#include "base/assert.h"
#include "oci/reference.h"

void cri_pod_table_new_id(char ret[static POD_ID + 1]) {
        static const char digits[] = "0123456789abcdef";
        unsigned char bytes[POD_ID / 2];

        if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
                abort(); /* without randomness no id would be unique */
        for (size_t i = 0; i < sizeof bytes; i++) {
                ret[2 * i] = digits[bytes[i] >> 4];
                ret[2 * i + 1] = digits[bytes[i] & 15];
        }
        ret[POD_ID] = '\0';
}

void cri_sandbox_free(struct cri_sandbox *sandbox) {
        if (!sandbox)
                return;
        cri_sandbox_request_done(&sandbox->request);
        nd_strings_done(&sandbox->addresses);
        free(sandbox->network_result);
        free(sandbox->network_check);
        nd_vector_done(&sandbox->containers);
        cri_op_queue_done(&sandbox->op_queue);
        free(sandbox);
}

void cri_container_free(struct cri_container *container) {
        if (!container)
                return;
        cri_container_request_done(&container->request);
        free(container->image_reference);
        free(container->reason);
        free(container->message);
        nd_vector_done(&container->user.groups);
        nd_vector_done(&container->mounted);
        nd_vector_done(&container->mappings);
        free(container->log_path);
        free(container->cgroup);
        free(container->monitor_cgroup);
        free(container->checks_json);
        if (container->release)
                container->release(container);
        cri_op_queue_done(&container->op_queue);
        free(container);
}

struct cri_mount_mapping cri_container_mapping(const struct cri_container *container, size_t mount) {
        return mount < container->mappings.count ? container->mappings.items[mount] : (struct cri_mount_mapping) {};
}

bool cri_sandbox_is_shown(const struct cri_sandbox *sandbox) {
        return sandbox->state == SANDBOX_READY || sandbox->state == SANDBOX_NOTREADY;
}

bool cri_container_is_shown(const struct cri_container *container) {
        return !container->internal && container->state != CONTAINER_NEW && container->state != CONTAINER_REMOVED &&
               cri_sandbox_is_shown(container->sandbox);
}

bool cri_container_lives(const struct cri_container *container) {
        return container->state == CONTAINER_CREATED || container->state == CONTAINER_RUNNING;
}

enum cri_container_state cri_container_reported_state(const struct cri_container *container) {
        return container->exit_unsaved && container->state == CONTAINER_EXITED ? container->before : container->state;
}

static bool shown_sandbox(const void *object) {
        return cri_sandbox_is_shown(object);
}

static bool shown_container(const void *object) {
        return cri_container_is_shown(object);
}

/* A full id takes one lookup, found or not; only a shortened one walks the pod table. */
static struct nd_error *find(const struct nd_map *book, const char *kind, bool (*is_shown)(const void *), const char *id,
                             void **ret) {
        size_t length = strlen(id);
        void *found = nd_map_get(book, id);
        const struct nd_map_slot *slot;

        if (!found && length >= ND_ID_PREFIX && length < POD_ID)
                for (size_t at = 0; (slot = nd_map_next(book, &at));) {
                        if (strncmp(slot->key, id, length) != 0 || !is_shown(slot->value))
                                continue;
                        if (found)
                                return nd_error_new(ND_INVALID, 0, "ambiguous %s id '%s': more than one begins with it", kind,
                                                    id);
                        found = slot->value;
                }
        if (!found || !is_shown(found))
                return nd_error_new(ND_NOT_FOUND, 0, "no %s '%s'", kind, id);
        *ret = found;
        return nullptr;
}

struct nd_error *cri_pod_table_find_sandbox(const struct cri_pod_table *pods, const char *id, struct cri_sandbox **ret) {
        void *found = nullptr;

        nd_try(find(&pods->sandboxes, "pod sandbox", shown_sandbox, id, &found));
        *ret = found;
        return nullptr;
}

struct nd_error *cri_pod_table_find_container(const struct cri_pod_table *pods, const char *id, struct cri_container **ret) {
        void *found = nullptr;

        nd_try(find(&pods->containers, "container", shown_container, id, &found));
        *ret = found;
        return nullptr;
}

struct nd_error *cri_pod_table_find_running(const struct cri_pod_table *pods, const char *id, struct cri_container **ret) {
        nd_try(cri_pod_table_find_container(pods, id, ret));
        nd_assert(*ret);
        if ((*ret)->state != CONTAINER_RUNNING)
                return nd_error_new(ND_PRECONDITION, 0, "container '%s' is not running", (*ret)->id);
        return nullptr;
}

void cri_pod_table_count(const struct cri_pod_table *pods, size_t *ret_sandboxes, size_t *ret_containers) {
        const struct nd_map_slot *slot;

        *ret_sandboxes = *ret_containers = 0;
        for (size_t at = 0; (slot = nd_map_next(&pods->sandboxes, &at));)
                *ret_sandboxes += cri_sandbox_is_shown(slot->value);
        for (size_t at = 0; (slot = nd_map_next(&pods->containers, &at));)
                *ret_containers += cri_container_is_shown(slot->value);
}

void cri_pod_table_add_sandbox(struct cri_pod_table *pods, struct cri_sandbox *sandbox) {
        (void) nd_map_put(&pods->sandboxes, sandbox->id, sandbox);
}

void cri_pod_table_add_container(struct cri_pod_table *pods, struct cri_container *container) {
        (void) nd_map_put(&pods->containers, container->id, container);
        if (container->internal)
                container->sandbox->init = container;
        else
                nd_vector_push(&container->sandbox->containers, container);
}

void cri_pod_table_drop_sandbox(struct cri_pod_table *pods, struct cri_sandbox *sandbox) {
        (void) nd_map_remove(&pods->sandboxes, sandbox->id);
        cri_sandbox_free(sandbox);
}

static void leave_sandbox(struct cri_sandbox *sandbox, const struct cri_container *container) {
        if (sandbox->init == container)
                sandbox->init = nullptr;
        for (size_t i = 0; i < sandbox->containers.count; i++) {
                if (sandbox->containers.items[i] != container)
                        continue;
                memmove(&sandbox->containers.items[i], &sandbox->containers.items[i + 1],
                        (sandbox->containers.count - i - 1) * sizeof *sandbox->containers.items);
                sandbox->containers.count--;
                return;
        }
}

void cri_pod_table_drop_container(struct cri_pod_table *pods, struct cri_container *container) {
        leave_sandbox(container->sandbox, container);
        (void) nd_map_remove(&pods->containers, container->id);
        cri_container_free(container);
}

void cri_pod_table_done(struct cri_pod_table *pods) {
        const struct nd_map_slot *slot;

        for (size_t at = 0; (slot = nd_map_next(&pods->containers, &at));)
                cri_container_free(slot->value);
        for (size_t at = 0; (slot = nd_map_next(&pods->sandboxes, &at));)
                cri_sandbox_free(slot->value);
        nd_map_done(&pods->containers);
        nd_map_done(&pods->sandboxes);
}
