/* SPDX-License-Identifier: Apache-2.0 */
/* proxy.c - kube-proxy in a node */
#include "base/json.h"
#include "rootless/components/component.h"

#define CONFIG "/etc/kubernetes/kube-proxy.yaml"
#define KUBECONFIG "/etc/kubernetes/kube-proxy.kubeconfig"

enum { CONFIG_BYTES = 16 * 1024 };

static struct nd_error *proxy_argv(const struct rootless_cluster *cluster, struct nd_strings *ret) {
        char *program = nullptr;
        nd_autofree char *nft = nullptr;

        nd_try(rootless_cluster_find(cluster, "nft", "nftables", &nft)); /* kube-proxy calls it */
        nd_try(rootless_cluster_find(cluster, "kube-proxy", nullptr, &program));
        nd_strings_add_owned(ret, program);
        nd_strings_add(ret, "--config=" CONFIG);
        return nullptr;
}

static void add_config(struct nd_json_out *out, const struct rootless_cluster *cluster) {
        const char *bridge = cluster->cni_list.text ? cluster->cni_list.bridge : CLUSTER_BRIDGE;

        nd_json_open(out, nullptr, '{');
        nd_json_string(out, "apiVersion", "kubeproxy.config.k8s.io/v1alpha1");
        nd_json_string(out, "kind", "KubeProxyConfiguration");
        nd_json_string(out, "mode", "nftables");
        nd_json_string(out, "hostnameOverride", cluster->node_name);
        nd_json_open(out, "clientConnection", '{');
        nd_json_string(out, "kubeconfig", KUBECONFIG);
        nd_json_close(out, '}');
        if (bridge) {
                nd_json_string(out, "detectLocalMode", "BridgeInterface");
                nd_json_open(out, "detectLocal", '{');
                nd_json_string(out, "bridgeInterface", bridge);
                nd_json_close(out, '}');
        }
        /* These sysctls belong to the host; 0 leaves them alone. */
        nd_json_open(out, "conntrack", '{');
        nd_json_number(out, "maxPerCore", 0);
        nd_json_number(out, "min", 0);
        nd_json_string(out, "tcpEstablishedTimeout", "0s");
        nd_json_string(out, "tcpCloseWaitTimeout", "0s");
        nd_json_close(out, '}');
        nd_json_close(out, '}');
}

static struct nd_error *proxy_files(const struct rootless_cluster *cluster, struct rootless_bindplan *plan) {
        nd_autotext struct nd_text text = ND_TEXT(CONFIG_BYTES);
        struct nd_json_out out = {.text = &text, .indent = 1};

        add_config(&out, cluster);
        nd_text_add(&text, "\n");
        rootless_bindplan_add_text(plan, CONFIG, nd_text_get(&text), 0644);
        rootless_bindplan_add_text(plan, KUBECONFIG, cluster->credentials.proxy, 0600);
        return nullptr;
}

/* kube-proxy does not call sd_notify(3). */
const struct rootless_component rootless_component_proxy = {
        .name = "proxy", .after = "apiserver", .argv = proxy_argv, .files = proxy_files};
