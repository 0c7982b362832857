/* SPDX-License-Identifier: Apache-2.0 */
/* config.h - /etc/nodens/cri.yaml: checked keys, a default for each */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "base/vector.h"

#define CRI_CONFIG_PATH "/etc/nodens/cri.yaml"

struct cri_config {
        char *socket;             /* where the kubelet connects */
        char *images;             /* the image store */
        char *certificates;       /* hosts.toml files, as containerd reads them */
        char *pull_helper;        /* nodens-pull */
        uint32_t pulls;           /* images pulled at once; more wait */
        uint32_t downloads;       /* layers of one image at once */
        uint32_t stalled_s;       /* a pull without a byte for so long ends */
        nd_vector(char *) pinned; /* images that the kubelet's garbage collection must leave alone */
};

void cri_config_done(struct cri_config *config);

/* The defaults alone. */
void cri_config_init(struct cri_config *ret);

/* Reads a file over the defaults. path nullptr = CRI_CONFIG_PATH, which may be missing. */
[[nodiscard]] struct nd_error *cri_config_read(const char *path, struct cri_config *ret);
[[nodiscard]] struct nd_error *cri_config_parse(const char *text, size_t length, struct cri_config *config);
