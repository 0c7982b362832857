/* SPDX-License-Identifier: Apache-2.0 */
#include "userns/store.h"

#include <string.h>

#include "userns/mapping.h"

#define FILE_NAME "userns"

enum {
        UID_CEILING = 253,
        DIRECTORY_MODE = 0750, /* as the kubelet creates it */
        FILE_MODE = 0600,
};

void nd_userns_store_done(struct nd_userns_store *store) {
        free(store->path);
        *store = (struct nd_userns_store) {};
}

void nd_userns_store_init(const char *kubelet_root, struct nd_userns_store *ret) {
        ret->path = nd_format("%s/pods", kubelet_root);
}

struct nd_error *nd_userns_store_check_uid(const char *pod_uid) {
        nd_autofree char *quoted = nullptr;

        if (pod_uid[0] != '\0' && pod_uid[0] != '.' && !strchr(pod_uid, '/') && strlen(pod_uid) <= UID_CEILING)
                return nullptr;
        quoted = nd_text_quote(pod_uid);
        return nd_error_new(ND_INVALID, 0, "pod UID %.300s cannot name a directory", quoted);
}

/* An administrator may have moved pods/ to another disk with a symbolic link, which the trailing
 * slash follows; below it no link is followed. */
static char *pods_path(const struct nd_userns_store *store) {
        return nd_format("%s/", store->path);
}

struct nd_error *nd_userns_store_list(const struct nd_userns_store *store, struct nd_strings *ret) {
        nd_autofree char *path = pods_path(store);

        return nd_dir_list(AT_FDCWD, path, ND_STORE_PODS, ret);
}

/* ND_NOT_FOUND when the pod has no directory. */
static struct nd_error *open_pod(const struct nd_userns_store *store, const char *pod_uid, int *ret_fd) {
        nd_autofree char *path = nd_format("%s/%s", store->path, pod_uid);

        return nd_dir_open(AT_FDCWD, path, ret_fd);
}

struct nd_error *nd_userns_store_read(const struct nd_userns_store *store, const char *pod_uid, char **ret,
                                      size_t *ret_length) {
        nd_autoclose int fd = -EBADF;
        nd_autofree char *bytes = nullptr;
        size_t length = 0;
        nd_autoerror struct nd_error *error = nullptr;

        error = open_pod(store, pod_uid, &fd);
        if (!error)
                error = nd_error_wrap(nd_file_read(fd, FILE_NAME, ND_MAPPING_CEILING, &bytes, &length), "pod '%s'", pod_uid);
        if (error && nd_error_code(error) != ND_NOT_FOUND)
                return nd_take_ptr(error);
        *ret = length > 0 ? nd_take_ptr(bytes) : nullptr;
        *ret_length = length;
        return nullptr;
}

/* Creates pods/ and the pod's directory if they are missing, durably: a file in a directory that is
 * lost would be lost too. */
static struct nd_error *make_pod(const struct nd_userns_store *store, const char *pod_uid, int *ret_fd) {
        nd_autoclose int pods = -EBADF;
        nd_autofree char *path = pods_path(store);
        nd_autoerror struct nd_error *error = open_pod(store, pod_uid, ret_fd);

        if (!error)
                return nullptr;
        if (nd_error_code(error) != ND_NOT_FOUND)
                return nd_take_ptr(error);
        nd_try(nd_dir_make(AT_FDCWD, path, DIRECTORY_MODE));
        nd_try(nd_dir_open(AT_FDCWD, path, &pods));
        nd_try(nd_dir_make(pods, pod_uid, DIRECTORY_MODE));
        if (nd_sys->fsync(pods) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "sync directory '%s'", store->path);
        return nd_dir_open(pods, pod_uid, ret_fd);
}

struct nd_error *nd_userns_store_write(const struct nd_userns_store *store, const char *pod_uid, const char *text) {
        nd_autoclose int fd = -EBADF;

        nd_try(make_pod(store, pod_uid, &fd));
        return nd_error_wrap(nd_file_replace(fd, FILE_NAME, text, strlen(text), FILE_MODE), "pod '%s'", pod_uid);
}

struct nd_error *nd_userns_store_remove(const struct nd_userns_store *store, const char *pod_uid) {
        nd_autoclose int fd = -EBADF;
        nd_autoerror struct nd_error *error = open_pod(store, pod_uid, &fd);

        if (nd_error_code(error) == ND_NOT_FOUND)
                return nullptr;
        if (error)
                return nd_take_ptr(error);
        return nd_error_wrap(nd_file_remove(fd, FILE_NAME), "pod '%s'", pod_uid);
}
