/* SPDX-License-Identifier: Apache-2.0 */
/* auth.h - who gets which credentials
 *
 *      asked by                                what it gets
 *      the registry itself, or `server`        the caller's credentials, when they name no other server
 *      a server that the credentials name      the credentials
 *      a mirror                                anonymous tokens only
 *      where a redirect leads                  nothing
 *      the realm of a challenge                what its registry would get; over https unless the registry itself speaks http
 *
 * Codecs for challenges and tokens, and a cache of tokens by server and repository. Requests are made by whoever calls. */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "base/vector.h"
#include "pull/fetch/hosts.h"

enum {
        CHALLENGE_BYTES = 16 * 1024, /* most bytes of WWW-Authenticate */
        TOKEN_BYTES = 256 * 1024,    /* most bytes of a token server's answer */
        TOKEN_TEXT = 64 * 1024,      /* most bytes of a token */
};

/* What a registry asks for. Owns its strings. */
struct pull_challenge {
        bool basic;
        char *realm; /* of "Bearer"; nullptr = no bearer token is asked for */
        char *service;
        char *scope;
};

void pull_challenge_done(struct pull_challenge *challenge);

/* One WWW-Authenticate header; several schemes may stand in it, unknown ones are passed over. Adds to what earlier headers gave. */
[[nodiscard]] struct nd_error *pull_challenge_parse(const char *header, size_t length, struct pull_challenge *challenge);

/* A token server's answer. */
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

/* The Authorization header's value for a server and repository, nullptr when there is none yet. */
[[nodiscard]] char *pull_auth_header(struct pull_auth *auth, const struct pull_host *host, const char *repository);

/* After a 401: what to do. With a bearer challenge a request for a token comes back, whose answer goes to pull_auth_store_token(). Without one
 * (ret->url is nullptr) basic credentials are set for the server. An error: nothing can be done. */
[[nodiscard]] struct nd_error *pull_auth_respond(struct pull_auth *auth, const struct pull_host *host, const char *repository,
                                                 const struct pull_challenge *challenge, struct pull_token_request *ret);
[[nodiscard]] struct nd_error *pull_auth_store_token(struct pull_auth *auth, const struct pull_host *host,
                                                     const char *repository, const char *answer, size_t length);

/* Calls back with every secret that is known: for scrubbing messages. */
void pull_auth_each_secret(const struct pull_auth *auth, void (*each)(void *userdata, const char *secret), void *userdata);
