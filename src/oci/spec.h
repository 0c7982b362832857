/* SPDX-License-Identifier: Apache-2.0 */
/* spec.h - OCI's runtime spec (config.json), written from plain structs
 *
 * Only the parts that nodens uses. All decisions are the caller's. There is no place for
 * annotations of others, so none can reach the engine. Structs own their contents. */
#pragma once

#include <sys/types.h>

#include "base/strings.h"
#include "base/text.h"
#include "base/vector.h"
#include "sys/userns.h"

enum {
        ND_SPEC_CEILING = 16 << 20, /* maximum size of a config.json */
};

struct nd_spec_user {
        uint32_t uid, gid;
        nd_vector(uint32_t) groups;
};

struct nd_spec_limit {
        const char *type; /* "RLIMIT_NOFILE"; static */
        uint64_t hard, soft;
};

/* Bits are the kernel's numbers: 1 << CAP_CHOWN. */
struct nd_spec_capabilities {
        uint64_t bounding, effective, permitted, inheritable, ambient;
};

struct nd_spec_process {
        bool terminal;
        struct nd_spec_user user;
        struct nd_strings arguments;
        struct nd_strings environment;
        char *directory;
        struct nd_spec_capabilities capabilities;
        nd_vector(struct nd_spec_limit) limits;
        bool no_new_privileges;
        bool has_oom_score;
        int oom_score;
        char *apparmor; /* nullptr = none */
        char *selinux;  /* label; nullptr = none */
};
void nd_spec_process_done(struct nd_spec_process *process);

struct nd_spec_mount {
        char *destination;
        char *type;
        char *source;
        struct nd_strings options;
        bool idmapped;
        struct nd_userns_map uids, gids;
};

struct nd_spec_namespace {
        const char *type; /* "pid", "network", ...; static */
        char *path;       /* nullptr = a new one */
};

struct nd_spec_device {
        char *path;
        char type; /* 'c', 'b', 'p' */
        uint32_t major, minor;
        mode_t mode;
        uint32_t uid, gid;
        bool own; /* the caller makes a node for it, also where devices are bind-mounted */
};

struct nd_spec_device_rule {
        bool allow;
        char type;            /* 'a' = all */
        int64_t major, minor; /* -1 = all */
        char access[4];       /* of "rwm" */
};

struct nd_spec_page_limit {
        char *size; /* "2MB" */
        uint64_t limit;
};

struct nd_spec_setting {
        char *key;
        char *value;
};

/* 0 or nullptr = not set. */
struct nd_spec_resources {
        int64_t cpu_shares, cpu_quota, cpu_period;
        char *cpus, *memories;
        int64_t memory_limit, memory_swap; /* swap includes memory, as in OCI; -1 = no limit */
        nd_vector(struct nd_spec_page_limit) pages;
        nd_vector(struct nd_spec_setting) unified;
        nd_vector(struct nd_spec_device_rule) devices;
};
void nd_spec_resources_done(struct nd_spec_resources *resources);

/* Runs on the host at a stage of the container's life; only from files owned by root. */
struct nd_spec_hook {
        const char *stage; /* of nd_spec_hook_stage() */
        char *path;
        struct nd_strings arguments, environment;
        uint64_t timeout_s; /* 0 = none */
};
void nd_spec_hook_done(struct nd_spec_hook *hook);
/* OCI's name of a stage, static; nullptr if unknown. */
const char *nd_spec_hook_stage(const char *name);

struct nd_spec {
        struct nd_spec_process process;
        char *root;
        bool read_only_root;
        nd_vector(struct nd_spec_mount) mounts;
        nd_vector(struct nd_spec_namespace) namespaces;
        bool user_namespace; /* then uids and gids are its maps, whether it is joined or created */
        struct nd_userns_map uids, gids;
        nd_vector(struct nd_spec_device) devices;
        bool binds_devices; /* only the host's root can create devices; others bind-mount them */
        bool makes_devices; /* devices that the request names are .own */
        struct nd_spec_resources resources;
        nd_vector(struct nd_spec_hook) hooks;
        char *cgroup; /* linux.cgroupsPath, as the engine's cgroup manager expects it */
        /* With crun and systemd: the process runs in the scope itself, not in a cgroup below it. */
        bool no_subgroup;
        /* With crun: a cgroup below the container's, in which the process starts. The container's
         * own cgroup, the root of the cgroup namespace, then has no process. nullptr = none. */
        char *leaf_cgroup;
        struct nd_strings masked, read_only;
        /* Of the root: "rprivate", "rslave", "rshared"; nullptr = the engine's default. Static. */
        const char *propagation;
        char *seccomp;     /* JSON of linux.seccomp; nullptr = none */
        char *mount_label; /* SELinux label of the engine's mounts; nullptr = none */
};
void nd_spec_done(struct nd_spec *spec);

/* Fails only if the text would be too long. */
[[nodiscard]] struct nd_error *nd_spec_format(const struct nd_spec *spec, struct nd_text *ret);
[[nodiscard]] struct nd_error *nd_spec_resources_format(const struct nd_spec_resources *resources, struct nd_text *ret);

/* Adds a mount and returns it, so that options can be added. type nullptr = "bind". */
struct nd_spec_mount *nd_spec_add_mount(struct nd_spec *spec, const char *destination, const char *type, const char *source);
void nd_spec_mount_option(struct nd_spec_mount *mount, const char *option);
/* Adds a device of the host; takes over its path. Where devices are bind-mounted, the engine does
 * that from the same path; for another path a mount is added, which must come after that of
 * /dev. */
void nd_spec_add_device(struct nd_spec *spec, const char *host, const struct nd_spec_device *device);
void nd_spec_bind_device(struct nd_spec *spec, const char *host, const char *path);
/* Path nullptr = a new one. */
void nd_spec_add_namespace(struct nd_spec *spec, const char *type, const char *path);

/* "CAP_CHOWN" of 0; nullptr for an unknown number. */
const char *nd_spec_capability_name(unsigned number);

/* The number of a name, with or without "CAP_", in any case; -1 if unknown. */
int nd_spec_capability_parse(const char *name);
