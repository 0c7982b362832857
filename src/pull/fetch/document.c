/* SPDX-License-Identifier: Apache-2.0 */
#include "pull/fetch/document.h"

#include <string.h>

#include "base/text.h"

struct document {
        const struct nd_digest *expected; /* nullptr = not checked */
        struct nd_text text;
        char *content_type;
        bool done;
        struct nd_error *error;
};

static struct nd_error *document_head(void *userdata, const struct pull_fetch_head *head) {
        struct document *d = userdata;

        d->text.length = 0;
        d->text.overflow = false;
        if (d->text.bytes)
                d->text.bytes[0] = '\0';
        free(d->content_type);
        d->content_type = nd_strdup(head->content_type);
        if (head->length != UINT64_MAX && head->length > d->text.ceiling)
                return nd_error_new(ND_EXHAUSTED, EFBIG, "document exceeds %zu bytes", d->text.ceiling);
        return nullptr;
}

static struct nd_error *document_body(void *userdata, const char *bytes, size_t length) {
        struct document *d = userdata;

        nd_text_append(&d->text, bytes, length);
        if (d->text.overflow)
                return nd_error_new(ND_EXHAUSTED, EFBIG, "document exceeds %zu bytes", d->text.ceiling);
        return nullptr;
}

static void document_done(void *userdata, struct nd_error *error) {
        struct document *d = userdata;

        d->done = true;
        d->error = error;
}

static struct nd_error *document_check(void *userdata) {
        const struct document *d = userdata;

        return d->expected ? nd_digest_check(d->expected, nd_text_get(&d->text), d->text.length) : nullptr;
}

struct nd_error *pull_document_fetch(struct pull_fetcher *fetcher, const struct pull_fetch_plan *plan,
                                     const struct nd_digest *expected, size_t ceiling, char **ret_bytes, size_t *ret_length,
                                     char **ret_content_type) {
        struct document d = {.expected = expected, .text = ND_TEXT(ceiling)};
        struct pull_fetch_plan inner = *plan;
        struct nd_error *error = nullptr;

        inner.head = document_head;
        inner.body = document_body;
        inner.check = document_check;
        inner.done = document_done;
        inner.userdata = &d;
        pull_fetch_start(fetcher, &inner);
        while (!d.done && !error)
                error = pull_fetcher_wait(fetcher, nullptr, 0, 1000);
        if (!error)
                error = d.error;
        if (error) {
                nd_text_done(&d.text);
                free(d.content_type);
                return error;
        }
        *ret_length = d.text.length;
        *ret_bytes = d.text.length > 0 ? nd_text_steal(&d.text) : nd_strdup("");
        *ret_content_type = d.content_type ? d.content_type : nd_strdup("");
        return nullptr;
}
