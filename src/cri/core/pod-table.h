/* SPDX-License-Identifier: Apache-2.0 */
/* pod-table.h - the sandboxes and containers of the node, as the daemon knows them
 *
 * One book for both. An object is in it from when its record is first written until the record is gone; whatever cannot be seen by the kubelet
 * yet, or any more, says so by its state. Operations on one object run one after the other (op-queue.h); lists and status never wait. */
#pragma once

#include <sys/types.h>

#include "base/map.h"
#include "cri/core/op-queue.h"
#include "cri/core/request.h"
#include "oci/digest.h"

enum {
        POD_ID = 64, /* hex digits of a sandbox's or container's id */
};

enum cri_sandbox_state {
        SANDBOX_NEW, /* being made: nobody is told of it */
        SANDBOX_READY,
        SANDBOX_NOTREADY, /* stopped, or of an earlier boot */
        SANDBOX_REMOVED,  /* being removed: nobody is told of it any more */
};

/* What has been made for a sandbox; each bit is recorded before the thing is begun and cleared after it is undone, so that a crash
 * anywhere is undone by walking them backwards. */
enum cri_sandbox_made {
        SANDBOX_MADE_NAMESPACES = 1 << 0,
        SANDBOX_MADE_FILES = 1 << 1,   /* the pod's tmpfs: hostname, resolv.conf, shm */
        SANDBOX_MADE_NETWORK = 1 << 2, /* a CNI ADD was begun: a DEL is owed */
        SANDBOX_MADE_INIT = 1 << 3,    /* catatonit, for a shared pid namespace */
};

struct cri_container;
struct cri_network_call;

/* What had been used when somebody last asked, and the rate since the time before. */
struct cri_cpu_rate {
        uint64_t used, at;   /* nanoseconds of CPU; nanoseconds since 1970, 0 = never asked */
        uint64_t nano_cores; /* nanoseconds of CPU per second */
        bool known;
};

struct cri_sandbox {
        char id[POD_ID + 1];
        struct cri_sandbox_request request;
        enum cri_sandbox_state state;
        unsigned made;
        bool this_boot;              /* otherwise nothing of it can be alive */
        uint64_t created_at;         /* nanoseconds since 1970, as everywhere */
        struct nd_strings addresses; /* of the pod's network, the primary one first */
        char *network_result;        /* network.c's own note, for DEL: configuration and result as JSON; nullptr = none */
        char *network_check; /* what CHECK found since this daemon runs: "" = all is there, nullptr = not asked; not recorded */
        struct cri_network_call *checking; /* the CHECK that runs, or nullptr: it must not keep a stop waiting */
        bool stopping;                     /* no container may be created any more; not recorded */
        uint64_t oom_kills;                /* in its cgroup, as far as they were laid to a container that has ended */
        struct cri_container *init;        /* pid namespace of the pod; nullptr = none. Not shown to the kubelet */
        nd_vector(struct cri_container *) containers;
        struct cri_cpu_rate rate;
        struct cri_op_queue op_queue;
};

enum cri_container_state {
        CONTAINER_NEW = -1, /* being made: nobody is told of it */
        CONTAINER_CREATED = 0,
        CONTAINER_RUNNING = 1,
        CONTAINER_EXITED = 2,
        CONTAINER_UNKNOWN = 3,
        CONTAINER_REMOVED = 4, /* being removed: nobody is told of it any more */
};

enum cri_container_made {
        CONTAINER_MADE_DIRECTORY = 1 << 0, /* upper, work, bundle */
        CONTAINER_MADE_ROOT = 1 << 1,      /* the mount */
        CONTAINER_MADE_ENGINE = 1 << 2,    /* crun create was begun: a delete is owed */
};

/* Who the container's process is, as seen inside. */
struct cri_container_user {
        uint32_t uid, gid;
        nd_vector(uint32_t) groups;
};

struct cri_monitor;
struct cri_container_life;

struct cri_container {
        char id[POD_ID + 1];
        struct cri_sandbox *sandbox; /* outlives its containers: it cannot go before they have gone */
        struct cri_container_request request;
        enum cri_container_state state;
        unsigned made;
        bool internal;                       /* the pod's init: no list, no status, no count */
        bool started;                        /* crun start was begun */
        bool exit_unsaved;                   /* it has ended, and the disk does not know it yet; not recorded */
        enum cri_container_state before;     /* then: the state that it ended in */
        struct nd_digest image;              /* its id; none = the image was not found again */
        struct nd_digest top;                /* the topmost layer's chain: the image store keeps it and all below for us */
        nd_vector(struct nd_digest) mounted; /* likewise of the images that are its volumes */
        char *image_reference;               /* what ContainerStatus says of it: a repo digest, or the id */
        uint64_t created_at, started_at, finished_at;
        int exit_code;
        char *reason;  /* "Completed", "Error", "OOMKilled", ...; "" = none yet */
        char *message; /* for people; "" = none */
        pid_t pid;     /* of its first process; 0 = none */
        uint64_t
                pid_birth; /* start time of that process in clock ticks (/proc/<pid>/stat, field 22), against reused numbers */
        struct cri_container_user user;
        int stop_signal;
        char *log_path;       /* absolute; "" = none */
        char *cgroup;         /* below the cgroup mount, with a leading slash; "" = none */
        char *monitor_cgroup; /* likewise, its monitor's */
        struct cri_cpu_rate rate;
        char *checks_json;               /* JSON of the checks after start; "" = not checked */
        struct cri_monitor *monitor;     /* container.c's, as is life; nullptr when none runs or we are not connected */
        struct cri_container_life *life; /* nullptr until there was an operation */
        /* container.c's: frees monitor and life; nullptr while there is neither. */
        void (*release)(struct cri_container *container);
        struct cri_op_queue op_queue;
};

struct cri_pod_table {
        struct nd_map sandboxes;  /* id -> struct cri_sandbox * */
        struct nd_map containers; /* id -> struct cri_container * */
};

void cri_sandbox_free(struct cri_sandbox *sandbox);
void cri_container_free(struct cri_container *container);

/* Whether the kubelet is told of it. */
[[nodiscard]] bool cri_sandbox_is_shown(const struct cri_sandbox *sandbox);
[[nodiscard]] bool cri_container_is_shown(const struct cri_container *container);

/* CREATED or RUNNING: there is a process, or there was one when the state was last learned. */
[[nodiscard]] bool cri_container_lives(const struct cri_container *container);

/* The state that the kubelet is told. An end that a power cut could undo has not happened yet: after it the container would be one that the node's
 * restart had ended, and a Job that was reported as done would have failed. */
[[nodiscard]] enum cri_container_state cri_container_reported_state(const struct cri_container *container);

/* An id as the kubelet or a person gives it: whole, or at least ND_ID_PREFIX digits that only one object begins with. Objects that nobody is told of
 * are not found. ND_NOT_FOUND with the kind and the id in the text. */
[[nodiscard]] struct nd_error *cri_pod_table_find_sandbox(const struct cri_pod_table *pods, const char *id,
                                                          struct cri_sandbox **ret);
[[nodiscard]] struct nd_error *cri_pod_table_find_container(const struct cri_pod_table *pods, const char *id,
                                                            struct cri_container **ret);

void cri_pod_table_add_sandbox(struct cri_pod_table *pods, struct cri_sandbox *sandbox); /* takes it */
void cri_pod_table_add_container(
        struct cri_pod_table *pods,
        struct cri_container *container); /* takes it; its sandbox and whether it is internal are set */
void cri_pod_table_drop_sandbox(struct cri_pod_table *pods,
                                struct cri_sandbox *sandbox); /* frees it; it has no container left */
void cri_pod_table_drop_container(struct cri_pod_table *pods, struct cri_container *container);
void cri_pod_table_done(struct cri_pod_table *pods);

/* A new id: 256 random bits in hex. */
void cri_pod_table_new_id(char ret[static POD_ID + 1]);
