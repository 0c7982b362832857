/* SPDX-License-Identifier: Apache-2.0 */
/* component.c - `nodens-rootless component`: runs a program of Kubernetes in a running node
 *
 * It can be killed or upgraded: it is restarted, and pods keep running meanwhile. */
#include "base/log.h"
#include "rootless/command/commands.h"
#include "rootless/components/run.h"
#include "rootless/ports/api-client.h"

/* Without the port the API server cannot reach the component, which works otherwise. */
static void publish(const char *node, const char *component, unsigned port) {
        nd_autofree char *text = nd_format("%u:%u", port, port);
        nd_autoerror struct nd_error *error = nullptr;
        uint64_t id;

        error = rootless_api_publish(node, text, &id);
        if (error && !strstr(nd_error_text(error), "already published"))
                nd_log(ND_LOG_WARNING, "cannot publish the port of a component", nd_field("component", component),
                       nd_field("error", nd_error_text(error)));
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
        if (what.port > 0 && !nd_streq(record.net, "host"))
                publish(name, component, what.port);
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
