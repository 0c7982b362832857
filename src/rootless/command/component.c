/* SPDX-License-Identifier: Apache-2.0 */
/* component.c - `nodens-rootless component`: runs a program of Kubernetes in a running node
 *
 * It can be killed or upgraded: it is restarted, and pods keep running meanwhile. */
#include <poll.h>

#include "base/clock.h"
#include "base/log.h"
#include "rootless/command/commands.h"
#include "rootless/components/run.h"
#include "rootless/ports/api-client.h"
#include "sys/notify.h"

static constexpr uint64_t wait_timeout_us = 120 * ND_SECOND_US;
static constexpr int wait_interval_ms = 50;

/* Without the port the API server cannot reach the component, which works otherwise. */
static void publish(const char *node, const char *component, const struct rootless_component_record *what) {
        nd_autoerror struct nd_error *error = nullptr;
        uint64_t id;

        /* the port of a control plane may be another one at the next start */
        error = what->outside ? rootless_api_publish_owned(node, component, component, what->publish)
                              : rootless_api_publish(node, what->publish, &id);
        if (error && !strstr(nd_error_text(error), "already published"))
                nd_log(ND_LOG_WARNING, "cannot publish the port of a component", nd_field("component", component),
                       nd_field("error", nd_error_text(error)));
}

/* Returns when the component is ready, at the latest after a while: the program tries again itself
 * then. */
static struct nd_error *wait_for(const struct rootless_node *node, const char *component, int init_pidfd) {
        nd_autofree char *status = nd_format("waiting for %s", component);
        uint64_t end = nd_clock_us() + wait_timeout_us;

        nd_notify_status(status);
        while (nd_clock_us() < end) {
                nd_cleanup(rootless_component_state_done) struct rootless_component_state state = {};
                struct pollfd ended = {.fd = init_pidfd, .events = POLLIN};

                rootless_component_state_load(node, component, &state);
                if (nd_streq(state.state, "ready"))
                        return nullptr;
                if (poll(&ended, 1, wait_interval_ms) > 0)
                        return nd_error_new(ND_CANCELLED, 0, "node '%s' has ended", node->name);
        }
        return nullptr;
}

static struct nd_error *run_component(const char *name, const char *component, int *ret_code) {
        nd_cleanup(rootless_node_done) struct rootless_node node = NODE_NONE;
        nd_cleanup(rootless_node_record_done) struct rootless_node_record record = {};
        nd_cleanup(rootless_component_record_done) struct rootless_component_record what = {};
        nd_autofree char *lock = nd_format(COMPONENTS_DIRECTORY "/%s.lock", component);
        nd_autoclose int pidfd = -EBADF, lock_fd = -EBADF;

        nd_try(rootless_node_open(name, false, &node));
        nd_try(rootless_node_open_init(&node, &record, &pidfd));
        nd_try(rootless_component_record_load(&node, component, &what));
        nd_try(rootless_node_lock_service(&node, lock, &lock_fd));
        if (*what.after)
                nd_try(wait_for(&node, what.after, pidfd));
        if (*what.publish && !nd_streq(record.net, "host"))
                publish(name, component, &what);
        return rootless_component_run(&node, component, &what, pidfd, ret_code);
}

int rootless_command_component(void *settings, int operand_count, char **operands) {
        const struct rootless_settings *given = settings;
        struct nd_error *error;
        int code = EXIT_FAILURE;

        if (operand_count != 1)
                return rootless_command_fail(nd_error_new(ND_INVALID, 0, "missing name of a component"));
        error = run_component(given->name ? given->name : NODE_DEFAULT_NAME, operands[0], &code);
        return error ? rootless_command_fail_service(error) : code;
}
