/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/components/control-plane.h"

#include <arpa/inet.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "rootless/components/component.h"
#include "rootless/network/discover.h"
#include "sys/child.h"

#define ETCD_SOCKET "etcd.sock"
/* In the working directory. etcd requires the form, and takes a URL with a path only as an abstract
 * address, which root of the node could reach. */
#define ETCD_PEERS "etcd-peers:0"
#define LISTEN "127.0.0.1"

enum {
        SOCKET_PATH = 107, /* sun_path without its terminator */
        OUTPUT_BYTES = 16 * 1024,
};

static constexpr uint64_t certificates_timeout_us = 60 * ND_SECOND_US;

/* The directory of this program; nullptr if it is not known. */
static char *own_directory(void) {
        char own[PATH_MAX];
        ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);

        if (length <= 0)
                return nullptr;
        own[length] = '\0';
        return nd_strndup(own, (size_t) (strrchr(own, '/') - own));
}

char *rootless_program_beside(const char *name) {
        nd_autofree char *directory = own_directory(), *beside = directory ? nd_format("%s/%s", directory, name) : nullptr;

        if (beside && access(beside, X_OK) == 0)
                return nd_take_ptr(beside);
        return nd_format(ND_LIBEXEC "/%s", name);
}

void rootless_programs_add_own(struct rootless_config *config) {
        nd_autofree char *directory = own_directory(), *runtime = directory ? nd_format("%s/nodens-cri", directory) : nullptr;
        char *programs;

        if (!runtime || nd_has_prefix(directory, "/usr/") || nd_has_prefix(directory, "/opt/") || access(runtime, X_OK) < 0)
                return;
        programs = config->programs ? nd_format("%s:%s", config->programs, directory) : nd_strdup(directory);
        free(config->programs);
        config->programs = programs;
}

/* ---- the plan ---- */

/* [ADDRESS:]PORT of --api-port; the port controller checks the rest. */
static struct nd_error *take_port(const char *text, struct rootless_plane *plane) {
        const char *colon = strrchr(text, ':'), *port = colon ? colon + 1 : text;
        unsigned char bytes[16];
        uint64_t number = 0;
        bool any;

        plane->listen = colon ? nd_strndup(text, (size_t) (colon - text)) : nd_strdup(LISTEN);
        if (nd_text_parse_u64(port, UINT16_MAX, &number) < 0 || number == 0 || inet_pton(AF_INET, plane->listen, bytes) != 1)
                return nd_error_new(ND_INVALID, 0, "invalid --api-port '%s': must be [ADDRESS:]PORT with an IPv4 address",
                                    text);
        any = nd_streq(plane->listen, "0.0.0.0");
        plane->publish = nd_format("%s:%llu:" CONTROL_PLANE_PORT, plane->listen, (unsigned long long) number);
        plane->server = nd_format("https://%s:%llu", any ? LISTEN : plane->listen, (unsigned long long) number);
        return nullptr;
}

static struct nd_error *take_address(const struct rootless_config *config, struct rootless_plane *plane) {
        char text[ND_ADDRESS_TEXT];
        nd_autofree char *resolv = nullptr;
        struct rootless_netplan network;

        nd_try(rootless_network_discover(config->name, config->net, config->mtu, &network, &resolv));
        if (network.addresses[0].family != AF_INET)
                return nd_error_new(ND_PRECONDITION, 0,
                                    "--control-plane needs an IPv4 address, and the network of the node has none: pods reach "
                                    "the API server at it");
        plane->address = nd_strdup(nd_netlink_address_text(&network.addresses[0], text));
        return nullptr;
}

struct nd_error *rootless_control_plane_plan(const struct rootless_config *config, const struct rootless_node *node,
                                             struct rootless_cluster *cluster) {
        struct rootless_plane *plane = &cluster->plane;

        if (!config->data)
                return nd_error_new(ND_INVALID, 0, "--control-plane needs a data directory");
        plane->directory = nd_format("%s/" CONTROL_PLANE_DIRECTORY, config->data);
        plane->sockets = nd_strdup(node->path);
        if (strlen(plane->sockets) + strlen("/" ETCD_SOCKET) > SOCKET_PATH)
                return nd_error_new(ND_INVALID, ENAMETOOLONG, "the path of etcd's socket in '%s' is too long", node->path);
        nd_try(take_port(config->api_port ? config->api_port : LISTEN ":" CONTROL_PLANE_PORT, plane));
        nd_try(take_address(config, plane));
        cluster->credentials =
                (struct rootless_credentials) {.kubelet = nd_strdup(""), .proxy = nd_strdup(""), .ca = nd_strdup("")};
        return nullptr;
}

struct nd_error *rootless_control_plane_prepare(struct rootless_cluster *cluster) {
        const struct rootless_plane *plane = &cluster->plane;
        nd_autofree char *program = rootless_program_beside(CONTROL_PLANE_PROGRAM),
                         *kubeconfig = nd_format("%s/" CONTROL_PLANE_NODE, plane->directory);
        const char *const argv[] = {program,        "certificates",     "--directory", plane->directory, "--address",
                                    plane->address, "--listen",         plane->listen, "--server",       plane->server,
                                    "--node-name",  cluster->node_name, nullptr};
        nd_cleanup(nd_child_result_done) struct nd_child_result result = {};
        struct nd_child_plan plan = {
                .argv = argv, .deadline_us = certificates_timeout_us, .output_ceiling = OUTPUT_BYTES, .dies_with_us = true};

        nd_try(nd_child_run(&plan, &result));
        nd_try(nd_error_wrap(nd_child_result_error(&result, CONTROL_PLANE_PROGRAM), "certificates of the control plane"));
        rootless_credentials_done(&cluster->credentials);
        return rootless_credentials_read(kubeconfig, &cluster->credentials);
}

struct nd_error *rootless_bootstrap_discover(const struct rootless_bootstrap *bootstrap, const char *data,
                                             char **ret_kubeconfig) {
        nd_autofree char *program = rootless_program_beside(CONTROL_PLANE_PROGRAM),
                         *output = nd_format("%s/" BOOTSTRAP_DIRECTORY "/" CONTROL_PLANE_NODE, data);
        const char *option = bootstrap->ca ? "--ca" : "--ca-cert-hash",
                   *value = bootstrap->ca ? bootstrap->ca : bootstrap->ca_cert_hash;
        const char *const argv[] = {program, "discover", "--server", bootstrap->server, "--output", output,
                                    option,  value,      nullptr};
        nd_cleanup(nd_child_result_done) struct nd_child_result result = {};
        struct nd_child_plan plan = {.argv = argv,
                                     .input = bootstrap->token,
                                     .input_length = strlen(bootstrap->token),
                                     .deadline_us = certificates_timeout_us,
                                     .output_ceiling = OUTPUT_BYTES,
                                     .dies_with_us = true};

        nd_try(nd_child_run(&plan, &result));
        nd_try(nd_error_wrap(nd_child_result_error(&result, CONTROL_PLANE_PROGRAM), "join with a bootstrap token"));
        (void) fputs(result.errors ? result.errors : "", stderr); /* a warning */
        *ret_kubeconfig = nd_take_ptr(output);
        return nullptr;
}

/* ---- etcd ---- */

static struct nd_error *etcd_argv(const struct rootless_cluster *cluster, struct nd_strings *ret) {
        const struct rootless_plane *plane = &cluster->plane;
        char *program = nullptr;

        nd_try(rootless_cluster_find(cluster, "etcd", "etcd-server", &program));
        nd_strings_add_owned(ret, program);
        nd_strings_add(ret, "--name=default");
        nd_strings_addf(ret, "--data-dir=%s/etcd", plane->directory);
        nd_strings_addf(ret, "--listen-client-urls=unix://%s/" ETCD_SOCKET, plane->sockets);
        nd_strings_add(ret, "--advertise-client-urls=unix://" ETCD_PEERS);
        nd_strings_add(ret, "--listen-peer-urls=unix://" ETCD_PEERS);
        nd_strings_add(ret, "--initial-advertise-peer-urls=unix://" ETCD_PEERS);
        nd_strings_add(ret, "--initial-cluster=default=unix://" ETCD_PEERS);
        nd_strings_add(ret, "--log-level=error");
        return nullptr;
}

const struct rootless_component rootless_component_etcd = {
        .name = "etcd", .notifies = true, .outside = true, .argv = etcd_argv};

/* ---- kube-apiserver ---- */

static void add_file(struct nd_strings *words, const struct rootless_cluster *cluster, const char *option, const char *file) {
        nd_strings_addf(words, "--%s=%s/%s", option, cluster->plane.directory, file);
}

static void add_files(struct nd_strings *words, const struct rootless_cluster *cluster) {
        static const char *const files[][2] = {
                {"client-ca-file", "ca.crt"},
                {"tls-cert-file", "apiserver.crt"},
                {"tls-private-key-file", "apiserver.key"},
                {"kubelet-client-certificate", "apiserver-kubelet-client.crt"},
                {"kubelet-client-key", "apiserver-kubelet-client.key"},
                {"service-account-key-file", "sa.pub"},
                {"service-account-signing-key-file", "sa.key"},
                {"requestheader-client-ca-file", "front-proxy-ca.crt"},
                {"proxy-client-cert-file", "front-proxy-client.crt"},
                {"proxy-client-key-file", "front-proxy-client.key"},
                {"authentication-config", "authentication.yaml"},
        };

        for (size_t i = 0; i < nd_count_of(files); i++)
                add_file(words, cluster, files[i][0], files[i][1]);
}

static struct nd_error *apiserver_argv(const struct rootless_cluster *cluster, struct nd_strings *ret) {
        static const char *const fixed[] = {
                "--bind-address=0.0.0.0", /* of the node's network */
                "--authorization-mode=Node,RBAC",
                "--enable-admission-plugins=NodeRestriction",
                "--enable-bootstrap-token-auth=true",
                "--allow-privileged=true",
                "--profiling=false",
                "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
                "--kubelet-preferred-address-types=InternalIP,Hostname",
                "--requestheader-allowed-names=front-proxy-client",
                "--requestheader-extra-headers-prefix=X-Remote-Extra-",
                "--requestheader-group-headers=X-Remote-Group",
                "--requestheader-username-headers=X-Remote-User",
        };
        char *program = nullptr;

        nd_try(rootless_cluster_find(cluster, "kube-apiserver", nullptr, &program));
        nd_strings_add_owned(ret, program);
        nd_strings_add(ret, "--secure-port=" CONTROL_PLANE_PORT);
        nd_strings_add(ret, "--service-cluster-ip-range=" CONTROL_PLANE_SERVICES);
        nd_strings_addf(ret, "--etcd-servers=unix://%s/" ETCD_SOCKET, cluster->plane.sockets);
        nd_strings_addf(ret, "--advertise-address=%s", cluster->plane.address);
        add_files(ret, cluster);
        for (size_t i = 0; i < nd_count_of(fixed); i++)
                nd_strings_add(ret, fixed[i]);
        return nullptr;
}

static char *apiserver_publish(const struct rootless_cluster *cluster) {
        return nd_strdup(cluster->plane.publish);
}

const struct rootless_component rootless_component_apiserver = {.name = "apiserver",
                                                                .notifies = true,
                                                                .outside = true,
                                                                .after = "etcd",
                                                                .publish = apiserver_publish,
                                                                .argv = apiserver_argv};

/* ---- kube-controller-manager and kube-scheduler ---- */

/* One instance of each runs, so there is no leader to elect. */
static struct nd_error *add_client(const struct rootless_cluster *cluster, const char *program, const char *kubeconfig,
                                   struct nd_strings *ret) {
        static const char *const options[] = {"kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"};
        char *path = nullptr;

        nd_try(rootless_cluster_find(cluster, program, nullptr, &path));
        nd_strings_add_owned(ret, path);
        for (size_t i = 0; i < nd_count_of(options); i++)
                add_file(ret, cluster, options[i], kubeconfig);
        nd_strings_add(ret, "--bind-address=127.0.0.1");
        nd_strings_add(ret, "--leader-elect=false");
        nd_strings_add(ret, "--profiling=false");
        return nullptr;
}

/* bootstrapsigner and tokencleaner serve bootstrap tokens. */
static struct nd_error *controller_manager_argv(const struct rootless_cluster *cluster, struct nd_strings *ret) {
        nd_try(add_client(cluster, "kube-controller-manager", "controller-manager.kubeconfig", ret));
        add_file(ret, cluster, "client-ca-file", "ca.crt");
        add_file(ret, cluster, "requestheader-client-ca-file", "front-proxy-ca.crt");
        add_file(ret, cluster, "root-ca-file", "ca.crt");
        add_file(ret, cluster, "cluster-signing-cert-file", "ca.crt");
        add_file(ret, cluster, "cluster-signing-key-file", "ca.key");
        add_file(ret, cluster, "service-account-private-key-file", "sa.key");
        nd_strings_add(ret, "--use-service-account-credentials=true");
        nd_strings_add(ret, "--controllers=*,bootstrapsigner,tokencleaner");
        return nullptr;
}

static struct nd_error *scheduler_argv(const struct rootless_cluster *cluster, struct nd_strings *ret) {
        return add_client(cluster, "kube-scheduler", "scheduler.kubeconfig", ret);
}

const struct rootless_component rootless_component_controller_manager = {
        .name = "controller-manager", .outside = true, .after = "apiserver", .argv = controller_manager_argv};

const struct rootless_component rootless_component_scheduler = {
        .name = "scheduler", .outside = true, .after = "apiserver", .argv = scheduler_argv};
