/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-cdi.c - untrusted CDI files: the result is complete and bounded. The first byte chooses
 * JSON or YAML. */
#include <string.h>

#include <unit/fuzz.h>

#include "cri/bundle/cdi.h"

static int look_at_device([[maybe_unused]] const char *path, struct stat *ret) {
        *ret = (struct stat) {.st_mode = S_IFCHR | 0600, .st_rdev = 1};
        return 0;
}

static void check(const struct nd_spec *spec) {
        nd_vector_each (device, &spec->devices)
                fuzz_require(device->path[0] == '/' && strchr("bcp", device->type));
        nd_vector_each (mount, &spec->mounts)
                fuzz_require(mount->destination[0] == '/' && mount->source[0] != '\0');
        nd_vector_each (hook, &spec->hooks)
                fuzz_require(hook->path[0] == '/' && nd_spec_hook_stage(hook->stage) == hook->stage);
        nd_vector_each (variable, &spec->process.environment)
                fuzz_require(strchr(*variable, '=') > *variable);
        nd_vector_each (rule, &spec->resources.devices)
                fuzz_require(rule->access[0] && rule->access[strspn(rule->access, "rwm")] == '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_cleanup(cri_cdi_file_done) struct cri_cdi_file file = {};
        nd_cleanup(nd_spec_done) struct nd_spec spec = {};
        nd_autofree char *device = nullptr;
        struct nd_error *error;

        if (size == 0)
                return 0;
        error = cri_cdi_file_parse((const char *) data + 1, size - 1, data[0] & 1, &file);
        nd_error_free(error);
        if (error)
                return 0;
        spec.user_namespace = data[0] & 2;
        nd_ignore(cri_cdi_file_edit(&file, nullptr, look_at_device, &spec));
        device = nd_format("%s=x", file.kind);
        nd_ignore(cri_cdi_file_edit(&file, device, look_at_device, &spec));
        check(&spec);
        return 0;
}
