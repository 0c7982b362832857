/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/node/stop.h"

#include <poll.h>

#include "base/clock.h"
#include "rootless/core/control.h"
#include "sys/calls.h"

static constexpr uint64_t call_timeout_us = 5 * ND_SECOND_US;
/* longer than the sum of init's own grace periods */
static constexpr uint64_t stop_grace_us = 20 * ND_SECOND_US;
static constexpr uint64_t kill_timeout_us = 5 * ND_SECOND_US;

static int wait_ended(int pidfd, uint64_t timeout_us) {
        struct pollfd wait = {.fd = pidfd, .events = POLLIN};

        return poll(&wait, 1, (int) (timeout_us / ND_MS_US));
}

static struct nd_error *ask(const struct rootless_node *node) {
        nd_autotext struct nd_text text = CONTROL_TEXT;
        nd_autoclose int fd = -EBADF;

        nd_try(rootless_node_connect(node, &fd));
        rootless_control_begin(&text, "stop");
        return rootless_control_call(fd, &text, nullptr, 0, call_timeout_us, nullptr);
}

struct nd_error *rootless_node_stop(const struct rootless_node *node, int pidfd) {
        nd_autoerror struct nd_error *unasked = ask(node);

        /* A stopping init may close the connection before it replies; what counts is that it exits.
         * If it does not reply at all because root of the node blocks it, it did not get the
         * request and will not exit by itself. */
        if (wait_ended(pidfd, nd_error_code(unasked) == ND_DEADLINE ? 0 : stop_grace_us) > 0)
                return nullptr;
        if (nd_sys->pidfd_send_signal(pidfd, SIGKILL, 0) < 0 || wait_ended(pidfd, kill_timeout_us) <= 0)
                return nd_error_new(ND_DEADLINE, ETIMEDOUT, "node '%s' did not stop", node->name);
        return nullptr;
}
