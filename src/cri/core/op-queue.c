/* SPDX-License-Identifier: Apache-2.0 */
/* op-queue.c - see op-queue.h
 *
 * Theory of operation
 *   Leaving hands the queue to the first waiting operation without marking it free in between,
 *   so an operation that enters from within that turn is queued behind the others. A turn may
 *   free the object that owns the queue: the queue is not accessed after a turn has begun. */
#include "cri/core/op-queue.h"

#include <string.h>

#include "base/assert.h"

void cri_op_queue_enter(struct cri_op_queue *op_queue, void (*run)(void *userdata), void *userdata) {
        if (op_queue->taken) {
                nd_vector_push(&op_queue->waiting, ((struct cri_op_queue_entry) {.run = run, .userdata = userdata}));
                return;
        }
        op_queue->taken = true;
        run(userdata);
}

static void forget(struct cri_op_queue *op_queue, size_t position) {
        struct cri_op_queue_entry *turn = op_queue->waiting.items + position;

        memmove(turn, turn + 1, (op_queue->waiting.count - position - 1) * sizeof *turn);
        op_queue->waiting.count--;
}

void cri_op_queue_leave(struct cri_op_queue *op_queue) {
        struct cri_op_queue_entry next;

        nd_assert(op_queue->taken);
        if (op_queue->waiting.count == 0) {
                op_queue->taken = false;
                return;
        }
        next = op_queue->waiting.items[0];
        forget(op_queue, 0);
        next.run(next.userdata);
}

bool cri_op_queue_give_up(struct cri_op_queue *op_queue, void *userdata) {
        for (size_t i = 0; i < op_queue->waiting.count; i++)
                if (op_queue->waiting.items[i].userdata == userdata) {
                        forget(op_queue, i);
                        return true;
                }
        return false;
}

void cri_op_queue_done(struct cri_op_queue *op_queue) {
        nd_vector_done(&op_queue->waiting);
        op_queue->taken = false;
}
