/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-http-head.c - any bytes as the head of a request or response
 *
 * Property: parsing needs no byte after the head (a shorter input is incomplete or refused), the
 * result has no control characters, and its items are never empty. */
#include <string.h>

#include <unit/fuzz.h>

#include "net/http-head.h"

static void look(const struct nd_http_head *head) {
        fuzz_require(head->count <= ND_HTTP_FIELDS);
        for (size_t i = 0; i < head->count; i++) {
                struct nd_http_items items = {.name = head->fields[i].name};
                const char *value = head->fields[i].value;

                fuzz_require(nd_http_head_get(head, items.name) && !strpbrk(value, "\r\n"));
                while (nd_http_head_next(head, &items))
                        fuzz_require(items.length > 0 && !memchr(items.item, ',', items.length));
        }
}

static void read_answer(const uint8_t *data, size_t size) {
        nd_autohead struct nd_http_head head = {};
        nd_autoerror struct nd_error *error = nullptr;
        size_t used;

        error = nd_http_answer_read((const char *) data, size, &head, &used);
        fuzz_require(used <= size && used <= ND_HTTP_HEAD && (!error || used == 0));
        if (used == 0)
                return;
        fuzz_require(head.status >= 100 && head.status <= 999 && !head.method && !head.path);
        look(&head);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_autohead struct nd_http_head head = {}, shorter = {};
        nd_autoerror struct nd_error *error = nullptr, *again = nullptr;
        size_t used, used_again;

        read_answer(data, size);
        error = nd_http_head_read((const char *) data, size, &head, &used);
        fuzz_require(used <= size && used <= ND_HTTP_HEAD);
        fuzz_require(!error || (used == 0 && nd_http_status(error) < 500));
        fuzz_require((used > 0) == (head.method != nullptr));
        if (used == 0)
                return 0;
        fuzz_require(head.path[0] == '/' && !strpbrk(head.path, "?# \r\n") && *head.method);
        look(&head);
        again = nd_http_head_read((const char *) data, used - 1, &shorter, &used_again);
        fuzz_require(!again && used_again == 0);
        return 0;
}
