/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/rights.h"

#include <string.h>

#include "base/clock.h"
#include "base/map.h"

enum {
        REMEMBERED = 8192,
        REVIEW_BYTES = 256 << 10,
};

#define YES_US (1 * ND_SECOND_US)
#define NO_US (5 * ND_SECOND_US)
#define TIMEOUT_US (2 * ND_SECOND_US)

struct memory {
        uint64_t until_us;
        bool allowed;
};

struct guard_rights {
        struct nd_api *api;
        char *group;
        struct nd_map known; /* key -> struct memory */
        uint64_t changes, asked;
};

struct question {
        struct guard_rights *rights;
        char *key;
        void (*done)(bool allowed, const struct nd_error *error, void *userdata);
        void *userdata;
};

struct guard_rights *guard_rights_new(struct nd_api *api, const char *group) {
        struct guard_rights *rights = nd_new(struct guard_rights);

        rights->api = api;
        rights->group = nd_strdup(group);
        return rights;
}

void guard_rights_forget(struct guard_rights *rights) {
        const struct nd_map_slot *slot;

        for (size_t at = 0; (slot = nd_map_next(&rights->known, &at));)
                free(slot->value);
        nd_map_done(&rights->known);
}

void guard_rights_free(struct guard_rights *rights) {
        if (!rights)
                return;
        guard_rights_forget(rights);
        free(rights->group);
        free(rights);
}

uint64_t guard_rights_asked(const struct guard_rights *rights) {
        return rights->asked;
}

/* Everything that an authorizer may look at. A newline is in none of the names. */
static char *key_of(const struct guard_subject *subject, const char *namespace, const char *constraint) {
        nd_autotext key = ND_TEXT(REVIEW_BYTES);

        nd_text_addf(&key, "%s\n%s\n%s\n%s\n%s", namespace, constraint, subject->name, subject->uid,
                     nd_or_empty(subject->extra));
        for (size_t i = 0; i < subject->groups.count; i++)
                nd_text_addf(&key, "\n%s", subject->groups.items[i]);
        return key.overflow ? nullptr : nd_text_steal(&key);
}

bool guard_rights_recall(struct guard_rights *rights, const struct guard_subject *subject, const char *namespace,
                         const char *constraint, uint64_t changes, bool *ret_allowed) {
        nd_autofree char *key = key_of(subject, namespace, constraint);
        const struct memory *memory;

        if (changes != rights->changes)
                guard_rights_forget(rights);
        rights->changes = changes;
        memory = key ? nd_map_get(&rights->known, key) : nullptr;
        if (!memory || memory->until_us < nd_clock_us())
                return false;
        *ret_allowed = memory->allowed;
        return true;
}

static void remember(struct guard_rights *rights, const char *key, bool allowed) {
        struct memory *memory = nd_new(struct memory);

        if (rights->known.count >= REMEMBERED)
                guard_rights_forget(rights);
        *memory = (struct memory) {.until_us = nd_clock_us() + (allowed ? YES_US : NO_US), .allowed = allowed};
        free(nd_map_put(&rights->known, key, memory));
}

static void write_review(const struct guard_rights *rights, const struct guard_subject *subject, const char *namespace,
                         const char *constraint, struct nd_text *text) {
        struct nd_json_out out = {.text = text};

        nd_json_open(&out, nullptr, '{');
        nd_json_string(&out, "apiVersion", "authorization.k8s.io/v1");
        nd_json_string(&out, "kind", "SubjectAccessReview");
        nd_json_open(&out, "spec", '{');
        nd_json_string(&out, "user", subject->name);
        if (*subject->uid)
                nd_json_string(&out, "uid", subject->uid);
        nd_json_open(&out, "groups", '[');
        for (size_t i = 0; i < subject->groups.count; i++)
                nd_json_string(&out, nullptr, subject->groups.items[i]);
        nd_json_close(&out, ']');
        if (subject->extra)
                nd_json_raw(&out, "extra", subject->extra);
        nd_json_open(&out, "resourceAttributes", '{');
        nd_json_string(&out, "namespace", namespace);
        nd_json_string(&out, "verb", "use");
        nd_json_string(&out, "group", rights->group);
        nd_json_string(&out, "resource", "securitycontextconstraints");
        nd_json_string(&out, "name", constraint);
        nd_json_close(&out, '}');
        nd_json_close(&out, '}');
        nd_json_close(&out, '}');
}

static void on_answer(const struct nd_api_answer *answer, void *userdata) {
        struct question *q = userdata;
        nd_autoerror struct nd_error *error = nullptr;
        nd_autojson doc = nullptr;
        bool allowed = false;

        if (!answer->error) {
                error = nd_json_parse(answer->body, answer->length, REVIEW_BYTES * 4, &doc);
                allowed = yyjson_is_true(yyjson_obj_get(yyjson_obj_get(yyjson_doc_get_root(doc), "status"), "allowed"));
        }
        if (!answer->error && !error && q->key)
                remember(q->rights, q->key, allowed);
        q->done(allowed, answer->error ? answer->error : error, q->userdata);
        free(q->key);
        free(q);
}

void guard_rights_ask(struct guard_rights *rights, const struct guard_subject *subject, const char *namespace,
                      const char *constraint, void (*done)(bool allowed, const struct nd_error *error, void *userdata),
                      void *userdata) {
        nd_autotext text = ND_TEXT(REVIEW_BYTES);
        struct question *q = nd_new(struct question);

        *q = (struct question) {
                .rights = rights, .key = key_of(subject, namespace, constraint), .done = done, .userdata = userdata};
        write_review(rights, subject, namespace, constraint, &text);
        rights->asked++;
        (void) nd_api_send(rights->api, &(struct nd_api_request) {.method = "POST",
                                                                  .path = "/apis/authorization.k8s.io/v1/subjectaccessreviews",
                                                                  .body = nd_text_get(&text),
                                                                  .timeout_us = TIMEOUT_US,
                                                                  .done = on_answer,
                                                                  .userdata = q});
}
