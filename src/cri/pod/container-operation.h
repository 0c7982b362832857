/* SPDX-License-Identifier: Apache-2.0 */
/* container-operation.h - operations on containers; private to container*.c
 *
 * container.c has the theory of operation and cri_container_advance(), which alone changes the step of
 * an operation. The functions of the other files compute, or start work that reports its end to
 * cri_container_advance(). */
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

/* In the order in which an operation takes them; none takes all of them. */
enum cri_container_step {
        STEP_QUEUED, /* its turn has not come */
        /* create, init */
        STEP_PREPARE, /* image, record */
        STEP_BUNDLE,  /* a worker makes the root filesystem and the spec */
        STEP_MONITOR, /* nodens-mon runs crun create */
        STEP_CREATED, /* the process is checked and recorded */
        /* start, init */
        STEP_SYNC,    /* a worker writes the record through to the disk */
        STEP_START,   /* crun start */
        STEP_STARTED, /* recorded and reported */
        /* stop */
        STEP_STOP,   /* signal or SIGKILL? */
        STEP_SIGNAL, /* the stop signal is sent, the timeout of the caller runs */
        /* stop, remove */
        STEP_KILL,   /* SIGKILL is sent */
        STEP_EXITED, /* its cleanup runs */
        /* update */
        STEP_UPDATE,  /* crun update */
        STEP_UPDATED, /* recorded */
        /* remove; and the undo of a creation, from STEP_UNDO on */
        STEP_REMOVE, /* recorded, so that a restart finishes it */
        STEP_UNDO,
        STEP_KILL_CGROUPS, /* a worker kills what still lives */
        STEP_DELETE,       /* crun delete */
        STEP_CLEAR,        /* a worker unmounts and removes the files */
        STEP_FORGET,       /* the record goes */
        STEP_END,
};

enum cri_container_input {
        INPUT_TURN,    /* the operation has the queue */
        INPUT_ENTER,   /* the step begins */
        INPUT_DONE,    /* the work of the step has ended: worker, OCI runtime or monitor */
        INPUT_CHANGE,  /* the container exited, its cleanup or its sync has ended */
        INPUT_TIMEOUT, /* the timer of the operation */
        INPUT_ABANDON, /* the caller of a creation is gone */
};

struct cri_container_operation {
        struct cri_parts *parts;
        struct cri_container
                *container; /* nullptr when a creation was refused, or the container was removed before our turn */
        enum cri_container_operation_kind kind;
        enum cri_container_step step; /* cri_container_advance() alone changes it */
        bool advancing; /* cri_container_advance() runs: an input from within is seen by the step that caused it */
        void (*done)(struct nd_error *error, struct cri_container *container, void *userdata); /* nullptr = abandoned */
        void *userdata;
        struct nd_error *error; /* the first failure, for the caller */
        bool abandoned;
        bool forgotten;         /* no record is left: the container leaves the table with the operation */
        sd_event_source *timer; /* begins it; then the timeout of a stop or kill */
        bool waited;            /* the first part of the timeout after SIGKILL is over */
        struct nd_worker *worker;
        struct cri_oci_runtime_call *call;
        int64_t timeout_s;                     /* stop */
        struct cri_resource_request resources; /* update */
        struct cri_creation *creation;         /* create; container-create.c's own */
};

struct cri_container_life {
        struct cri_parts *parts;
        struct cri_container *container;
        struct cri_container_operation *current; /* has the queue; nullptr = none */
        struct cri_oci_runtime_call *cleanup;    /* crun delete after the exit */
        struct nd_worker *sync;                  /* writes the record through to the disk */
        struct nd_error *sync_error;
        bool has_end; /* it exited during STEP_START, and end says how */
        struct cri_monitor_end end;
};

/* How long SIGKILL may take. A monitor that has not reported a dead process after the shorter time
 * hangs. */
static constexpr uint64_t cri_kill_timeout_us = 30 * ND_SECOND_US;
static constexpr uint64_t cri_monitor_timeout_us = 10 * ND_SECOND_US;

/* ---- container.c ---- */

/* Made on demand; container->release frees it. */
struct cri_container_life *cri_container_life_of(struct cri_parts *parts, struct cri_container *container);

/* Gives an operation an input, and takes it from step to step until one has to wait. Takes the
 * error, which comes with INPUT_DONE only. The operation may be gone afterwards. */
void cri_container_advance(struct cri_container_operation *operation, enum cri_container_input input, struct nd_error *error);

/* INPUT_CHANGE for the operation that has the queue, if there is one. */
void cri_container_changed(struct cri_container_life *life);

/* The inputs of the monitor; their userdata is the life. */
extern const struct cri_monitor_events cri_container_monitor_events;
void cri_container_monitor_lost(struct cri_container_life *life); /* the monitor died without reporting an exit */

/* ---- container-create.c ---- */

/* Makes the container of a creation, NEW and in the table, so that its sandbox cannot go; request
 * is taken, nullptr for the pod's init. */
[[nodiscard]] struct nd_error *cri_container_create_accept(struct cri_container_operation *operation,
                                                           struct cri_sandbox *sandbox, struct cri_container_request *request,
                                                           const char *bytes, size_t length);
[[nodiscard]] struct nd_error *cri_container_create_prepare(
        struct cri_container_operation *operation); /* finds the image, writes the record */
[[nodiscard]] struct nd_error *cri_container_create_bundle(struct cri_container_operation *operation);  /* starts work */
[[nodiscard]] struct nd_error *cri_container_create_monitor(struct cri_container_operation *operation); /* starts work */
[[nodiscard]] struct nd_error *cri_container_create_record(
        struct cri_container_operation *operation); /* checks the process; CREATED */
void cri_container_create_report(struct cri_container_operation *operation);
void cri_container_create_free(struct cri_creation *creation);

/* ---- container-start.c ---- */

[[nodiscard]] struct nd_error *cri_container_start_run(struct cri_container_operation *operation); /* starts work */
void cri_container_start_record(struct cri_container_operation *operation); /* RUNNING, or EXITED already */

/* ---- container-stop.c ---- */

bool cri_container_stop_signal(
        struct cri_container_operation *operation); /* and the timer; false = SIGKILL is all that is left */
void cri_container_stop_shorten(struct cri_container_operation *operation, int64_t timeout_s);
void cri_container_stop_kill(struct cri_container_operation *operation); /* and the timer */
/* The timer of cri_container_stop_kill(): kills a monitor that hangs, then aborts FUSE connections; at last an
 * error. */
[[nodiscard]] struct nd_error *cri_container_stop_kill_timeout(struct cri_container_operation *operation);

/* ---- container-update.c ---- */

[[nodiscard]] struct nd_error *cri_container_update_run(struct cri_container_operation *operation); /* starts work */
[[nodiscard]] struct nd_error *cri_container_update_record(struct cri_container_operation *operation);

/* ---- container-remove.c ---- */

void cri_container_remove_record(struct cri_container_operation *operation); /* REMOVED */
[[nodiscard]] bool cri_container_remove_needs_delete(const struct cri_container *container);
[[nodiscard]] struct nd_error *cri_container_remove_kill_cgroups(struct cri_container_operation *operation); /* starts work */
[[nodiscard]] struct nd_error *cri_container_remove_delete(struct cri_container_operation *operation);       /* starts work */
[[nodiscard]] struct nd_error *cri_container_remove_files(struct cri_container_operation *operation);        /* starts work */
[[nodiscard]] struct nd_error *cri_container_remove_forget(struct cri_container_operation *operation);       /* the record */
void cri_container_remove_failed(struct cri_container_operation *operation,
                                 const struct nd_error *error); /* the container stays */

/* ---- container-exit.c ---- */

void cri_container_exited(struct cri_container_life *life, const struct cri_monitor_end *end);
void cri_container_report_exit(struct cri_container_life *life); /* to the kubelet, unless it was */
/* Kills what the dead monitor leaves. Nobody knows the exit status: this one is reported. */
struct cri_monitor_end cri_container_kill_unmonitored(struct cri_container_life *life);
/* For those who have waited for the exit in vain: if the first process is dead and the monitor has
 * not said so, the monitor is killed and the container has exited. False = the process lives, or
 * the exit is known. */
bool cri_container_give_up_monitor(struct cri_container_life *life);
void cri_container_save(struct cri_parts *parts, const struct cri_container *container); /* a failure is logged */
void cri_container_sync(struct cri_container_life *life); /* a worker writes the record through to the disk */
