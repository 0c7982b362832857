/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/bundle/volumes.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "cri/bundle/bridge.h"
#include "cri/bundle/pod-volumes.h"
#include "cri/core/config.h"
#include "cri/core/container-path.h"
#include "sys/file.h"
#include "sys/mount.h"
#include "sys/own-userns.h"

void cri_volumes_done(struct cri_volumes *list) {
        nd_vector_each (volume, list) {
                free(volume->path);
                free(volume->source);
                nd_close_fd(&volume->file);
                nd_close_fd(&volume->tree);
        }
        nd_vector_done(list);
}

void cri_volumes_name(const char *host_path, struct nd_text *ret) {
        /* .../pods/<uid>/volumes/<plugin>/<name>, and .../volume-subpaths/<name>/... */
        static const char *const marks[] = {"/volumes/kubernetes.io~", "/volume-subpaths/"};

        for (size_t i = 0; i < nd_count_of(marks); i++) {
                const char *found = strstr(host_path, marks[i]);

                if (!found)
                        continue;
                found += strlen(marks[i]);
                if (i == 0)
                        found += strcspn(found, "/") + (strchr(found, '/') ? 1 : 0);
                if (*found == '\0')
                        break;
                nd_text_add(ret, "'");
                nd_text_append(ret, found, strcspn(found, "/"));
                nd_text_add(ret, "'");
                return;
        }
        nd_text_addf(ret, "'%s'", host_path);
}

/* ---- checks ---- */

static struct nd_error *wrap_named(struct nd_error *error, const struct cri_mount_request *mount) {
        nd_autotext struct nd_text name = ND_TEXT(PATH_MAX);

        if (!error)
                return nullptr;
        cri_volumes_name(mount->host_path, &name);
        return nd_error_wrap(error, "volume %s at '%s'", nd_text_get(&name), mount->container_path);
}

static struct nd_error *check_flags(const struct cri_mount_request *mount, bool mapped) {
        if (mount->recursive_read_only && !mount->read_only)
                return nd_error_new(ND_INVALID, 0, "recursive read-only needs read-only");
        if (mount->recursive_read_only && mount->propagation != MOUNT_PRIVATE)
                return nd_error_new(ND_INVALID, 0, "recursive read-only needs private mount propagation (None)");
        if (mount->propagation == MOUNT_BIDIRECTIONAL && mapped)
                return nd_error_new(ND_INVALID, 0,
                                    "mount propagation Bidirectional cannot reach the host from the pod's user namespace; use "
                                    "HostToContainer, or hostUsers: true");
        return nullptr;
}

/* The path of a descriptor, for messages and comparison. */
static char *path_of(int fd, const char *otherwise) {
        nd_autofree char *link = nd_format("/proc/self/fd/%d", fd);
        char path[PATH_MAX];
        ssize_t n = readlink(link, path, sizeof path);

        return n > 0 && n < PATH_MAX ? nd_strndup(path, (size_t) n) : nd_strdup(otherwise);
}

/* The only place where a path is followed. Magic links of /proc are refused: one planted by a
 * container would lead to our own descriptors. */
static struct nd_error *resolve(const char *path, struct cri_volume *ret) {
        struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_MAGICLINKS};

        if (path[0] != '/')
                return nd_error_new(ND_INVALID, 0, "host path '%s' is not absolute", path);
        ret->file = nd_sys->openat2(AT_FDCWD, path, &how, sizeof how);
        if (ret->file < 0 && errno == ENOENT)
                return nd_error_new(ND_NOT_FOUND, ENOENT,
                                    "host path '%s' does not exist on this node; create it, or set hostPath.type to "
                                    "DirectoryOrCreate",
                                    path);
        if (ret->file < 0 && errno == ELOOP)
                return nd_error_new(ND_INVALID, ELOOP,
                                    "host path '%s' leads through a link of /proc to a descriptor, root or working directory, "
                                    "or through too many links; name the directory itself",
                                    path);
        if (ret->file < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "open host path '%s'", path);
        ret->path = path_of(ret->file, path);
        return nullptr;
}

static struct nd_error *check_shared(const struct cri_volume *volume) {
        nd_autofree char *line = nullptr;

        nd_try(nd_error_wrap(nd_mount_table_line(volume->file, &line), "open host path '%s'", volume->path));
        if (strstr(line, " shared:"))
                return nullptr;
        return nd_error_new(ND_INVALID, 0,
                            "mount propagation Bidirectional needs a shared mount, and '%s' is not on one; run `mount "
                            "--make-rshared` on the mount that holds it",
                            volume->path);
}

/* ---- clones ---- */

/* A clone of the volume with all its submounts. Changes to it do not propagate to the host's
 * mounts, unless it is Bidirectional: then it stays their peer. */
static struct nd_error *take(const struct cri_mount_request *mount, const struct cri_volume *volume, int *ret_tree) {
        uint64_t propagation = mount->propagation == MOUNT_HOST_TO_CONTAINER ? MS_SLAVE : MS_PRIVATE;
        nd_autoclose int tree = -EBADF;

        nd_try(nd_mount_clone(volume->file, "", true, &tree));
        if (mount->propagation != MOUNT_BIDIRECTIONAL)
                nd_try(nd_mount_propagation(tree, propagation, true));
        *ret_tree = nd_take_fd(tree);
        return nullptr;
}

static struct nd_error *take_mapped(const struct cri_mount_request *mount, const struct cri_volume *volume, int userns,
                                    bool recursive, int *ret_tree) {
        nd_autoclose int tree = -EBADF;

        nd_try(take(mount, volume, &tree));
        nd_try(nd_mount_idmap(tree, userns, recursive));
        *ret_tree = nd_take_fd(tree);
        return nullptr;
}

/* The type of a volume's filesystem, for messages and records. */
static char *filesystem_of(const struct cri_volume *volume) {
        nd_autofree char *type = nullptr;

        nd_ignore(nd_mount_fs_type(volume->file, &type));
        return nd_strdup(type ?: "unknown");
}

/* The first sentence is KEP-127's, so that users find it; the rest is ours. */
static struct nd_error *explain(struct nd_error *cause, const struct cri_volume *volume) {
        nd_autofree char *filesystem = filesystem_of(volume);

        if (nd_error_errno(cause) != EINVAL)
                return nd_error_wrap(cause, "failed to set MOUNT_ATTR_IDMAP on %s", volume->path);
        nd_error_free(cause);
        return nd_error_new(
                ND_PRECONDITION, 0,
                "failed to set MOUNT_ATTR_IDMAP on %s: invalid argument (maybe the source filesystem doesn't support "
                "idmap mounts on this kernel?): it is on %s; put the volume on a filesystem that can be idmapped "
                "(ext4, xfs, btrfs, tmpfs, ...), let nodens-bridge serve it (volumes: {bridge: auto} in the configuration of "
                "nodens-cri), or set hostUsers: true",
                volume->path, filesystem);
}

static bool is_at_or_below(const char *path, const char *directory) {
        return nd_streq(directory, "/") || cri_container_path_within(path, directory);
}

/* Whether our own mounts may come and go below: the mapping must not depend on which containers
 * exist. */
static bool holds_our_mounts(const struct cri_config *config, const char *source) {
        const char *const places[] = {config->state, config->run, config->netns};

        for (size_t i = 0; i < nd_count_of(places); i++) {
                nd_autofree char *place = realpath(places[i], nullptr);

                if (place && (is_at_or_below(place, source) || is_at_or_below(source, place)))
                        return true;
        }
        return false;
}

static bool is_same(const struct nd_userns_map *a, const struct nd_userns_map *b) {
        return a->inside == b->inside && a->outside == b->outside && a->count == b->count;
}

/* Without a mapping, for a volume of the pod whose files get the pod's IDs. */
static struct nd_error *take_shifted(const struct cri_mount_request *mount, struct cri_volume *volume) {
        const struct nd_tree_shift shift = {
                .uid = mount->uids.outside, .gid = mount->gids.outside, .count = mount->uids.count};

        nd_try(cri_pod_volume_shift(volume->path, volume->file, &shift));
        volume->mapping.how = MAPPING_CHOWNED;
        return take(mount, volume, &volume->tree);
}

/* Whether the mount has the pod's own maps. */
static bool is_mapped_as(const struct cri_mount_request *mount, const struct cri_sandbox_request *pod) {
        return is_same(&mount->uids, &pod->uids) && is_same(&mount->gids, &pod->gids);
}

static struct nd_error *take_bridged(const struct cri_config *config, const struct cri_sandbox *sandbox,
                                     const struct cri_mount_request *mount, int userns, struct cri_bridge_counts *counts,
                                     struct cri_volume *volume) {
        nd_autofree char *filesystem = filesystem_of(volume);
        nd_autoclose int tree = -EBADF;

        nd_try(nd_error_wrap(cri_bridge_open(config, sandbox, userns, volume->file, counts, &tree), "bridge %s on %s",
                             volume->path, filesystem));
        volume->mapping.how = MAPPING_BRIDGED;
        (void) strlcpy(volume->mapping.filesystem, filesystem, sizeof volume->mapping.filesystem);
        if (mount->propagation != MOUNT_BIDIRECTIONAL)
                nd_try(nd_mount_propagation(tree, MS_PRIVATE, false));
        volume->tree = nd_take_fd(tree);
        return nullptr;
}

static struct nd_error *map(const struct cri_config *config, const struct cri_sandbox *sandbox,
                            const struct cri_mount_request *mount, int userns, struct cri_bridge_counts *bridges,
                            struct cri_volume *volume) {
        const struct cri_sandbox_request *pod = &sandbox->request;
        nd_autoerror struct nd_error *error = nullptr;

        if (!holds_our_mounts(config, volume->path)) {
                error = take_mapped(mount, volume, userns, true, &volume->tree);
                volume->submounts = !error;
                if (!error) {
                        volume->mapping.how = MAPPING_IDMAPPED;
                        return nullptr;
                }
                nd_error_free(nd_take_ptr(error));
        }
        error = take_mapped(mount, volume, userns, false, &volume->tree);
        if (error && is_mapped_as(mount, pod) && cri_pod_volume_is_private(volume->path, pod->uid) && nd_own_userns_in_node())
                return take_shifted(mount, volume);
        if (nd_error_errno(error) == EINVAL && is_mapped_as(mount, pod) && config->bridge_volumes)
                return take_bridged(config, sandbox, mount, userns, bridges, volume);
        if (error)
                return explain(nd_take_ptr(error), volume);
        volume->mapping.how = MAPPING_IDMAPPED;
        return nullptr;
}

/* A mount can have its own maps; the kubelet sends the pod's. */
static struct nd_error *take_by_maps(const struct cri_config *config, const struct cri_sandbox *sandbox,
                                     const struct cri_container_request *request, const struct cri_mount_request *mount,
                                     int userns, struct cri_bridge_counts *bridges, struct cri_volume *volume) {
        const struct nd_userns_plan plan = {.uids = &mount->uids, .uid_count = 1, .gids = &mount->gids, .gid_count = 1};
        nd_autoclose int own = -EBADF;

        if (!mount->idmapped)
                return take(mount, volume, &volume->tree);
        if (userns >= 0 && is_same(&mount->uids, &request->uids) && is_same(&mount->gids, &request->gids))
                return map(config, sandbox, mount, userns, bridges, volume);
        nd_try(nd_userns_make(&plan, &own));
        return map(config, sandbox, mount, own, bridges, volume);
}

static struct nd_error *look(const struct cri_config *config, const struct cri_sandbox *sandbox,
                             const struct cri_container_request *request, const struct cri_mount_request *mount, int userns,
                             struct cri_bridge_counts *bridges, struct cri_volume *ret) {
        ret->mapping.how = MAPPING_NONE;
        nd_try(check_flags(mount, userns >= 0));
        nd_try(resolve(mount->host_path, ret));
        if (mount->propagation == MOUNT_BIDIRECTIONAL) {
                nd_try(check_shared(ret));
                return take(mount, ret, &ret->tree);
        }
        nd_try(take_by_maps(config, sandbox, request, mount, userns, bridges, ret));
        if (mount->attributes)
                nd_try(nd_mount_set(ret->tree, mount->attributes, true));
        return mount->recursive_read_only ? nd_mount_set(ret->tree, MOUNT_ATTR_RDONLY, true) : nullptr;
}

struct nd_error *cri_volumes_look(const struct cri_config *config, const struct cri_sandbox *sandbox,
                                  const struct cri_container_request *request, int userns, struct cri_volumes *ret) {
        nd_vector_each (mount, &request->mounts) {
                nd_vector_push(ret, VOLUME_NONE); /* first, so that the list owns the result */
                if (*mount->image)
                        continue; /* image-volumes.c */
                nd_try(wrap_named(look(config, sandbox, request, mount, userns, ret->bridges, &ret->items[ret->count - 1]),
                                  mount));
        }
        return nullptr;
}

/* ---- order ---- */

static size_t depth_of(const char *path) {
        size_t depth = 0;

        for (; *path; path++)
                depth += *path == '/' && path[1] != '\0';
        return depth;
}

static size_t deeper(size_t depth, const char *path) {
        return depth_of(path) > depth ? depth_of(path) : depth;
}

struct nd_error *volumes_each(const struct cri_container_request *request, const struct cri_volumes *found,
                              const struct cri_declared_volumes *declared, cri_volumes_visitor visit, void *userdata) {
        nd_cleanup(nd_strings_done) struct nd_strings paths = {};
        size_t deepest = 0;

        nd_vector_each (mount, &request->mounts) {
                nd_vector_push(&paths, cri_container_path_clean(mount->container_path));
                deepest = deeper(deepest, paths.items[paths.count - 1]);
        }
        nd_vector_each (volume, declared) {
                deepest = deeper(deepest, volume->destination);
        }
        /* By depth; within one depth in the image's and then the kubelet's order. */
        for (size_t depth = 0; depth <= deepest; depth++) {
                nd_vector_each (volume, declared) {
                        if (depth_of(volume->destination) == depth)
                                nd_try(visit(
                                        &(struct cri_volume_visit) {.declared = volume, .destination = volume->destination},
                                        userdata));
                }
                for (size_t i = 0; i < paths.count; i++)
                        if (depth_of(paths.items[i]) == depth)
                                nd_try(visit(&(struct cri_volume_visit) {.index = i,
                                                                         .mount = &request->mounts.items[i],
                                                                         .volume = &found->items[i],
                                                                         .destination = paths.items[i]},
                                             userdata));
        }
        return nullptr;
}

/* ---- spec ---- */

static void mount_one(const struct cri_volume_visit *visit, struct nd_spec *spec) {
        static const char *const propagations[] = {"rprivate", "rslave", "rshared"};
        const struct cri_mount_request *mount = visit->mount;
        struct nd_spec_mount *m = nd_spec_add_mount(spec, visit->destination, nullptr, visit->volume->source);

        nd_spec_mount_option(m, "rbind");
        nd_spec_mount_option(m, propagations[mount->propagation]);
        nd_spec_mount_option(m, mount->recursive_read_only ? "rro" : mount->read_only ? "ro" : "rw");
        /* the OCI runtime resets the attributes of the mount, and keeps those of mounts below */
        for (size_t i = 0; i < CRI_MOUNT_OPTIONS; i++) {
                if (!(mount->attributes & cri_mount_options[i].attribute))
                        continue;
                nd_spec_mount_option(m, cri_mount_options[i].name);
                nd_spec_mount_option(m, cri_mount_options[i].recursive);
        }
}

static void mount_declared(const struct cri_declared_volume *volume, struct nd_spec *spec) {
        struct nd_spec_mount *m = nd_spec_add_mount(spec, volume->destination, nullptr, volume->source);

        nd_spec_mount_option(m, "bind");
        nd_spec_mount_option(m, "rprivate");
        nd_spec_mount_option(m, "rw");
}

static struct nd_error *add_to_spec(const struct cri_volume_visit *visit, void *userdata) {
        if (visit->declared)
                mount_declared(visit->declared, userdata);
        else if (visit->volume->source)
                mount_one(visit, userdata);
        return nullptr;
}

void volumes_mount(const struct cri_container_request *request, const struct cri_volumes *found,
                   const struct cri_declared_volumes *declared, struct nd_spec *spec) {
        /* add_to_spec() never fails */
        nd_ignore(volumes_each(request, found, declared, add_to_spec, spec));
}
