/* SPDX-License-Identifier: Apache-2.0 */
#include "pull/fetch/request.h"

#include <string.h>

#include "base/base64.h"
#include "base/json-member.h"
#include "oci/manifest.h"

enum {
        SECRET = 64 * 1024, /* limit of a password or token */
        NAME = 4096,
        PARALLEL = 3,
        NO_PROGRESS = 60,
};
#define TOTAL_BYTES (UINT64_C(64) << 30)

void pull_request_done(struct pull_request *r) {
        nd_reference_done(&r->reference);
        pull_credentials_done(&r->credentials);
        free(r->hosts_directory);
        *r = (struct pull_request) {};
}

static struct nd_error *copy_text(yyjson_val *object, const char *key, size_t ceiling, char **ret) {
        const char *text;

        nd_try(nd_json_member_text(object, key, ceiling, &text));
        *ret = nd_strdup(text ? text : "");
        return nullptr;
}

/* Docker's "auth" is user:password in base64. */
static struct nd_error *split_auth(const char *auth, struct pull_credentials *c) {
        nd_autofree char *plain = nullptr;
        char *colon;

        nd_try(nd_error_wrap(nd_base64_parse(auth, &plain), "'auth'"));
        colon = strchr(plain, ':');
        if (!colon)
                return nd_error_new(ND_INVALID, 0, "'auth' is not base64 of user:password");
        *colon = '\0';
        free(c->username);
        free(c->password);
        c->username = nd_strdup(plain);
        c->password = nd_strdup(colon + 1);
        explicit_bzero(plain, strlen(plain));
        return nullptr;
}

static struct nd_error *parse_credentials(yyjson_val *object, struct pull_request *r) {
        struct pull_credentials *c = &r->credentials;
        const char *auth;

        if (!object)
                return nullptr;
        nd_try(copy_text(object, "username", SECRET, &c->username));
        nd_try(copy_text(object, "password", SECRET, &c->password));
        nd_try(copy_text(object, "identityToken", SECRET, &c->identity_token));
        nd_try(copy_text(object, "registryToken", SECRET, &c->registry_token));
        nd_try(copy_text(object, "serverAddress", NAME, &c->server));
        nd_try(nd_json_member_text(object, "auth", SECRET, &auth));
        if (auth && *auth && !*c->username && !*c->identity_token)
                nd_try(split_auth(auth, c));
        r->has_credentials = true;
        return nullptr;
}

static struct nd_error *parse_platform(yyjson_val *object, struct nd_platform *ret) {
        const char *os = nullptr, *architecture = nullptr, *variant = nullptr;

        if (object) {
                nd_try(nd_json_member_text(object, "os", ND_PLATFORM_FIELD, &os));
                nd_try(nd_json_member_text(object, "architecture", ND_PLATFORM_FIELD, &architecture));
                nd_try(nd_json_member_text(object, "variant", ND_PLATFORM_FIELD, &variant));
        }
        if (!architecture || !*architecture)
                *ret = nd_platform_host();
        else if (!nd_platform_make(os && *os ? os : "linux", architecture, variant, ret))
                return nd_error_new(ND_INVALID, 0, "invalid 'platform'");
        return nullptr;
}

static struct nd_error *parse_number(yyjson_val *object, const char *key, uint64_t ceiling, uint64_t otherwise,
                                     uint64_t *ret) {
        *ret = 0;
        if (object)
                nd_try(nd_json_member_number(object, key, ceiling, ret));
        if (*ret == 0)
                *ret = otherwise;
        return nullptr;
}

static struct nd_error *parse_limits(yyjson_val *root, struct pull_request *r) {
        yyjson_val *limits;
        uint64_t number;

        nd_try(nd_json_member_object(root, "limits", &limits));
        nd_try(parse_number(limits, "totalBytes", ND_DESCRIPTOR_SIZE, TOTAL_BYTES, &r->total_bytes));
        nd_try(parse_number(limits, "layers", ND_MANIFEST_LAYERS, ND_MANIFEST_LAYERS, &number));
        r->layers = (unsigned) number;
        nd_try(parse_number(root, "parallel", REQUEST_PARALLEL, PARALLEL, &number));
        r->parallel = (unsigned) number;
        nd_try(parse_number(root, "noProgressSeconds", 24 * 3600, NO_PROGRESS, &number));
        r->no_progress_seconds = (unsigned) number;
        return nullptr;
}

static struct nd_error *parse_root(yyjson_val *root, struct pull_request *r) {
        const char *operation, *reference;
        yyjson_val *object;

        nd_try(nd_json_member_text(root, "operation", 16, &operation));
        if (!operation || (!nd_streq(operation, "pull") && !nd_streq(operation, "import")))
                return nd_error_new(ND_INVALID, 0, "'operation' must be \"pull\" or \"import\"");
        r->operation = nd_streq(operation, "pull") ? OPERATION_PULL : OPERATION_IMPORT;
        nd_try(nd_json_member_text(root, "reference", ND_REFERENCE_TEXT, &reference));
        if (r->operation == OPERATION_PULL)
                nd_try(nd_reference_parse(reference ? reference : "", &r->reference));
        nd_try(nd_json_member_object(root, "platform", &object));
        nd_try(parse_platform(object, &r->platform));
        nd_try(nd_json_member_object(root, "auth", &object));
        nd_try(parse_credentials(object, r));
        nd_try(copy_text(root, "hostsDir", NAME, &r->hosts_directory));
        return parse_limits(root, r);
}

struct nd_error *pull_request_parse(const char *bytes, size_t length, struct pull_request *ret) {
        nd_cleanup(pull_request_done) struct pull_request request = {};
        nd_autojson yyjson_doc *doc = nullptr;

        nd_try(nd_error_wrap(nd_json_parse(bytes, length, REQUEST_BYTES, &doc), "request"));
        if (!yyjson_is_obj(yyjson_doc_get_root(doc)))
                return nd_error_new(ND_INVALID, 0, "request is not a JSON object");
        nd_try(nd_error_wrap(parse_root(yyjson_doc_get_root(doc), &request), "request"));
        *ret = nd_take(request, (struct pull_request) {});
        return nullptr;
}
