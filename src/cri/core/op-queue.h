/* SPDX-License-Identifier: Apache-2.0 */
/* op-queue.h - serializes operations on one sandbox or container
 *
 * The kubelet repeats a request whose deadline has passed while the first one still runs, and a
 * stop may arrive during a start. An operation that enters a free queue runs at once, otherwise
 * after the operations before it have left. */
#pragma once

#include "base/vector.h"

struct cri_op_queue_entry {
        /* the operation holds the queue until cri_op_queue_leave() */
        void (*run)(void *userdata);
        void *userdata;
};

struct cri_op_queue {
        bool taken;
        nd_vector(struct cri_op_queue_entry) waiting;
};

void cri_op_queue_enter(struct cri_op_queue *op_queue, void (*run)(void *userdata), void *userdata);
/* runs the next operation before it returns */
void cri_op_queue_leave(struct cri_op_queue *op_queue);
void cri_op_queue_done(struct cri_op_queue *op_queue);
