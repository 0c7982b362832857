/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/bundle/pod-volumes.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

#define EMPTY_DIR "empty-dir"

static const char *const plugins[] = {EMPTY_DIR, "configmap", "secret", "projected", "downward-api"};

/* The path below <kubelet>/pods/<uid>/, and the length of what is before it; nullptr if it is not
 * there. */
static const char *below_pod(const char *path, const char *uid, size_t *ret_length) {
        nd_autofree char *mark = nd_format("/pods/%s/", uid);
        const char *found = *uid && !strchr(uid, '/') ? strstr(path, mark) : nullptr;

        if (!found)
                return nullptr;
        *ret_length = (size_t) (found - path) + strlen(mark);
        return path + *ret_length;
}

/* The name of the volume in volumes/kubernetes.io~<plugin>/<name>. */
static bool is_of_plugin(const char *below, const char *plugin) {
        nd_autofree char *start = nd_format("volumes/kubernetes.io~%s/", plugin);

        return nd_has_prefix(below, start) && below[strlen(start)] != '\0';
}

/* volume-subpaths/<volume>/<container>/<number> is a bind mount of a part of that volume. */
static bool is_private_subpath(const char *pod, const char *below) {
        static const char start[] = "volume-subpaths/";
        size_t length = nd_has_prefix(below, start) ? strcspn(below + sizeof start - 1, "/") : 0;

        for (size_t i = 0; length > 0 && i < nd_count_of(plugins); i++) {
                nd_autofree char *volume =
                        nd_format("%svolumes/kubernetes.io~%s/%.*s", pod, plugins[i], (int) length, below + sizeof start - 1);
                struct stat st;

                if (lstat(volume, &st) == 0 && S_ISDIR(st.st_mode))
                        return true;
        }
        return false;
}

bool cri_pod_volume_is_private(const char *path, const char *pod_uid) {
        size_t length;
        const char *below = below_pod(path, pod_uid, &length);
        nd_autofree char *pod = below ? nd_strndup(path, length) : nullptr,
                         *record = below ? nd_format("%suserns", pod) : nullptr;

        if (!below || access(record, F_OK) < 0)
                return false;
        for (size_t i = 0; i < nd_count_of(plugins); i++)
                if (is_of_plugin(below, plugins[i]))
                        return true;
        return nd_streq(below, "etc-hosts") || nd_has_prefix(below, "containers/") || is_private_subpath(pod, below);
}

/* The kubelet writes to configMap volumes also later; an emptyDir belongs to the pod from then on,
 * and may have any number of files. */
struct nd_error *cri_pod_volume_shift(const char *path, int file, const struct nd_tree_shift *shift) {
        struct stat st;

        if (fstat(file, &st) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "look at '%s'", path);
        if (strstr(path, "/volumes/kubernetes.io~" EMPTY_DIR "/") && st.st_uid >= shift->count)
                return nullptr;
        return nd_error_wrap(nd_tree_shift(file, shift), "give '%s' to the pod's user namespace", path);
}
