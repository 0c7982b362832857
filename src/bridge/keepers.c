/* SPDX-License-Identifier: Apache-2.0 */
/* keepers.c - see keepers.h */
#include "bridge/keepers.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "bridge/serve.h"
#include "sys/calls.h"

enum {
        QUICK_DEATHS = 20, /* within a second: then wait before the next start */
        WAIT_MS = 100,
};

static bool is_alive(const struct bridge_state *state, enum bridge_process process) {
        struct pollfd one = {.fd = state->shared->processes[process], .events = POLLIN};

        /* A descriptor of something else: the process that would have had it was never started. */
        return one.fd >= 0 && nd_sys->pidfd_send_signal(one.fd, 0, 0) == 0 && poll(&one, 1, 0) == 0;
}

/* Starts a process with the same descriptors. Returns false in the parent. */
static bool start(struct bridge_state *state, enum bridge_process process) {
        struct clone_args arguments = {.flags = CLONE_FILES | CLONE_PIDFD,
                                       .exit_signal = SIGCHLD,
                                       .pidfd = (uintptr_t) &state->shared->processes[process]};
        pid_t pid;

        bridge_state_close(&state->shared->processes[process]);
        pid = nd_sys->clone3(&arguments, sizeof arguments);
        if (pid < 0)
                (void) dprintf(STDERR_FILENO, "nodens-bridge: cannot start a process for a volume: %s\n", strerror(errno));
        return pid == 0;
}

/* Becomes the keeper when that one has died. */
static void wait_as_spare(struct bridge_state *state) {
        struct pollfd keeper = {.fd = state->shared->processes[BRIDGE_KEEPER], .events = POLLIN};

        while (is_alive(state, BRIDGE_KEEPER))
                (void) poll(&keeper, 1, -1);
        bridge_state_close(&state->shared->processes[BRIDGE_KEEPER]);
        state->shared->processes[BRIDGE_KEEPER] = pidfd_open(getpid(), 0);
        /* Our own place is free now. */
        bridge_state_close(&state->shared->processes[BRIDGE_SPARE]);
}

/* A server that dies at once, again and again, must not use all of the pod's CPU time. */
static void slow_down(void) {
        static uint64_t since;
        static unsigned deaths;

        if (nd_clock_us() - since > ND_SECOND_US) {
                since = nd_clock_us();
                deaths = 0;
        }
        if (++deaths > QUICK_DEATHS)
                (void) poll(nullptr, 0, WAIT_MS);
}

static void start_server(struct bridge_state *state) {
        if (state->shared->restarts > 0)
                slow_down();
        state->shared->restarts++;
        bridge_state_recover(state);
        bridge_state_close_unknown(state);
        if (start(state, BRIDGE_SERVER))
                bridge_serve(state);
}

static void wait_as_keeper(struct bridge_state *state) {
        while (!state->shared->ended) {
                struct pollfd others[2] = {{.events = POLLIN}, {.events = POLLIN}};

                if (!is_alive(state, BRIDGE_SPARE) && start(state, BRIDGE_SPARE))
                        return; /* in the spare */
                if (!is_alive(state, BRIDGE_SERVER))
                        start_server(state);
                others[0].fd = state->shared->processes[BRIDGE_SERVER];
                others[1].fd = state->shared->processes[BRIDGE_SPARE];
                (void) poll(others, nd_count_of(others),
                            is_alive(state, BRIDGE_SERVER) && is_alive(state, BRIDGE_SPARE) ? -1 : WAIT_MS);
        }
}

void bridge_keepers_run(struct bridge_state *state) {
        (void) signal(SIGCHLD, SIG_IGN); /* children are reaped by the kernel */
        /* It may be a volume that was taken over. */
        bridge_state_close(&state->shared->processes[BRIDGE_KEEPER]);
        state->shared->processes[BRIDGE_KEEPER] = pidfd_open(getpid(), 0);
        for (;;) {
                wait_as_keeper(state);
                if (state->shared->ended)
                        return;
                wait_as_spare(state);
        }
}
