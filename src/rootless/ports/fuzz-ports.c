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

static size_t count(const struct rootless_ports *ports, bool owned) {
        size_t found = 0;

        nd_vector_each (port, ports) {
                found += (port->owner != nullptr) == owned;
                fuzz_require(port->owner || !port->object);
        }
        return found;
}

/* The user's ports and those of owners are written to different files. */
static void part(const struct rootless_ports *ports, bool owned, uint64_t next) {
        nd_cleanup(rootless_ports_done) struct rootless_ports again = {};
        nd_autofree char *text = rootless_ports_format(ports, owned, next);
        uint64_t next_again = 0;
        nd_autoerror struct nd_error *error = rootless_ports_parse(text, strlen(text), &again, &next_again);
        size_t at = 0;

        fuzz_require(!error && again.count == count(ports, owned) && next_again == next);
        nd_vector_each (port, ports) {
                if ((port->owner != nullptr) != owned)
                        continue;
                fuzz_require(rootless_port_equal(&port->spec, &again.items[at].spec) && port->id == again.items[at].id);
                fuzz_require(rootless_port_overlaps(&port->spec, &again.items[at].spec));
                at++;
        }
}

static void file(const char *bytes, size_t length) {
        nd_cleanup(rootless_ports_done) struct rootless_ports ports = {};
        uint64_t next = 0;
        nd_autoerror struct nd_error *error = rootless_ports_parse(bytes, length, &ports, &next);

        if (error)
                return;
        nd_vector_each (port, &ports) {
                fuzz_require(port->id > 0 && port->id < next);
        }
        part(&ports, false, next);
        part(&ports, true, next);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_autofree char *text = fuzz_text(data, size);

        words(text);
        file((const char *) data, size);
        return 0;
}
