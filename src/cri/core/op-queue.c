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

static struct cri_op_queue_entry take_first(struct cri_op_queue *op_queue) {
        struct cri_op_queue_entry *waiting = op_queue->waiting.items, first = waiting[0];

        memmove(waiting, waiting + 1, --op_queue->waiting.count * sizeof *waiting);
        return first;
}

void cri_op_queue_leave(struct cri_op_queue *op_queue) {
        struct cri_op_queue_entry next;

        nd_assert(op_queue->taken);
        if (op_queue->waiting.count == 0) {
                op_queue->taken = false;
                return;
        }
        next = take_first(op_queue);
        next.run(next.userdata);
}

void cri_op_queue_done(struct cri_op_queue *op_queue) {
        nd_vector_done(&op_queue->waiting);
        op_queue->taken = false;
}
