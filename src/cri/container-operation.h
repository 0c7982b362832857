/* SPDX-License-Identifier: Apache-2.0 */
/* container-operation.h - how an operation on a container goes: shared by container.c, container-create.c, container-remove.c and container-exit.c, and by nobody else */
#pragma once

#include "cri/bundle.h"
#include "cri/container.h"
#include "cri/runtime.h"
#include "cri/engine.h"
#include "cri/monitor.h"
#include "sys/worker.h"

enum operation_kind {
        OPERATION_CREATE,
        OPERATION_INIT, /* create and start, for the pod's init */
        OPERATION_START,
        OPERATION_STOP,
        OPERATION_UPDATE,
        OPERATION_REMOVE,
};

enum operation_step {
        STEP_BEGIN,
        STEP_BUNDLE,  /* create: the worker */
        STEP_MONITOR, /* create: nodens-mon and crun create */
        STEP_SYNC,    /* start: the record is on its way to the disk */
        STEP_ENGINE,  /* start, update: crun */
        STEP_SIGNAL,  /* stop: the stop signal is out */
        STEP_KILL,    /* stop, remove: SIGKILL is out */
        STEP_QUELL,   /* remove, undo: the worker that ends whatever still lives */
        STEP_DELETE,  /* remove, undo: crun delete */
        STEP_CLEAR,   /* remove, undo: the worker */
};

struct container_operation {
        struct runtime *daemon;
        struct container *container; /* nullptr when a creation was refused, or it was removed before our turn */
        enum operation_kind kind;
        enum operation_step step;
        container_callback done; /* nullptr = abandoned */
        void *userdata;
        struct nd_error *error; /* why a creation is undone */
        bool abandoned;
        sd_event_source *timer; /* begins it; then the stop's patience */
        bool waited;            /* the first part of the patience after SIGKILL is over */
        struct nd_worker *worker;
        struct engine_call *call;
        int64_t timeout_s;                 /* stop */
        struct resource_request resources; /* update */
        struct creation *creation;         /* create; container-create.c's own */
};

/* What goes on with a container beside the operations: its monitor's events, and the clearing up after its end. */
struct container_life {
        struct runtime *daemon;
        struct container *container;
        struct container_operation *current; /* has the lane; nullptr = none */
        struct engine_call *cleanup;         /* crun delete after the end */
        struct nd_worker *sync;              /* puts the record where a power cut does not reach it; a start waits for that */
        struct nd_error *sync_error;
        bool has_end; /* it ended while it was still being started */
        struct monitor_end end;
};

struct container_life *life_of(struct runtime *daemon, struct container *container);

/* The end of an operation: callback, then the lane goes to the next. Takes the error, frees the operation. */
void operation_finish(struct container_operation *operation, struct nd_error *error);

/* How long a stop waits for its signal, or a kill for its effect; the time goes to SIGKILL, or to an error. */
enum {
        KILL_PATIENCE_S = 30,    /* SIGKILL takes as long as the kernel needs to let go of a process */
        MONITOR_PATIENCE_S = 10, /* a monitor that has not told of a dead process by then hangs */
};
void operation_patience(struct container_operation *operation, uint64_t seconds);
void operation_kill(struct container_operation *operation); /* goes to STEP_KILL: SIGKILL, and that patience */

/* Makes the container of a creation, NEW and in the book, so that its sandbox cannot go; request is taken, nullptr for the pod's init. */
[[nodiscard]] struct nd_error *creation_accept(struct container_operation *operation, struct sandbox *sandbox,
                                               struct container_request *request, const char *bytes, size_t length);

/* Each moves an operation of its kind to its next step, from its turn on. */
void creation_begin(struct container_operation *operation);
void creation_abandon(struct container_operation *operation);
void creation_created(struct container_operation *operation, pid_t pid, uint64_t birth);
void creation_failed(struct container_operation *operation, struct nd_error *error); /* takes the error */
void creation_free(struct creation *creation);
void removal_begin(struct container_operation *operation);
void removal_ended(struct container_operation *operation);                        /* the container runs no more */
void removal_undo(struct container_operation *operation, struct nd_error *error); /* of a creation; takes the error */
void start_begin(struct container_operation *operation);                          /* also the second half of the pod's init */
void stop_ended(struct container_operation *operation);

/* The container's process was seen to end; container-exit.c. */
extern const struct monitor_events container_monitor_events;
void container_ended(struct container_life *life, const struct monitor_end *end);
void container_save(struct runtime *daemon, const struct container *container); /* what fails is logged */
/* For who has waited for the end in vain: if the first process is dead and the monitor has not said so, the monitor hangs. It is killed, and the container has
 * ended. False = the process lives. */
bool container_give_up_monitor(struct container_life *life);
void container_tell_end(struct container_life *life); /* from now on the kubelet knows of it */
void container_sync(struct container_life *life);     /* makes the record survive the machine, sooner or later */
