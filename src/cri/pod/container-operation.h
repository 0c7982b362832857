/* SPDX-License-Identifier: Apache-2.0 */
/* container-operation.h - operations on containers; private to container*.c
 *
 * container.c has the theory of operation and cri_container_advance(), which alone changes the step
 * of an operation. The functions of the other files compute, or start work that reports its
 * completion to cri_container_advance(). */
#pragma once

#include "base/clock.h"
#include "cri/core/parts.h"
#include "cri/core/pod-table.h"
#include "cri/oci-runtime/monitor.h"
#include "cri/oci-runtime/oci-runtime.h"
#include "sys/worker.h"

enum cri_container_operation_kind {
        OPERATION_CREATE,
        OPERATION_INIT, /* create and start, for the pod's init */
        OPERATION_START,
        OPERATION_STOP,
        OPERATION_UPDATE,
        OPERATION_REMOVE,
};

/* In the order in which an operation takes them; no operation takes all of them. */
enum cri_container_step {
        STEP_QUEUED, /* waiting in the queue */
        /* create, init */
        STEP_PREPARE, /* image, record */
        STEP_BUNDLE,  /* a worker builds the root filesystem and the spec */
        STEP_MONITOR, /* nodens-mon runs crun create */
        STEP_CREATED, /* the process is checked and recorded */
        /* start, init */
        STEP_SYNC,    /* a worker syncs the record to disk */
        STEP_START,   /* crun start */
        STEP_STARTED, /* recorded and reported */
        /* stop */
        STEP_STOP,   /* signal or SIGKILL? */
        STEP_SIGNAL, /* the stop signal is sent, the caller's timeout runs */
        /* stop, remove */
        STEP_KILL,   /* SIGKILL is sent */
        STEP_EXITED, /* its cleanup runs */
        /* update */
        STEP_UPDATE,  /* crun update */
        STEP_UPDATED, /* recorded */
        /* remove; and the undo of a creation, from STEP_UNDO on */
        STEP_REMOVE, /* recorded, so that a restart finishes it */
        STEP_UNDO,
        STEP_KILL_CGROUPS, /* a worker kills the remaining processes */
        STEP_DELETE,       /* crun delete */
        STEP_CLEAR,        /* a worker unmounts and removes the files */
        STEP_FORGET,       /* the record is removed */
        STEP_END,
};

enum cri_container_input {
        INPUT_TURN,    /* the operation is at the head of the queue */
        INPUT_ENTER,   /* the step begins */
        INPUT_DONE,    /* the step's work has completed: worker, OCI runtime or monitor */
        INPUT_CHANGE,  /* the container exited, or its cleanup or sync has completed */
        INPUT_TIMEOUT, /* the timer of the operation expired */
        INPUT_ABANDON, /* the caller of a creation has gone */
};

struct cri_container_operation {
        struct cri_parts *parts;
        /* nullptr if a creation was refused, or the container was removed before our turn */
        struct cri_container *container;
        enum cri_container_operation_kind kind;
        enum cri_container_step step; /* changed by cri_container_advance() only */
        /* cri_container_advance() is running: the step that causes an input handles it */
        bool advancing;
        /* nullptr = abandoned */
        void (*done)(struct nd_error *error, struct cri_container *container, void *userdata);
        void *userdata;
        struct nd_error *error; /* the first error, for the caller */
        bool abandoned;
        /* the record is removed: the container leaves the table with the operation */
        bool forgotten;
        sd_event_source *timer; /* starts the operation; then the timeout of a stop or kill */
        bool waited;            /* the first part of the timeout after SIGKILL has expired */
        struct nd_worker *worker;
        struct cri_oci_runtime_call *call;
        int64_t timeout_s;                     /* stop */
        struct cri_resource_request resources; /* update */
        struct cri_creation *creation;         /* create; private to container-create.c */
};

struct cri_container_life {
        struct cri_parts *parts;
        struct cri_container *container;
        struct cri_container_operation *current; /* at the head of the queue; nullptr = none */
        struct cri_oci_runtime_call *cleanup;    /* crun delete after the exit */
        struct nd_worker *sync;                  /* syncs the record to disk */
        struct nd_error *sync_error;
        bool has_end; /* it exited during STEP_START; the status is in end */
        struct cri_monitor_end end;
};

/* Timeout after SIGKILL. A monitor that has not reported a dead process after the shorter time
 * hangs. */
static constexpr uint64_t cri_kill_timeout_us = 30 * ND_SECOND_US;
static constexpr uint64_t cri_monitor_timeout_us = 10 * ND_SECOND_US;

/* ---- container.c ---- */

/* Created on demand; container->release frees it. */
struct cri_container_life *cri_container_life_of(struct cri_parts *parts, struct cri_container *container);

/* Passes an input to an operation and advances it until a step has to wait. Takes the error, which
 * comes with INPUT_DONE only. May free the operation. */
void cri_container_advance(struct cri_container_operation *operation, enum cri_container_input input, struct nd_error *error);

/* INPUT_CHANGE for the operation that has the queue, if there is one. */
void cri_container_changed(struct cri_container_life *life);

/* The inputs of the monitor; their userdata is the life. */
extern const struct cri_monitor_events cri_container_monitor_events;
/* the monitor died without reporting an exit */
void cri_container_monitor_lost(struct cri_container_life *life);

/* ---- container-create.c ---- */

/* Creates the container object, NEW and in the table, so that its sandbox is kept. Takes the
 * request; nullptr for the pod's init. */
[[nodiscard]] struct nd_error *cri_container_create_accept(struct cri_container_operation *operation,
                                                           struct cri_sandbox *sandbox, struct cri_container_request *request,
                                                           const char *bytes, size_t length);
[[nodiscard]] struct nd_error *cri_container_create_prepare(
        struct cri_container_operation *operation); /* finds the image, writes the record */
/* starts work */
[[nodiscard]] struct nd_error *cri_container_create_bundle(struct cri_container_operation *operation);
/* starts work */
[[nodiscard]] struct nd_error *cri_container_create_monitor(struct cri_container_operation *operation);
[[nodiscard]] struct nd_error *cri_container_create_record(
        struct cri_container_operation *operation); /* checks the process; CREATED */
void cri_container_create_report(struct cri_container_operation *operation);
void cri_container_create_free(struct cri_creation *creation);

/* ---- container-start.c ---- */

/* starts work */
[[nodiscard]] struct nd_error *cri_container_start_run(struct cri_container_operation *operation);
/* RUNNING, or EXITED already */
void cri_container_start_record(struct cri_container_operation *operation);

/* ---- container-stop.c ---- */

/* and starts the timer; false = go on to SIGKILL */
bool cri_container_stop_signal(struct cri_container_operation *operation);
void cri_container_stop_shorten(struct cri_container_operation *operation, int64_t timeout_s);
void cri_container_stop_kill(struct cri_container_operation *operation); /* and starts the timer */
/* Handles the timer of cri_container_stop_kill(): kills a hanging monitor, then aborts FUSE
 * connections, finally returns an error. */
[[nodiscard]] struct nd_error *cri_container_stop_kill_timeout(struct cri_container_operation *operation);

/* ---- container-update.c ---- */

/* starts work */
[[nodiscard]] struct nd_error *cri_container_update_run(struct cri_container_operation *operation);
[[nodiscard]] struct nd_error *cri_container_update_record(struct cri_container_operation *operation);

/* ---- container-remove.c ---- */

void cri_container_remove_record(struct cri_container_operation *operation); /* REMOVED */
[[nodiscard]] bool cri_container_remove_needs_delete(const struct cri_container *container);
/* starts work */
[[nodiscard]] struct nd_error *cri_container_remove_kill_cgroups(struct cri_container_operation *operation);
/* starts work */
[[nodiscard]] struct nd_error *cri_container_remove_delete(struct cri_container_operation *operation);
/* starts work */
[[nodiscard]] struct nd_error *cri_container_remove_files(struct cri_container_operation *operation);
/* the record */
[[nodiscard]] struct nd_error *cri_container_remove_forget(struct cri_container_operation *operation);
void cri_container_remove_failed(struct cri_container_operation *operation,
                                 const struct nd_error *error); /* the container is kept */

/* ---- container-exit.c ---- */

void cri_container_exited(struct cri_container_life *life, const struct cri_monitor_end *end);
void cri_container_report_exit(struct cri_container_life *life); /* to the kubelet, once */
/* Kills the processes of a dead monitor. The exit status is unknown; the returned one is
 * reported. */
struct cri_monitor_end cri_container_kill_unmonitored(struct cri_container_life *life);
/* Called when an exit is overdue. If the first process is dead and the monitor has not reported it,
 * kills the monitor and treats the container as exited. False = the process is alive, or the exit
 * is known. */
bool cri_container_give_up_monitor(struct cri_container_life *life);
/* logs a failure */
void cri_container_save(struct cri_parts *parts, const struct cri_container *container);
/* starts a worker that syncs the record to disk */
void cri_container_sync(struct cri_container_life *life);
