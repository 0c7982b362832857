/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/bundle/image-path.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "cri/core/container-path.h"
#include "sys/file.h"

enum {
        LINKS_MOST = 40,   /* the kernel's limit */
        STEPS_MOST = 1024, /* names in a path, including those of followed links */
};

static const char *const places[] = {"/proc", "/sys", "/dev"};

bool cri_image_path_is_kernels(const char *path) {
        for (size_t i = 0; i < nd_count_of(places); i++)
                if (cri_container_path_within(path, places[i]))
                        return true;
        return false;
}

void cri_image_path_done(struct cri_image_path *path) {
        free(path->resolved);
        free(path->kernels);
        *path = (struct cri_image_path) {};
}

/* ---- path walk ---- */

struct walk {
        int tree;
        struct cri_image_path at; /* resolved: without a leading slash, "" = the root */
        char *text;               /* the remaining path: targets of followed links come first */
        const char *rest;         /* position in it */
        /* The last bytes of text that belong to the original path; those before come from a
         * link. */
        size_t own;
        unsigned links, steps;
};

static void walk_done(struct walk *walk) {
        cri_image_path_done(&walk->at);
        free(walk->text);
}

static void set(char **place, char *value) {
        free(*place);
        *place = value;
}

static void go_up(struct walk *walk) {
        char *slash = strrchr(walk->at.resolved, '/');

        *(slash ?: walk->at.resolved) = '\0';
}

/* The target of a symlink, or nullptr if the name is not a symlink. ENOENT is a valid result. */
static struct nd_error *read_link(int tree, const char *path, char **ret) {
        struct open_how how = {.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
                               .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
        nd_autoclose int fd = nd_sys->openat2(tree, path, &how, sizeof how);
        char text[PATH_MAX];
        struct stat st;
        ssize_t n;

        if (fd < 0 || fstat(fd, &st) < 0)
                return nd_error_new(errno == ENOTDIR || errno == ENAMETOOLONG ? ND_INVALID : nd_error_code_of(errno), errno,
                                    "'/%s' in the image", path);
        if (!S_ISLNK(st.st_mode))
                return nullptr;
        n = readlinkat(fd, "", text, sizeof text);
        if (n <= 0 || (size_t) n >= sizeof text)
                return nd_error_new(ND_INVALID, n < 0 ? errno : ENAMETOOLONG, "read the link '/%s' of the image", path);
        *ret = nd_strndup(text, (size_t) n);
        return nullptr;
}

static struct nd_error *follow(struct walk *walk, const char *text) {
        if (++walk->links > LINKS_MOST)
                return nd_error_new(ND_INVALID, ELOOP, "'/%s' in the image", walk->at.resolved);
        if (*text == '/')
                walk->at.resolved[0] = '\0';
        else
                go_up(walk);
        set(&walk->text, nd_format("%s/%s", text, walk->rest));
        walk->rest = walk->text;
        return nullptr;
}

/* Resolves one name: a file or directory, a link, or nothing. */
static struct nd_error *enter(struct walk *walk, const char *name, bool of_link) {
        nd_autoerror struct nd_error *error = nullptr;
        nd_autofree char *text = nullptr;

        set(&walk->at.resolved, walk->at.resolved[0] ? nd_format("%s/%s", walk->at.resolved, name) : nd_strdup(name));
        if (walk->at.missing)
                return nullptr;
        error = read_link(walk->tree, walk->at.resolved, &text);
        if (nd_error_errno(error) == ENOENT) {
                walk->at.missing = true;
                walk->at.dangling = of_link;
                return nullptr;
        }
        if (error)
                return nd_take_ptr(error);
        return text ? follow(walk, text) : nullptr;
}

static struct nd_error *step(struct walk *walk) {
        size_t length = strcspn(walk->rest, "/"), left = strlen(walk->rest);
        nd_autofree char *name = nd_strndup(walk->rest, length);
        bool of_link = left > walk->own;

        if (++walk->steps > STEPS_MOST)
                return nd_error_new(ND_INVALID, ELOOP, "'/%s' in the image", walk->at.resolved);
        walk->rest += length + (walk->rest[length] == '/');
        left = strlen(walk->rest);
        walk->own = left < walk->own ? left : walk->own;
        if (nd_streq(name, ".."))
                go_up(walk);
        else if (*name && !nd_streq(name, "."))
                nd_try(enter(walk, name, of_link));
        if (!walk->at.kernels) {
                nd_autofree char *path = nd_format("/%s", walk->at.resolved);

                if (cri_image_path_is_kernels(path))
                        walk->at.kernels = nd_take_ptr(path);
        }
        return nullptr;
}

struct nd_error *cri_image_path_resolve(int tree, const char *path, struct cri_image_path *ret) {
        nd_cleanup(walk_done) struct walk walk = {
                .tree = tree, .at.resolved = nd_strdup(""), .text = nd_strdup(path), .own = strlen(path)};

        walk.rest = walk.text;
        if (walk.own >= PATH_MAX)
                return nd_error_new(ND_INVALID, ENAMETOOLONG, "the path is too long: %zu bytes", walk.own);
        while (*walk.rest)
                nd_try(step(&walk));
        set(&walk.at.resolved, nd_format("/%s", walk.at.resolved));
        *ret = nd_take(walk.at, (struct cri_image_path) {});
        return nullptr;
}

/* ---- checks before the OCI runtime runs ---- */

static struct nd_error *check_place(int tree, const char *place) {
        struct stat st;

        if (fstatat(tree, place + 1, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return errno == ENOENT ? nullptr
                                       : nd_error_new(nd_error_code_of(errno), errno, "stat '%s' in the image", place);
        if (S_ISDIR(st.st_mode))
                return nullptr;
        return nd_error_new(
                ND_INVALID, 0,
                "'%s' of the image is %s: it must be a directory, since an OCI runtime might follow it to the host", place,
                S_ISLNK(st.st_mode) ? "a symbolic link" : "not a directory");
}

/* A mount of the OCI runtime, by its resolved path. */
struct place {
        char *path;
        const struct nd_spec_mount *mount;
};
struct place_list {
        struct place *items;
        size_t count;
        size_t capacity;
};

static void places_done(struct place_list *list) {
        nd_vector_each (place, list) {
                free(place->path);
        }
        nd_vector_done(list);
}

/* A path that is written below /dev has no link of the image on its way: a new filesystem, or a
 * volume, covers it. */
static struct nd_error *find_place(int tree, const char *written, char **ret) {
        nd_cleanup(cri_image_path_done) struct cri_image_path path = {};
        nd_autofree char *clean = cri_container_path_clean(written);

        if (cri_image_path_is_kernels(clean)) {
                *ret = nd_take_ptr(clean);
                return nullptr;
        }
        nd_try(cri_image_path_resolve(tree, clean, &path));
        if (path.kernels)
                return nd_error_new(ND_INVALID, 0, "a link of the image leads to '%s', which belongs to the kernel",
                                    path.kernels);
        *ret = nd_take_ptr(path.resolved);
        return nullptr;
}

static bool has_option(const struct nd_spec_mount *mount, const char *wanted) {
        nd_vector_each (option, &mount->options) {
                if (nd_streq(*option, wanted))
                        return true;
        }
        return false;
}

/* The mount that contains a path, unless it is the path itself; nullptr = the root. */
static const struct place *holder_of(const struct place_list *list, const char *path) {
        const struct place *found = nullptr;

        nd_vector_each (place, list) {
                if (cri_container_path_within(path, place->path) && !nd_streq(path, place->path) &&
                    (!found || strlen(place->path) >= strlen(found->path)))
                        found = place;
        }
        return found;
}

/* crun creates missing mount points while volumes are still writable: it sets "ro" last. */
static struct nd_error *check_made(const struct place_list *list, const char *path) {
        struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
        const struct place *holder = holder_of(list, path);
        nd_autoclose int source = -EBADF, fd = -EBADF;

        if (!holder || cri_image_path_is_kernels(path) ||
            (!has_option(holder->mount, "ro") && !has_option(holder->mount, "rro")))
                return nullptr;
        source = open(holder->mount->source, O_PATH | O_CLOEXEC);
        fd = source < 0 ? -EBADF : nd_sys->openat2(source, path + strlen(holder->path) + 1, &how, sizeof how);
        if (fd >= 0 || (source >= 0 && errno != ENOENT))
                return nullptr;
        return nd_error_new(ND_INVALID, 0, "'%s' does not exist, and cannot be made in the read-only volume at '%s'", path,
                            holder->path);
}

static struct nd_error *check_directory(int tree, const struct place_list *list, const char *directory) {
        nd_autofree char *path = nullptr;
        nd_autoerror struct nd_error *error = find_place(tree, directory, &path);

        /* the container may enter /proc by a link */
        return error ? nullptr : check_made(list, path);
}

static struct nd_error *check_mounts(int tree, const struct nd_spec *spec, struct place_list *ret) {
        nd_vector_each (mount, &spec->mounts) {
                nd_vector_push(ret, (struct place) {.mount = mount});
                nd_try(nd_error_wrap(find_place(tree, mount->destination, &ret->items[ret->count - 1].path),
                                     "the mount at '%s'", mount->destination));
        }
        nd_vector_each (place, ret) {
                nd_try(nd_error_wrap(check_made(ret, place->path), "the mount at '%s'", place->mount->destination));
        }
        return nullptr;
}

struct nd_error *cri_image_path_check(int tree, const struct nd_spec *spec) {
        nd_cleanup(places_done) struct place_list list = {};

        for (size_t i = 0; i < nd_count_of(places); i++)
                nd_try(check_place(tree, places[i]));
        nd_try(check_mounts(tree, spec, &list));
        nd_vector_each (device, &spec->devices) {
                nd_try(nd_error_wrap(check_directory(tree, &list, device->path), "the device '%s'", device->path));
        }
        if (!spec->process.directory)
                return nullptr;
        return nd_error_wrap(check_directory(tree, &list, spec->process.directory), "the working directory '%s'",
                             spec->process.directory);
}
