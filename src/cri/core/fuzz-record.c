/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-record.c - a record that parses can be written and parses to the same again */
#include <stdint.h>
#include <string.h>

#include "cri/core/record-format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char boot[] = "00000000-1111-2222-3333-444444444444";

static void must(struct nd_error *error) {
        if (error)
                abort();
}

static void same(const struct nd_text *a, const struct nd_text *b) {
        if (a->length != b->length || memcmp(nd_text_get(a), nd_text_get(b), a->length) != 0)
                abort();
}

static void sandbox_done(struct cri_sandbox **sandbox) {
        cri_sandbox_free(*sandbox);
}

static void container_done(struct cri_container **container) {
        cri_container_free(*container);
}

static void try_sandbox(const char *bytes, size_t length) {
        nd_cleanup(sandbox_done) struct cri_sandbox *first = nd_new(struct cri_sandbox), *second = nd_new(struct cri_sandbox);
        nd_autoerror struct nd_error *error = cri_record_parse_sandbox(bytes, length, boot, first);
        nd_autotext struct nd_text written = {}, again = {};

        if (error)
                return;
        must(cri_record_format_sandbox(first, boot, &written));
        must(cri_record_parse_sandbox(nd_text_get(&written), written.length, boot, second));
        must(cri_record_format_sandbox(second, boot, &again));
        same(&written, &again);
}

static void try_container(const char *bytes, size_t length) {
        nd_cleanup(container_done) struct cri_container *first = nd_new(struct cri_container),
                                                        *second = nd_new(struct cri_container);
        nd_autoerror struct nd_error *error = cri_record_parse_container(bytes, length, first);
        nd_autotext struct nd_text written = {}, again = {};

        if (error)
                return;
        must(cri_record_format_container(first, &written));
        must(cri_record_parse_container(nd_text_get(&written), written.length, second));
        must(cri_record_format_container(second, &again));
        same(&written, &again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        if (size == 0)
                return 0;
        (void) cri_record_is_internal((const char *) data + 1, size - 1);
        if (data[0] % 2 == 0)
                try_sandbox((const char *) data + 1, size - 1);
        else
                try_container((const char *) data + 1, size - 1);
        return 0;
}
