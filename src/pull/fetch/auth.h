/* SPDX-License-Identifier: Apache-2.0 */
/* auth.h - chooses the credentials for each server
 *
 *      server                                  credentials
 *      the registry itself, or `server`        the caller's, unless they name another server
 *      a server that the credentials name      the caller's
 *      a mirror                                anonymous tokens only
 *      target of a redirect                   none
 *      realm of a challenge                    those of its registry; over https unless the
 *                                              registry itself uses http
 *
 * Parsers for challenges and tokens, and a cache of tokens by server and repository. The caller
 * sends the requests. */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "base/vector.h"
#include "pull/fetch/hosts.h"

enum {
        CHALLENGE_BYTES = 16 * 1024, /* limit of WWW-Authenticate */
        TOKEN_BYTES = 256 * 1024,    /* limit of a token server's response */
        TOKEN_TEXT = 64 * 1024,      /* limit of a token */
};

/* A registry's challenge. Owns its strings. */
struct pull_challenge {
        bool basic;
        char *realm; /* of "Bearer"; nullptr = no bearer challenge */
        char *service;
        char *scope;
};

void pull_challenge_done(struct pull_challenge *challenge);

/* Parses one WWW-Authenticate header. It may have several schemes; unknown ones are skipped. Adds
 * to the result of earlier headers. */
[[nodiscard]] struct nd_error *pull_challenge_parse(const char *header, size_t length, struct pull_challenge *challenge);

/* Parses a token server's response. */
[[nodiscard]] struct nd_error *pull_token_parse(const char *bytes, size_t length, char **ret_token, uint64_t *ret_seconds);

/* The caller's credentials. Owns its strings; "" where not given. */
struct pull_credentials {
        char *username;
        char *password;
        char *identity_token;
        char *registry_token;
        char *server; /* "" = the registry of the reference */
};

void pull_credentials_done(struct pull_credentials *credentials);

/* A request for a token. Owns its strings. */
struct pull_token_request {
        char *url;
        char *body;          /* of a POST; nullptr = GET */
        char *authorization; /* header's value; nullptr = anonymous */
};

void pull_token_request_done(struct pull_token_request *request);

struct pull_auth;

/* Credentials may be nullptr; they are borrowed. */
[[nodiscard]] struct pull_auth *pull_auth_new(const struct pull_credentials *credentials);
void pull_auth_free(struct pull_auth *auth);

/* Returns the value of the Authorization header for a server and repository, nullptr if there is
 * none yet. */
[[nodiscard]] char *pull_auth_header(struct pull_auth *auth, const struct pull_host *host, const char *repository);

/* Handles a 401. For a bearer challenge it returns a token request, whose response goes to
 * pull_auth_store_token(). Without one (ret->url is nullptr) it sets basic credentials for the
 * server. An error means that authentication is impossible. */
[[nodiscard]] struct nd_error *pull_auth_respond(struct pull_auth *auth, const struct pull_host *host, const char *repository,
                                                 const struct pull_challenge *challenge, struct pull_token_request *ret);
[[nodiscard]] struct nd_error *pull_auth_store_token(struct pull_auth *auth, const struct pull_host *host,
                                                     const char *repository, const char *answer, size_t length);

/* Calls back with every known secret, for redacting messages. */
void pull_auth_each_secret(const struct pull_auth *auth, void (*each)(void *userdata, const char *secret), void *userdata);
