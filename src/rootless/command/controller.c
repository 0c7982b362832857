/* SPDX-License-Identifier: Apache-2.0 */
/* controller.c - `nodens-rootless controller`: runs the controller for the objects of a cluster
 *
 * The controller is a program of its own: it alone needs an HTTP client and a TLS library, which
 * would cost every process of a node memory and time to start. It knows nothing of the kubelet: the
 * name of the Node and the credentials of a node that has joined a cluster are passed to it. */
#include <string.h>

#include "base/strings.h"
#include "rootless/command/commands.h"
#include "rootless/components/control-plane.h"
#include "rootless/components/credentials.h"
#include "rootless/components/record.h"
#include "rootless/controller/settings.h"

#define PROGRAM "nodens-rootless-controller"

static void add_options(const struct rootless_controller_settings *settings, struct nd_strings *words) {
        for (const struct nd_option *option = rootless_controller_options; option->name; option++) {
                const void *at = (const char *) settings + option->offset;
                const char *value = *(const char *const *) at;

                if (value) {
                        nd_strings_addf(words, "--%s", option->name);
                        nd_strings_add(words, value);
                }
        }
}

static bool is_given(const char *option, const char *variable) {
        const char *value = option ? option : rootless_command_getenv(variable, nullptr);

        return value && *value;
}

/* The file itself: paths in a kubeconfig are relative to its directory. */
static void add_kubeconfig(const struct rootless_node *node, struct nd_strings *words) {
        nd_autofree char *link = nd_format("%s/" CONTROLLER_KUBECONFIG, node->path), *file = realpath(link, nullptr);

        nd_strings_add(words, "--kubeconfig");
        nd_strings_add(words, file ? file : link);
}

/* Adds what the launcher recorded and neither options nor variables give. */
static void add_recorded(const struct rootless_controller_settings *settings, struct nd_strings *words) {
        nd_cleanup(rootless_node_done) struct rootless_node node = NODE_NONE;
        nd_cleanup(rootless_component_record_done) struct rootless_component_record kubelet = {};
        nd_autoerror struct nd_error *absent =
                rootless_node_open(settings->name ? settings->name : NODE_DEFAULT_NAME, false, &node);

        if (!absent)
                absent = rootless_component_record_load(&node, "kubelet", &kubelet);
        if (absent)
                return;
        if (!is_given(settings->node_name, "NODENS_NODE_NAME") && kubelet.node_name) {
                nd_strings_add(words, "--node-name");
                nd_strings_add(words, kubelet.node_name);
        }
        if (!is_given(settings->node_port_offset, "NODENS_OFFSET") && kubelet.offset > 0) {
                nd_strings_add(words, "--node-port-offset");
                nd_strings_addf(words, "%u", kubelet.offset);
        }
        if (!is_given(settings->kubeconfig, "NODENS_CONTROLLER_KUBECONFIG"))
                add_kubeconfig(&node, words);
}

static struct nd_error *execute(char *const *words) {
        nd_autofree char *path = rootless_program_beside(PROGRAM);

        (void) execv(path, words);
        return nd_error_new(nd_error_code_of(errno), errno, "execute '%s'", path);
}

int rootless_command_controller(void *settings, [[maybe_unused]] int operand_count, [[maybe_unused]] char **operands) {
        nd_cleanup(nd_strings_done) struct nd_strings words = {};

        nd_strings_add(&words, PROGRAM);
        add_options(settings, &words);
        add_recorded(settings, &words);
        nd_vector_push(&words, nullptr);
        return rootless_command_fail_service(execute(words.items));
}
