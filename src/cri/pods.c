/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/pods.h"

#include <string.h>
#include <sys/random.h>

#include "oci/reference.h"

void pods_new_id(char ret[static POD_ID + 1]) {
        static const char digits[] = "0123456789abcdef";
        unsigned char bytes[POD_ID / 2];

        if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
                abort(); /* a kernel without randomness: nothing here would be safe */
        for (size_t i = 0; i < sizeof bytes; i++) {
                ret[2 * i] = digits[bytes[i] >> 4];
                ret[2 * i + 1] = digits[bytes[i] & 15];
        }
        ret[POD_ID] = '\0';
}

void sandbox_free(struct sandbox *sandbox) {
        if (!sandbox)
                return;
        sandbox_request_done(&sandbox->request);
        nd_strings_done(&sandbox->addresses);
        free(sandbox->network_result);
        free(sandbox->network_check);
        nd_vector_done(&sandbox->containers);
        lane_done(&sandbox->op_queue);
        free(sandbox);
}

void container_free(struct container *container) {
        if (!container)
                return;
        container_request_done(&container->request);
        free(container->image_reference);
        free(container->reason);
        free(container->message);
        nd_vector_done(&container->user.groups);
        nd_vector_done(&container->mounted);
        free(container->log_path);
        free(container->cgroup);
        free(container->monitor_cgroup);
        free(container->checks_json);
        if (container->release)
                container->release(container);
        lane_done(&container->op_queue);
        free(container);
}

bool sandbox_is_shown(const struct sandbox *sandbox) {
        return sandbox->state == SANDBOX_READY || sandbox->state == SANDBOX_NOTREADY;
}

bool container_is_shown(const struct container *container) {
        return !container->internal && container->state != CONTAINER_NEW && container->state != CONTAINER_REMOVED &&
               sandbox_is_shown(container->sandbox);
}

bool container_lives(const struct container *container) {
        return container->state == CONTAINER_CREATED || container->state == CONTAINER_RUNNING;
}

enum container_state container_told_state(const struct container *container) {
        return container->exit_unsaved && container->state == CONTAINER_EXITED ? container->before : container->state;
}

static bool shown_sandbox(const void *object) {
        return sandbox_is_shown(object);
}

static bool shown_container(const void *object) {
        return container_is_shown(object);
}

/* A whole id is one look-up, found or not; only a person's short one walks the pod table. */
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
                                return nd_error_new(ND_INVALID, 0, "more than one %s has an id that begins with '%s'", kind,
                                                    id);
                        found = slot->value;
                }
        if (!found || !is_shown(found))
                return nd_error_new(ND_NOT_FOUND, 0, "no %s '%s'", kind, id);
        *ret = found;
        return nullptr;
}

struct nd_error *pods_find_sandbox(const struct pods *pods, const char *id, struct sandbox **ret) {
        void *found = nullptr;

        nd_try(find(&pods->sandboxes, "pod sandbox", shown_sandbox, id, &found));
        *ret = found;
        return nullptr;
}

struct nd_error *pods_find_container(const struct pods *pods, const char *id, struct container **ret) {
        void *found = nullptr;

        nd_try(find(&pods->containers, "container", shown_container, id, &found));
        *ret = found;
        return nullptr;
}

void pods_add_sandbox(struct pods *pods, struct sandbox *sandbox) {
        (void) nd_map_put(&pods->sandboxes, sandbox->id, sandbox);
}

void pods_add_container(struct pods *pods, struct container *container) {
        (void) nd_map_put(&pods->containers, container->id, container);
        if (container->internal)
                container->sandbox->init = container;
        else
                nd_vector_push(&container->sandbox->containers, container);
}

void pods_drop_sandbox(struct pods *pods, struct sandbox *sandbox) {
        (void) nd_map_remove(&pods->sandboxes, sandbox->id);
        sandbox_free(sandbox);
}

static void leave_sandbox(struct sandbox *sandbox, const struct container *container) {
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

void pods_drop_container(struct pods *pods, struct container *container) {
        leave_sandbox(container->sandbox, container);
        (void) nd_map_remove(&pods->containers, container->id);
        container_free(container);
}

void pods_done(struct pods *pods) {
        const struct nd_map_slot *slot;

        for (size_t at = 0; (slot = nd_map_next(&pods->containers, &at));)
                container_free(slot->value);
        for (size_t at = 0; (slot = nd_map_next(&pods->sandboxes, &at));)
                sandbox_free(slot->value);
        nd_map_done(&pods->containers);
        nd_map_done(&pods->sandboxes);
}
