/* SPDX-License-Identifier: Apache-2.0 */
/* config.h - /etc/nodens/cri.yaml: checked keys, a default for each */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "base/vector.h"

#define CRI_CONFIG_PATH "/etc/nodens/cri.yaml"

enum {
        HANDLERS_MOST = 8, /* of the configuration */
};

/* What a RuntimeClass names: an OCI runtime, and how containers of it differ. */
struct cri_runtime_handler {
        char *name;
        enum cri_oci_runtime_kind { OCI_RUNTIME_CRUN, OCI_RUNTIME_RUNC } kind; /* whose command line it has */
        char *program;
        bool writable_cgroups; /* containers with a cgroup namespace may make cgroups of their own */
};

struct cri_config {
        char *socket;             /* where the kubelet connects */
        char *images;             /* the image store */
        char *certificates;       /* hosts.toml files, as containerd reads them */
        char *fetch_helper;       /* nodens-fetch */
        char *unpack_helper;      /* nodens-unpack */
        uint32_t pulls;           /* images pulled at once; more wait */
        uint32_t downloads;       /* layers of one image at once */
        uint32_t stalled_s;       /* a pull without a byte for so long ends */
        nd_vector(char *) pinned; /* images that the kubelet's garbage collection must leave alone */

        char *state;             /* what outlives the daemon: records, bundles and writable layers, in pods/ */
        char *run;               /* what ends with the boot: pins, sockets of monitors, crun's own state */
        char *netns;             /* where network namespaces are pinned, for whoever looks there */
        char *crun;              /* a path, or a name to be found in PATH; so are the others */
        char *monitor;           /* nodens-mon */
        char *init;              /* catatonit: pid 1 of a shared pid namespace */
        bool systemd_cgroups;    /* cgroupDriver: systemd; otherwise cgroupfs */
        char *cni_config;        /* conflists */
        char *cni_plugins;       /* directories, written as PATH is */
        char *seccomp_profile;   /* what RuntimeDefault means */
        char *apparmor_profiles; /* the file with our AppArmor profiles */
        nd_vector(struct cri_runtime_handler) handlers; /* besides the one that is named "" and "crun" */
        char *cdi;             /* directories with CDI files, written as PATH is; later ones go first */
        char *verifier;        /* program that must agree to a pulled image before it is recorded; "" = none */
        bool unlocked_volumes; /* read-only volumes in /dev, /proc and /sys also for containers with SYS_ADMIN in a user namespace */
        char *metrics;         /* "off", a socket's path, or "127.0.0.1:PORT" */
};

void cri_config_done(struct cri_config *config);

/* The defaults alone. */
void cri_config_init(struct cri_config *ret);

/* The handler of that name; its strings are the configuration's. False when there is none. */
[[nodiscard]] bool cri_config_handler(const struct cri_config *config, const char *name, struct cri_runtime_handler *ret);

/* Reads a file over the defaults. path nullptr = CRI_CONFIG_PATH, which may be missing. */
[[nodiscard]] struct nd_error *cri_config_read(const char *path, struct cri_config *ret);
[[nodiscard]] struct nd_error *cri_config_parse(const char *text, size_t length, struct cri_config *config);
