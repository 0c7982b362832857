/* SPDX-License-Identifier: Apache-2.0 */
/* manifest.c - `nodens-rootless manifest`: prints the objects that a cluster needs */
#include <stdio.h>

#include "rootless/command/commands.h"
#include "rootless/controller/manifest.h"

enum { MANIFEST_BYTES = 256 * 1024 };

int rootless_command_manifest(void *settings, [[maybe_unused]] int operand_count, [[maybe_unused]] char **operands) {
        nd_autotext struct nd_text text = ND_TEXT(MANIFEST_BYTES);
        struct nd_error *error = rootless_manifest_write(settings, &text);

        if (error)
                return rootless_command_fail(error);
        printf("%s", nd_text_get(&text));
        return EXIT_SUCCESS;
}
