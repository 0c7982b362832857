/* SPDX-License-Identifier: Apache-2.0 */
/* config.h - an image's config: what to run, and the layers' diff ids
 *
 * All of it is untrusted. Labels are data and nothing here or above acts on one; callers must
 * resolve paths and the user inside the container. The result is bounded, UTF-8, and without null
 * bytes. */
#pragma once

#include "base/strings.h"
#include "oci/digest.h"
#include "oci/platform.h"

enum {
        ND_CONFIG_CEILING = 4 << 20, /* maximum size of a config */
        /* Maximum size of one argument or variable: execve()'s limit. */
        ND_CONFIG_STRING = 128 << 10,
        ND_CONFIG_STRINGS = 10000, /* maximum number of one kind */
        ND_CONFIG_PATH = 4095,     /* maximum length of a path */
        ND_CONFIG_USER = 256,      /* maximum length of "user:group" */
};

struct nd_oci_label {
        char *key;
        char *value;
};

/* Owns everything in it. */
struct nd_oci_config {
        struct nd_platform platform;
        nd_vector(struct nd_digest) diff_ids; /* lowest first, sha256 */
        /* As in the image, "" = none; parse it with nd_oci_user_parse(). */
        char *user;
        /* "NAME=value"; entries without '=' are dropped, as containerd does not set them. */
        struct nd_strings environment;
        struct nd_strings entrypoint;
        struct nd_strings command;
        char *working_directory;   /* "" = none */
        char *stop_signal;         /* "" = none */
        struct nd_strings volumes; /* paths */
        struct nd_strings ports;   /* "80/tcp" */
        nd_vector(struct nd_oci_label) labels;
};

void nd_oci_config_done(struct nd_oci_config *config);
[[nodiscard]] struct nd_error *nd_oci_config_parse(const char *bytes, size_t length, struct nd_oci_config *ret);

/* The config of an artifact, whose own one has no meaning here: only the diff ids of its layers. */
struct nd_manifest;
void nd_oci_config_of_artifact(const struct nd_manifest *artifact, struct nd_oci_config *ret);

/* "user", "user:group", either a name or a number. Owns its strings. */
struct nd_oci_user {
        bool has_uid; /* the user is a number */
        uint32_t uid;
        bool has_gid;
        uint32_t gid;
        char *user;  /* the name, nullptr if it is a number or absent */
        char *group; /* likewise */
};

void nd_oci_user_done(struct nd_oci_user *user);

/* A number must be below 2^31: higher ones become negative, and finally 0, in one program or
 * another that handles them. A name has no control characters, no slash, and does not begin with a
 * sign. Empty text gives neither number nor name: root. */
[[nodiscard]] struct nd_error *nd_oci_user_parse(const char *text, struct nd_oci_user *ret);
