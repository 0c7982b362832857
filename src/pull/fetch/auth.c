/* SPDX-License-Identifier: Apache-2.0 */
#include "pull/fetch/auth.h"

#include <ctype.h>
#include <string.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"

enum {
        PARAMETERS = 32,
        TOKENS = 64,
};

static constexpr uint64_t default_lifetime_s = 60; /* of a token whose response has no expires_in */
static constexpr uint64_t lifetime_skew_s = 10;    /* a token is not used in its last seconds */

void pull_challenge_done(struct pull_challenge *c) {
        free(c->realm);
        free(c->service);
        free(c->scope);
        *c = (struct pull_challenge) {};
}

void pull_credentials_done(struct pull_credentials *c) {
        free(c->username);
        free(c->password);
        free(c->identity_token);
        free(c->registry_token);
        free(c->server);
        *c = (struct pull_credentials) {};
}

void pull_token_request_done(struct pull_token_request *r) {
        free(r->url);
        free(r->body);
        free(r->authorization);
        *r = (struct pull_token_request) {};
}

/* ---- challenges ---- */

struct reader {
        const char *at, *end;
};

static bool token_char(char c) {
        return isalnum((unsigned char) c) || (c && strchr("!#$%&'*+-.^_`|~", c));
}

static void skip_blanks(struct reader *r, bool commas) {
        while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || (commas && *r->at == ',')))
                r->at++;
}

static char *take_token(struct reader *r) {
        const char *start = r->at;

        while (r->at < r->end && token_char(*r->at))
                r->at++;
        return r->at > start ? nd_strndup(start, (size_t) (r->at - start)) : nullptr;
}

/* Reads a quoted string or a token. Rejects control characters, which would end up in a URL or a
 * message. */
static struct nd_error *take_value(struct reader *r, char **ret) {
        nd_autotext struct nd_text text = ND_TEXT(CHALLENGE_BYTES);

        if (r->at == r->end || *r->at != '"') {
                *ret = take_token(r);
                return *ret ? nullptr
                            : nd_error_new(ND_INVALID, 0, "authentication challenge has a parameter without a value");
        }
        for (r->at++; r->at < r->end && *r->at != '"'; r->at++) {
                if (*r->at == '\\' && ++r->at == r->end)
                        break;
                if ((unsigned char) *r->at < ' ' || *r->at == 0x7f)
                        return nd_error_new(ND_INVALID, 0, "authentication challenge has a control character");
                nd_text_append(&text, r->at, 1);
        }
        if (r->at == r->end)
                return nd_error_new(ND_INVALID, 0, "authentication challenge has an unterminated string");
        r->at++;
        *ret = text.length > 0 ? nd_text_steal(&text) : nd_strdup("");
        return nullptr;
}

static void keep_parameter(struct pull_challenge *c, const char *name, char *value) {
        char **field = strcasecmp(name, "realm") == 0     ? &c->realm
                       : strcasecmp(name, "service") == 0 ? &c->service
                       : strcasecmp(name, "scope") == 0   ? &c->scope
                                                          : nullptr;

        if (!field)
                return free(value);
        free(*field);
        *field = value;
}

/* Reads the parameters of one scheme. A name without '=' is the next scheme: the reader returns to
 * it. */
static struct nd_error *take_parameters(struct reader *r, struct pull_challenge *c) {
        for (int i = 0; i < PARAMETERS; i++) {
                nd_autofree char *name = nullptr;
                const char *start;
                char *value;

                skip_blanks(r, true);
                start = r->at;
                name = take_token(r);
                skip_blanks(r, false);
                if (!name || r->at == r->end || *r->at != '=') {
                        r->at = start;
                        return nullptr;
                }
                r->at++;
                skip_blanks(r, false);
                nd_try(take_value(r, &value));
                keep_parameter(c, name, value);
        }
        return nd_error_new(ND_EXHAUSTED, 0, "authentication challenge has more than %d parameters", PARAMETERS);
}

struct nd_error *pull_challenge_parse(const char *header, size_t length, struct pull_challenge *challenge) {
        struct reader r = {.at = header, .end = header + length};

        if (length > CHALLENGE_BYTES)
                return nd_error_new(ND_EXHAUSTED, 0, "authentication challenge exceeds %d bytes", CHALLENGE_BYTES);
        for (;;) {
                nd_cleanup(pull_challenge_done) struct pull_challenge one = {};
                nd_autofree char *scheme = nullptr;

                skip_blanks(&r, true);
                if (r.at == r.end)
                        return nullptr;
                scheme = take_token(&r);
                if (!scheme)
                        return nd_error_new(ND_INVALID, 0, "authentication challenge without a scheme");
                nd_try(take_parameters(&r, &one));
                if (strcasecmp(scheme, "Basic") == 0)
                        challenge->basic = true;
                if (strcasecmp(scheme, "Bearer") == 0 && one.realm && !challenge->realm) {
                        challenge->realm = nd_take_ptr(one.realm);
                        challenge->service = nd_take_ptr(one.service);
                        challenge->scope = nd_take_ptr(one.scope);
                }
        }
}

/* ---- tokens ---- */

static bool header_safe(const char *text) {
        for (; *text; text++)
                if ((unsigned char) *text <= ' ' || (unsigned char) *text >= 0x7f)
                        return false;
        return true;
}

struct nd_error *pull_token_parse(const char *bytes, size_t length, char **ret_token, uint64_t *ret_seconds) {
        nd_autojson yyjson_doc *doc = nullptr;
        yyjson_val *root, *token, *expires;
        const char *text;

        nd_try(nd_error_wrap(nd_json_parse(bytes, length, TOKEN_BYTES, &doc), "response of the token server"));
        root = yyjson_doc_get_root(doc);
        token = yyjson_obj_get(root, "token");
        if (!yyjson_is_str(token) || yyjson_get_len(token) == 0)
                token = yyjson_obj_get(root, "access_token");
        text = yyjson_get_str(token);
        if (!text || yyjson_get_len(token) == 0 || yyjson_get_len(token) > TOKEN_TEXT ||
            strlen(text) != yyjson_get_len(token) || !header_safe(text))
                return nd_error_new(ND_INVALID, 0, "response of the token server has no usable token");
        expires = yyjson_obj_get(root, "expires_in");
        *ret_seconds = yyjson_is_uint(expires) && yyjson_get_uint(expires) > 0 ? yyjson_get_uint(expires) : default_lifetime_s;
        if (*ret_seconds > 24 * 3600)
                *ret_seconds = 24 * 3600;
        *ret_token = nd_strdup(text);
        return nullptr;
}

/* ---- credentials by server ---- */

struct token {
        char *authority;
        char *repository;
        char *value; /* of the Authorization header */
        uint64_t expires_us;
};

struct pull_auth {
        const struct pull_credentials *credentials;
        nd_vector(struct token) tokens;
};

struct pull_auth *pull_auth_new(const struct pull_credentials *credentials) {
        struct pull_auth *auth = nd_new(struct pull_auth);

        auth->credentials = credentials;
        return auth;
}

static void token_done(struct token *t) {
        free(t->authority);
        free(t->repository);
        free(t->value);
}

void pull_auth_free(struct pull_auth *auth) {
        if (!auth)
                return;
        nd_vector_each (token, &auth->tokens) {
                token_done(token);
        }
        nd_vector_done(&auth->tokens);
        free(auth);
}

/* Reduces "https://index.docker.io/v1/" and "registry.example:5000/path" to host and port. */
static char *server_authority(const char *server) {
        const char *start = strstr(server, "://");
        char *authority;

        start = start ? start + 3 : server;
        authority = nd_strndup(start, strcspn(start, "/"));
        for (char *at = authority; *at; at++)
                *at = (char) tolower((unsigned char) *at);
        return authority;
}

static bool docker_hub(const char *authority) {
        return nd_streq(authority, "docker.io") || nd_streq(authority, "index.docker.io") ||
               nd_streq(authority, "registry-1.docker.io");
}

/* Implements the table in auth.h. */
static bool may_get_credentials(const struct pull_auth *auth, const struct pull_host *host) {
        nd_autofree char *named = nullptr;

        if (!auth->credentials)
                return false;
        if (!auth->credentials->server || !*auth->credentials->server)
                return host->upstream;
        named = server_authority(auth->credentials->server);
        return nd_streq(named, host->authority) || (docker_hub(named) && docker_hub(host->authority));
}

static const char *given(const char *text) {
        return text && *text ? text : nullptr;
}

static char *basic_value(const struct pull_credentials *c) {
        nd_autofree char *plain = nd_format("%s:%s", c->username ? c->username : "", c->password ? c->password : "");
        nd_autofree char *encoded = nd_base64(plain, strlen(plain));
        char *value = nd_format("Basic %s", encoded);

        explicit_bzero(plain, strlen(plain));
        return value;
}

char *pull_auth_header(struct pull_auth *auth, const struct pull_host *host, const char *repository) {
        if (may_get_credentials(auth, host) && given(auth->credentials->registry_token) &&
            header_safe(auth->credentials->registry_token))
                return nd_format("Bearer %s", auth->credentials->registry_token);
        nd_vector_each (token, &auth->tokens) {
                if (nd_streq(token->authority, host->authority) && nd_streq(token->repository, repository) &&
                    token->expires_us > nd_clock_us())
                        return nd_strdup(token->value);
        }
        return nullptr;
}

static struct nd_error *keep_value(struct pull_auth *auth, const struct pull_host *host, const char *repository, char *value,
                                   uint64_t expires_us) {
        struct token made = {.authority = nd_strdup(host->authority),
                             .repository = nd_strdup(repository),
                             .value = value,
                             .expires_us = expires_us};

        nd_vector_each (token, &auth->tokens) {
                if (nd_streq(token->authority, host->authority) && nd_streq(token->repository, repository)) {
                        token_done(token);
                        *token = made;
                        return nullptr;
                }
        }
        if (auth->tokens.count == TOKENS) {
                token_done(&made);
                return nd_error_new(ND_EXHAUSTED, 0, "limit of %d tokens reached", TOKENS);
        }
        nd_vector_push(&auth->tokens, made);
        return nullptr;
}

/* Escapes everything but letters and digits as %XX. */
static void add_escaped(struct nd_text *text, const char *value) {
        for (; *value; value++)
                if (isalnum((unsigned char) *value) || strchr("-._~", *value))
                        nd_text_append(text, value, 1);
                else
                        nd_text_addf(text, "%%%02X", (unsigned) (unsigned char) *value);
}

static void add_field(struct nd_text *text, char separator, const char *name, const char *value) {
        if (!value)
                return;
        nd_text_append(text, &separator, 1);
        nd_text_addf(text, "%s=", name);
        add_escaped(text, value);
}

/* Uses the scope that a registry names, but never more than pull. */
static char *default_scope(const char *named, const char *repository) {
        const char *colon = named ? strrchr(named, ':') : nullptr;

        if (!named || !nd_has_prefix(named, "repository:") || strchr(named, ' ') || colon == named + strlen("repository"))
                return nd_format("repository:%s:pull", repository);
        return nd_format("%.*s:pull", (int) (colon - named), named);
}

static struct nd_error *check_realm(const char *realm, const struct pull_host *host) {
        const char *rest = nd_has_prefix(realm, "https://")                                         ? realm + 8
                           : nd_has_prefix(realm, "http://") && nd_has_prefix(host->url, "http://") ? realm + 7
                                                                                                    : nullptr;
        size_t length = rest ? strcspn(rest, "/?#") : 0;

        if (length == 0 || memchr(rest, '@', length) || !header_safe(realm) || strchr(realm, '#'))
                return nd_error_new(ND_INVALID, 0, "%s: invalid token server address, or one without https", host->authority);
        return nullptr;
}

static struct nd_error *token_request(const struct pull_auth *auth, const struct pull_host *host, const char *repository,
                                      const struct pull_challenge *challenge, struct pull_token_request *ret) {
        nd_autofree char *scope = default_scope(challenge->scope, repository);
        const struct pull_credentials *c = may_get_credentials(auth, host) ? auth->credentials : nullptr;
        nd_autotext struct nd_text query = ND_TEXT(TOKEN_TEXT * 4);
        bool post = c && given(c->identity_token);

        nd_try(check_realm(challenge->realm, host));
        if (post) {
                nd_text_add(&query, "grant_type=refresh_token");
                add_field(&query, '&', "refresh_token", c->identity_token);
                add_field(&query, '&', "client_id", "nodens");
                add_field(&query, '&', "service", challenge->service);
        } else {
                nd_text_add(&query, challenge->realm);
                add_field(&query, strchr(challenge->realm, '?') ? '&' : '?', "service",
                          challenge->service ? challenge->service : "");
        }
        add_field(&query, '&', "scope", scope);
        if (query.overflow)
                return nd_error_new(ND_EXHAUSTED, 0, "token request too long");
        ret->url = post ? nd_strdup(challenge->realm) : nd_text_steal(&query);
        ret->body = post ? nd_text_steal(&query) : nullptr;
        ret->authorization = !post && c && given(c->username) ? basic_value(c) : nullptr;
        return nullptr;
}

struct nd_error *pull_auth_respond(struct pull_auth *auth, const struct pull_host *host, const char *repository,
                                   const struct pull_challenge *challenge, struct pull_token_request *ret) {
        if (challenge->realm)
                return token_request(auth, host, repository, challenge, ret);
        if (challenge->basic && may_get_credentials(auth, host) && given(auth->credentials->username))
                return keep_value(auth, host, repository, basic_value(auth->credentials), UINT64_MAX);
        return nd_error_new(ND_DENIED, EACCES, "%s requires credentials, and none are configured for it", host->authority);
}

struct nd_error *pull_auth_store_token(struct pull_auth *auth, const struct pull_host *host, const char *repository,
                                       const char *answer, size_t length) {
        nd_autofree char *token = nullptr;
        uint64_t seconds = 0;

        nd_try(pull_token_parse(answer, length, &token, &seconds));
        seconds -= seconds > 2 * lifetime_skew_s ? lifetime_skew_s : seconds / 4;
        return keep_value(auth, host, repository, nd_format("Bearer %s", token), nd_clock_us() + seconds * ND_SECOND_US);
}

void pull_auth_each_secret(const struct pull_auth *auth, void (*each)(void *userdata, const char *secret), void *userdata) {
        const struct pull_credentials *c = auth->credentials;
        const char *const own[] = {c ? c->password : nullptr, c ? c->identity_token : nullptr,
                                   c ? c->registry_token : nullptr};

        for (size_t i = 0; i < nd_count_of(own); i++)
                if (given(own[i]))
                        each(userdata, own[i]);
        nd_vector_each (token, &auth->tokens) {
                each(userdata, strchr(token->value, ' ') + 1);
        }
}
