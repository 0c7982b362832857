/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/node/stop.h"

#include <poll.h>

#include "rootless/core/control.h"
#include "sys/calls.h"

enum {
        ASK_US = 5 * 1000000,
        GRACE_MS = 15 * 1000, /* longer than the holder's own */
        KILL_MS = 5 * 1000,
};

static struct nd_error *ask(const struct rootless_node *node) {
        nd_autotext text = CONTROL_TEXT;
        nd_autoclose int fd = -EBADF;

        nd_try(rootless_node_connect(node, &fd));
        rootless_control_begin(&text, "stop");
        return rootless_control_call(fd, &text, nullptr, 0, ASK_US, nullptr);
}

struct nd_error *rootless_node_stop(const struct rootless_node *node, int pidfd) {
        struct pollfd wait = {.fd = pidfd, .events = POLLIN};
        nd_autoerror struct nd_error *unasked = ask(node);

        /* A holder that is about to end may close the connection before it answers; what counts is that it ends. One that does not answer at all, since
         * root of the node holds it up, has not heard, and will not end by itself. */
        if (poll(&wait, 1, nd_error_code(unasked) == ND_DEADLINE ? 0 : GRACE_MS) > 0)
                return nullptr;
        if (nd_sys->pidfd_send_signal(pidfd, SIGKILL, 0) < 0 || poll(&wait, 1, KILL_MS) <= 0)
                return nd_error_new(ND_DEADLINE, ETIMEDOUT, "node '%s' does not end", node->name);
        return nullptr;
}
