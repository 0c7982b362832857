/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-node-record.c - node.json: parsing, formatting and parsing again gives the same record */
#include <string.h>

#include <unit/fuzz.h>

#include "base/text.h"
#include "rootless/core/node.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_cleanup(rootless_node_record_done) struct rootless_node_record record = {}, again = {};
        nd_autoerror struct nd_error *error = rootless_node_record_parse((const char *) data, size, &record),
                                     *second = nullptr;
        nd_autofree char *text = nullptr, *name = fuzz_text(data, size);

        if (rootless_node_name_valid(name)) {
                fuzz_require(!strchr(name, '/') && name[0] != '.' && name[0] != '-' && strlen(name) <= 63);
                fuzz_require(strlen(name) == strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-"));
        }
        if (error)
                return 0;
        fuzz_require(record.pid > 1 && record.started > 0 && record.mtu <= 65535);
        text = rootless_node_record_format(&record);
        if (strlen(text) > NODE_RECORD_BYTES - 16)
                /* escapes may lengthen a record beyond the limit; ours are never that long */
                return 0;
        second = rootless_node_record_parse(text, strlen(text), &again);
        fuzz_require(!second && again.pid == record.pid && again.started == record.started && again.ids == record.ids);
        fuzz_require(nd_streq(again.boot, record.boot) && nd_streq(again.net, record.net));
        fuzz_require(!again.data == !record.data && (!again.data || nd_streq(again.data, record.data)));
        return 0;
}
