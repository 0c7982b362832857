/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/components/cluster.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <limits.h>
#include <string.h>

#include "base/strings.h"
#include "rootless/broker/broker.h"
#include "rootless/broker/destination.h"
#include "rootless/core/node.h"

#define POD_CIDR "10.244.0.0/24"
#define CLUSTER_DNS "10.96.0.10"

enum {
        NAME_BYTES = 253, /* of a Node object */
        LABELS_BYTES = 16 * 1024,
        DNS_CEILING = 3, /* what resolv.conf of a pod can have */
        DIRECTORIES_CEILING = 16,
        PODS_CEILING = 1024,
};

static const char *const program_directories[] = {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin"};
static const char *const plugin_directories[] = {"/opt/cni/bin", "/usr/lib/cni", "/usr/libexec/cni"};

static void plane_done(struct rootless_plane *plane) {
        free(plane->directory);
        free(plane->sockets);
        free(plane->address);
        free(plane->publish);
        free(plane->server);
        free(plane->listen);
}

void rootless_cluster_done(struct rootless_cluster *cluster) {
        plane_done(&cluster->plane);
        free(cluster->node_name);
        free(cluster->path);
        rootless_overlay_plan_done(&cluster->overlay);
        free(cluster->cdi);
        rootless_cni_list_done(&cluster->cni_list);
        free(cluster->no_pod_ids);
        free(cluster->broker);
        nd_strings_done(&cluster->dns);
        nd_strings_done(&cluster->programs);
        nd_strings_done(&cluster->cni);
        rootless_credentials_done(&cluster->credentials);
        *cluster = (struct rootless_cluster) {};
}

/* ---- values ---- */

static struct nd_error *parse_runtime(const char *text, enum rootless_runtime *ret) {
        if (!text || nd_streq(text, "nodens-cri"))
                *ret = RUNTIME_NODENS;
        else if (nd_streq(text, "containerd"))
                *ret = RUNTIME_CONTAINERD;
        else
                return nd_error_new(ND_INVALID, 0, "invalid runtime '%s': must be nodens-cri or containerd", text);
        return nullptr;
}

/* Kubernetes' rule for the names of Node objects. */
static bool node_name_valid(const char *name) {
        size_t length = strlen(name);

        if (length == 0 || length > NAME_BYTES)
                return false;
        for (size_t i = 0; i < length; i++) {
                bool word = (name[i] >= 'a' && name[i] <= 'z') || isdigit((unsigned char) name[i]),
                     edge = i == 0 || i == length - 1 || name[i - 1] == '.' || name[i + 1] == '.';

                if (!word && (edge || (name[i] != '-' && name[i] != '.')))
                        return false;
        }
        return true;
}

/* The host's name, since the cluster's administrator looks for a host, and the node's name unless
 * the user did not choose one. */
static char *default_node_name(const char *node) {
        char host[HOST_NAME_MAX + 1] = "";

        (void) gethostname(host, sizeof host - 1);
        for (char *c = host; *c; c++)
                *c = (char) tolower((unsigned char) *c);
        return nd_streq(node, "default") ? nd_strdup(host) : nd_format("%s-%s", host, node);
}

struct nd_error *rootless_cluster_node_name(const struct rootless_config *config, char **ret) {
        *ret = config->node_name ? nd_strdup(config->node_name) : default_node_name(config->name);
        if (!node_name_valid(*ret))
                return nd_error_new(ND_INVALID, 0,
                                    "invalid name of the Node object '%s': use lowercase letters, digits, '-' and '.'; choose "
                                    "one with --node-name",
                                    *ret);
        return nullptr;
}

static bool address_valid(const char *text) {
        unsigned char bytes[16];

        return inet_pton(AF_INET, text, bytes) == 1 || inet_pton(AF_INET6, text, bytes) == 1;
}

/* ADDRESS/BITS. The kubelet and the CNI plugins check the rest. */
static bool network_valid(const char *text) {
        const char *slash = strchr(text, '/');
        nd_autofree char *address = slash ? nd_strndup(text, (size_t) (slash - text)) : nullptr;
        uint64_t bits;

        return slash && address_valid(address) && nd_text_parse_u64(slash + 1, strchr(address, ':') ? 126 : 30, &bits) == 0 &&
               bits >= 8;
}

static bool labels_valid(const char *text) {
        for (const char *c = text; *c; c++)
                if (!isalnum((unsigned char) *c) && !strchr("._-/=,", *c))
                        return false;
        return strlen(text) <= LABELS_BYTES;
}

static struct nd_error *split(const char *text, const char *separator, size_t ceiling, const char *what,
                              struct nd_strings *ret) {
        nd_autofree char *copy = nd_strdup(text ? text : "");

        for (char *rest = copy, *word; (word = strsep(&rest, separator));)
                if (*word && !nd_strings_add_within(ret, ceiling, word))
                        return nd_error_new(ND_INVALID, 0, "more than %zu entries in %s", ceiling, what);
        return nullptr;
}

static struct nd_error *take_addresses(const struct rootless_config *config, struct rootless_cluster *c) {
        c->node_ip = config->node_ip;
        c->pod_cidr = c->overlay.pods_text ? c->overlay.pods_text : config->pod_cidr ? config->pod_cidr : POD_CIDR;
        if (c->node_ip && !address_valid(c->node_ip))
                return nd_error_new(ND_INVALID, 0, "invalid --node-ip '%s': not an IP address", c->node_ip);
        if (!network_valid(c->pod_cidr))
                return nd_error_new(ND_INVALID, 0, "invalid --pod-cidr '%s': not a network such as " POD_CIDR, c->pod_cidr);
        nd_try(split(config->cluster_dns ? config->cluster_dns : CLUSTER_DNS, ",", DNS_CEILING, "--cluster-dns", &c->dns));
        nd_vector_each (address, &c->dns) {
                if (!address_valid(*address))
                        return nd_error_new(ND_INVALID, 0, "invalid --cluster-dns '%s': not an IP address", *address);
        }
        return nullptr;
}

/* ---- programs ---- */

static void add_directories(struct rootless_cluster *c) {
        nd_autotext struct nd_text path = ND_TEXT(64 * 1024);

        nd_vector_each (directory, &c->programs) {
                nd_text_addf(&path, "%s:", *directory);
                nd_strings_add(&c->cni, *directory);
        }
        for (size_t i = 0; i < nd_count_of(program_directories); i++)
                nd_text_addf(&path, "%s:", program_directories[i]);
        nd_text_add(&path, "/sbin:/bin");
        c->path = nd_strdup(nd_text_get(&path));
        for (size_t i = 0; i < nd_count_of(plugin_directories); i++)
                nd_strings_add(&c->cni, plugin_directories[i]);
}

static struct nd_error *take_programs(const struct rootless_config *config, struct rootless_cluster *c) {
        nd_try(split(config->programs, ":", DIRECTORIES_CEILING, "--programs", &c->programs));
        nd_vector_each (directory, &c->programs) {
                nd_autofree char *path = nd_format("%s%s", c->machine, *directory), *real = realpath(path, nullptr);

                if ((*directory)[0] != '/' || !real)
                        return nd_error_new(ND_INVALID, errno,
                                            "invalid --programs '%s': not a directory with an absolute path", *directory);
                /* in the node it has this path */
                nd_strset(directory, real + strlen(c->machine));
        }
        add_directories(c);
        return nullptr;
}

static struct nd_error *take_cdi(const char *given, struct rootless_cluster *c) {
        nd_autofree char *path = nd_format("%s%s", c->machine, given), *real = realpath(path, nullptr);

        if (given[0] != '/' || !real)
                return nd_error_new(ND_INVALID, errno, "invalid --cdi '%s': not a directory with an absolute path", given);
        c->cdi = nd_strdup(real + strlen(c->machine)); /* in the node it has this path */
        return nullptr;
}

static char *find_in(const struct rootless_cluster *c, const char *directory, const char *name) {
        nd_autofree char *path = nd_format("%s/%s", directory, name), *real = nd_format("%s%s", c->machine, path);

        return access(real, X_OK) == 0 ? nd_take_ptr(path) : nullptr;
}

char *rootless_cluster_find_given(const struct rootless_cluster *c, const char *name) {
        nd_vector_each (directory, &c->programs) {
                char *path = find_in(c, *directory, name);

                if (path)
                        return path;
        }
        return nullptr;
}

struct nd_error *rootless_cluster_find(const struct rootless_cluster *c, const char *name, const char *package, char **ret) {
        *ret = rootless_cluster_find_given(c, name);
        for (size_t i = 0; !*ret && i < nd_count_of(program_directories); i++)
                *ret = find_in(c, program_directories[i], name);
        if (!*ret)
                return nd_error_new(ND_NOT_FOUND, 0,
                                    "program '%s' is not installed%s%s%s; name the directory that it is in with --programs",
                                    name, package ? " (Debian package " : "", package ? package : "", package ? ")" : "");
        return nullptr;
}

static struct nd_error *check_plugin(const struct rootless_cluster *c, const char *plugin) {
        nd_autofree char *found = nullptr;

        nd_vector_each (directory, &c->cni) {
                if (!found)
                        found = find_in(c, *directory, plugin);
        }
        if (!found)
                return nd_error_new(ND_NOT_FOUND, 0,
                                    "CNI plugin '%s' is not installed (Debian package containernetworking-plugins); name "
                                    "the directory that it is in with --programs",
                                    plugin);
        return nullptr;
}

static struct nd_error *check_plugins(const struct rootless_cluster *c) {
        static const char *const own[] = {"bridge", "host-local", "portmap"};

        nd_try(check_plugin(c, "loopback"));
        nd_vector_each (plugin, &c->cni_list.plugins)
                nd_try(check_plugin(c, *plugin));
        for (size_t i = 0; !c->cni_list.text && i < nd_count_of(own); i++)
                nd_try(check_plugin(c, own[i]));
        return nullptr;
}

/* As large as the tap's: a helper copies packet by packet, so that small ones cost throughput. The
 * links of other drivers have the MTU of a network of the host. */
static uint32_t pod_mtu(const struct rootless_config *config) {
        return config->net == NET_DRIVER_PASTA || config->net == NET_DRIVER_SLIRP ? config->mtu : 0;
}

/* Only a network that a helper carries is slower than the host's. */
static struct nd_error *choose_broker(const struct rootless_config *config, struct rootless_cluster *c) {
        const char *ports = config->registry_ports ? config->registry_ports : CLUSTER_REGISTRY_PORTS;
        struct rootless_broker_ports parsed;
        nd_autofree char *top = rootless_node_runtime_dir();

        if (nd_streq(ports, "none") || c->runtime != RUNTIME_NODENS ||
            (config->net != NET_DRIVER_PASTA && config->net != NET_DRIVER_SLIRP))
                return nullptr;
        nd_try(nd_error_wrap(rootless_broker_ports_parse(ports, &parsed), "--registry-ports"));
        c->registry_ports = ports;
        c->broker = nd_format("%s/%s/" BROKER_SOCKET, top, config->name);
        return nullptr;
}

struct nd_error *rootless_cluster_check(const struct rootless_config *config, const char *machine,
                                        struct rootless_cluster *ret) {
        nd_cleanup(rootless_cluster_done) struct rootless_cluster c = {.machine = machine,
                                                                       .name = config->name,
                                                                       .labels = config->labels,
                                                                       .max_pods = config->max_pods,
                                                                       .offset = config->offset,
                                                                       .taint = config->taint,
                                                                       .no_cgroups = config->no_cgroups,
                                                                       .server_tls_bootstrap = config->server_tls_bootstrap,
                                                                       .mtu = pod_mtu(config)};

        nd_try(parse_runtime(config->runtime, &c.runtime));
        nd_try(rootless_cluster_node_name(config, &c.node_name));
        if (config->peers) {
                nd_try(rootless_overlay_plan_make(config, c.node_name, &c.overlay));
                c.mtu = c.overlay.mtu;
        }
        nd_try(take_addresses(config, &c));
        if (c.labels && !labels_valid(c.labels))
                return nd_error_new(ND_INVALID, 0, "invalid --labels '%s': must be KEY=VALUE,...", c.labels);
        if (c.max_pods > PODS_CEILING)
                return nd_error_new(ND_INVALID, 0, "invalid --max-pods %u: must be at most %d", c.max_pods, PODS_CEILING);
        nd_try(take_programs(config, &c));
        if (config->cdi)
                nd_try(take_cdi(config->cdi, &c));
        if (config->cni)
                nd_try(nd_error_wrap(rootless_cni_list_read(config->cni, &c.cni_list), "--cni"));
        nd_try(check_plugins(&c));
        nd_try(choose_broker(config, &c));
        *ret = nd_take(c, (struct rootless_cluster) {});
        return nullptr;
}

struct nd_error *rootless_cluster_resolve(const struct rootless_config *config, const char *machine,
                                          struct rootless_cluster *ret) {
        nd_cleanup(rootless_cluster_done) struct rootless_cluster c = {};

        nd_try(rootless_cluster_check(config, machine, &c));
        nd_try(rootless_credentials_read(config->join, &c.credentials));
        *ret = nd_take(c, (struct rootless_cluster) {});
        return nullptr;
}
