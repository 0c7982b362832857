/* SPDX-License-Identifier: Apache-2.0 */
/* pod-table.h - table of the node's sandboxes and containers
 *
 * An object is in the table from when its record is first written until the record is removed.
 * Its state says whether the kubelet sees it: objects that are being created or removed are not
 * listed. Operations on one object are serialized (op-queue.h); lists and status never wait. */
#pragma once

#include <sys/types.h>

#include "base/map.h"
#include "cri/core/op-queue.h"
#include "cri/core/request.h"
#include "oci/digest.h"

enum {
        POD_ID = 64, /* hex digits of a sandbox or container id */
};

enum cri_sandbox_state {
        SANDBOX_NEW, /* being created; not listed yet */
        SANDBOX_READY,
        SANDBOX_NOTREADY, /* stopped, or from an earlier boot */
        SANDBOX_REMOVED,  /* being removed; no longer listed */
};

/* What has been set up for a sandbox. A bit is recorded before the step begins and cleared after
 * it is undone, so after a crash at any point it is enough to undo the set bits in reverse
 * order. */
enum cri_sandbox_made {
        SANDBOX_MADE_NAMESPACES = 1 << 0,
        SANDBOX_MADE_FILES = 1 << 1,   /* the pod's tmpfs: hostname, resolv.conf, shm */
        SANDBOX_MADE_NETWORK = 1 << 2, /* CNI ADD was started: DEL must follow */
        SANDBOX_MADE_INIT = 1 << 3,    /* catatonit, for a shared PID namespace */
};

struct cri_container;
struct cri_network_call;

/* CPU time at the last query, and the rate since the query before it. */
struct cri_cpu_rate {
        uint64_t used, at;   /* nanoseconds of CPU; nanoseconds since 1970, 0 = never queried */
        uint64_t nano_cores; /* nanoseconds of CPU per second */
        bool known;
};

struct cri_sandbox {
        char id[POD_ID + 1];
        struct cri_sandbox_request request;
        enum cri_sandbox_state state;
        unsigned made;
        /* false: an earlier boot's, so none of its processes is alive */
        bool this_boot;
        uint64_t created_at;         /* nanoseconds since 1970, as all times */
        struct nd_strings addresses; /* pod IP addresses, the primary one first */
        /* network.c's note for DEL: configuration and result as JSON; nullptr = none */
        char *network_result;
        /* Result of CHECK since the daemon started: "" = passed, nullptr = not run; not
         * recorded. */
        char *network_check;
        /* running CHECK or nullptr; a stop must not wait for it */
        struct cri_network_call *checking;
        bool stopping; /* no container may be created any more; not recorded */
        /* in its cgroup, already attributed to a container that has exited */
        uint64_t oom_kills;
        /* holds the pod's PID namespace; nullptr = none. Not shown to the kubelet */
        struct cri_container *init;
        nd_vector(struct cri_container *) containers;
        struct cri_cpu_rate rate;
        struct cri_op_queue op_queue;
};

enum cri_container_state {
        CONTAINER_NEW = -1, /* being created; not listed yet */
        CONTAINER_CREATED = 0,
        CONTAINER_RUNNING = 1,
        CONTAINER_EXITED = 2,
        CONTAINER_UNKNOWN = 3,
        CONTAINER_REMOVED = 4, /* being removed; no longer listed */
};

enum cri_container_made {
        CONTAINER_MADE_DIRECTORY = 1 << 0, /* upper, work, bundle */
        CONTAINER_MADE_ROOT = 1 << 1,      /* the root filesystem's mount */
        CONTAINER_MADE_ENGINE = 1 << 2,    /* crun create was started: delete must follow */
};

/* User and groups of the container's process, as seen inside. */
struct cri_container_user {
        uint32_t uid, gid;
        nd_vector(uint32_t) groups;
};

/* How a volume's owners become IDs of the pod. */
enum cri_mapping {
        MAPPING_UNKNOWN, /* an image, or a record of an older version */
        MAPPING_NONE,    /* as it is */
        MAPPING_IDMAPPED,
        MAPPING_CHOWNED, /* files of a rootless node's pod got its IDs */
        MAPPING_BRIDGED, /* served by nodens-bridge */
};

enum {
        FILESYSTEM_NAME = 32, /* size of a type of filesystem; longer ones are cut */
};

/* The mapping of one mount; also in memory that is shared with workers. */
struct cri_mount_mapping {
        enum cri_mapping how;
        char filesystem[FILESYSTEM_NAME]; /* of a bridged volume, as in the mount table; else "" */
};

struct cri_monitor;
struct cri_container_life;

struct cri_container {
        char id[POD_ID + 1];
        struct cri_sandbox *sandbox; /* outlives its containers */
        struct cri_container_request request;
        enum cri_container_state state;
        unsigned made;
        bool internal;                   /* the pod's init: in no list, status or count */
        bool started;                    /* crun start was called */
        bool exit_unsaved;               /* the exit is not on disk yet; not recorded */
        enum cri_container_state before; /* with exit_unsaved: the state before the exit */
        /* image id; none = the image was not found at restart */
        struct nd_digest image;
        /* Chain of the topmost layer; the image store keeps it and all layers below while we use
         * it. */
        struct nd_digest top;
        nd_vector(struct nd_digest) mounted; /* the same for images mounted as volumes */
        /* for ContainerStatus: a repo digest, or the image id */
        char *image_reference;
        uint64_t created_at, started_at, finished_at;
        int exit_code;
        char *reason;  /* "Completed", "Error", "OOMKilled", ...; "" = none yet */
        char *message; /* human-readable; "" = none */
        pid_t pid;     /* of its init process; 0 = none */
        /* Start time of that process in clock ticks (/proc/<pid>/stat, field 22): detects a
         * reused PID. */
        uint64_t pid_birth;
        struct cri_container_user user;
        /* by the number of the mount in the request; fewer = not known */
        nd_vector(struct cri_mount_mapping) mappings;
        /* A file of the image and its owner on the host, for verify.c; nullptr = not known, as
         * after a restart. */
        const char *image_file;
        uid_t image_owner;
        int stop_signal;
        char *log_path;       /* absolute; "" = none */
        char *cgroup;         /* below the cgroup mount, with a leading slash; "" = none */
        char *monitor_cgroup; /* the same for its monitor */
        struct cri_cpu_rate rate;
        /* results of the checks after start, as JSON; "" = not checked */
        char *checks_json;
        /* owned by container.c, as is life; nullptr if none runs or we are not connected */
        struct cri_monitor *monitor;
        struct cri_container_life *life; /* nullptr before the first operation */
        /* Set by container.c: frees monitor and life; nullptr while there is neither. */
        void (*release)(struct cri_container *container);
        struct cri_op_queue op_queue;
};

struct cri_pod_table {
        struct nd_map sandboxes;  /* id -> struct cri_sandbox * */
        struct nd_map containers; /* id -> struct cri_container * */
};

void cri_sandbox_free(struct cri_sandbox *sandbox);
void cri_container_free(struct cri_container *container);

/* The mapping of a mount of the request, by its number. */
[[nodiscard]] struct cri_mount_mapping cri_container_mapping(const struct cri_container *container, size_t mount);

/* Whether the kubelet sees it. */
[[nodiscard]] bool cri_sandbox_is_shown(const struct cri_sandbox *sandbox);
[[nodiscard]] bool cri_container_is_shown(const struct cri_container *container);

/* CREATED or RUNNING: it has a process, or had one when the state was last updated. */
[[nodiscard]] bool cri_container_lives(const struct cri_container *container);

/* The state reported to the kubelet. An exit is reported only after it is on disk: a power cut
 * could undo it, the container would then count as killed by the reboot, and a Job already
 * reported as complete would have failed. */
[[nodiscard]] enum cri_container_state cri_container_reported_state(const struct cri_container *container);

/* Finds an object by its full id or by a unique prefix of at least ND_ID_PREFIX digits. Objects
 * that are not listed are not found. ND_NOT_FOUND names the kind and the id. */
[[nodiscard]] struct nd_error *cri_pod_table_find_sandbox(const struct cri_pod_table *pods, const char *id,
                                                          struct cri_sandbox **ret);
[[nodiscard]] struct nd_error *cri_pod_table_find_container(const struct cri_pod_table *pods, const char *id,
                                                            struct cri_container **ret);
/* ND_PRECONDITION if the container is not running. */
[[nodiscard]] struct nd_error *cri_pod_table_find_running(const struct cri_pod_table *pods, const char *id,
                                                          struct cri_container **ret);

/* Counts the objects that are listed. */
void cri_pod_table_count(const struct cri_pod_table *pods, size_t *ret_sandboxes, size_t *ret_containers);

/* Both take ownership. A container's sandbox and internal flag must be set. */
void cri_pod_table_add_sandbox(struct cri_pod_table *pods, struct cri_sandbox *sandbox);
void cri_pod_table_add_container(struct cri_pod_table *pods, struct cri_container *container);
/* Frees the sandbox, which has no containers left. */
void cri_pod_table_drop_sandbox(struct cri_pod_table *pods, struct cri_sandbox *sandbox);
void cri_pod_table_drop_container(struct cri_pod_table *pods, struct cri_container *container);
void cri_pod_table_done(struct cri_pod_table *pods);

/* A new id: 256 random bits in hex. */
void cri_pod_table_new_id(char ret[static POD_ID + 1]);
