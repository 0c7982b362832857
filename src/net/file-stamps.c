/* SPDX-License-Identifier: Apache-2.0 */
#include "net/file-stamps.h"

void nd_file_stamps_take(const char *const *paths, size_t count, struct stat *ret) {
        for (size_t i = 0; i < count; i++)
                if (!paths[i] || stat(paths[i], &ret[i]) < 0)
                        ret[i] = (struct stat) {};
}

static bool is_same(const struct stat *a, const struct stat *b) {
        return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
               a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

bool nd_file_stamps_equal(const struct stat *a, const struct stat *b, size_t count) {
        for (size_t i = 0; i < count; i++)
                if (!is_same(&a[i], &b[i]))
                        return false;
        return true;
}
