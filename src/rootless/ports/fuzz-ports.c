/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-ports.c - ports as text and as a file: parsing, formatting and parsing again gives the same
 * ports */
#include <string.h>

#include <unit/fuzz.h>

#include "rootless/ports/ports.h"

static void words(const char *text) {
        struct rootless_port_spec spec, again;
        nd_autoerror struct nd_error *error = rootless_port_parse(text, &spec), *second = nullptr;
        char written[PORT_TEXT];

        if (error)
                return;
        fuzz_require(spec.parent_port > 0 && spec.child_port > 0);
        (void) rootless_port_format(&spec, written);
        second = rootless_port_parse(written, &again);
        fuzz_require(!second && rootless_port_equal(&spec, &again));
}

static void file(const char *bytes, size_t length) {
        nd_cleanup(rootless_ports_done) struct rootless_ports ports = {}, again = {};
        uint64_t next = 0, next_again = 0;
        nd_autoerror struct nd_error *error = rootless_ports_parse(bytes, length, &ports, &next), *second = nullptr;
        nd_autofree char *text = nullptr;

        if (error)
                return;
        nd_vector_each (port, &ports) {
                fuzz_require(port->id > 0 && port->id < next);
        }
        text = rootless_ports_format(&ports, next);
        second = rootless_ports_parse(text, strlen(text), &again, &next_again);
        fuzz_require(!second && again.count == ports.count && next_again == next);
        for (size_t i = 0; i < ports.count; i++)
                fuzz_require(rootless_port_equal(&ports.items[i].spec, &again.items[i].spec) &&
                             ports.items[i].id == again.items[i].id);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_autofree char *text = fuzz_text(data, size);

        words(text);
        file((const char *) data, size);
        return 0;
}
