/* SPDX-License-Identifier: Apache-2.0 */
/* hosts.c - see hosts.h
 *
 * Deliberate differences from containerd: an invalid hosts.toml is an error with its line, not a
 * silent fallback to no configuration; a registry on localhost gets plain HTTP unless a hosts.toml
 * says otherwise, where containerd first tries TLS without verifying the certificate. */
#include "pull/fetch/hosts.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "pull/fetch/toml.h"
#include "sys/file.h"

static void host_done(struct pull_host *host) {
        free(host->url);
        free(host->authority);
        nd_strings_done(&host->ca);
        nd_strings_done(&host->client);
        nd_strings_done(&host->headers);
        free(host->ca_pem);
        free(host->client_pem);
        *host = (struct pull_host) {};
}

void pull_hosts_done(struct pull_hosts *hosts) {
        nd_vector_each (host, hosts) {
                host_done(host);
        }
        nd_vector_done(hosts);
}

/* Returns whether it is an address in 127.0.0.0/8, not a name that begins like one. */
static bool is_loopback_address(const char *authority) {
        nd_autofree char *host = nd_strndup(authority, strcspn(authority, ":"));
        struct in_addr address;

        return inet_pton(AF_INET, host, &address) == 1 && ntohl(address.s_addr) >> 24 == 127;
}

bool pull_host_is_local(const char *authority) {
        return nd_streq(authority, "localhost") || nd_has_prefix(authority, "localhost:") || is_loopback_address(authority) ||
               nd_streq(authority, "[::1]") || nd_has_prefix(authority, "[::1]:");
}

/* Checks host[:port]: printable characters without a special meaning in a URL. */
static bool authority_valid(const char *text, size_t length) {
        for (size_t i = 0; i < length; i++)
                if (!isalnum((unsigned char) text[i]) && !strchr(".-_:[]", text[i]))
                        return false;
        return length > 0 && length < 300;
}

static bool path_valid(const char *text) {
        for (; *text; text++)
                if (!isalnum((unsigned char) *text) && !strchr("/.-_~%+@:,=!$&'()*;", *text))
                        return false;
        return true;
}

static void lower(char *text) {
        for (; *text; text++)
                *text = (char) tolower((unsigned char) *text);
}

/* Appends a normalized path: without empty and "." parts, ".." resolved, no trailing slash. */
static void add_clean_path(struct nd_text *text, const char *path) {
        size_t base = text->length;

        while (*path) {
                size_t slashes = strspn(path, "/"), length = strcspn(path + slashes, "/");

                path += slashes;
                if (length == 2 && memcmp(path, "..", 2) == 0) {
                        while (text->length > base && text->bytes[text->length - 1] != '/')
                                text->bytes[--text->length] = '\0';
                        if (text->length > base)
                                text->bytes[--text->length] = '\0';
                } else if (length > 0 && !(length == 1 && *path == '.')) {
                        nd_text_add(text, "/");
                        nd_text_append(text, path, length);
                }
                path += length;
        }
}

/* Sets the address of a server from hosts.toml, which may have a scheme and a path. */
static struct nd_error *set_url(struct pull_host *host, const char *server, bool override_path) {
        nd_autotext struct nd_text url = ND_TEXT(4096);
        const char *rest = server, *scheme = "https://";
        size_t length, start;

        if (strncasecmp(server, "http://", 7) == 0) {
                scheme = "http://";
                rest += 7;
        } else if (strncasecmp(server, "https://", 8) == 0) {
                rest += 8;
        }
        length = strcspn(rest, "/");
        if (!authority_valid(rest, length) || !path_valid(rest + length))
                return nd_error_new(
                        ND_INVALID, 0,
                        "'%.100s' is not a valid registry address (https://host:port, without user, query or fragment)",
                        memchr(rest, '@', length) ? "(an address with a user in it)" : server);
        host->authority = nd_strndup(rest, length);
        lower(host->authority);
        nd_text_add(&url, scheme);
        nd_text_add(&url, host->authority);
        start = url.length;
        add_clean_path(&url, rest + length);
        if (!override_path && (url.length - start < 3 || !nd_streq(url.bytes + url.length - 3, "/v2")))
                nd_text_add(&url, "/v2");
        if (url.overflow)
                return nd_error_new(ND_INVALID, 0, "the address of a registry is longer than 4096 bytes");
        host->url = nd_text_steal(&url);
        return nullptr;
}

/* The registry itself, by its own name. */
static struct nd_error *set_registry(struct pull_host *host, const char *registry) {
        nd_autofree char *url = nullptr;
        const char *port = strrchr(registry, ':');
        bool plain = pull_host_is_local(registry) && port && !strchr(port, ']') && !nd_streq(port, ":443") &&
                     host->ca.count == 0 && host->client.count == 0 && !host->skip_verify;

        if (nd_streq(registry, "docker.io"))
                registry = "registry-1.docker.io";
        url = nd_format("%s%s", plain ? "http://" : "https://", registry);
        return set_url(host, url, false);
}

static struct nd_error *bad_key(const char *key, const char *wanted) {
        return nd_error_new(ND_INVALID, 0, "'%s' must be %s", key, wanted);
}

static struct nd_error *read_capabilities(const struct pull_toml *list, struct pull_host *host) {
        if (!list || (list->kind == TOML_ARRAY && list->children.count == 0)) {
                host->capabilities = HOST_PULL | HOST_RESOLVE;
                return nullptr;
        }
        if (list->kind != TOML_ARRAY)
                return bad_key("capabilities", "a list of \"pull\", \"resolve\", \"push\"");
        nd_vector_each (item, &list->children) {
                const char *name = (*item)->kind == TOML_STRING ? (*item)->text : "";

                if (strcasecmp(name, "pull") == 0)
                        host->capabilities |= HOST_PULL;
                else if (strcasecmp(name, "resolve") == 0)
                        host->capabilities |= HOST_RESOLVE;
                else if (strcasecmp(name, "push") != 0 && strcasecmp(name, "referrers") != 0)
                        return bad_key("capabilities", "a list of \"pull\", \"resolve\", \"push\"");
        }
        return nullptr;
}

static char *absolute(const char *path, const char *directory) {
        return *path == '/' ? nd_strdup(path) : nd_format("%s/%s", directory, path);
}

static struct nd_error *read_ca(const struct pull_toml *ca, const char *directory, struct pull_host *host) {
        if (!ca)
                return nullptr;
        if (ca->kind == TOML_STRING) {
                nd_strings_add_owned(&host->ca, absolute(ca->text, directory));
                return nullptr;
        }
        if (ca->kind != TOML_ARRAY)
                return bad_key("ca", "a path or a list of paths");
        nd_vector_each (item, &ca->children) {
                if ((*item)->kind != TOML_STRING)
                        return bad_key("ca", "a path or a list of paths");
                nd_strings_add_owned(&host->ca, absolute((*item)->text, directory));
        }
        return nullptr;
}

static void push_pair(struct pull_host *host, const char *certificate, const char *key, const char *directory) {
        nd_strings_add_owned(&host->client, absolute(certificate, directory));
        nd_vector_push(&host->client, key ? absolute(key, directory) : nullptr);
}

static struct nd_error *read_client(const struct pull_toml *client, const char *directory, struct pull_host *host) {
        if (!client)
                return nullptr;
        if (client->kind == TOML_STRING) {
                push_pair(host, client->text, nullptr, directory);
                return nullptr;
        }
        if (client->kind != TOML_ARRAY)
                return bad_key("client", "a path, a list of paths, or a list of [certificate, key]");
        nd_vector_each (item, &client->children) {
                const struct pull_toml *pair = *item;

                if (pair->kind == TOML_STRING)
                        push_pair(host, pair->text, nullptr, directory);
                else if (pair->kind == TOML_ARRAY && pair->children.count == 2 &&
                         pair->children.items[0]->kind == TOML_STRING && pair->children.items[1]->kind == TOML_STRING)
                        push_pair(host, pair->children.items[0]->text, pair->children.items[1]->text, directory);
                else
                        return bad_key("client", "a path, a list of paths, or a list of [certificate, key]");
        }
        return nullptr;
}

static bool header_name_valid(const char *name) {
        if (!*name)
                return false;
        for (; *name; name++)
                if (!isalnum((unsigned char) *name) && !strchr("-_.!#$%&'*+^`|~", *name))
                        return false;
        return true;
}

static struct nd_error *push_header(struct pull_host *host, const char *name, const struct pull_toml *value) {
        if (value->kind != TOML_STRING || !header_name_valid(name) || strpbrk(value->text, "\r\n"))
                return bad_key("header", "names with a text or a list of texts, without line breaks");
        if (host->headers.count == HOST_HEADERS)
                return nd_error_new(ND_EXHAUSTED, 0, "more than %d headers for one host", HOST_HEADERS);
        nd_strings_add_owned(&host->headers, nd_format("%s: %s", name, value->text));
        return nullptr;
}

static struct nd_error *read_headers(const struct pull_toml *table, struct pull_host *host) {
        if (!table)
                return nullptr;
        if (table->kind != TOML_TABLE)
                return bad_key("header", "a table");
        nd_vector_each (item, &table->children) {
                const struct pull_toml *header = *item;

                if (header->kind != TOML_ARRAY) {
                        nd_try(push_header(host, header->key, header));
                        continue;
                }
                nd_vector_each (value, &header->children) {
                        nd_try(push_header(host, header->key, *value));
                }
        }
        return nullptr;
}

/* Parses durations such as "30s", "1m30s"; fractions of a second count as one. */
static struct nd_error *read_dial(const struct pull_toml *value, struct pull_host *host) {
        unsigned long long number;
        char unit[3];
        int used;

        if (!value)
                return nullptr;
        if (value->kind != TOML_STRING)
                return bad_key("dial_timeout", "a duration such as \"30s\"");
        for (const char *at = value->text; *at; at += used) {
                /* NOLINTNEXTLINE(cert-err34-c): nine digits fit */
                if (sscanf(at, "%9llu%2[hms]%n", &number, unit, &used) != 2)
                        return bad_key("dial_timeout", "a duration such as \"30s\"");
                number = nd_streq(unit, "ms") ? (number + 999) / 1000 : number * (*unit == 'h' ? 3600 : *unit == 'm' ? 60 : 1);
                if (number > 3600)
                        return bad_key("dial_timeout", "at most an hour");
                host->dial_seconds += (unsigned) number;
        }
        return nullptr;
}

static struct nd_error *read_flag(const struct pull_toml *table, const char *key, bool *ret) {
        const struct pull_toml *flag = pull_toml_get(table, key);

        if (flag && flag->kind != TOML_BOOL)
                return bad_key(key, "true or false");
        *ret = flag && flag->truth;
        return nullptr;
}

/* Reads the settings of one table: a [host."..."] or, for the server, the root. */
static struct nd_error *read_host(const struct pull_toml *table, const char *server, const char *registry,
                                  const char *directory, struct pull_host *host) {
        bool override_path = false;

        nd_try(read_capabilities(pull_toml_get(table, "capabilities"), host));
        nd_try(read_ca(pull_toml_get(table, "ca"), directory, host));
        nd_try(read_client(pull_toml_get(table, "client"), directory, host));
        nd_try(read_headers(pull_toml_get(table, "header"), host));
        nd_try(read_dial(pull_toml_get(table, "dial_timeout"), host));
        nd_try(read_flag(table, "skip_verify", &host->skip_verify));
        nd_try(read_flag(table, "override_path", &override_path));
        if (!server)
                return set_registry(host, registry);
        return set_url(host, server, override_path);
}

static struct nd_error *read_mirrors(const struct pull_toml *mirrors, const char *registry, const char *directory,
                                     struct pull_hosts *hosts) {
        if (!mirrors)
                return nullptr;
        if (mirrors->kind != TOML_TABLE)
                return bad_key("host", "tables: [host.\"https://mirror.example\"]");
        nd_vector_each (item, &mirrors->children) {
                if ((*item)->kind != TOML_TABLE)
                        return bad_key("host", "tables: [host.\"https://mirror.example\"]");
                if (hosts->count == HOSTS_MAX - 1)
                        return nd_error_new(ND_EXHAUSTED, 0, "more than %d hosts", HOSTS_MAX - 1);
                nd_vector_push(hosts, (struct pull_host) {});
                nd_try(nd_error_wrap(read_host(*item, (*item)->key, registry, directory, &hosts->items[hosts->count - 1]),
                                     "host '%.100s'",
                                     strchr((*item)->key, '@') ? "(an address with a user in it)" : (*item)->key));
        }
        return nullptr;
}

/* A server with the address of a mirror and no settings of its own would only repeat the mirror's
 * requests, without the mirror's certificates. The mirror takes its place, also for credentials. */
static void merge_server(struct pull_hosts *hosts) {
        struct pull_host *server = &hosts->items[hosts->count - 1];

        if (server->ca.count > 0 || server->client.count > 0 || server->headers.count > 0 || server->skip_verify)
                return;
        nd_vector_each (host, hosts) {
                if (host == server || host->skip_verify || !nd_streq(host->url, server->url) ||
                    (server->capabilities & ~host->capabilities) != 0)
                        continue;
                host->upstream = true;
                host_done(server);
                hosts->count--;
                return;
        }
}

struct nd_error *pull_hosts_parse(const char *text, size_t length, const char *registry, const char *directory,
                                  struct pull_hosts *ret) {
        nd_cleanup(pull_hosts_done) struct pull_hosts hosts = {};
        pull_autotoml struct pull_toml *root = nullptr;
        const struct pull_toml *server;

        nd_try(pull_toml_parse(text, length, &root));
        server = pull_toml_get(root, "server");
        if (server && server->kind != TOML_STRING)
                return bad_key("server", "an address");
        nd_try(read_mirrors(pull_toml_get(root, "host"), registry, directory, &hosts));
        nd_vector_push(&hosts, (struct pull_host) {.upstream = true});
        nd_try(nd_error_wrap(read_host(root, server && *server->text ? server->text : nullptr, registry, directory,
                                       &hosts.items[hosts.count - 1]),
                             "server"));
        merge_server(&hosts);
        *ret = nd_take(hosts, (struct pull_hosts) {});
        return nullptr;
}

static bool ends_with(const char *text, const char *end) {
        size_t a = strlen(text), b = strlen(end);

        return a > b && nd_streq(text + a - b, end);
}

/* Docker's layout: certificates by file names, for the registry itself. */
static struct nd_error *read_docker_files(const char *directory, const char *registry, struct pull_hosts *ret) {
        nd_cleanup(nd_dir_close) DIR *dir = opendir(directory);
        nd_cleanup(pull_hosts_done) struct pull_hosts hosts = {};
        const struct dirent *entry;
        struct pull_host *host;

        nd_vector_push(&hosts, ((struct pull_host) {.upstream = true, .capabilities = HOST_PULL | HOST_RESOLVE}));
        host = &hosts.items[0];
        while (dir && (entry = readdir(dir))) {
                if (ends_with(entry->d_name, ".crt"))
                        nd_strings_add_owned(&host->ca, nd_format("%s/%s", directory, entry->d_name));
                if (ends_with(entry->d_name, ".cert")) {
                        nd_autofree char *key =
                                nd_format("%s/%.*skey", directory, (int) strlen(entry->d_name) - 4, entry->d_name);

                        push_pair(host, entry->d_name, access(key, F_OK) == 0 ? key : nullptr, directory);
                }
        }
        nd_try(set_registry(host, registry));
        *ret = nd_take(hosts, (struct pull_hosts) {});
        return nullptr;
}

/* Follows symbolic links, since certificates may be links into /etc/ssl or a secret's directory. */
static struct nd_error *append_file(const char *path, struct nd_text *text) {
        nd_autofree char *bytes = nullptr;

        nd_try(nd_file_read_kernel(path, HOST_PEM, &bytes));
        if (!strstr(bytes, "-----BEGIN "))
                return nd_error_new(ND_INVALID, 0, "no PEM certificate or key in '%s'", path);
        nd_text_add(text, bytes);
        nd_text_add(text, "\n");
        if (text->overflow)
                return nd_error_new(ND_EXHAUSTED, EFBIG, "certificates exceed %d bytes", HOST_PEM);
        return nullptr;
}

static struct nd_error *load_certificates(struct pull_host *host) {
        nd_autotext struct nd_text ca = ND_TEXT(HOST_PEM), client = ND_TEXT(HOST_PEM);

        nd_vector_each (path, &host->ca) {
                nd_try(append_file(*path, &ca));
        }
        for (size_t i = 0; i < host->client.count && i < 2; i++) /* one pair: curl presents one */
                if (host->client.items[i])
                        nd_try(append_file(host->client.items[i], &client));
        if (ca.length > 0)
                host->ca_pem = nd_text_steal(&ca);
        if (client.length > 0)
                host->client_pem = nd_text_steal(&client);
        return nullptr;
}

/* Returns the registry's directory, in containerd's search order; nullptr when there is none. */
static char *find_directory(const char *root, const char *registry) {
        const char *colon = strrchr(registry, ':');
        nd_autofree char *escaped = colon && colon > registry
                                            ? nd_format("%s/%.*s_%s_", root, (int) (colon - registry), registry, colon + 1)
                                            : nullptr,
                         *plain = nd_format("%s/%s", root, registry), *fallback = nd_format("%s/_default", root);

        if (escaped && access(escaped, F_OK) == 0)
                return nd_take_ptr(escaped);
        if (access(plain, F_OK) == 0)
                return nd_take_ptr(plain);
        if (access(fallback, F_OK) == 0)
                return nd_take_ptr(fallback);
        return nullptr;
}

static struct nd_error *load_directory(const char *directory, const char *registry, struct pull_hosts *ret) {
        nd_autofree char *path = nd_format("%s/hosts.toml", directory), *text = nullptr;

        if (access(path, F_OK) < 0 && errno == ENOENT)
                return read_docker_files(directory, registry, ret);
        nd_try(nd_file_read_kernel(path, TOML_BYTES, &text));
        if (!*text)
                return read_docker_files(directory, registry, ret);
        return nd_error_wrap(pull_hosts_parse(text, strlen(text), registry, directory, ret), "%s", path);
}

struct nd_error *pull_hosts_load(const char *root, const char *registry, struct pull_hosts *ret) {
        nd_autofree char *directory = root && *root ? find_directory(root, registry) : nullptr;
        nd_cleanup(pull_hosts_done) struct pull_hosts hosts = {};

        if (directory) {
                nd_try(load_directory(directory, registry, &hosts));
        } else {
                nd_vector_push(&hosts, ((struct pull_host) {.upstream = true, .capabilities = HOST_PULL | HOST_RESOLVE}));
                nd_try(set_registry(&hosts.items[0], registry));
        }
        nd_vector_each (host, &hosts) {
                nd_try(nd_error_wrap(load_certificates(host), "%s", host->authority));
        }
        *ret = nd_take(hosts, (struct pull_hosts) {});
        return nullptr;
}
