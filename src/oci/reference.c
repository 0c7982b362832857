/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/reference.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/text.h"

#define HUB "docker.io"
#define HUB_FORMER "index.docker.io"
#define HUB_OFFICIAL "library/"
#define TAG_DEFAULT "latest"

enum {
        ID_HEX = 64,
        PORT_MOST = 65535,
        HOST_MOST = 253,
};

/* ASCII in every locale. */
static bool is_digit(char c) {
        return c >= '0' && c <= '9';
}
static bool is_lower(char c) {
        return c >= 'a' && c <= 'z';
}
static bool is_upper(char c) {
        return c >= 'A' && c <= 'Z';
}
static bool is_alnum(char c) {
        return is_digit(c) || is_lower(c) || is_upper(c);
}
static bool is_hex(char c) {
        return is_digit(c) || (c >= 'a' && c <= 'f');
}

void nd_reference_done(struct nd_reference *reference) {
        free(reference->domain);
        free(reference->path);
        free(reference->tag);
        *reference = (struct nd_reference) {};
}

bool nd_reference_valid_tag(const char *tag) {
        size_t length = strlen(tag);

        if (length == 0 || length > ND_REFERENCE_TAG || tag[0] == '.' || tag[0] == '-')
                return false;
        for (size_t i = 0; i < length; i++)
                if (!is_alnum(tag[i]) && tag[i] != '_' && tag[i] != '.' && tag[i] != '-')
                        return false;
        return true;
}

/* Length of the separator at text; 0 if there is none. */
static size_t separator_length(const char *text) {
        if (text[0] == '.')
                return 1;
        if (text[0] == '_')
                return text[1] == '_' ? 2 : 1;
        return strspn(text, "-");
}

/* The end of one path component; nullptr if it is invalid. */
static const char *component_end(const char *text) {
        for (;;) {
                size_t run = 0, separator;

                while (is_lower(text[run]) || is_digit(text[run]))
                        run++;
                if (run == 0)
                        return nullptr;
                text += run;
                separator = separator_length(text);
                if (separator == 0)
                        return text;
                text += separator;
        }
}

bool nd_reference_valid_path(const char *path) {
        if (strlen(path) > ND_REFERENCE_PATH)
                return false;
        for (;; path++) {
                path = component_end(path);
                if (!path)
                        return false;
                if (*path == '\0')
                        return true;
                if (*path != '/')
                        return false;
        }
}

static bool valid_port(const char *port) {
        uint64_t number;

        return strlen(port) <= 5 && nd_text_parse_u64(port, PORT_MOST, &number) == 0 && number > 0;
}

/* A host name up to end; an IPv4 address has the same form. */
static bool valid_host_name(const char *host, const char *end) {
        if (host == end || end - host > HOST_MOST)
                return false;
        for (const char *at = host; at < end; at++) {
                bool edge = at == host || at[-1] == '.' || at + 1 == end || at[1] == '.';

                if (*at == '.' ? edge && (at == host || at[-1] == '.' || at + 1 == end)
                               : !is_alnum(*at) && (*at != '-' || edge))
                        return false;
        }
        return true;
}

static bool valid_bracketed(const char *host, const char *end) {
        char address[INET6_ADDRSTRLEN] = {};
        struct in6_addr ignored;
        size_t length = (size_t) (end - host);

        if (length < 2 || length - 2 >= sizeof address || end[-1] != ']')
                return false;
        memcpy(address, host + 1, length - 2);
        /* Neither a zone nor a mapped IPv4. */
        return !strchr(address, '.') && inet_pton(AF_INET6, address, &ignored) == 1;
}

bool nd_reference_valid_domain(const char *domain) {
        const char *bracket = domain[0] == '[' ? strchr(domain, ']') : nullptr;
        const char *end;

        if (strlen(domain) > ND_REFERENCE_DOMAIN || (domain[0] == '[' && !bracket))
                return false;
        end = bracket ? bracket + 1 : domain + strcspn(domain, ":");
        if (bracket ? !valid_bracketed(domain, end) : !valid_host_name(domain, end))
                return false;
        return *end == '\0' || (*end == ':' && valid_port(end + 1));
}

bool nd_reference_is_id(const char *text, const char **ret_hex) {
        const char *hex = nd_has_prefix(text, "sha256:") ? text + strlen("sha256:") : text;
        size_t length = 0;

        while (length <= ID_HEX && is_hex(hex[length]))
                length++;
        if (length < ND_ID_PREFIX || length > ID_HEX || hex[length] != '\0')
                return false;
        *ret_hex = hex;
        return true;
}

/* Whether the part before the first slash is a registry and not a part of a path on Docker Hub. */
static bool names_domain(const char *text, size_t length) {
        if (length == strlen("localhost") && strncmp(text, "localhost", length) == 0)
                return true;
        for (size_t i = 0; i < length; i++)
                if (text[i] == '.' || text[i] == ':' || is_upper(text[i]))
                        return true;
        return false;
}

static void split_domain(const char *name, struct nd_reference *ret) {
        const char *slash = strchr(name, '/');
        const char *path = name;

        if (slash && names_domain(name, (size_t) (slash - name))) {
                ret->domain = nd_strndup(name, (size_t) (slash - name));
                path = slash + 1;
                if (nd_streq(ret->domain, HUB_FORMER)) {
                        free(ret->domain);
                        ret->domain = nd_strdup(HUB);
                }
        } else {
                ret->domain = nd_strdup(HUB);
        }
        if (nd_streq(ret->domain, HUB) && !strchr(path, '/'))
                ret->path = nd_format(HUB_OFFICIAL "%s", path);
        else
                ret->path = nd_strdup(path);
}

static struct nd_error *invalid(const char *text, const char *why) {
        nd_autofree char *quoted = nd_text_quote(text);

        return nd_error_new(ND_INVALID, 0, "invalid image reference %s: %s", quoted, why);
}

static bool has_upper(const char *text) {
        for (; *text; text++)
                if (is_upper(*text))
                        return true;
        return false;
}

static bool is_identifier(const char *text) {
        const char *hex;

        return strlen(text) == ID_HEX && nd_reference_is_id(text, &hex);
}

/* Cuts the digest and the tag off the end; the name is left. */
static struct nd_error *cut_tail(const char *text, char *name, struct nd_reference *ret) {
        char *at = strchr(name, '@'), *slash, *colon;
        nd_autoerror struct nd_error *error = nullptr;

        if (at) {
                *at = '\0';
                error = nd_digest_parse(at + 1, &ret->digest);
                if (error)
                        return invalid(text, nd_error_text(error));
        }
        slash = strrchr(name, '/');
        colon = strrchr(slash ? slash : name, ':');
        if (colon) {
                *colon = '\0';
                if (!nd_reference_valid_tag(colon + 1))
                        return invalid(
                                text,
                                "a tag must be 1 to 128 letters, digits, '_', '.' and '-', and must not begin with '.' or '-'");
        }
        if (!at)
                ret->tag = nd_strdup(colon ? colon + 1 : TAG_DEFAULT);
        return nullptr;
}

struct nd_error *nd_reference_parse(const char *text, struct nd_reference *ret) {
        nd_cleanup(nd_reference_done) struct nd_reference reference = {};
        nd_autofree char *name = nullptr;

        if (text[0] == '\0')
                return nd_error_new(ND_INVALID, 0, "invalid image reference: it is empty");
        if (strnlen(text, ND_REFERENCE_TEXT + 1) > ND_REFERENCE_TEXT)
                return nd_error_new(ND_INVALID, 0, "invalid image reference: longer than %d bytes", ND_REFERENCE_TEXT);
        if (is_identifier(text))
                return invalid(text, "64 hex digits are an image id, not a name");

        name = nd_strdup(text);
        nd_try(cut_tail(text, name, &reference));
        split_domain(name, &reference);
        if (!nd_reference_valid_domain(reference.domain))
                return invalid(text, "the registry must be a host name with an optional port");
        if (strlen(reference.path) > ND_REFERENCE_PATH)
                return invalid(text, "the repository's path is longer than 255 bytes");
        if (has_upper(reference.path))
                return invalid(text, "the repository's path must be lower case");
        if (!nd_reference_valid_path(reference.path))
                return invalid(
                        text,
                        "the repository's path must be lower case letters and digits, joined by '.', '_', '__', '-' or '/'");
        *ret = nd_take(reference, (struct nd_reference) {});
        return nullptr;
}

char *nd_reference_with_digest(const struct nd_reference *reference, const struct nd_digest *digest) {
        char text[ND_DIGEST_TEXT];

        return nd_format("%s/%s@%s", reference->domain, reference->path, nd_digest_text(digest, text));
}

char *nd_reference_text(const struct nd_reference *reference) {
        if (nd_digest_is_set(&reference->digest))
                return nd_reference_with_digest(reference, &reference->digest);
        return nd_format("%s/%s:%s", reference->domain, reference->path, reference->tag);
}
