/* SPDX-License-Identifier: Apache-2.0 */
/* hosts.h - the servers of a registry, from containerd's hosts.toml
 *
 * pull_hosts_parse() is a codec: text in, hosts out. pull_hosts_load() finds the directory of a
 * registry (host_port_, host, _default) and reads hosts.toml or, if there is none, Docker's *.crt,
 * *.cert and *.key files. It also reads the certificates, since the fetcher cannot open files of
 * the host once it is in its jail. */
#pragma once

#include "base/error.h"
#include "base/strings.h"

enum pull_host_capability {
        HOST_PULL = 1,
        HOST_RESOLVE = 2,
};

struct pull_host {
        /* scheme://host[:port]/path without a trailing slash; /<repository>/... follows */
        char *url;
        char *authority; /* host[:port], lower case */
        unsigned capabilities;
        bool skip_verify;
        bool upstream;             /* the registry itself or the `server`, not a mirror */
        struct nd_strings ca;      /* paths; after loading @ca_pem has their contents */
        struct nd_strings client;  /* pairs of paths: certificate, key */
        struct nd_strings headers; /* "Name: value" */
        unsigned dial_seconds;     /* 0 = the default */
        char *ca_pem;
        char *client_pem; /* certificate and key, concatenated */
};

enum {
        HOSTS_MAX = 32, /* limit of servers per registry */
        HOST_HEADERS = 32,
        HOST_PEM = 1024 * 1024, /* limit of certificates per server */
};

struct pull_hosts { /* see base/vector.h */
        struct pull_host *items;
        size_t count, capacity;
};

void pull_hosts_done(struct pull_hosts *hosts);

/* Parses the text of hosts.toml. Relative paths are resolved from directory. The registry itself is
 * the last server if the text names no other; a mirror with the same address takes its place. */
[[nodiscard]] struct nd_error *pull_hosts_parse(const char *text, size_t length, const char *registry, const char *directory,
                                                struct pull_hosts *ret);

/* Loads the servers of a registry. If directory is nullptr or missing, the registry itself is the
 * only one. */
[[nodiscard]] struct nd_error *pull_hosts_load(const char *directory, const char *registry, struct pull_hosts *ret);

/* "localhost", 127.0.0.0/8 or [::1], with or without a port: containerd uses plain HTTP there by
 * default. */
[[nodiscard]] bool pull_host_is_local(const char *authority);
