/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-component-record.c - the record of a component: what is accepted has a program and a valid
 * port */
#include <unit/fuzz.h>

#include "rootless/components/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_cleanup(rootless_component_record_done) struct rootless_component_record record = {};
        nd_autoerror struct nd_error *error = rootless_component_record_parse((const char *) data, size, &record);

        if (error)
                return 0;
        fuzz_require(record.argv.count > 0 && record.argv.items[0] && record.path && record.node_name);
        fuzz_require(record.after && record.publish);
        return 0;
}
