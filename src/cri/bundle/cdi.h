/* SPDX-License-Identifier: Apache-2.0 */
/* cdi.h - Container Device Interface: applies what a vendor's file defines for
 * "vendor.com/class=name"
 *
 * Only root can write the files, in the configured directories. Device names come from the
 * request's field for them, never from an annotation. A file defines device nodes, mounts,
 * variables, groups and hooks; a file that needs anything else is refused, since the device
 * would not work fully. */
#pragma once

#include <sys/stat.h>

#include "base/json.h"
#include "oci/spec.h"

struct cri_config;

enum {
        CDI_FILES = 256,       /* in one directory */
        CDI_CEILING = 4 << 20, /* bytes of one file */
        CDI_ITEMS = 4096,      /* entries of any list in it */
        CDI_TEXT = 16 << 10,   /* bytes of any string in it */
};

/* Adds what the devices need to the spec. Reads files and devices of the host: for workers. */
[[nodiscard]] struct nd_error *cri_cdi_describe(const struct cri_config *config, const struct nd_strings *devices,
                                                struct nd_spec *spec);

/* ---- one file, without I/O ---- */

struct cri_cdi_file {
        yyjson_doc *doc;
        const char *kind; /* "vendor.com/class" */
};

void cri_cdi_file_done(struct cri_cdi_file *file);
[[nodiscard]] struct nd_error *cri_cdi_file_parse(const char *text, size_t length, bool yaml, struct cri_cdi_file *ret);

/* Whether it defines "vendor.com/class=name". */
[[nodiscard]] bool cri_cdi_file_has(const struct cri_cdi_file *file, const char *device);

/* Stats a device of the host; returns 0 or -errno. */
typedef int (*cri_cdi_look)(const char *path, struct stat *ret);

/* Adds the edits of one device, or, if device is nullptr, the edits shared by all devices of the
 * file. */
[[nodiscard]] struct nd_error *cri_cdi_file_edit(const struct cri_cdi_file *file, const char *device, cri_cdi_look look,
                                                 struct nd_spec *spec);
