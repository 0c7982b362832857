/* SPDX-License-Identifier: Apache-2.0 */
/* request-pieces.h - decoding shared by sandboxes and containers; only for request-decode*.c */
#pragma once

#include <cri.pb-c.h>

#include "cri/core/request-decode.h"

/* A copy of a string of at most ceiling bytes; nullptr reads as "". */
[[nodiscard]] struct nd_error *cri_decode_text(const char *what, const char *text, size_t ceiling, char **ret);

/* The same for an absolute path, or "" where it may be empty. */
[[nodiscard]] struct nd_error *cri_decode_path(const char *what, const char *text, bool may_be_empty, char **ret);

/* Whether a path has ".." in it. */
[[nodiscard]] bool cri_decode_climbs(const char *path);

[[nodiscard]] struct nd_error *cri_decode_strings(const char *what, char *const *texts, size_t count, size_t ceiling,
                                                  struct nd_strings *ret);

[[nodiscard]] struct nd_error *cri_decode_count(const char *what, size_t count);
[[nodiscard]] struct nd_error *cri_decode_pair(const char *what, const char *key, const char *value, size_t ceiling,
                                               struct cri_pairs *ret);

/* Decodes a map field: each map has its own entry type, all with a key and a value. */
#define piece_pairs(what, entries, n, ceiling, ret)                                                                           \
        ({                                                                                                                    \
                struct nd_error *_problem = cri_decode_count((what), (n));                                                    \
                for (size_t _i = 0; !_problem && _i < (n); _i++)                                                              \
                        _problem = cri_decode_pair((what), (entries)[_i]->key, (entries)[_i]->value, (ceiling), (ret));       \
                _problem;                                                                                                     \
        })

/* Decodes an ID map of one line: from container ID 0, within 32 bits, never the host's root. */
[[nodiscard]] struct nd_error *cri_decode_id_map(const char *what, Runtime__V1__IDMapping *const *lines, size_t count,
                                                 struct nd_userns_map *ret);

struct cri_decode_namespaces {
        enum cri_namespace_mode network, pid, ipc;
        bool user_namespace;
        struct nd_userns_map uids, gids;
};

/* Absent options are the CRI's zeros: the pod's own namespaces, but the host's users, as old
 * kubelets expect. */
[[nodiscard]] struct nd_error *cri_decode_namespaces(const Runtime__V1__NamespaceOption *options,
                                                     struct cri_decode_namespaces *ret);

[[nodiscard]] struct nd_error *cri_decode_resources(const Runtime__V1__LinuxContainerResources *resources,
                                                    struct cri_resource_request *ret);
