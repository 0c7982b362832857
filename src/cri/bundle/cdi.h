/* SPDX-License-Identifier: Apache-2.0 */
/* cdi.h - devices by the Container Device Interface: what a vendor's file says a container needs for "vendor.com/class=name"
 *
 * The files are root's, in the directories of the configuration; a name comes with the request, in the field for it and never by an annotation. A file says
 * device nodes, mounts, variables, groups and hooks; what it asks for besides is refused, since a device that half works helps nobody. */
#pragma once

#include <sys/stat.h>

#include "base/json.h"
#include "oci/spec.h"

struct cri_config;

enum {
        CDI_FILES = 256,       /* of one directory */
        CDI_CEILING = 4 << 20, /* bytes of one file */
        CDI_ITEMS = 4096,      /* of any list in it */
        CDI_TEXT = 16 << 10,   /* bytes of any text in it */
};

/* Adds to the spec what the devices need. Reads files and looks at devices of the host: for workers. */
[[nodiscard]] struct nd_error *cri_cdi_describe(const struct cri_config *config, const struct nd_strings *devices,
                                                struct nd_spec *spec);

/* ---- one file, without any I/O ---- */

struct cri_cdi_file {
        yyjson_doc *doc;
        const char *kind; /* "vendor.com/class" */
};

void cri_cdi_file_done(struct cri_cdi_file *file);
[[nodiscard]] struct nd_error *cri_cdi_file_parse(const char *text, size_t length, bool yaml, struct cri_cdi_file *ret);

/* Whether "vendor.com/class=name" is in it. */
[[nodiscard]] bool cri_cdi_file_has(const struct cri_cdi_file *file, const char *device);

/* How a device of the host looks; returns 0 or -errno. */
typedef int (*cri_cdi_look)(const char *path, struct stat *ret);

/* Adds the edits of one device, or those that all devices of the file share when device is nullptr. */
[[nodiscard]] struct nd_error *cri_cdi_file_edit(const struct cri_cdi_file *file, const char *device, cri_cdi_look look,
                                                 struct nd_spec *spec);
