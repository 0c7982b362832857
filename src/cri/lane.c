/* SPDX-License-Identifier: Apache-2.0 */
/* lane.c - see lane.h
 *
 * Theory of operation
 *   A queue of turns. Leaving hands the lane to the first who waits without freeing it in between, so that whoever enters from within
 *   that turn queues up behind. A turn may end the object that the lane belongs to: nothing of the lane is touched after a turn has begun. */
#include "cri/lane.h"

#include <string.h>

void lane_enter(struct lane *lane, void (*run)(void *userdata), void *userdata) {
        if (lane->taken) {
                nd_vector_push(&lane->waiting, ((struct lane_turn) {.run = run, .userdata = userdata}));
                return;
        }
        lane->taken = true;
        run(userdata);
}

static void forget(struct lane *lane, size_t position) {
        struct lane_turn *turn = lane->waiting.items + position;

        memmove(turn, turn + 1, (lane->waiting.count - position - 1) * sizeof *turn);
        lane->waiting.count--;
}

void lane_leave(struct lane *lane) {
        struct lane_turn next;

        if (lane->waiting.count == 0) {
                lane->taken = false;
                return;
        }
        next = lane->waiting.items[0];
        forget(lane, 0);
        next.run(next.userdata);
}

bool lane_give_up(struct lane *lane, void *userdata) {
        for (size_t i = 0; i < lane->waiting.count; i++)
                if (lane->waiting.items[i].userdata == userdata) {
                        forget(lane, i);
                        return true;
                }
        return false;
}

void lane_done(struct lane *lane) {
        nd_vector_done(&lane->waiting);
        lane->taken = false;
}
