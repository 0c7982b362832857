/* SPDX-License-Identifier: Apache-2.0 */
/* shifted-layers.c - see shifted-layers.h
 *
 * Theory of operation
 *   A copy is made as shifting-<uid>-<gid> and renamed when it is on disk: a copy that is there is
 *   complete, also after a power cut. The layer's directory is locked meanwhile. Layers are locked
 *   one at a time, from the lowest.
 *   A container's layers are not collected while it is created, and the copies of a pod's block not
 *   while the pod exists. */
#include "cri/bundle/shifted-layers.h"

#include <sys/file.h>
#include <unistd.h>

#include "oci/store.h"
#include "sys/file.h"
#include "sys/tree.h"

static char *name_of(const struct cri_shifted_layers *plan, const char *state) {
        return nd_format("%s-%u-%u", state, plan->shift.uid, plan->shift.gid);
}

char *cri_shifted_layers_path(const struct cri_shifted_layers *plan, size_t layer) {
        nd_autofree char *name = name_of(plan, ND_SHIFTED);
        char hex[ND_DIGEST_HEX];

        return nd_format("%s/%s/%s", plan->layers, nd_digest_hex(&plan->chains[layer], hex), name);
}

static struct nd_error *copy(int directory, const char *temporary, const struct nd_tree_shift *shift) {
        nd_autoclose int from = -EBADF, to = -EBADF;

        nd_try(nd_dir_open(directory, "fs", &from));
        nd_try(nd_dir_make(directory, temporary, 0700));
        nd_try(nd_dir_open(directory, temporary, &to));
        nd_try(nd_tree_copy_shifted(from, to, shift));
        if (syncfs(to) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "write the copy to disk");
        return nullptr;
}

static struct nd_error *copy_locked(const struct cri_shifted_layers *plan, int directory) {
        nd_autofree char *temporary = name_of(plan, "shifting"), *name = name_of(plan, ND_SHIFTED);
        struct nd_error *error;

        if (faccessat(directory, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
                return nullptr; /* another worker was first */
        nd_try(nd_tree_remove(directory, temporary));
        error = copy(directory, temporary, &plan->shift);
        if (error) {
                nd_ignore(nd_tree_remove(directory, temporary)); /* else the next attempt does it */
                return error;
        }
        return nd_file_rename(directory, temporary, directory, name);
}

static struct nd_error *make_one(const struct cri_shifted_layers *plan, size_t layer) {
        nd_autofree char *path = cri_shifted_layers_path(plan, layer), *above = nullptr;
        nd_autoclose int directory = -EBADF;
        char hex[ND_DIGEST_HEX];

        if (access(path, F_OK) == 0)
                return nullptr;
        above = nd_format("%s/%s", plan->layers, nd_digest_hex(&plan->chains[layer], hex));
        nd_try(nd_dir_open(AT_FDCWD, above, &directory));
        if (flock(directory, LOCK_EX) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "lock '%s'", above);
        return nd_error_wrap(copy_locked(plan, directory), "copy the layer '%s' for the pod's user namespace", above);
}

struct nd_error *cri_shifted_layers_make(const struct cri_shifted_layers *plan) {
        for (size_t i = 0; i < plan->count; i++)
                nd_try(make_one(plan, i));
        return nullptr;
}
