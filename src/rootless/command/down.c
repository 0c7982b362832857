/* SPDX-License-Identifier: Apache-2.0 */
/* down.c - `nodens-rootless down`: stops a node and every process in it */
#include <poll.h>

#include "base/clock.h"
#include "rootless/command/commands.h"
#include "rootless/components/record.h"
#include "rootless/node/services.h"
#include "rootless/node/stop.h"

static constexpr uint64_t components_end_timeout_us = 15 * ND_SECOND_US;

/* Waits for the processes that run a component: those of a control plane end after the node. */
static void wait_for_components(const struct rootless_component_state *states, size_t count) {
        uint64_t end = nd_clock_us() + components_end_timeout_us;

        for (size_t i = 0; i < count; i++) {
                nd_autoclose int pidfd = -EBADF;
                nd_autoerror struct nd_error *gone =
                        states[i].pid > 0 ? rootless_process_open(states[i].pid, states[i].started, &pidfd) : nullptr;
                struct pollfd ended = {.fd = pidfd, .events = POLLIN};
                uint64_t now = nd_clock_us();

                if (!gone && pidfd >= 0 && now < end)
                        (void) poll(&ended, 1, (int) ((end - now) / ND_MS_US));
        }
}

static struct nd_error *stop(const struct rootless_node *node, int pidfd) {
        struct rootless_component_state states[SERVICES_CEILING];
        nd_cleanup(nd_strings_done) struct nd_strings names = {};
        size_t count = 0;
        struct nd_error *error;

        rootless_component_names(node, &names);
        for (; count < names.count && count < SERVICES_CEILING; count++)
                rootless_component_state_load(node, names.items[count], &states[count]);
        error = rootless_node_stop(node, pidfd);
        if (!error)
                wait_for_components(states, count);
        while (count > 0)
                rootless_component_state_done(&states[--count]);
        return error;
}

static struct nd_error *down(const char *name) {
        nd_cleanup(rootless_node_done) struct rootless_node node = NODE_NONE;
        nd_cleanup(rootless_node_record_done) struct rootless_node_record record = {};
        nd_autoclose int pidfd = -EBADF;

        nd_try(rootless_node_open(name, false, &node));
        nd_try(rootless_node_open_init(&node, &record, &pidfd));
        nd_try(stop(&node, pidfd));
        rootless_node_clear(&node);
        return nullptr;
}

int rootless_command_down(void *settings, [[maybe_unused]] int operand_count, [[maybe_unused]] char **operands) {
        const struct rootless_settings *given = settings;
        struct nd_error *error = down(given->name ? given->name : NODE_DEFAULT_NAME);

        return error ? rootless_command_fail(error) : EXIT_SUCCESS;
}
