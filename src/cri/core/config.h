/* SPDX-License-Identifier: Apache-2.0 */
/* config.h - reads /etc/nodens/cri.yaml: checked keys, a default for each */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "base/vector.h"

#define CRI_CONFIG_PATH "/etc/nodens/cri.yaml"

enum {
        HANDLERS_MOST = 8, /* in the configuration */
        BRIDGE_RULES_MOST = 32,
};

/* A RuntimeClass handler: the OCI runtime it uses and how its containers differ. */
struct cri_runtime_handler {
        char *name;
        /* which command line the runtime understands */
        enum cri_oci_runtime_kind { OCI_RUNTIME_CRUN, OCI_RUNTIME_RUNC } kind;
        char *program;
        bool writable_cgroups; /* containers in a user namespace may create cgroups */
};

/* How nodens-bridge serves volumes of one type of filesystem. */
struct cri_bridge_rule {
        char *filesystem;  /* as in the mount table: "nfs4", "fuse.s3fs" */
        const char *as;    /* "root", "caller" or "owner"; nullptr = root */
        char *force_owner; /* "UID:GID", for storage without owners; nullptr = none */
};

struct cri_config {
        char *socket;        /* where the kubelet connects */
        char *images;        /* the image store */
        char *certificates;  /* hosts.toml files, as containerd reads them */
        char *fetch_helper;  /* nodens-fetch */
        char *unpack_helper; /* nodens-unpack */
        char *bridge_helper; /* nodens-bridge */
        uint32_t pulls;      /* images pulled at once; further pulls are queued */
        uint32_t downloads;  /* layers of one image downloaded at once */
        uint32_t stalled_s;  /* a pull that receives no byte for this long is aborted */
        /* images that the kubelet's garbage collection must not remove */
        nd_vector(char *) pinned;

        /* survives a reboot: records, bundles and writable layers, in pods/ */
        char *state;
        /* lost at reboot: namespace pins, monitors' sockets, crun's own state */
        char *run;
        /* network namespaces are pinned here, where ip-netns(8) and CNI tools look */
        char *netns;
        char *crun;              /* a path, or a name looked up in PATH; the same for the others */
        char *monitor;           /* nodens-mon */
        char *init;              /* catatonit: PID 1 of a shared PID namespace */
        bool systemd_cgroups;    /* cgroupDriver: systemd, or cgroupfs as in rootless nodes */
        char *cgroup_prefix;     /* of containers' scopes; agents know containers by it */
        char *runtime_name;      /* for the kubelet, and in its container IDs */
        char *cni_config;        /* conflists */
        char *cni_plugins;       /* directories, separated by colons */
        char *seccomp_profile;   /* profile for RuntimeDefault */
        char *apparmor_profiles; /* file with our AppArmor profiles */
        /* besides the default one, named "" or "crun" */
        nd_vector(struct cri_runtime_handler) handlers;
        /* directories with CDI files, separated by colons; the last one takes precedence */
        char *cdi;
        /* Devices of pods with the host's users belong to the user and group of the container's
         * security context. With a user namespace they always do. */
        bool device_ownership;
        /* Refuse containers in a user namespace whose image has a file of an owner or group that
         * the pod does not have; otherwise this is only logged. */
        bool refuse_unmapped_owners;
        /* Volumes that cannot be idmapped are served by nodens-bridge; otherwise they are
         * refused. The first rule for a filesystem counts. */
        bool bridge_volumes;
        nd_vector(struct cri_bridge_rule) bridge_rules;
        /* program that must accept a pulled image before it is recorded; "" = none */
        char *verifier;
        /* Allow read-only volumes in /dev, /proc and /sys also for containers with SYS_ADMIN in
         * a user namespace. */
        bool unlocked_volumes;
        /* socket of the broker of a rootless node, which connects pulls to registries; "" = none */
        char *pull_broker;
        /* Containers have neither cgroups of their own nor limits, for rootless nodes that may not
         * create cgroups. */
        bool without_cgroups;
        char *metrics; /* "off", a socket's path, or "127.0.0.1:PORT" */
};

void cri_config_done(struct cri_config *config);

/* Sets the defaults. */
void cri_config_init(struct cri_config *ret);

/* The engine as the configuration spells it: "crun" or "runc". */
const char *cri_config_engine_name(enum cri_oci_runtime_kind kind);

/* Finds a handler by name. @ret borrows the configuration's strings. False if there is none. */
[[nodiscard]] bool cri_config_handler(const struct cri_config *config, const char *name, struct cri_runtime_handler *ret);

/* The names of all keys, from 0; nullptr after the last one. */
[[nodiscard]] const char *cri_config_key(size_t number);

/* Sets the defaults and reads a file over them. path nullptr = CRI_CONFIG_PATH, which may be
 * missing. */
[[nodiscard]] struct nd_error *cri_config_read(const char *path, struct cri_config *ret);
/* Calls the function for every setting in use, named as in the file, in the order of nodens-cri(8).
 * Lists are joined by commas. */
void cri_config_describe(const struct cri_config *config, void (*each)(const char *name, const char *value, void *userdata),
                         void *userdata);
[[nodiscard]] struct nd_error *cri_config_parse(const char *text, size_t length, struct cri_config *config);
