/* SPDX-License-Identifier: Apache-2.0 */
#include "pull/network.h"

#include <string.h>

#include "pull/jail.h"
#include "sys/file.h"

enum {
        SMALL_FILE = 256 * 1024,
        CA_BUNDLE = 4 * 1024 * 1024,
        FILES = 2 * ND_HOSTS + 16,
};

#define SYSTEM_CA "/ca/system.pem"

/* What the C library's resolver reads, as far as it is there. */
static const char *const resolver_files[] = {
        "/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/host.conf", "/etc/gai.conf",
};

/* Where distributions keep the bundle of certificate authorities. */
static const char *const bundles[] = {
        "/etc/ssl/certs/ca-certificates.crt",
        "/etc/pki/tls/certs/ca-bundle.crt",
        "/etc/ssl/ca-bundle.pem",
        "/etc/ssl/cert.pem",
};

void nd_network_done(struct nd_network *n) {
        for (size_t i = 0; i < n->hosts.count; i++) {
                free(n->ca ? n->ca[i] : nullptr);
                free(n->client ? n->client[i] : nullptr);
        }
        free(n->ca);
        free(n->client);
        nd_hosts_done(&n->hosts);
        nd_auth_free(n->auth);
}

struct nd_error *nd_network_prepare(const struct nd_request *request, struct nd_network *ret) {
        ret->auth = nd_auth_new(request->has_credentials ? &request->credentials : nullptr);
        if (request->operation == ND_PULL)
                nd_try(nd_hosts_load(request->hosts_directory, request->reference.domain, &ret->hosts));
        ret->ca = nd_calloc(ret->hosts.count + 1, sizeof *ret->ca);
        ret->client = nd_calloc(ret->hosts.count + 1, sizeof *ret->client);
        return nullptr;
}

/* Files on their way into the jail. Owns their bytes; paths too where they were made here. */
struct baggage {
        struct nd_jail_file files[FILES];
        char *bytes[FILES];
        size_t count;
};

static void baggage_done(struct baggage *b) {
        for (size_t i = 0; i < b->count; i++) {
                explicit_bzero(b->bytes[i], b->files[i].length); /* client keys are among them */
                free(b->bytes[i]);
        }
}

static void pack(struct baggage *b, const char *path, char *bytes) {
        if (b->count == FILES) {
                free(bytes);
                return;
        }
        b->files[b->count] = (struct nd_jail_file) {.path = path, .bytes = bytes, .length = strlen(bytes)};
        b->bytes[b->count++] = bytes;
}

static void pack_if_there(struct baggage *b, const char *path, const char *as, size_t ceiling, bool *ret_there) {
        nd_autoerror struct nd_error *error = nullptr;
        char *bytes = nullptr;

        error = nd_file_read_kernel(path, ceiling, &bytes);
        if (!error)
                pack(b, as, bytes);
        *ret_there = !error;
}

static void pack_hosts(struct nd_network *n, struct baggage *b, const char *system) {
        for (size_t i = 0; i < n->hosts.count; i++) {
                const struct nd_host *host = &n->hosts.items[i];

                if (host->ca_pem) {
                        n->ca[i] = nd_format("/ca/%zu.pem", i);
                        pack(b, n->ca[i], nd_format("%s\n%s", system, host->ca_pem));
                } else if (*system) {
                        n->ca[i] = nd_strdup(SYSTEM_CA);
                }
                if (host->client_pem) {
                        n->client[i] = nd_format("/client/%zu.pem", i);
                        pack(b, n->client[i], nd_strdup(host->client_pem));
                }
        }
}

struct nd_error *nd_network_jail(struct nd_network *network, int blobs_fd, int partial_fd) {
        static const char *const writable[] = {"/blobs", "/partial"};
        const struct nd_jail_mount mounts[] = {
                {.path = "/blobs", .fd = blobs_fd},
                {.path = "/partial", .fd = partial_fd},
        };
        nd_cleanup(baggage_done) struct baggage b = {};
        const char *named = getenv("SSL_CERT_FILE");
        bool there = false;

        if (network->hosts.count > 0) {
                if (named && *named)
                        pack_if_there(&b, named, SYSTEM_CA, CA_BUNDLE, &there);
                for (size_t i = 0; i < nd_count_of(bundles) && !there; i++)
                        pack_if_there(&b, bundles[i], SYSTEM_CA, CA_BUNDLE, &there);
                pack_hosts(network, &b, there ? b.bytes[0] : "");
                for (size_t i = 0; i < nd_count_of(resolver_files); i++)
                        pack_if_there(&b, resolver_files[i], resolver_files[i], SMALL_FILE, &there);
        }
        nd_try(nd_jail_root(b.files, b.count, mounts, nd_count_of(mounts)));
        return nd_jail_close_network(writable, nd_count_of(writable));
}

struct nd_error *nd_network_fetcher(struct nd_network *network, unsigned no_progress_seconds, struct nd_fetcher **ret) {
        return nd_fetcher_new(&(struct nd_fetcher_settings) {.hosts = &network->hosts,
                                                             .auth = network->auth,
                                                             .ca = (const char *const *) network->ca,
                                                             .client = (const char *const *) network->client,
                                                             .no_progress_seconds = no_progress_seconds},
                              ret);
}
