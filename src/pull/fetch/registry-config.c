/* SPDX-License-Identifier: Apache-2.0 */
#include "pull/fetch/registry-config.h"

#include <string.h>

#include "pull/jail/jail.h"
#include "sys/file.h"

enum {
        SMALL_FILE = 256 * 1024,
        CA_BUNDLE = 4 * 1024 * 1024,
        FILES = 2 * HOSTS_MAX + 16,
};

#define SYSTEM_CA "/ca/system.pem"

/* Files that the C library's resolver reads, if they exist. */
static const char *const resolver_files[] = {
        "/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/host.conf", "/etc/gai.conf",
};

/* Where distributions install the bundle of CA certificates. */
static const char *const bundles[] = {
        "/etc/ssl/certs/ca-certificates.crt",
        "/etc/pki/tls/certs/ca-bundle.crt",
        "/etc/ssl/ca-bundle.pem",
        "/etc/ssl/cert.pem",
};

void pull_registry_config_done(struct pull_registry_config *n) {
        for (size_t i = 0; i < n->hosts.count; i++) {
                free(n->ca ? n->ca[i] : nullptr);
                free(n->client ? n->client[i] : nullptr);
        }
        free(n->ca);
        free(n->client);
        pull_hosts_done(&n->hosts);
        pull_auth_free(n->auth);
}

struct nd_error *pull_registry_config_load(const struct pull_request *request, struct pull_registry_config *ret) {
        ret->auth = pull_auth_new(request->has_credentials ? &request->credentials : nullptr);
        if (request->operation == OPERATION_PULL)
                nd_try(pull_hosts_load(request->hosts_directory, request->reference.domain, &ret->hosts));
        ret->ca = nd_calloc(ret->hosts.count + 1, sizeof *ret->ca);
        ret->client = nd_calloc(ret->hosts.count + 1, sizeof *ret->client);
        return nullptr;
}

/* Files to copy into the jail. Owns their contents, and paths that were built here. */
struct jail_files {
        struct pull_jail_file files[FILES];
        char *bytes[FILES];
        size_t count;
};

static void jail_files_done(struct jail_files *b) {
        for (size_t i = 0; i < b->count; i++) {
                explicit_bzero(b->bytes[i], b->files[i].length); /* client keys are among them */
                free(b->bytes[i]);
        }
}

static void add_file(struct jail_files *b, const char *path, char *bytes) {
        if (b->count == FILES) {
                free(bytes);
                return;
        }
        b->files[b->count] = (struct pull_jail_file) {.path = path, .bytes = bytes, .length = strlen(bytes)};
        b->bytes[b->count++] = bytes;
}

static void add_file_if_exists(struct jail_files *b, const char *path, const char *as, size_t ceiling, bool *ret_there) {
        nd_autoerror struct nd_error *error = nullptr;
        char *bytes = nullptr;

        error = nd_file_read_kernel(path, ceiling, &bytes);
        if (!error)
                add_file(b, as, bytes);
        *ret_there = !error;
}

static void add_certificates(struct pull_registry_config *n, struct jail_files *b, const char *system) {
        for (size_t i = 0; i < n->hosts.count; i++) {
                const struct pull_host *host = &n->hosts.items[i];

                if (host->ca_pem) {
                        n->ca[i] = nd_format("/ca/%zu.pem", i);
                        add_file(b, n->ca[i], nd_format("%s\n%s", system, host->ca_pem));
                } else if (*system) {
                        n->ca[i] = nd_strdup(SYSTEM_CA);
                }
                if (host->client_pem) {
                        n->client[i] = nd_format("/client/%zu.pem", i);
                        add_file(b, n->client[i], nd_strdup(host->client_pem));
                }
        }
}

struct nd_error *pull_registry_config_enter_jail(struct pull_registry_config *config, int blobs_fd, int partial_fd) {
        static const char *const writable[] = {"/blobs", "/partial"};
        const struct pull_jail_mount mounts[] = {
                {.path = "/blobs", .fd = blobs_fd},
                {.path = "/partial", .fd = partial_fd},
        };
        nd_cleanup(jail_files_done) struct jail_files b = {};
        const char *named = getenv("SSL_CERT_FILE");
        bool there = false;

        if (config->hosts.count > 0) {
                if (named && *named)
                        add_file_if_exists(&b, named, SYSTEM_CA, CA_BUNDLE, &there);
                for (size_t i = 0; i < nd_count_of(bundles) && !there; i++)
                        add_file_if_exists(&b, bundles[i], SYSTEM_CA, CA_BUNDLE, &there);
                add_certificates(config, &b, there ? b.bytes[0] : "");
                for (size_t i = 0; i < nd_count_of(resolver_files); i++)
                        add_file_if_exists(&b, resolver_files[i], resolver_files[i], SMALL_FILE, &there);
        }
        nd_try(pull_jail_set_root(b.files, b.count, mounts, nd_count_of(mounts)));
        return pull_jail_enter_fetcher(writable, nd_count_of(writable));
}

struct nd_error *pull_registry_config_fetcher(struct pull_registry_config *config, unsigned no_progress_seconds, int broker,
                                              struct pull_fetcher **ret) {
        return pull_fetcher_new(&(struct pull_fetcher_settings) {.broker = broker,
                                                                 .hosts = &config->hosts,
                                                                 .auth = config->auth,
                                                                 .ca = (const char *const *) config->ca,
                                                                 .client = (const char *const *) config->client,
                                                                 .no_progress_seconds = no_progress_seconds},
                                ret);
}
