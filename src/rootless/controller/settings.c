/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/controller/settings.h"

#include "base/text.h"
#include "rootless/controller/objects.h"
#include "rootless/core/node.h"

#define TEXT_OPTION(option, field, word, text)                                                                                \
        {.name = (option),                                                                                                    \
         .kind = ND_OPTION_TEXT,                                                                                              \
         .offset = offsetof(struct rootless_controller_settings, field),                                                      \
         .argument = (word),                                                                                                  \
         .help = (text)}

const struct nd_option rootless_controller_options[] = {
        {.name = "name",
         .letter = 'n',
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct rootless_controller_settings, name),
         .argument = "NAME",
         .help = "Name of the node: lowercase letters, digits and '-'"},
        {.name = "kubeconfig",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct rootless_controller_settings, kubeconfig),
         .argument = "FILE",
         .values = ND_VALUES_FILE,
         .help = "Address of the API server and credentials: the context '" CLUSTER_CONTEXT "', or the current one"},
        TEXT_OPTION("node-name", node_name, "NAME", "Name of the Node object (default: the name of the node)"),
        TEXT_OPTION("node-ports", node_ports, "RANGES", "Node ports that Services may have (default 30000-32767)"),
        TEXT_OPTION(
                "load-balancer-ports", load_balancer_ports, "RANGES",
                "Ports of the host that Services of type LoadBalancer may have: 80,443,8000-8999, all or none (default none)"),
        TEXT_OPTION("host-ports", host_ports, "RANGES", "Ports of the host that pods may have by hostPort (default none)"),
        TEXT_OPTION("port-offset", port_offset, "NUMBER",
                    "Number to add to ports that users cannot open, such as 80 (default: they are not published)"),
        TEXT_OPTION("node-port-offset", node_port_offset, "NUMBER",
                    "Number to add to node ports, for a second node of a host (default: that of the node)"),
        TEXT_OPTION("address", address, "ADDRESS", "Address of the host at which to publish ports (default: all)"),
        TEXT_OPTION("ingress-address", ingress_address, "ADDRESS",
                    "Address of the host to enter in the status of Services of type LoadBalancer (default: none)"),
        {.name = "label",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct rootless_controller_settings, label),
         .argument = "NODES",
         .values = ND_VALUES_WORDS,
         .words = "all own none",
         .help = "Nodes to label with " CLUSTER_LABEL ": all (the default), own or none"},
        {},
};

void rootless_controller_config_done(struct rootless_controller_config *config) {
        free(config->name);
        free(config->kubeconfig);
        free(config->node_name);
        free(config->ingress_address);
        *config = (struct rootless_controller_config) {};
}

/* The option, the variable or the default; an empty variable is unset. */
static const char *pick(const char *option, const char *variable, const char *otherwise) {
        return option ? option : variable && *variable ? variable : otherwise;
}

struct nd_error *rootless_label_scope_parse(const char *text, enum rootless_label_scope *ret) {
        static const char *const words[] = {[LABEL_ALL] = "all", [LABEL_OWN] = "own", [LABEL_NONE] = "none"};

        for (size_t i = 0; i < nd_count_of(words); i++)
                if (nd_streq(text, words[i])) {
                        *ret = (enum rootless_label_scope) i;
                        return nullptr;
                }
        return nd_error_new(ND_INVALID, 0, "--label: '%.32s' is not one of all, own and none", text);
}

static struct nd_error *parse_address(const char *option, const char *text, struct nd_netlink_address *ret) {
        if (!*text)
                return nullptr;
        if (strchr(text, '/') || nd_netlink_address_parse(text, ret) < 0)
                return nd_error_new(ND_INVALID, 0, "--%s: invalid address '%.64s'", option, text);
        return nullptr;
}

static struct nd_error *set_names(const struct rootless_controller_settings *s, const char *(*variable)(const char *name),
                                  struct rootless_controller_config *config) {
        const char *kubeconfig = pick(s->kubeconfig, variable("NODENS_CONTROLLER_KUBECONFIG"), "");

        config->name = nd_strdup(s->name ? s->name : "default");
        config->node_name = nd_strdup(pick(s->node_name, variable("NODENS_NODE_NAME"), config->name));
        config->kubeconfig = nd_strdup(kubeconfig);
        if (!rootless_node_name_valid(config->name))
                return nd_error_new(ND_INVALID, 0, "invalid node name '%.64s'", config->name);
        if (!rootless_object_name_valid(config->node_name))
                return nd_error_new(ND_INVALID, 0, "--node-name: invalid name of a Node '%.64s'", config->node_name);
        if (!*kubeconfig)
                return nd_error_new(ND_INVALID, 0,
                                    "no kubeconfig: use --kubeconfig FILE or NODENS_CONTROLLER_KUBECONFIG "
                                    "('nodens-rootless manifest' prints the rights that its user needs)");
        return nullptr;
}

static struct nd_error *set_policy(const struct rootless_controller_settings *s, const char *(*variable)(const char *name),
                                   struct rootless_port_policy *policy) {
        const char *offset = pick(s->port_offset, variable("NODENS_PORT_OFFSET"), "0"),
                   *node_port_offset = pick(s->node_port_offset, variable("NODENS_OFFSET"), "0");
        uint64_t number;

        nd_try(nd_error_wrap(rootless_port_ranges_parse(pick(s->node_ports, variable("NODENS_NODE_PORTS"), "30000-32767"),
                                                        &policy->node_ports),
                             "--node-ports"));
        nd_try(nd_error_wrap(
                rootless_port_ranges_parse(pick(s->load_balancer_ports, variable("NODENS_LOAD_BALANCER_PORTS"), "none"),
                                           &policy->load_balancer_ports),
                "--load-balancer-ports"));
        nd_try(nd_error_wrap(
                rootless_port_ranges_parse(pick(s->host_ports, variable("NODENS_HOST_PORTS"), "none"), &policy->host_ports),
                "--host-ports"));
        if (nd_text_parse_u64(offset, UINT16_MAX, &number) < 0)
                return nd_error_new(ND_INVALID, 0, "--port-offset: '%.16s' is not a number up to 65535", offset);
        policy->offset = (uint16_t) number;
        if (nd_text_parse_u64(node_port_offset, UINT16_MAX, &number) < 0)
                return nd_error_new(ND_INVALID, 0, "--node-port-offset: '%.16s' is not a number up to 65535",
                                    node_port_offset);
        policy->node_port_offset = (uint16_t) number;
        return parse_address("address", pick(s->address, variable("NODENS_PUBLISH_ADDRESS"), ""), &policy->address);
}

struct nd_error *rootless_controller_config_resolve(const struct rootless_controller_settings *settings,
                                                    const char *(*variable)(const char *name),
                                                    struct rootless_controller_config *ret) {
        nd_cleanup(rootless_controller_config_done) struct rootless_controller_config config = {};
        const char *ingress = pick(settings->ingress_address, variable("NODENS_INGRESS_ADDRESS"), "");
        struct nd_netlink_address address = {};

        nd_try(set_names(settings, variable, &config));
        nd_try(set_policy(settings, variable, &config.policy));
        nd_try(parse_address("ingress-address", ingress, &address));
        if (address.family) {
                char text[ND_ADDRESS_TEXT];

                /* in the form that the API server has */
                config.ingress_address = nd_strdup(nd_netlink_address_text(&address, text));
        }
        nd_try(rootless_label_scope_parse(pick(settings->label, variable("NODENS_LABEL"), "all"), &config.label));
        *ret = nd_take(config, (struct rootless_controller_config) {});
        return nullptr;
}
