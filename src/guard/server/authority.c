/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/server/authority.h"

#include <string.h>
#include <time.h>

#include "base/base64.h"
#include "net/certificate-expiry.h"

enum {
        RENEW_PART = 3, /* certificates are renewed when a third of their time is left */
        SINCE_TEXT = 24,
};

static constexpr time_t day = 24 * 3600;

void guard_authority_done(struct guard_authority *a) {
        guard_issued_done(&a->current);
        guard_issued_done(&a->next);
        guard_issued_done(&a->server);
        free(a->previous);
        *a = (struct guard_authority) {};
}

/* ---- the Secret ---- */

static void decode_text(yyjson_val *data, const char *key, char **ret) {
        const char *text = yyjson_get_str(yyjson_obj_get(data, key));

        if (text && *text && strlen(text) <= GUARD_AUTHORITY_BYTES)
                nd_ignore(nd_base64_parse(text, ret)); /* as if it was not there */
        if (*ret && !**ret)
                free(nd_take_ptr(*ret));
}

/* A certificate without its key, or with another one, is useless. */
static void decode_pair(yyjson_val *data, const char *certificate, const char *key, struct guard_issued *ret) {
        nd_cleanup(guard_issued_done) struct guard_issued found = {};
        nd_autoerror struct nd_error *error = nullptr;
        time_t expires = 0;

        decode_text(data, certificate, &found.certificate);
        decode_text(data, key, &found.key);
        if (!found.certificate || !found.key)
                return;
        error = nd_certificate_expiry_read(found.certificate, found.key, &expires);
        if (!error)
                *ret = nd_take(found, (struct guard_issued) {});
}

void guard_authority_decode(yyjson_val *data, struct guard_authority *ret) {
        nd_autofree char *since = nullptr;
        nd_autoerror struct nd_error *error = nullptr;
        time_t expires = 0;

        *ret = (struct guard_authority) {};
        decode_pair(data, "ca.crt", "ca.key", &ret->current);
        decode_pair(data, "next.crt", "next.key", &ret->next);
        decode_pair(data, "tls.crt", "tls.key", &ret->server);
        decode_text(data, "previous.crt", &ret->previous);
        if (ret->previous)
                error = nd_certificate_expiry_read(ret->previous, nullptr, &expires);
        if (error)
                free(nd_take_ptr(ret->previous));
        decode_text(data, "since", &since);
        if (since && nd_text_parse_u64(since, INT64_MAX, &ret->since) < 0)
                ret->since = 0;
}

static void encode_text(struct nd_json_out *out, const char *key, const char *text) {
        nd_autofree char *encoded = text ? nd_base64(text, strlen(text)) : nullptr;

        nd_json_string(out, key, encoded);
        if (encoded)
                explicit_bzero(encoded, strlen(encoded));
}

void guard_authority_encode(const struct guard_authority *a, struct nd_json_out *out) {
        nd_autofree char *since = nd_format("%llu", (unsigned long long) a->since);

        nd_json_open(out, "data", '{');
        encode_text(out, "ca.crt", a->current.certificate);
        encode_text(out, "ca.key", a->current.key);
        encode_text(out, "next.crt", a->next.certificate);
        encode_text(out, "next.key", a->next.key);
        encode_text(out, "previous.crt", a->previous);
        encode_text(out, "tls.crt", a->server.certificate);
        encode_text(out, "tls.key", a->server.key);
        encode_text(out, "since", since);
        nd_json_close(out, '}');
}

char *guard_authority_bundle(const struct guard_authority *a) {
        const char *const parts[] = {a->current.certificate, a->next.certificate, a->previous};
        nd_autotext struct nd_text text = ND_TEXT(4 * GUARD_AUTHORITY_BYTES);

        for (size_t i = 0; i < nd_count_of(parts); i++)
                if (parts[i])
                        nd_text_addf(&text, "%s%s", parts[i], parts[i][strlen(parts[i]) - 1] == '\n' ? "" : "\n");
        return nd_strdup(nd_text_get(&text));
}

/* ---- rotation ---- */

/* Whether less than a third of the lifetime is left. An unreadable one counts as expired. */
static bool is_due(const struct guard_issued *issued, unsigned days) {
        nd_autoerror struct nd_error *error = nullptr;
        time_t expires = 0;

        error = nd_certificate_expiry_read(issued->certificate, issued->key, &expires);
        return error || expires - time(nullptr) <= day * (time_t) days / RENEW_PART;
}

static bool is_over(const struct guard_issued *issued) {
        return is_due(issued, 0);
}

static struct nd_error *issue(struct guard_authority *a, const struct guard_authority_settings *s) {
        struct guard_issued made = {};

        nd_try(guard_issue_server(&a->current, s->names, s->server_days, &made));
        guard_issued_done(&a->server);
        a->server = made;
        return nullptr;
}

static struct nd_error *make_first(struct guard_authority *a, const struct guard_authority_settings *s) {
        struct guard_issued made = {};

        nd_try(guard_issue_authority(s->authority_days, &made));
        guard_authority_done(a);
        a->current = made;
        a->since = s->now;
        return issue(a, s);
}

static struct nd_error *announce(struct guard_authority *a, const struct guard_authority_settings *s) {
        nd_try(guard_issue_authority(s->authority_days, &a->next));
        a->since = s->now;
        return nullptr;
}

static struct nd_error *switch_over(struct guard_authority *a, const struct guard_authority_settings *s) {
        free(a->previous);
        a->previous = nd_take_ptr(a->current.certificate);
        guard_issued_done(&a->current);
        a->current = nd_take(a->next, (struct guard_issued) {});
        a->since = s->now;
        return issue(a, s);
}

static struct nd_error *retire(struct guard_authority *a, const struct guard_authority_settings *s) {
        free(nd_take_ptr(a->previous));
        a->since = s->now;
        return nullptr;
}

/* A clock that went back must not stop the rotation for ever. */
static bool overlap_is_over(const struct guard_authority *a, const struct guard_authority_settings *s) {
        return s->now >= a->since + s->overlap_seconds || s->now + s->overlap_seconds < a->since;
}

static enum guard_authority_step next_step(const struct guard_authority *a, const struct guard_authority_settings *s) {
        bool may_go_on = s->in_place && overlap_is_over(a, s);

        if (!a->current.certificate || is_over(&a->current))
                return GUARD_AUTHORITY_MADE;
        if (a->next.certificate && may_go_on)
                return GUARD_AUTHORITY_SWITCHED;
        if (!a->next.certificate && a->previous && may_go_on)
                return GUARD_AUTHORITY_RETIRED;
        if (!a->server.certificate || is_due(&a->server, s->server_days))
                return GUARD_AUTHORITY_RENEWED;
        if (!a->next.certificate && !a->previous && (s->rotate || is_due(&a->current, s->authority_days)))
                return GUARD_AUTHORITY_ANNOUNCED;
        return GUARD_AUTHORITY_KEPT;
}

struct nd_error *guard_authority_advance(struct guard_authority *a, const struct guard_authority_settings *s,
                                         enum guard_authority_step *ret) {
        static struct nd_error *(*const steps[])(struct guard_authority *, const struct guard_authority_settings *) = {
                [GUARD_AUTHORITY_MADE] = make_first,      [GUARD_AUTHORITY_ANNOUNCED] = announce,
                [GUARD_AUTHORITY_SWITCHED] = switch_over, [GUARD_AUTHORITY_RETIRED] = retire,
                [GUARD_AUTHORITY_RENEWED] = issue,
        };
        enum guard_authority_step step = next_step(a, s);

        static_assert(nd_count_of(steps) == GUARD_AUTHORITY_RENEWED + 1);
        if (step != GUARD_AUTHORITY_KEPT)
                nd_try(steps[step](a, s));
        *ret = step;
        return nullptr;
}
