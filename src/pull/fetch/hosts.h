/* SPDX-License-Identifier: Apache-2.0 */
/* hosts.h - which servers answer for a registry's name, as containerd's hosts.toml says it
 *
 * pull_hosts_parse() is a codec: text in, hosts out. pull_hosts_load() finds the directory of a registry (host_port_, host, _default),
 * reads hosts.toml or, where there is none, Docker's *.crt, *.cert and *.key files, and reads the certificates, since nothing of
 * the machine can be opened any more once the network's side is in its jail. */
#pragma once

#include "base/error.h"
#include "base/strings.h"

enum pull_host_capability {
        HOST_PULL = 1,
        HOST_RESOLVE = 2,
};

struct pull_host {
        char *url;       /* scheme://host[:port]/path without a slash at the end; what comes next is /<repository>/... */
        char *authority; /* host[:port], lower case */
        unsigned capabilities;
        bool skip_verify;
        bool upstream;             /* the registry itself or what `server` names, not a mirror */
        struct nd_strings ca;      /* paths; after loading @ca_pem has their contents */
        struct nd_strings client;  /* pairs of paths: certificate, key */
        struct nd_strings headers; /* "Name: value" */
        unsigned dial_seconds;     /* 0 = the default */
        char *ca_pem;
        char *client_pem; /* certificate and key, one after the other */
};

enum {
        HOSTS_MAX = 32, /* most servers for one registry */
        HOST_HEADERS = 32,
        HOST_PEM = 1024 * 1024, /* most bytes of certificates for one server */
};

struct pull_hosts { /* see base/vector.h */
        struct pull_host *items;
        size_t count, capacity;
};

void pull_hosts_done(struct pull_hosts *hosts);

/* hosts.toml's text. Relative paths in it are taken from directory. The registry's name gives the last server where the text does not. */
[[nodiscard]] struct nd_error *pull_hosts_parse(const char *text, size_t length, const char *registry, const char *directory,
                                                struct pull_hosts *ret);

/* The servers for a registry; directory may be nullptr or missing, the registry itself is the only one then. */
[[nodiscard]] struct nd_error *pull_hosts_load(const char *directory, const char *registry, struct pull_hosts *ret);

/* "localhost", 127.0.0.0/8 or [::1], with or without a port: where containerd takes plain HTTP for granted. */
[[nodiscard]] bool pull_host_is_local(const char *authority);
