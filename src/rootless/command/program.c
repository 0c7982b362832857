/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/log.h"
#include "rootless/command/commands.h"
#include "rootless/command/daemon.h"
#include "rootless/components/pod-ids.h"
#include "rootless/controller/manifest.h"
#include "rootless/controller/settings.h"
#include "rootless/network/discover.h"
#include "rootless/node/launch.h"
#include "sys/notify.h"

#define FIELD(name) offsetof(struct rootless_settings, name)

#define NAME_OPTION                                                                                                           \
        {.name = "name",                                                                                                      \
         .letter = 'n',                                                                                                       \
         .kind = ND_OPTION_TEXT,                                                                                              \
         .offset = FIELD(name),                                                                                               \
         .argument = "NAME",                                                                                                  \
         .help = "Name of the node: lowercase letters, digits and '-'"}
#define MAKE_OPTIONS                                                                                                          \
        {.name = "net",                                                                                                       \
         .kind = ND_OPTION_TEXT,                                                                                              \
         .offset = FIELD(net),                                                                                                \
         .argument = "DRIVER",                                                                                                \
         .values = ND_VALUES_WORDS,                                                                                           \
         .words = "pasta slirp4netns lxc-user-nic none host",                                                                 \
         .help = "pasta (the default), slirp4netns, lxc-user-nic, none, or host to share the host's network"},                \
                {.name = "mtu",                                                                                               \
                 .kind = ND_OPTION_U32,                                                                                       \
                 .offset = FIELD(mtu),                                                                                        \
                 .argument = "BYTES",                                                                                         \
                 .help = "MTU of the node's tap device (default 65520)"},                                                     \
                {.name = "data",                                                                                              \
                 .kind = ND_OPTION_TEXT,                                                                                      \
                 .offset = FIELD(data),                                                                                       \
                 .argument = "DIRECTORY",                                                                                     \
                 .values = ND_VALUES_DIRECTORY,                                                                               \
                 .help = "Data directory on a local disk for the node's /var/lib, /var/log and /var/cache"},                  \
                {.name = "bind",                                                                                              \
                 .kind = ND_OPTION_TEXT,                                                                                      \
                 .offset = FIELD(bind),                                                                                       \
                 .argument = "PATH[:ro],...",                                                                                 \
                 .help = "Additional host paths to mount in the node at the same paths"},                                     \
                {.name = "devices",                                                                                           \
                 .kind = ND_OPTION_TEXT,                                                                                      \
                 .offset = FIELD(devices),                                                                                    \
                 .argument = "PATH,...",                                                                                      \
                 .help = "Character devices of the host to mount in the node, such as GPUs"},                                 \
                {.name = "publish",                                                                                           \
                 .letter = 'p',                                                                                               \
                 .kind = ND_OPTION_TEXT,                                                                                      \
                 .offset = FIELD(publish),                                                                                    \
                 .argument = "PORT,...",                                                                                      \
                 .help = "Host ports to publish: [ADDRESS:]PORT[:[ADDRESS:]PORT][/udp], the host's first; one PORT is both"}, \
                {.name = "inside",                                                                                            \
                 .kind = ND_OPTION_FLAG,                                                                                      \
                 .offset = FIELD(inside),                                                                                     \
                 .help = "Start the node in the user namespace of a container or pod, as its root"},                          \
                {.name = "dry-run",                                                                                           \
                 .kind = ND_OPTION_FLAG,                                                                                      \
                 .offset = FIELD(dry_run),                                                                                    \
                 .help = "Only print the node's mounts and network"}

#define CLUSTER_OPTIONS                                                                                                       \
        {.name = "join",                                                                                                      \
         .kind = ND_OPTION_TEXT,                                                                                              \
         .offset = FIELD(join),                                                                                               \
         .argument = "KUBECONFIG",                                                                                            \
         .values = ND_VALUES_FILE,                                                                                            \
         .help = "Run Kubernetes in the node and join the cluster of this kubeconfig"},                                       \
                {.name = "runtime",                                                                                           \
                 .kind = ND_OPTION_TEXT,                                                                                      \
                 .offset = FIELD(runtime),                                                                                    \
                 .argument = "RUNTIME",                                                                                       \
                 .values = ND_VALUES_WORDS,                                                                                   \
                 .words = "nodens-cri containerd",                                                                            \
                 .help = "Container runtime: nodens-cri (the default) or containerd"},                                        \
                {.name = "node-name",                                                                                         \
                 .kind = ND_OPTION_TEXT,                                                                                      \
                 .offset = FIELD(node_name),                                                                                  \
                 .argument = "NAME",                                                                                          \
                 .help = "Name of the Node object (default: the host's name, and the node's unless that is 'default')"},      \
                {.name = "node-ip",                                                                                           \
                 .kind = ND_OPTION_TEXT,                                                                                      \
                 .offset = FIELD(node_ip),                                                                                    \
                 .argument = "ADDRESS",                                                                                       \
                 .help = "Address that the kubelet reports (default: chosen by the kubelet)"},                                \
                {.name = "labels",                                                                                            \
                 .kind = ND_OPTION_TEXT,                                                                                      \
                 .offset = FIELD(labels),                                                                                     \
                 .argument = "KEY=VALUE,...",                                                                                 \
                 .help = "Labels of the Node object"},                                                                        \
                {.name = "taint",                                                                                             \
                 .kind = ND_OPTION_FLAG,                                                                                      \
                 .offset = FIELD(taint),                                                                                      \
                 .help = "Register the node with the taint kubernetes.io/running-in-user-namespace=true:NoSchedule"},         \
                {.name = "pod-cidr",                                                                                          \
                 .kind = ND_OPTION_TEXT,                                                                                      \
                 .offset = FIELD(pod_cidr),                                                                                   \
                 .argument = "NETWORK",                                                                                       \
                 .help = "Network of the node's pods (default 10.244.0.0/24)"},                                               \
                {.name = "cluster-dns",                                                                                       \
                 .kind = ND_OPTION_TEXT,                                                                                      \
                 .offset = FIELD(cluster_dns),                                                                                \
                 .argument = "ADDRESS,...",                                                                                   \
                 .help = "Address of the cluster's DNS service (default 10.96.0.10)"},                                        \
                {.name = "max-pods",                                                                                          \
                 .kind = ND_OPTION_U32,                                                                                       \
                 .offset = FIELD(max_pods),                                                                                   \
                 .argument = "NUMBER",                                                                                        \
                 .least = 1,                                                                                                  \
                 .help = "Maximum number of pods (default 110)"},                                                             \
                {.name = "programs",                                                                                          \
                 .kind = ND_OPTION_TEXT,                                                                                      \
                 .offset = FIELD(programs),                                                                                   \
                 .argument = "DIRECTORY[:DIRECTORY...]",                                                                      \
                 .values = ND_VALUES_DIRECTORY,                                                                               \
                 .help = "Directories with kubelet, kube-proxy, containerd and CNI plugins besides /usr and /opt"},           \
                {.name = "cni",                                                                                               \
                 .kind = ND_OPTION_TEXT,                                                                                      \
                 .offset = FIELD(cni),                                                                                        \
                 .argument = "FILE",                                                                                          \
                 .values = ND_VALUES_FILE,                                                                                    \
                 .help = "CNI network configuration list for the node's pods, instead of a bridge with NAT"},                 \
                {.name = "peers",                                                                                             \
                 .kind = ND_OPTION_TEXT,                                                                                      \
                 .offset = FIELD(peers),                                                                                      \
                 .argument = "FILE",                                                                                          \
                 .values = ND_VALUES_FILE,                                                                                    \
                 .help = "List of the cluster's nodes: connects the node's pods to those of other nodes"},                    \
                {.name = "offset",                                                                                            \
                 .kind = ND_OPTION_U32,                                                                                       \
                 .offset = FIELD(offset),                                                                                     \
                 .argument = "NUMBER",                                                                                        \
                 .least = 1,                                                                                                  \
                 .help = "Number to add to the host's ports of kubelet and Services, for a second node of a host"},           \
                {.name = "cdi",                                                                                               \
                 .kind = ND_OPTION_TEXT,                                                                                      \
                 .offset = FIELD(cdi),                                                                                        \
                 .argument = "DIRECTORY",                                                                                     \
                 .values = ND_VALUES_DIRECTORY,                                                                               \
                 .help = "Directory with CDI files, besides /etc/cdi and /var/run/cdi of the node"},                          \
                {.name = "registry-ports",                                                                                    \
                 .kind = ND_OPTION_TEXT,                                                                                      \
                 .offset = FIELD(registry_ports),                                                                             \
                 .argument = "PORT,...",                                                                                      \
                 .help = "Ports to which nodens-cri pulls through the host's network (default 443), or none"},                \
                {.name = "bootstrap",                                                                                         \
                 .kind = ND_OPTION_TEXT,                                                                                      \
                 .offset = FIELD(bootstrap),                                                                                  \
                 .argument = "TOKEN",                                                                                         \
                 .help = "Join the cluster of --server with a bootstrap token; '-' reads it from standard input"},            \
                {.name = "server",                                                                                            \
                 .kind = ND_OPTION_TEXT,                                                                                      \
                 .offset = FIELD(server),                                                                                     \
                 .argument = "URL",                                                                                           \
                 .help = "API server for --bootstrap"},                                                                       \
                {.name = "ca-cert-hash",                                                                                      \
                 .kind = ND_OPTION_TEXT,                                                                                      \
                 .offset = FIELD(ca_cert_hash),                                                                               \
                 .argument = "sha256:HASH",                                                                                   \
                 .help = "Hash of the public key of the cluster's authority, for --bootstrap"},                               \
                {.name = "ca",                                                                                                \
                 .kind = ND_OPTION_TEXT,                                                                                      \
                 .offset = FIELD(ca),                                                                                         \
                 .argument = "FILE",                                                                                          \
                 .values = ND_VALUES_FILE,                                                                                    \
                 .help = "Certificate of the cluster's authority, for --bootstrap instead of --ca-cert-hash"},                \
                {.name = "control-plane",                                                                                     \
                 .kind = ND_OPTION_FLAG,                                                                                      \
                 .offset = FIELD(control_plane),                                                                              \
                 .help = "Start a cluster: etcd, API server, controller manager and scheduler beside the node"},              \
                {.name = "api-port",                                                                                          \
                 .kind = ND_OPTION_TEXT,                                                                                      \
                 .offset = FIELD(api_port),                                                                                   \
                 .argument = "[ADDRESS:]PORT",                                                                                \
                 .help = "Where the host publishes the API server of --control-plane (default 127.0.0.1:6443)"},              \
                {.name = "no-cgroups",                                                                                        \
                 .kind = ND_OPTION_FLAG,                                                                                      \
                 .offset = FIELD(no_cgroups),                                                                                 \
                 .help = "Start without a delegated cgroup: pods have no resource limits"},                                   \
                {.name = "server-tls-bootstrap",                                                                              \
                 .kind = ND_OPTION_FLAG,                                                                                      \
                 .offset = FIELD(server_tls_bootstrap),                                                                       \
                 .help = "Request the certificate of the kubelet's server from the cluster, where it must be approved"}

static const struct nd_option run_options[] = {NAME_OPTION, MAKE_OPTIONS, {}};
static const struct nd_option up_options[] = {
        NAME_OPTION,
        MAKE_OPTIONS,
        CLUSTER_OPTIONS,
        {.name = "foreground",
         .letter = 'f',
         .kind = ND_OPTION_FLAG,
         .offset = FIELD(foreground),
         .help = "Run in the foreground, for hosts without a systemd user manager"},
        {.name = "ephemeral",
         .kind = ND_OPTION_FLAG,
         .offset = FIELD(ephemeral),
         .help = "With --foreground: the node ends with this process and leaves no file, for batch jobs"},
        {.name = "json",
         .kind = ND_OPTION_FLAG,
         .offset = FIELD(json),
         .help = "Print the progress of --control-plane as JSON, an object per line"},
        {}};
static const struct nd_option name_options[] = {NAME_OPTION, {}};
static const struct nd_option purge_options[] = {NAME_OPTION,
                                                 {.name = "data",
                                                  .kind = ND_OPTION_TEXT,
                                                  .offset = FIELD(data),
                                                  .argument = "DIRECTORY",
                                                  .values = ND_VALUES_DIRECTORY,
                                                  .help = "The node's data directory, if not the default"},
                                                 {}};
static const struct nd_option token_options[] = {NAME_OPTION,
                                                 {.name = "ttl",
                                                  .kind = ND_OPTION_U32,
                                                  .offset = FIELD(ttl),
                                                  .argument = "SECONDS",
                                                  .least = 60,
                                                  .help = "How long the token is valid (default 3600)"},
                                                 {.name = "data",
                                                  .kind = ND_OPTION_TEXT,
                                                  .offset = FIELD(data),
                                                  .argument = "DIRECTORY",
                                                  .values = ND_VALUES_DIRECTORY,
                                                  .help = "The node's data directory, if not the default"},
                                                 {}};
static const struct nd_option status_options[] = {
        NAME_OPTION, {.name = "json", .kind = ND_OPTION_FLAG, .offset = FIELD(json), .help = "Print JSON"}, {}};

static const struct nd_option ports_options[] = {
        NAME_OPTION, {.name = "json", .kind = ND_OPTION_FLAG, .offset = FIELD(json), .help = "Print JSON"}, {}};

static const struct nd_option_command commands[] = {
        {.name = "run",
         .summary = "run a command in a new node that ends with the command",
         .operands = "[--] COMMAND [ARGUMENT...]",
         .operand_values = ND_VALUES_FILE,
         .options = run_options,
         .settings_size = sizeof(struct rootless_settings),
         .run = rootless_command_run},
        {.name = "up",
         .summary = "start a node",
         .options = up_options,
         .settings_size = sizeof(struct rootless_settings),
         .run = rootless_command_up},
        {.name = "status",
         .summary = "show running nodes",
         .options = status_options,
         .settings_size = sizeof(struct rootless_settings),
         .run = rootless_command_status},
        {.name = "ports",
         .summary = "show, publish and remove ports of a running node",
         .operands = "[add PORT... | remove ID...]",
         .operand_values = ND_VALUES_WORDS,
         .operand_words = "add remove",
         .operand_last = 1,
         .options = ports_options,
         .settings_size = sizeof(struct rootless_settings),
         .run = rootless_command_ports},
        {.name = "logs",
         .summary = "show the logs of a node's units (journalctl)",
         .operands = "[[--] JOURNALCTL-OPTION...]",
         .options = name_options,
         .settings_size = sizeof(struct rootless_settings),
         .run = rootless_command_logs},
        {.name = "shell",
         .summary = "run a shell or a command in a running node",
         .operands = "[[--] COMMAND [ARGUMENT...]]",
         .operand_values = ND_VALUES_FILE,
         .options = name_options,
         .settings_size = sizeof(struct rootless_settings),
         .run = rootless_command_shell},
        {.name = "down",
         .summary = "stop a node and every process in it",
         .options = name_options,
         .settings_size = sizeof(struct rootless_settings),
         .run = rootless_command_down},
        {.name = "purge",
         .summary = "remove the data of a node that is not running",
         .options = purge_options,
         .settings_size = sizeof(struct rootless_settings),
         .run = rootless_command_purge},
        {.name = "token",
         .summary = "create, list and delete bootstrap tokens of a cluster of up --control-plane",
         .operands = "create | list | delete ID",
         .operand_values = ND_VALUES_WORDS,
         .operand_words = "create list delete",
         .operand_last = 1,
         .options = token_options,
         .settings_size = sizeof(struct rootless_settings),
         .run = rootless_command_token},
        {.name = "manifest",
         .summary = "print the objects that the cluster needs, for `kubectl apply -f -`",
         .options = rootless_manifest_options,
         .settings_size = sizeof(struct rootless_manifest_settings),
         .run = rootless_command_manifest},
        {.name = "hold",
         .summary = "start a node's init process as the main process of the unit (nodens-node@.service)",
         .options = up_options,
         .settings_size = sizeof(struct rootless_settings),
         .run = rootless_command_hold},
        {.name = "net",
         .summary = "supervise the network helper of a running node (nodens-node-net@.service)",
         .options = name_options,
         .settings_size = sizeof(struct rootless_settings),
         .run = rootless_command_net},
        {.name = "forward",
         .summary = "forward connections to a running node (nodens-node-forward@.service)",
         .options = name_options,
         .settings_size = sizeof(struct rootless_settings),
         .run = rootless_command_forward},
        {.name = "api",
         .summary = "manage the published ports of a running node and serve its API (nodens-node-api@.service)",
         .options = name_options,
         .settings_size = sizeof(struct rootless_settings),
         .run = rootless_command_api},
        {.name = "broker",
         .summary = "connect pulls of a running node to registries (nodens-node-broker@.service)",
         .options = name_options,
         .settings_size = sizeof(struct rootless_settings),
         .run = rootless_command_broker},
        {.name = "controller",
         .summary = "publish the ports of a cluster's Services and pods (nodens-node-controller@.service)",
         .options = rootless_controller_options,
         .settings_size = sizeof(struct rootless_controller_settings),
         .run = rootless_command_controller},
        {.name = "component",
         .summary = "run a program of Kubernetes in a running node (nodens-node-kubelet@.service and others)",
         .operands = "NAME",
         .operand_values = ND_VALUES_WORDS,
         .operand_words = "runtime kubelet proxy etcd apiserver controller-manager scheduler",
         .options = name_options,
         .settings_size = sizeof(struct rootless_settings),
         .run = rootless_command_component},
        {},
};

const struct nd_option_program rootless_program = {
        .name = "nodens-rootless",
        .summary = "run a node in namespaces of an ordinary user",
        .commands = commands,
};

int rootless_command_fail(struct nd_error *error) {
        nd_autoerror struct nd_error *owned = error;

        (void) fprintf(stderr, "nodens-rootless: %s\n", nd_error_text(owned));
        return nd_error_code(owned) == ND_INVALID ? ND_EXIT_USAGE : EXIT_FAILURE;
}

int rootless_command_fail_service(struct nd_error *error) {
        nd_autoerror struct nd_error *owned = error;

        nd_notify_failure(owned);
        nd_log_last(ND_LOG_ERROR, "cannot start", nd_field("error", nd_error_text(owned)));
        return nd_error_code(owned) == ND_INVALID ? ND_EXIT_USAGE : EXIT_FAILURE;
}

const char *rootless_command_getenv(const char *name, [[maybe_unused]] void *userdata) {
        return getenv(name); /* NOLINT(concurrency-mt-unsafe): one thread */
}

static void print_network(const struct rootless_netplan *plan) {
        char text[ND_ADDRESS_TEXT];
        nd_cleanup(nd_strings_done) struct nd_strings words = {};

        printf("network   %s, MTU %u\n", rootless_net_driver_name(plan->driver), plan->mtu);
        for (size_t i = 0; i < nd_count_of(plan->addresses); i++) {
                if (plan->addresses[i].family)
                        printf("address   %s/%u\n", nd_netlink_address_text(&plan->addresses[i], text),
                               plan->addresses[i].prefix);
                if (plan->gateways[i].family)
                        printf("gateway   %s\n", nd_netlink_address_text(&plan->gateways[i], text));
        }
        if (plan->dns.family)
                printf("names     %s\n", nd_netlink_address_text(&plan->dns, text));
        if (!rootless_netplan_helper_argv(plan, 1, &words))
                return;
        printf("helper   ");
        nd_vector_each (word, &words) {
                if (*word)
                        printf(" %s", *word);
        }
        printf("\n");
}

static void print_overlay(const struct rootless_overlay_plan *plan) {
        if (plan->file)
                printf("overlay   %s of '%s', MTU %u, %zu peers by VXLAN at UDP port %u of the host\n", plan->pods_text,
                       plan->name, plan->mtu, plan->peers, plan->port);
}

void rootless_command_print_ids(const struct rootless_ids *ids, const struct rootless_cluster *cluster) {
        nd_cleanup(nd_strings_done) struct nd_strings limits = {};
        nd_autofree char *summary = rootless_ids_summary(ids), *pods = nullptr;

        rootless_ids_limits(ids, &limits);
        printf("ids       %s\n", summary);
        nd_vector_each (limit, &limits) {
                printf("limit     %s\n", *limit);
        }
        if (ids->pods.count == 0 && ids->advice)
                printf("more      %s\n", ids->advice);
        if (!cluster->node_name) /* a node without Kubernetes */
                return;
        pods = rootless_pod_ids_summary(cluster);
        printf("pods      %s\n", pods);
}

/* Programs that run beside the node. Their command lines have no secrets. */
static struct nd_error *print_control_plane(const struct rootless_cluster *cluster) {
        const struct rootless_component *all[COMPONENTS_CEILING];
        size_t count = rootless_components_of(cluster, all);

        printf("keys      %s\n", cluster->plane.directory);
        printf("published %s\n", cluster->plane.publish);
        for (size_t i = 0; i < count; i++) {
                nd_cleanup(nd_strings_done) struct nd_strings argv = {};

                if (!all[i]->outside)
                        continue;
                nd_try(all[i]->argv(cluster, &argv));
                printf("outside  ");
                nd_vector_each (word, &argv) {
                        printf(" %s", *word);
                }
                printf("\n");
        }
        return nullptr;
}

struct nd_error *rootless_command_explain(const struct rootless_settings *settings, bool lasting) {
        nd_cleanup(rootless_config_done) struct rootless_config config = {};
        nd_cleanup(rootless_bindplan_done) struct rootless_bindplan plan = {}, more = {};
        nd_cleanup(rootless_cluster_done) struct rootless_cluster cluster = {};
        nd_cleanup(rootless_ids_done) struct rootless_ids ids = {};
        nd_autofree char *resolv = nullptr;
        struct rootless_netplan network;
        struct rootless_node node = {.path = (char *) "/run/user/UID/nodens/NAME"};

        nd_try(rootless_config_resolve(settings, lasting, rootless_command_getenv, nullptr, &config));
        nd_try(rootless_network_discover(config.name, config.net, config.mtu, &network, &resolv));
        nd_try(rootless_daemon_plan(&config, &node, true, &ids, &cluster, &more));
        nd_try(rootless_launch_bindplan(&config, &node, resolv, true, &more, &plan));
        rootless_bindplan_print(&plan, stdout);
        print_network(&network);
        print_overlay(&cluster.overlay);
        rootless_command_print_ids(&ids, &cluster);
        if (config.control_plane)
                return print_control_plane(&cluster);
        return nullptr;
}
