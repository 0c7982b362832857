/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/components/output.h"

#include <string.h>

static void write_line(struct rootless_output *output) {
        nd_autotext struct nd_text printed = ND_TEXT(OUTPUT_PRINTED_BYTES - OUTPUT_NAME_BYTES);
        nd_autofree char *line = nullptr;

        nd_text_add_printable(&printed, output->pending, output->length);
        line = nd_format("%.*s: %s\n", OUTPUT_NAME_BYTES - 3, output->name, nd_text_get(&printed));
        output->write(line, strlen(line), output->userdata);
        output->length = 0;
}

void rootless_output_add(struct rootless_output *output, const char *bytes, size_t length) {
        for (size_t i = 0; i < length; i++) {
                if (bytes[i] != '\n')
                        output->pending[output->length++] = bytes[i];
                if (bytes[i] == '\n' || output->length == sizeof output->pending)
                        write_line(output);
        }
}

void rootless_output_end(struct rootless_output *output) {
        if (output->length > 0)
                write_line(output);
}
