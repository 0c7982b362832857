/* SPDX-License-Identifier: Apache-2.0 */
/* queue.h - one operation after the other on one object
 *
 * The kubelet repeats a request whose deadline has passed while the first one still runs; a stop may meet a start. Whoever enters a queue runs
 * at once when it is free, otherwise when those before have left; a turn that is given up before it came is forgotten. */
#pragma once

#include "base/vector.h"

struct lane_turn {
        void (*run)(void *userdata); /* the queue is this one's until lane_leave() */
        void *userdata;
};

struct lane {
        bool taken;
        nd_vector(struct lane_turn) waiting;
};

void lane_enter(struct lane *op_queue, void (*run)(void *userdata), void *userdata);
void lane_leave(struct lane *op_queue);                   /* the next one runs before this returns */
bool lane_give_up(struct lane *op_queue, void *userdata); /* true when the turn was still waiting and is forgotten */
void lane_done(struct lane *op_queue);
