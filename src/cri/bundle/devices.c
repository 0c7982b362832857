/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/bundle/devices.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "cri/core/container-path.h"

enum {
        DEPTH_MOST = 16,
        DEVICES_MOST = 10000,
};

/* Entries of /dev that are not devices of the node: terminals are the container's own, the
 * others are mounts. */
static const char *const skipped[] = {"pts", "shm", "fd", "mqueue", "console", ".lxc", ".lxd-mounts", ".udev"};

static void close_directory(DIR **directory) {
        if (*directory)
                (void) closedir(*directory);
}

static bool is_skipped(const char *name) {
        for (size_t i = 0; i < nd_count_of(skipped); i++)
                if (nd_streq(skipped[i], name))
                        return true;
        return false;
}

static void allow(struct nd_spec *spec, const struct stat *st, const char *access) {
        struct nd_spec_device_rule rule = {.allow = true,
                                           .type = S_ISBLK(st->st_mode) ? 'b' : 'c',
                                           .major = (int64_t) major(st->st_rdev),
                                           .minor = (int64_t) minor(st->st_rdev)};

        (void) snprintf(rule.access, sizeof rule.access, "%s", access);
        nd_vector_push(&spec->resources.devices, rule);
}

/* One walk over a directory of devices. */
struct walk {
        struct nd_spec *spec;
        const struct cri_container_request *request;
        bool owned;         /* by the request's user */
        const char *access; /* nullptr = no rules: everything is allowed */
        bool node;          /* walks the node's /dev itself */
        size_t *added;      /* by all walks for the container */
};

/* As containerd's device_ownership_from_security_context: a user or group 0 changes nothing. */
static void choose_owner(const struct walk *walk, struct nd_spec_device *device) {
        const struct cri_container_request *request = walk->request;

        if (walk->node)
                return;
        if (walk->spec->makes_devices) {
                device->own = true;
                device->uid = walk->spec->process.user.uid;
                device->gid = walk->spec->process.user.gid;
                return;
        }
        if (walk->owned && request->has_user && request->user > 0)
                device->uid = (uint32_t) request->user;
        if (walk->owned && request->has_group && request->group > 0)
                device->gid = (uint32_t) request->group;
}

static void add_device(const struct walk *walk, const struct stat *st, const char *host, const char *path) {
        struct nd_spec_device device = {
                .path = cri_container_path_clean(path),
                .type = S_ISBLK(st->st_mode) ? 'b' : 'c',
                .major = major(st->st_rdev),
                .minor = minor(st->st_rdev),
                .mode = st->st_mode & 07777,
                .uid = st->st_uid,
                .gid = st->st_gid,
        };

        choose_owner(walk, &device);
        nd_spec_add_device(walk->spec, host, &device);
}

static struct nd_error *add_directory(struct walk *walk, const char *host, const char *inside, unsigned depth);

static struct nd_error *add_entry(struct walk *walk, const char *host, const char *inside, unsigned depth) {
        struct stat st;

        if (lstat(host, &st) < 0)
                return errno == ENOENT ? nullptr : nd_error_new(nd_error_code_of(errno), errno, "stat device '%s'", host);
        if (S_ISDIR(st.st_mode))
                return add_directory(walk, host, inside, depth);
        if (!S_ISBLK(st.st_mode) && !S_ISCHR(st.st_mode))
                return nullptr;
        if ((*walk->added)++ == DEVICES_MOST)
                return nd_error_new(ND_EXHAUSTED, 0, "more than %d devices are requested", DEVICES_MOST);
        add_device(walk, &st, host, inside);
        if (walk->access)
                allow(walk->spec, &st, walk->access);
        return nullptr;
}

static struct nd_error *add_directory(struct walk *walk, const char *host, const char *inside, unsigned depth) {
        nd_cleanup(close_directory) DIR *directory = nullptr;
        struct dirent *entry;

        if (depth == DEPTH_MOST)
                return nullptr;
        directory = opendir(host);
        if (!directory)
                return nd_error_new(nd_error_code_of(errno), errno, "open device directory '%s'", host);
        while ((entry = readdir(directory))) {
                nd_autofree char *below = nd_format("%s/%s", host, entry->d_name);
                nd_autofree char *place = nd_format("%s/%s", inside, entry->d_name);

                if (nd_streq(entry->d_name, ".") || nd_streq(entry->d_name, ".."))
                        continue;
                if (walk->node && depth == 0 && is_skipped(entry->d_name))
                        continue;
                nd_try(add_entry(walk, below, place, depth + 1));
        }
        return nullptr;
}

static struct nd_error *add_asked(const struct cri_device_request *device, struct walk walk) {
        nd_autofree char *host = realpath(device->host_path, nullptr);
        size_t before = *walk.added;

        if (!host)
                return nd_error_new(nd_error_code_of(errno), errno, "stat device '%s'", device->host_path);
        walk.access = device->permissions;
        nd_try(add_entry(&walk, host, device->container_path, 0));
        if (*walk.added == before)
                return nd_error_new(ND_INVALID, 0, "'%s' is not a device", device->host_path);
        return nullptr;
}

struct nd_error *cri_devices_describe(const struct cri_container_request *request, bool owned, struct nd_spec *spec) {
        size_t added = 0;
        struct walk node = {.spec = spec, .request = request, .node = true, .added = &added};
        const struct walk asked = {.spec = spec, .request = request, .owned = owned, .added = &added};

        nd_vector_push(&spec->resources.devices,
                       ((struct nd_spec_device_rule) {
                               .allow = request->privileged, .type = 'a', .major = -1, .minor = -1, .access = "rwm"}));
        if (request->privileged)
                nd_try(add_directory(&node, "/dev", "/dev", 0));
        nd_vector_each (device, &request->devices) {
                nd_try(add_asked(device, asked));
        }
        return nullptr;
}
