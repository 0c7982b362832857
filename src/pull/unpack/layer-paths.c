/* SPDX-License-Identifier: Apache-2.0 */
#include "pull/unpack/layer-paths.h"

#include <fcntl.h>

#include "oci/manifest.h"
#include "sys/file.h"

struct nd_error *pull_layer_find(const struct nd_digest *chain, struct nd_layer *ret, char **ret_path) {
        static const char *const directories[] = {"/unpack/layers", "/layers"};
        char hex[ND_DIGEST_HEX];

        (void) nd_digest_hex(chain, hex);
        *ret_path = nullptr;
        for (size_t i = 0; i < nd_count_of(directories); i++) {
                nd_autofree char *path = nd_format("%s/%s", directories[i], hex), *file = nd_format("%s/" ND_LAYER_FILE, path),
                                 *text = nullptr;
                struct nd_error *error;
                size_t length;

                error = nd_file_read(AT_FDCWD, file, ND_LAYER_CEILING, &text, &length);
                if (nd_error_errno(error) == ENOENT) {
                        nd_ignore(error); /* try the next directory */
                        continue;
                }
                nd_try(error);
                nd_try(nd_error_wrap(nd_layer_parse(text, length, ret), "'%s'", file));
                *ret_path = nd_take_ptr(path);
                return nullptr;
        }
        return nullptr;
}

void pull_layer_tree_paths_free(char **paths, size_t count) {
        for (size_t i = 0; i < count; i++)
                free(paths[i]);
        free(paths);
}

struct nd_error *pull_layer_tree_paths(const struct nd_digest *top, char ***ret, size_t *ret_count) {
        char **paths = nd_calloc(ND_MANIFEST_LAYERS, sizeof *paths);
        struct nd_digest at = *top;
        size_t count = 0;

        while (nd_digest_is_set(&at)) {
                nd_autofree char *path = nullptr;
                struct nd_error *error = nullptr;
                struct nd_layer layer;

                if (count < ND_MANIFEST_LAYERS)
                        error = pull_layer_find(&at, &layer, &path);
                if (!path) {
                        pull_layer_tree_paths_free(paths, count);
                        return error ?: nd_error_new(ND_PRECONDITION, 0, "a lower layer does not exist");
                }
                paths[count++] = nd_format("%s/" ND_LAYER_TREE, path);
                at = layer.parent;
        }
        *ret = paths;
        *ret_count = count;
        return nullptr;
}
