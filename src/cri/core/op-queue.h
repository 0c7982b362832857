/* SPDX-License-Identifier: Apache-2.0 */
/* op-queue.h - one operation after the other on one object
 *
 * The kubelet repeats a request whose deadline has passed while the first one still runs; a stop may meet a start. Whoever enters a queue runs
 * at once when it is free, otherwise when those before have left; a turn that is given up before it came is forgotten. */
#pragma once

#include "base/vector.h"

struct cri_op_queue_entry {
        void (*run)(void *userdata); /* the queue is this one's until cri_op_queue_leave() */
        void *userdata;
};

struct cri_op_queue {
        bool taken;
        nd_vector(struct cri_op_queue_entry) waiting;
};

void cri_op_queue_enter(struct cri_op_queue *op_queue, void (*run)(void *userdata), void *userdata);
void cri_op_queue_leave(struct cri_op_queue *op_queue); /* the next one runs before this returns */
bool cri_op_queue_give_up(struct cri_op_queue *op_queue,
                          void *userdata); /* true when the turn was still waiting and is forgotten */
void cri_op_queue_done(struct cri_op_queue *op_queue);
