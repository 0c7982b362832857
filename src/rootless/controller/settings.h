/* SPDX-License-Identifier: Apache-2.0 */
/* settings.h - settings of the controller: options first, then the environment, then defaults
 *
 *      --kubeconfig            NODENS_CONTROLLER_KUBECONFIG    required; or that of `up --join`
 *      --node-name             NODENS_NODE_NAME                the name of the node
 *      --node-ports            NODENS_NODE_PORTS               30000-32767
 *      --load-balancer-ports   NODENS_LOAD_BALANCER_PORTS      none
 *      --host-ports            NODENS_HOST_PORTS               none
 *      --port-offset           NODENS_PORT_OFFSET              none
 *      --node-port-offset      NODENS_OFFSET                   0
 *      --address               NODENS_PUBLISH_ADDRESS          all addresses of the host
 *      --ingress-address       NODENS_INGRESS_ADDRESS          no status is changed
 *      --label                 NODENS_LABEL                    all */
#pragma once

#include "base/option.h"
#include "rootless/controller/policy.h"

/* The context of the kubeconfig that is used if it exists. */
#define CLUSTER_CONTEXT "controller"

enum rootless_label_scope { LABEL_ALL, LABEL_OWN, LABEL_NONE };

/* As given on the command line; unset ones are nullptr or 0. */
struct rootless_controller_settings {
        const char *name;
        const char *kubeconfig;
        const char *node_name;
        const char *node_ports, *load_balancer_ports, *host_ports;
        const char *port_offset;
        const char *node_port_offset;
        const char *address;
        const char *ingress_address;
        const char *label;
};
extern const struct nd_option rootless_controller_options[];

/* Validated and complete. */
struct rootless_controller_config {
        char *name;
        char *kubeconfig;
        char *node_name;
        struct rootless_port_policy policy; /* lowest and has_host_addresses are set later */
        char *ingress_address;              /* nullptr: none */
        enum rootless_label_scope label;
};
void rootless_controller_config_done(struct rootless_controller_config *config);

[[nodiscard]] struct nd_error *rootless_controller_config_resolve(const struct rootless_controller_settings *settings,
                                                                  const char *(*variable)(const char *name),
                                                                  struct rootless_controller_config *ret);
[[nodiscard]] struct nd_error *rootless_label_scope_parse(const char *text, enum rootless_label_scope *ret);
