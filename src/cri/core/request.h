/* SPDX-License-Identifier: Apache-2.0 */
/* request.h - requests of the kubelet, decoded
 *
 * Decoded once from the CRI's messages (request-decode.c), with every size bounded, and kept as
 * long as the sandbox or container lives. The values are not validated further: each module
 * checks the fields that it uses. Strings are never nullptr unless said so. */
#pragma once

#include <stdint.h>

#include "base/strings.h"
#include "base/text.h"
#include "base/vector.h"
#include "sys/userns.h"

struct cri_pair {
        char *key;
        char *value;
};
struct cri_pairs {
        struct cri_pair *items;
        size_t count;
        size_t capacity;
};
void cri_pairs_done(struct cri_pairs *list);
[[nodiscard]] bool cri_pairs_have(const struct cri_pairs *list, const char *key, const char *value);

/* The CRI's numbers. */
enum cri_namespace_mode {
        NAMESPACE_POD = 0,
        NAMESPACE_CONTAINER = 1,
        NAMESPACE_NODE = 2,
        NAMESPACE_TARGET = 3,
};

/* ---- sandbox ---- */

struct cri_port_request {
        enum { PORT_TCP = 0, PORT_UDP = 1, PORT_SCTP = 2 } protocol;
        uint16_t container;
        uint16_t host; /* never 0: decoding drops such a mapping */
        char *address; /* "" = all */
};

struct cri_sandbox_request {
        char *name;
        char *uid;
        char *namespace;
        uint32_t attempt;
        char *hostname;      /* "" for a pod on the host's network */
        char *log_directory; /* absolute, or "" */
        bool has_dns;        /* false: use the node's resolv.conf */
        struct nd_strings dns_servers, dns_searches, dns_options;
        nd_vector(struct cri_port_request) ports;
        /* stored verbatim; only the two in bandwidth.h have an effect */
        struct cri_pairs labels, annotations;
        char *cgroup_parent;      /* "" = none */
        struct cri_pairs sysctls; /* name with dots, value */
        enum cri_namespace_mode network, pid, ipc;
        bool user_namespace; /* the pod has its own user namespace; false = the host's users */
        struct nd_userns_map uids, gids;
        bool privileged;
        char *selinux_level; /* nullptr or "" = not given */
        char *runtime_handler;
};

void cri_sandbox_request_done(struct cri_sandbox_request *request);

/* Sets absent strings to "", for a request that could not be decoded. */
void cri_sandbox_request_fill(struct cri_sandbox_request *request);

/* ---- container ---- */

struct cri_mount_request {
        char *container_path;
        char *host_path; /* "" when an image is mounted */
        bool read_only;
        bool recursive_read_only;
        enum { MOUNT_PRIVATE = 0, MOUNT_HOST_TO_CONTAINER = 1, MOUNT_BIDIRECTIONAL = 2 } propagation;
        uint64_t attributes; /* MOUNT_ATTR_NOSUID, NODEV and NOEXEC, from mount_options */
        bool relabel;
        bool idmapped; /* uidMappings and gidMappings were set: one line each, below */
        struct nd_userns_map uids, gids;
        char *image; /* "" = none */
        char *image_subpath;
};

struct cri_device_request {
        char *host_path;
        char *container_path;
        char *permissions; /* of "rwm" */
};

struct cri_hugepage_limit {
        char *page_size;
        uint64_t limit;
};

/* 0 = not set, as in the CRI. */
struct cri_resource_request {
        int64_t cpu_period, cpu_quota, cpu_shares;
        int64_t memory_limit, memory_swap_limit;
        int64_t oom_score_adj;
        char *cpuset_cpus, *cpuset_mems;
        nd_vector(struct cri_hugepage_limit) hugepages;
        struct cri_pairs unified;
};
void cri_resource_request_done(struct cri_resource_request *resources);

struct cri_security_profile {
        enum { PROFILE_UNSET = -1, PROFILE_DEFAULT = 0, PROFILE_UNCONFINED = 1, PROFILE_LOCALHOST = 2 } kind;
        char *localhost; /* a path (seccomp) or a profile's name (AppArmor) */
};

/* Parts of an SELinux label; nullptr or "" = not given. */
struct cri_selinux_request {
        char *user, *role, *type, *level;
};

struct cri_container_request {
        char *name;
        uint32_t attempt;
        char *image;         /* an id or a reference */
        char *image_by_user; /* as written in the pod spec */
        struct nd_strings command, arguments;
        char *working_directory; /* "" = the image's */
        struct cri_pairs environment;
        nd_vector(struct cri_mount_request) mounts;
        nd_vector(struct cri_device_request) devices;
        struct cri_pairs labels, annotations;
        char *log_path; /* relative to the sandbox's log directory; "" = none */
        bool stdin_open, stdin_once, tty;
        struct cri_resource_request resources;
        bool privileged;
        struct nd_strings add_capabilities, drop_capabilities, ambient_capabilities;
        enum cri_namespace_mode network, pid, ipc;
        char *pid_target; /* a container's id, for NAMESPACE_TARGET */
        bool user_namespace;
        struct nd_userns_map uids, gids;
        bool has_user, has_group;
        int64_t user, group; /* as sent; the range is checked where they are used */
        char *user_name;     /* "" = none */
        nd_vector(int64_t) groups;
        bool strict_groups; /* supplementalGroupsPolicy: Strict */
        bool read_only_root;
        bool no_new_privileges;
        struct nd_strings masked_paths, read_only_paths;
        struct cri_security_profile seccomp, apparmor;
        struct cri_selinux_request selinux;
        struct nd_strings cdi_devices; /* names */
        int stop_signal;               /* Linux signal number; 0 = the image's, or SIGTERM */
};

void cri_container_request_done(struct cri_container_request *request);

/* Mount options of a volume, as the CRI and the OCI runtime name them, and the name for the option
 * with all mounts below. */
struct cri_mount_option {
        const char *name;
        const char *recursive;
        uint64_t attribute;
};
enum {
        CRI_MOUNT_OPTIONS = 3,
};
extern const struct cri_mount_option cri_mount_options[CRI_MOUNT_OPTIONS];

/* Converts a CRI signal number: the names in alphabetical order, then real-time signals; 0 is
 * "the runtime's default". -EINVAL if unknown. */
[[nodiscard]] int cri_request_signal_from_cri(int signal);
[[nodiscard]] int cri_request_signal_to_cri(int number); /* 0 if the CRI has no such signal */
