/* SPDX-License-Identifier: Apache-2.0 */
/* kubelet.c - the stock kubelet in a node */
#include <string.h>

#include "base/json.h"
#include "rootless/components/component.h"
#include "rootless/components/pod-ids.h"

#define CONFIG "/etc/kubernetes/kubelet.yaml"
#define KUBECONFIG "/etc/kubernetes/kubelet.kubeconfig"
#define BOOTSTRAP "/etc/kubernetes/bootstrap.kubeconfig"
#define OWN_KUBECONFIG "/var/lib/kubelet/kubeconfig" /* that the kubelet writes */
#define CLIENT_CA "/etc/kubernetes/ca.crt"

enum {
        CONFIG_BYTES = 64 * 1024,
};

static struct nd_error *kubelet_argv(const struct rootless_cluster *cluster, struct nd_strings *ret) {
        char *program = nullptr;

        nd_try(rootless_cluster_find(cluster, "kubelet", nullptr, &program));
        nd_strings_add_owned(ret, program);
        nd_strings_add(ret, "--config=" CONFIG);
        if (cluster->credentials.bootstrap) {
                nd_strings_add(ret, "--bootstrap-kubeconfig=" BOOTSTRAP);
                nd_strings_add(ret, "--kubeconfig=" OWN_KUBECONFIG);
        } else {
                nd_strings_add(ret, "--kubeconfig=" KUBECONFIG);
        }
        nd_strings_addf(ret, "--hostname-override=%s", cluster->node_name);
        if (cluster->node_ip)
                nd_strings_addf(ret, "--node-ip=%s", cluster->node_ip);
        if (cluster->labels)
                nd_strings_addf(ret, "--node-labels=%s", cluster->labels);
        return nullptr;
}

/* Requests come from the API server, with a client certificate or a token of the cluster. */
static void add_authentication(struct nd_json_out *out, bool has_ca) {
        nd_json_open(out, "authentication", '{');
        nd_json_open(out, "anonymous", '{');
        nd_json_bool(out, "enabled", false);
        nd_json_close(out, '}');
        nd_json_open(out, "webhook", '{');
        nd_json_bool(out, "enabled", true);
        nd_json_close(out, '}');
        if (has_ca) {
                nd_json_open(out, "x509", '{');
                nd_json_string(out, "clientCAFile", CLIENT_CA);
                nd_json_close(out, '}');
        }
        nd_json_close(out, '}');
        nd_json_open(out, "authorization", '{');
        nd_json_string(out, "mode", "Webhook");
        nd_json_close(out, '}');
}

/* Since 1.37 the feature gate is on by default. */
static void add_limits(struct nd_json_out *out, const struct rootless_cluster *cluster) {
        nd_json_open(out, "featureGates", '{');
        nd_json_bool(out, "KubeletInUserNamespace", true);
        nd_json_close(out, '}');
        nd_json_string(out, "cgroupDriver", "cgroupfs"); /* the node has no systemd */
        nd_json_bool(out, "failSwapOn", false);
        if (cluster->max_pods)
                nd_json_number(out, "maxPods", cluster->max_pods);
        if (!cluster->no_cgroups)
                return;
        nd_json_bool(out, "cgroupsPerQOS", false);
        nd_json_open(out, "enforceNodeAllocatable", '[');
        nd_json_close(out, ']');
}

static void add_dns(struct nd_json_out *out, const struct rootless_cluster *cluster) {
        nd_json_string(out, "clusterDomain", "cluster.local");
        nd_json_open(out, "clusterDNS", '[');
        nd_vector_each (address, &cluster->dns) {
                nd_json_string(out, nullptr, *address);
        }
        nd_json_close(out, ']');
        nd_json_string(out, "resolvConf", "/etc/resolv.conf");
}

static void add_taint(struct nd_json_out *out) {
        nd_json_open(out, "registerWithTaints", '[');
        nd_json_open(out, nullptr, '{');
        nd_json_string(out, "key", "kubernetes.io/running-in-user-namespace");
        nd_json_string(out, "value", "true");
        nd_json_string(out, "effect", "NoSchedule");
        nd_json_close(out, '}');
        nd_json_close(out, ']');
}

static void add_config(struct nd_json_out *out, const struct rootless_cluster *cluster) {
        nd_json_open(out, nullptr, '{');
        nd_json_string(out, "apiVersion", "kubelet.config.k8s.io/v1beta1");
        nd_json_string(out, "kind", "KubeletConfiguration");
        nd_json_string(out, "containerRuntimeEndpoint",
                       cluster->runtime == RUNTIME_CONTAINERD ? "unix:///run/containerd/containerd.sock"
                                                              : "unix:///run/nodens/cri.sock");
        if (cluster->offset) /* reported in the Node's status, where the API server finds it */
                nd_json_number(out, "port", KUBELET_PORT + cluster->offset);
        add_authentication(out, *cluster->credentials.ca);
        if (cluster->credentials.bootstrap)
                nd_json_bool(out, "rotateCertificates", true);
        add_limits(out, cluster);
        add_dns(out, cluster);
        /* kube-proxy and the CNI plugins have their own rules; /usr is read-only */
        nd_json_bool(out, "makeIPTablesUtilChains", false);
        nd_json_string(out, "volumePluginDir", "/var/lib/kubelet/volume-plugins");
        if (cluster->server_tls_bootstrap)
                nd_json_bool(out, "serverTLSBootstrap", true);
        if (cluster->taint)
                add_taint(out);
        nd_json_close(out, '}');
}

/* Without --node-ip the kubelet looks up the name of its Node object before it registers it. A DNS
 * server that does not answer delays that by 20 s, and the kubelet creates its CSINode, without
 * which the Node is not Ready, up to 2 minutes later. With the name in the node's own file it does
 * not ask: it ignores the loopback address, and takes that of the default route. This must not hide
 * an API server on the host, whose name is the default one of the Node object. */
static bool server_has_name(const struct rootless_cluster *cluster) {
        nd_autofree char *with_port = nd_format("//%s:", cluster->node_name),
                         *without_port = nd_format("//%s\"", cluster->node_name);

        return strstr(cluster->credentials.kubelet, with_port) || strstr(cluster->credentials.kubelet, without_port);
}

static struct nd_error *kubelet_files(const struct rootless_cluster *cluster, struct rootless_bindplan *plan) {
        nd_autotext struct nd_text text = ND_TEXT(CONFIG_BYTES);
        struct nd_json_out out = {.text = &text, .indent = 1};

        add_config(&out, cluster);
        nd_text_add(&text, "\n");
        if (text.overflow)
                return nd_error_new(ND_INVALID, E2BIG, "the kubelet's configuration is too long");
        rootless_bindplan_add_text(plan, CONFIG, nd_text_get(&text), 0644);
        rootless_bindplan_add_text(plan, cluster->credentials.bootstrap ? BOOTSTRAP : KUBECONFIG, cluster->credentials.kubelet,
                                   0600);
        if (*cluster->credentials.ca)
                rootless_bindplan_add_text(plan, CLIENT_CA, cluster->credentials.ca, 0644);
        if (!cluster->node_ip && !server_has_name(cluster))
                rootless_bindplan_add_hosts(plan, cluster->name, cluster->node_name);
        return rootless_pod_ids_files(cluster, plan);
}

/* The API server connects to the kubelet: from another host, unless the control plane is on the
 * node's own network. */
static char *kubelet_publish(const struct rootless_cluster *cluster) {
        unsigned port = KUBELET_PORT + cluster->offset;

        return cluster->plane.directory ? nullptr : nd_format("%u:%u", port, port);
}

const struct rootless_component rootless_component_kubelet = {.name = "kubelet",
                                                              .notifies = true,
                                                              .stops_first = true,
                                                              .after = "apiserver",
                                                              .publish = kubelet_publish,
                                                              .argv = kubelet_argv,
                                                              .files = kubelet_files};
