/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/volumes.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "cri/config.h"
#include "sys/file.h"
#include "sys/mount.h"

enum {
        TABLE_CEILING = 64 << 20, /* bytes of the mount table */
};

void volumes_done(volumes *list) {
        nd_vector_each (volume, list) {
                free(volume->source);
        }
        nd_vector_done(list);
}

char *volumes_clean_path(const char *path) {
        nd_autotext text = ND_TEXT(SIZE_MAX);
        const char *part = path;

        while (*part) {
                size_t length = strcspn(part, "/");

                if (length == 2 && memcmp(part, "..", 2) == 0) {
                        while (text.length > 0 && text.bytes[--text.length] != '/')
                                ;
                } else if (length > 0 && !(length == 1 && *part == '.')) {
                        nd_text_add(&text, "/");
                        nd_text_append(&text, part, length);
                }
                part += length + (part[length] == '/');
        }
        if (text.length == 0)
                return nd_strdup("/");
        return nd_strndup(text.bytes, text.length);
}

void volumes_name(const char *host_path, struct nd_text *ret) {
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

/* ---- looking ---- */

static struct nd_error *wrap_named(struct nd_error *error, const struct mount_request *mount) {
        nd_autotext name = ND_TEXT(PATH_MAX);

        if (!error)
                return nullptr;
        volumes_name(mount->host_path, &name);
        return nd_error_wrap(error, "volume %s at '%s'", nd_text_get(&name), mount->container_path);
}

static struct nd_error *check_flags(const struct mount_request *mount, bool mapped) {
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

static struct nd_error *resolve(const char *path, char **ret) {
        char *source;

        if (path[0] != '/')
                return nd_error_new(ND_INVALID, 0, "host path '%s' is not absolute", path);
        source = realpath(path, nullptr);
        if (!source && errno == ENOENT)
                return nd_error_new(ND_NOT_FOUND, ENOENT,
                                    "host path '%s' does not exist on this node; create it, or set hostPath.type to "
                                    "DirectoryOrCreate",
                                    path);
        if (!source)
                return nd_error_new(nd_code_of_errno(errno), errno, "host path '%s'", path);
        *ret = source;
        return nullptr;
}

/* The line of our mount table that is about a mount's number. */
static const char *find_line(const char *table, uint64_t id) {
        nd_autofree char *start = nd_format("%llu ", (unsigned long long) id);

        for (const char *line = table; *line; line += strcspn(line, "\n"), line += *line == '\n')
                if (nd_has_prefix(line, start))
                        return line;
        return nullptr;
}

static struct nd_error *check_shared(const char *source) {
        nd_autofree char *table = nullptr, *line = nullptr;
        const char *found;
        struct statx st;

        if (statx(AT_FDCWD, source, AT_NO_AUTOMOUNT, STATX_MNT_ID, &st) < 0)
                return nd_error_new(nd_code_of_errno(errno), errno, "host path '%s'", source);
        nd_try(nd_file_read_kernel("/proc/self/mountinfo", TABLE_CEILING, &table));
        found = find_line(table, st.stx_mnt_id);
        line = found ? nd_strndup(found, strcspn(found, "\n")) : nd_strdup("");
        if (strstr(line, " shared:"))
                return nullptr;
        return nd_error_new(ND_INVALID, 0,
                            "mount propagation Bidirectional needs a shared mount, and '%s' is not on one; run `mount "
                            "--make-rshared` on the mount that holds it",
                            source);
}

/* A clone of the mount, mapped: kept by nobody, seen by nobody. */
static struct nd_error *try_idmap(const char *source, int userns, bool recursive) {
        nd_autoclose int tree = -EBADF;

        nd_try(nd_mount_clone(AT_FDCWD, source, recursive, &tree));
        return nd_mount_idmap(tree, userns, recursive);
}

static const char *filesystem_of(const char *source) {
        nd_autoclose int fd = open(source, O_PATH | O_CLOEXEC);

        return nd_fs_name(fd);
}

/* The sentence is KEP-127's; who looks for it finds it. What follows is ours. */
static struct nd_error *explain(struct nd_error *cause, const char *source) {
        int number = nd_error_errno(cause);

        nd_error_free(cause);
        if (number != EINVAL)
                return nd_error_new(nd_code_of_errno(number), number, "failed to set MOUNT_ATTR_IDMAP on %s", source);
        return nd_error_new(
                ND_PRECONDITION, 0,
                "failed to set MOUNT_ATTR_IDMAP on %s: invalid argument (maybe the source filesystem doesn't support "
                "idmap mounts on this kernel?): it is on %s; put the volume on a filesystem that can be idmapped "
                "(ext4, xfs, btrfs, tmpfs, ...), or set hostUsers: true",
                source, filesystem_of(source));
}

static bool is_at_or_below(const char *path, const char *directory) {
        size_t length = strlen(directory);

        if (nd_streq(directory, "/"))
                return true;
        return nd_has_prefix(path, directory) && (path[length] == '/' || path[length] == '\0');
}

/* Whether mounts of ours may come and go below: the root of this very container will, before the engine looks. */
static bool holds_our_mounts(const struct cri_config *config, const char *source) {
        const char *const places[] = {config->state, config->run, config->netns};

        for (size_t i = 0; i < nd_count_of(places); i++) {
                nd_autofree char *place = realpath(places[i], nullptr);

                if (place && (is_at_or_below(place, source) || is_at_or_below(source, place)))
                        return true;
        }
        return false;
}

static struct nd_error *probe_idmap(const struct cri_config *config, struct volume *volume, int userns) {
        nd_autoerror struct nd_error *error = nullptr;

        if (!holds_our_mounts(config, volume->source)) {
                error = try_idmap(volume->source, userns, true);
                volume->submounts = !error;
                if (!error)
                        return nullptr;
                nd_error_free(nd_take_ptr(error));
        }
        error = try_idmap(volume->source, userns, false);
        return error ? explain(nd_take_ptr(error), volume->source) : nullptr;
}

static struct nd_error *look(const struct cri_config *config, const struct mount_request *mount, int userns,
                             struct volume *ret) {
        nd_try(check_flags(mount, userns >= 0));
        nd_try(resolve(mount->host_path, &ret->source));
        if (mount->propagation == MOUNT_BIDIRECTIONAL)
                nd_try(check_shared(ret->source));
        return mount->idmapped && userns >= 0 ? probe_idmap(config, ret, userns) : nullptr;
}

struct nd_error *volumes_look(const struct cri_config *config, const struct container_request *request, int userns,
                              volumes *ret) {
        nd_vector_each (mount, &request->mounts) {
                nd_vector_push(ret, (struct volume) {}); /* first, so that the list owns what is found */
                if (*mount->image)
                        continue; /* image-volumes.c */
                nd_try(wrap_named(look(config, mount, userns, &ret->items[ret->count - 1]), mount));
        }
        return nullptr;
}

/* ---- the spec ---- */

static void mount_one(const struct mount_request *mount, const struct volume *volume, const char *destination,
                      struct nd_spec *spec) {
        static const char *const propagations[] = {"rprivate", "rslave", "rshared"};
        struct nd_spec_mount *m = nd_spec_add_mount(spec, destination, nullptr, volume->source);

        nd_spec_mount_option(m, "rbind");
        nd_spec_mount_option(m, propagations[mount->propagation]);
        nd_spec_mount_option(m, mount->recursive_read_only ? "rro" : mount->read_only ? "ro" : "rw");
        if (!mount->idmapped || *mount->image) /* an image's layers are mapped already */
                return;
        m->idmapped = true;
        m->uids = mount->uids;
        m->gids = mount->gids;
        if (volume->submounts)
                nd_spec_mount_option(m, "ridmap");
}

static void mount_declared(const struct declared_volume *volume, struct nd_spec *spec) {
        struct nd_spec_mount *m = nd_spec_add_mount(spec, volume->destination, nullptr, volume->source);

        nd_spec_mount_option(m, "bind");
        nd_spec_mount_option(m, "rprivate");
        nd_spec_mount_option(m, "rw");
}

static size_t depth_of(const char *path) {
        size_t depth = 0;

        for (; *path; path++)
                depth += *path == '/' && path[1] != '\0';
        return depth;
}

static size_t deeper(size_t depth, const char *path) {
        return depth_of(path) > depth ? depth_of(path) : depth;
}

void volumes_mount(const struct container_request *request, const volumes *found, const declared_volumes *declared,
                   struct nd_spec *spec) {
        nd_cleanup(nd_strings_done) nd_strings paths = {};
        size_t deepest = 0;

        nd_vector_each (mount, &request->mounts) {
                nd_vector_push(&paths, volumes_clean_path(mount->container_path));
                deepest = deeper(deepest, paths.items[paths.count - 1]);
        }
        nd_vector_each (volume, declared) {
                deepest = deeper(deepest, volume->destination);
        }
        /* By depth, and within one depth in the image's and in the kubelet's order. */
        for (size_t depth = 0; depth <= deepest; depth++) {
                nd_vector_each (volume, declared) {
                        if (depth_of(volume->destination) == depth)
                                mount_declared(volume, spec);
                }
                for (size_t i = 0; i < paths.count; i++)
                        if (depth_of(paths.items[i]) == depth && found->items[i].source)
                                mount_one(&request->mounts.items[i], &found->items[i], paths.items[i], spec);
        }
}
