/* SPDX-License-Identifier: Apache-2.0 */
/* test-components.c - the files and command lines of Kubernetes in a node, parsed back */
#include <unit/expect.h>

#include <sys/stat.h>

#include <unit/scratch.h>

#include "base/yaml.h"
#include "net/kubeconfig.h"
#include "rootless/components/component.h"
#include "rootless/components/pod-ids.h"
#include "rootless/components/record.h"
#include "sys/child.h"
#include "sys/file.h"
#include "sys/process.h"

static const char kubeconfig[] = "apiVersion: v1\n"
                                 "kind: Config\n"
                                 "current-context: admin\n"
                                 "clusters:\n"
                                 "- name: c\n"
                                 "  cluster: {server: 'https://10.0.0.1:6443', certificate-authority: ca.pem}\n"
                                 "users:\n"
                                 "- name: admin\n"
                                 "  user: {token: of-the-admin}\n"
                                 "- name: node\n"
                                 "  user: {client-certificate-data: Q1JU, client-key-data: S0VZ}\n"
                                 "- name: controller\n"
                                 "  user: {tokenFile: token}\n"
                                 "contexts:\n"
                                 "- name: admin\n"
                                 "  context: {cluster: c, user: admin}\n"
                                 "- name: kubelet\n"
                                 "  context: {cluster: c, user: node}\n"
                                 "- name: controller\n"
                                 "  context: {cluster: c, user: controller}\n";

static void add_program(const char *top, const char *path) {
        nd_autofree char *file = nd_format("%s/%s", top, path);

        scratch_text(top, path, "#!/bin/sh\n");
        assert_int_equal(chmod(file, 0755), 0);
}

/* A host with everything that is needed, kubelet and kube-proxy in the user's own directory. */
static char *machine(void) {
        static const char *const programs[] = {"usr/bin/crun",         "usr/sbin/nodens-cri",    "usr/sbin/nft",
                                               "usr/lib/cni/bridge",   "usr/lib/cni/host-local", "usr/lib/cni/loopback",
                                               "usr/lib/cni/portmap",  "home/u/k8s/kubelet",     "home/u/k8s/kube-proxy",
                                               "home/u/k8s/nodens-mon"};
        char *top = scratch_make();

        scratch_mkdir(top, "usr/bin");
        scratch_mkdir(top, "usr/sbin");
        scratch_mkdir(top, "usr/lib/cni");
        scratch_mkdir(top, "home/u/k8s");
        for (size_t i = 0; i < nd_count_of(programs); i++)
                add_program(top, programs[i]);
        scratch_text(top, "kubeconfig", kubeconfig);
        scratch_text(top, "ca.pem", "THE CA");
        scratch_text(top, "token", "of-the-controller\n");
        return top;
}

static struct rootless_config settings(const char *top) {
        return (struct rootless_config) {.name = (char *) "n",
                                         .join = nd_format("%s/kubeconfig", top),
                                         .programs = (char *) "/home/u/k8s",
                                         .node_name = (char *) "laptop"};
}

static const struct rootless_bind *find(const struct rootless_bindplan *plan, const char *target) {
        nd_vector_each (bind, plan) {
                if (nd_streq(bind->target, target))
                        return bind;
        }
        fail_msg("no file '%s' in the plan", target);
        return nullptr;
}

static yyjson_doc *parse(const struct rootless_bindplan *plan, const char *target) {
        const char *text = find(plan, target)->source;
        yyjson_doc *doc = nullptr;

        expect_ok(nd_yaml_parse(text, strlen(text), 1 << 20, &doc));
        return doc;
}

static const char *string_at(yyjson_doc *doc, const char *pointer) {
        return yyjson_get_str(yyjson_doc_ptr_get(doc, pointer));
}

static void make(const char *top, struct rootless_config *config, struct rootless_cluster *cluster,
                 struct rootless_bindplan *plan) {
        expect_ok(rootless_cluster_resolve(config, top, cluster));
        expect_ok(rootless_components_files(cluster, plan));
}

static struct rootless_ids ids_for(uint32_t pods) {
        return (struct rootless_ids) {.pods = {.first = pods > 0 ? 131072 : 0, .count = pods * ND_IDS_UNIT}};
}

static void the_maximum_of_pods_follows_from_their_ids([[maybe_unused]] void **state) {
        static const struct {
                const char *runtime;
                uint32_t fit, given; /* pods */
                uint32_t most;       /* expected; 0 = the default */
                const char *refused; /* part of the reason; nullptr = works */
        } cases[] = {
                {nullptr, 0, 0, 0, "no whole block"},
                {nullptr, 9, 0, 0, "--max-pods 9"},
                {nullptr, 10, 0, 10, nullptr},
                {nullptr, 15, 0, 15, nullptr},
                {nullptr, 200, 0, 0, nullptr},
                {nullptr, 3, 3, 3, nullptr},
                {nullptr, 15, 16, 16, "15 of the 16 pods"},
                {"containerd", 15, 0, 0, "use nodens-cri"},
        };
        scratch_directory top = machine();
        struct rootless_config config = settings(top);
        nd_autofree char *join = config.join;

        add_program(top, "usr/bin/getsubids");
        for (size_t i = 0; i < nd_count_of(cases); i++) {
                nd_cleanup(rootless_cluster_done) struct rootless_cluster cluster = {};
                struct rootless_ids ids = ids_for(cases[i].fit);

                config.runtime = (char *) cases[i].runtime;
                config.max_pods = cases[i].given;
                expect_ok(rootless_cluster_resolve(&config, top, &cluster));
                rootless_pod_ids_choose(&cluster, &ids);
                assert_int_equal(cluster.max_pods, cases[i].most);
                assert_int_equal(cluster.pod_ids.count, cases[i].refused ? 0 : cases[i].fit * ND_IDS_UNIT);
                if (cases[i].refused)
                        assert_non_null(strstr(cluster.no_pod_ids, cases[i].refused));
                else
                        expect_ok(nd_range_check(cluster.pod_ids, ND_IDS_UNIT,
                                                 cluster.max_pods ? cluster.max_pods : ND_PODS_DEFAULT));
        }
}

static void without_getsubids_a_kubelet_gets_no_ids([[maybe_unused]] void **state) {
        scratch_directory top = machine();
        struct rootless_config config = settings(top);
        nd_autofree char *join = config.join;
        nd_cleanup(rootless_cluster_done) struct rootless_cluster cluster = {};
        struct rootless_ids ids = ids_for(15);

        expect_ok(rootless_cluster_resolve(&config, top, &cluster));
        rootless_pod_ids_choose(&cluster, &ids);
        assert_int_equal(cluster.pod_ids.count, 0);
        assert_non_null(strstr(cluster.no_pod_ids, "getsubids"));
}

/* The host may have a kubelet of its own, whose IDs are not the node's. */
static void the_node_has_its_own_user_kubelet_or_none([[maybe_unused]] void **state) {
        scratch_directory top = machine();
        struct rootless_config config = settings(top);
        nd_autofree char *join = config.join;

        add_program(top, "usr/bin/getsubids");
        scratch_mkdir(top, "etc");
        scratch_text(top, "etc/passwd", "root:x:0:0::/root:/bin/sh\nkubelet:x:7:7::/:/bin/sh\nkubelets:x:8:8::/:/bin/sh\n");
        scratch_text(top, "etc/nsswitch.conf", "passwd: files sss\nsubid: sss\n");
        for (unsigned pods = 0; pods <= 15; pods += 15) {
                nd_cleanup(rootless_cluster_done) struct rootless_cluster cluster = {};
                nd_cleanup(rootless_bindplan_done) struct rootless_bindplan plan = {};
                struct rootless_ids ids = ids_for(pods);

                expect_ok(rootless_cluster_resolve(&config, top, &cluster));
                rootless_pod_ids_choose(&cluster, &ids);
                expect_ok(rootless_components_files(&cluster, &plan));
                assert_string_equal(find(&plan, "/etc/subuid")->source, pods ? "kubelet:131072:983040\n" : "");
                assert_string_equal(find(&plan, "/etc/subgid")->source, pods ? "kubelet:131072:983040\n" : "");
                assert_string_equal(find(&plan, "/etc/nsswitch.conf")->source, "passwd: files sss\n");
                assert_null(strstr(find(&plan, "/etc/passwd")->source, "kubelet:x:7"));
                assert_non_null(strstr(find(&plan, "/etc/passwd")->source, "kubelets:x:8"));
                assert_int_equal(strstr(find(&plan, "/etc/passwd")->source, "kubelet:x:65534") != nullptr, pods > 0);
        }
}

static void the_kubelet_runs_in_a_user_namespace([[maybe_unused]] void **state) {
        scratch_directory top = machine();
        struct rootless_config config = settings(top);
        nd_autofree char *join = config.join;
        nd_cleanup(rootless_cluster_done) struct rootless_cluster cluster = {};
        nd_cleanup(rootless_bindplan_done) struct rootless_bindplan plan = {};
        nd_autojson yyjson_doc *doc = nullptr;

        config.taint = true;
        config.max_pods = 20;
        config.cluster_dns = (char *) "10.0.0.2,fd00::2";
        make(top, &config, &cluster, &plan);
        doc = parse(&plan, "/etc/kubernetes/kubelet.yaml");
        assert_true(yyjson_is_true(yyjson_doc_ptr_get(doc, "/featureGates/KubeletInUserNamespace")));
        assert_string_equal(string_at(doc, "/cgroupDriver"), "cgroupfs");
        assert_string_equal(string_at(doc, "/containerRuntimeEndpoint"), "unix:///run/nodens/cri.sock");
        assert_string_equal(string_at(doc, "/authorization/mode"), "Webhook");
        assert_true(yyjson_is_false(yyjson_doc_ptr_get(doc, "/authentication/anonymous/enabled")));
        assert_string_equal(string_at(doc, "/authentication/x509/clientCAFile"), "/etc/kubernetes/ca.crt");
        assert_string_equal(find(&plan, "/etc/kubernetes/ca.crt")->source, "THE CA");
        assert_string_equal(string_at(doc, "/clusterDNS/1"), "fd00::2");
        assert_string_equal(string_at(doc, "/registerWithTaints/0/key"), "kubernetes.io/running-in-user-namespace");
        assert_int_equal(yyjson_get_int(yyjson_doc_ptr_get(doc, "/maxPods")), 20);
        assert_null(yyjson_doc_ptr_get(doc, "/cgroupsPerQOS"));
        assert_null(yyjson_doc_ptr_get(doc, "/serverTLSBootstrap"));
}

static void the_cluster_signs_the_kubelets_certificate_on_request([[maybe_unused]] void **state) {
        scratch_directory top = machine();
        struct rootless_config config = settings(top);
        nd_autofree char *join = config.join;
        nd_cleanup(rootless_cluster_done) struct rootless_cluster cluster = {};
        nd_cleanup(rootless_bindplan_done) struct rootless_bindplan plan = {};
        nd_autojson yyjson_doc *doc = nullptr;

        config.server_tls_bootstrap = true;
        make(top, &config, &cluster, &plan);
        doc = parse(&plan, "/etc/kubernetes/kubelet.yaml");
        assert_true(yyjson_is_true(yyjson_doc_ptr_get(doc, "/serverTLSBootstrap")));
}

static void both_runtimes_find_the_users_cdi_files([[maybe_unused]] void **state) {
        static const char *const runtimes[] = {"nodens-cri", "containerd"};
        scratch_directory top = machine();

        add_program(top, "usr/bin/containerd");
        add_program(top, "usr/bin/containerd-shim-runc-v2");
        for (size_t i = 0; i < nd_count_of(runtimes); i++) {
                struct rootless_config config = settings(top);
                nd_autofree char *join = config.join;
                nd_cleanup(rootless_cluster_done) struct rootless_cluster cluster = {};
                nd_cleanup(rootless_bindplan_done) struct rootless_bindplan plan = {};

                config.runtime = (char *) runtimes[i];
                config.cdi = (char *) "/home/u/k8s";
                make(top, &config, &cluster, &plan);
                expect_contains(find(&plan, i == 0 ? "/etc/nodens/cri.yaml" : "/etc/containerd/config.toml")->source,
                                "\"/home/u/k8s\"");
        }
}

static void without_cgroups_the_kubelet_makes_none([[maybe_unused]] void **state) {
        scratch_directory top = machine();
        struct rootless_config config = settings(top);
        nd_autofree char *join = config.join;
        nd_cleanup(rootless_cluster_done) struct rootless_cluster cluster = {};
        nd_cleanup(rootless_bindplan_done) struct rootless_bindplan plan = {};
        nd_autojson yyjson_doc *doc = nullptr;

        config.no_cgroups = true;
        make(top, &config, &cluster, &plan);
        doc = parse(&plan, "/etc/kubernetes/kubelet.yaml");
        assert_true(yyjson_is_false(yyjson_doc_ptr_get(doc, "/cgroupsPerQOS")));
        assert_int_equal(yyjson_arr_size(yyjson_doc_ptr_get(doc, "/enforceNodeAllocatable")), 0);
}

static void kube_proxy_leaves_the_hosts_sysctls_alone([[maybe_unused]] void **state) {
        scratch_directory top = machine();
        struct rootless_config config = settings(top);
        nd_autofree char *join = config.join;
        nd_cleanup(rootless_cluster_done) struct rootless_cluster cluster = {};
        nd_cleanup(rootless_bindplan_done) struct rootless_bindplan plan = {};
        nd_autojson yyjson_doc *proxy = nullptr, *network = nullptr;

        make(top, &config, &cluster, &plan);
        proxy = parse(&plan, "/etc/kubernetes/kube-proxy.yaml");
        assert_string_equal(string_at(proxy, "/mode"), "nftables");
        assert_int_equal(yyjson_get_int(yyjson_doc_ptr_get(proxy, "/conntrack/maxPerCore")), 0);
        assert_string_equal(string_at(proxy, "/conntrack/tcpEstablishedTimeout"), "0s");
        assert_string_equal(string_at(proxy, "/conntrack/tcpCloseWaitTimeout"), "0s");
        network = parse(&plan, "/etc/cni/net.d/10-nodens.conflist");
        assert_string_equal(string_at(network, "/plugins/0/ipam/ranges/0/0/subnet"), "10.244.0.0/24");
        assert_string_equal(string_at(network, "/plugins/0/bridge"), string_at(proxy, "/detectLocal/bridgeInterface"));
        assert_true(yyjson_is_true(yyjson_doc_ptr_get(network, "/plugins/0/ipMasq")));
        assert_string_equal(string_at(network, "/plugins/1/type"), "portmap");
        assert_int_equal(find(&plan, "/etc/nodens/certs.d")->kind, BIND_TREE);
        assert_true(find(&plan, "/etc/nodens/certs.d")->read_only && find(&plan, "/etc/nodens/certs.d")->optional);
}

static void make_with_list(const char *top, const char *list, struct rootless_bindplan *plan) {
        struct rootless_config config = settings(top);
        nd_autofree char *join = config.join, *path = nd_format("%s/list", top);
        nd_cleanup(rootless_cluster_done) struct rootless_cluster cluster = {};

        scratch_text(top, "list", list);
        config.cni = path;
        make(top, &config, &cluster, plan);
}

static void a_network_of_the_users_own_takes_the_place_of_the_bridge([[maybe_unused]] void **state) {
        static const char list[] =
                "{\"cniVersion\":\"1.0.0\",\"name\":\"x\",\"plugins\":[{\"type\":\"bridge\",\"bridge\":\"br7\","
                "\"ipam\":{\"type\":\"host-local\"}}]}",
                          other[] = "{\"cniVersion\":\"1.0.0\",\"name\":\"x\",\"plugins\":[{\"type\":\"loopback\"}]}";
        scratch_directory top = machine();
        nd_cleanup(rootless_bindplan_done) struct rootless_bindplan plan = {}, without = {};
        nd_autojson yyjson_doc *proxy = nullptr, *without_bridge = nullptr;

        make_with_list(top, list, &plan);
        assert_string_equal(find(&plan, "/etc/cni/net.d/10-nodens.conflist")->source, list);
        proxy = parse(&plan, "/etc/kubernetes/kube-proxy.yaml");
        assert_string_equal(string_at(proxy, "/detectLocal/bridgeInterface"), "br7");
        make_with_list(top, other, &without);
        without_bridge = parse(&without, "/etc/kubernetes/kube-proxy.yaml");
        assert_null(yyjson_doc_ptr_get(without_bridge, "/detectLocalMode"));
}

static void networks_that_are_no_list_are_refused([[maybe_unused]] void **state) {
        static const struct {
                const char *list;
                enum nd_error_code code;
                const char *message;
        } wrong[] = {
                {"[]", ND_INVALID, "it needs name"},
                {"{\"cniVersion\":\"1.0.0\",\"name\":\"x\",\"plugins\":[]}", ND_INVALID, "it needs name"},
                {"{\"name\":\"x\",\"plugins\":[{\"type\":\"bridge\"}]}", ND_INVALID, "it needs name"},
                {"{\"cniVersion\":\"1.0.0\",\"name\":\"x\",\"plugins\":[{\"type\":\"../sh\"}]}", ND_INVALID, "no valid type"},
                {"{\"cniVersion\":\"1.0.0\",\"name\":\"x\",\"plugins\":[{\"type\":\"bridge\",\"bridge\":\"a/b\"}]}",
                 ND_INVALID, "network interface"},
                {"{\"cniVersion\":\"1.0.0\",\"name\":\"x\",\"plugins\":[{\"type\":\"absent\"}]}", ND_NOT_FOUND, "'absent'"},
        };
        scratch_directory top = machine();

        for (size_t i = 0; i < nd_count_of(wrong); i++) {
                struct rootless_config config = settings(top);
                nd_autofree char *join = config.join, *path = nd_format("%s/list", top);
                nd_cleanup(rootless_cluster_done) struct rootless_cluster cluster = {};

                scratch_text(top, "list", wrong[i].list);
                config.cni = path;
                expect_error(rootless_cluster_check(&config, top, &cluster), wrong[i].code, wrong[i].message);
        }
}

static void pods_have_the_mtu_of_a_helpers_tap([[maybe_unused]] void **state) {
        static const enum rootless_net_driver drivers[] = {NET_DRIVER_PASTA, NET_DRIVER_SLIRP, NET_DRIVER_LXC,
                                                           NET_DRIVER_HOST};

        for (size_t i = 0; i < nd_count_of(drivers); i++) {
                scratch_directory top = machine();
                struct rootless_config config = settings(top);
                nd_autofree char *join = config.join;
                nd_cleanup(rootless_cluster_done) struct rootless_cluster cluster = {};
                nd_cleanup(rootless_bindplan_done) struct rootless_bindplan plan = {};
                nd_autojson yyjson_doc *network = nullptr;

                config.net = drivers[i];
                config.mtu = 40000;
                make(top, &config, &cluster, &plan);
                network = parse(&plan, "/etc/cni/net.d/10-nodens.conflist");
                if (drivers[i] == NET_DRIVER_PASTA || drivers[i] == NET_DRIVER_SLIRP)
                        assert_int_equal(yyjson_get_int(yyjson_doc_ptr_get(network, "/plugins/0/mtu")), 40000);
                else
                        assert_null(yyjson_doc_ptr_get(network, "/plugins/0/mtu"));
        }
}

/* The kubelet's context and the current one; the controller's is not for the node. */
static void credentials_are_inlined_by_context([[maybe_unused]] void **state) {
        scratch_directory top = machine();
        struct rootless_config config = settings(top);
        nd_autofree char *join = config.join;
        nd_cleanup(rootless_cluster_done) struct rootless_cluster cluster = {};
        nd_cleanup(rootless_bindplan_done) struct rootless_bindplan plan = {};
        nd_cleanup(nd_kubeconfig_done) struct nd_kubeconfig kubelet = {}, proxy = {};
        const struct rootless_bind *file;

        make(top, &config, &cluster, &plan);
        file = find(&plan, "/etc/kubernetes/kubelet.kubeconfig");
        assert_int_equal(file->mode, 0600);
        expect_ok(nd_kubeconfig_parse(file->source, strlen(file->source), nullptr, &kubelet));
        assert_string_equal(kubelet.certificate, "CRT");
        assert_string_equal(kubelet.key, "KEY");
        assert_string_equal(kubelet.ca, "THE CA");
        assert_null(kubelet.token);
        file = find(&plan, "/etc/kubernetes/kube-proxy.kubeconfig");
        expect_ok(nd_kubeconfig_parse(file->source, strlen(file->source), nullptr, &proxy));
        assert_string_equal(proxy.token, "of-the-admin");
        nd_vector_each (bind, &plan) {
                assert_null(strstr(bind->source, "of-the-controller"));
        }
}

static void the_controllers_credentials_stay_outside([[maybe_unused]] void **state) {
        scratch_directory top = machine();
        struct rootless_config config = settings(top);
        nd_autofree char *join = config.join, *text = nullptr;
        nd_cleanup(nd_kubeconfig_done) struct nd_kubeconfig controller = {};

        expect_ok(rootless_credentials_format(join, "controller", &text, nullptr));
        expect_ok(nd_kubeconfig_parse(text, strlen(text), nullptr, &controller));
        assert_string_equal(controller.token, "of-the-controller");
}

static void a_kubeconfig_that_cannot_be_used_is_refused([[maybe_unused]] void **state) {
        scratch_directory top = machine();
        struct rootless_config config = settings(top);
        nd_autofree char *join = config.join;
        nd_cleanup(rootless_cluster_done) struct rootless_cluster cluster = {};

        scratch_text(top, "kubeconfig", "current-context: x\n");
        expect_error(rootless_cluster_resolve(&config, top, &cluster), ND_NOT_FOUND, "no context 'x'");
        scratch_text(top, "kubeconfig", "a: [b\n");
        expect_error(rootless_cluster_resolve(&config, top, &cluster), ND_INVALID, "kubeconfig");
}

static void programs_are_found_in_the_users_directory_first([[maybe_unused]] void **state) {
        scratch_directory top = machine();
        struct rootless_config config = settings(top);
        nd_autofree char *join = config.join;
        nd_cleanup(rootless_cluster_done) struct rootless_cluster cluster = {};
        nd_cleanup(rootless_bindplan_done) struct rootless_bindplan plan = {};
        nd_cleanup(nd_strings_done) struct nd_strings argv = {};
        nd_autojson yyjson_doc *doc = nullptr;

        config.labels = (char *) "a=b";
        config.node_ip = (char *) "10.0.0.7";
        make(top, &config, &cluster, &plan);
        expect_ok(rootless_component_kubelet.argv(&cluster, &argv));
        assert_string_equal(argv.items[0], "/home/u/k8s/kubelet");
        assert_true(nd_strings_have(&argv, "--node-labels=a=b"));
        assert_true(nd_strings_have(&argv, "--node-ip=10.0.0.7"));
        assert_true(nd_strings_have(&argv, "--hostname-override=laptop"));
        assert_true(nd_has_prefix(cluster.path, "/home/u/k8s:/usr/local/sbin:"));
        doc = parse(&plan, "/etc/nodens/cri.yaml");
        assert_string_equal(string_at(doc, "/monitor"), "/home/u/k8s/nodens-mon");
        assert_string_equal(string_at(doc, "/cniPlugins/0"), "/home/u/k8s");
        assert_null(yyjson_doc_ptr_get(doc, "/fetchHelper"));
}

static void the_kubelet_finds_its_name_without_dns([[maybe_unused]] void **state) {
        static const struct {
                const char *node_name, *node_ip;
                const char *last; /* line of /etc/hosts; nullptr = that of any node */
        } cases[] = {
                {"laptop", nullptr, "127.0.1.1 n laptop\n"}, {"laptop", "10.0.0.7", nullptr}, {"10.0.0.1", nullptr, nullptr}};

        for (size_t i = 0; i < nd_count_of(cases); i++) {
                scratch_directory top = machine();
                struct rootless_config config = settings(top);
                nd_autofree char *join = config.join;
                nd_cleanup(rootless_cluster_done) struct rootless_cluster cluster = {};
                nd_cleanup(rootless_bindplan_done) struct rootless_bindplan plan = {};
                const char *hosts = nullptr;

                config.node_name = (char *) cases[i].node_name;
                config.node_ip = (char *) cases[i].node_ip;
                make(top, &config, &cluster, &plan);
                nd_vector_each (bind, &plan) {
                        hosts = nd_streq(bind->target, "/etc/hosts") ? bind->source : hosts;
                }
                assert_int_equal(hosts != nullptr, cases[i].last != nullptr);
                assert_true(!hosts || strstr(hosts, cases[i].last));
        }
}

static void a_missing_program_is_named([[maybe_unused]] void **state) {
        scratch_directory top = machine();
        struct rootless_config config = settings(top);
        nd_autofree char *join = config.join, *kubelet = nd_format("%s/home/u/k8s/kubelet", top),
                         *plugin = nd_format("%s/usr/lib/cni/portmap", top);
        nd_cleanup(rootless_cluster_done) struct rootless_cluster cluster = {};
        nd_cleanup(rootless_bindplan_done) struct rootless_bindplan plan = {};

        assert_int_equal(unlink(kubelet), 0);
        expect_ok(rootless_cluster_resolve(&config, top, &cluster));
        expect_error(rootless_components_files(&cluster, &plan), ND_NOT_FOUND, "program 'kubelet' is not installed");
        rootless_cluster_done(&cluster);
        assert_int_equal(unlink(plugin), 0);
        expect_error(rootless_cluster_resolve(&config, top, &cluster), ND_NOT_FOUND, "containernetworking-plugins");
}

static void containerd_is_configured_for_a_user_namespace([[maybe_unused]] void **state) {
        scratch_directory top = machine();
        struct rootless_config config = settings(top);
        nd_autofree char *join = config.join;
        nd_cleanup(rootless_cluster_done) struct rootless_cluster cluster = {};
        nd_cleanup(rootless_bindplan_done) struct rootless_bindplan plan = {};
        const char *text;

        add_program(top, "home/u/k8s/containerd");
        add_program(top, "home/u/k8s/containerd-shim-runc-v2");
        config.runtime = (char *) "containerd";
        make(top, &config, &cluster, &plan);
        text = find(&plan, "/etc/containerd/config.toml")->source;
        assert_non_null(strstr(text, "\n  disable_apparmor = true\n"));
        assert_non_null(strstr(text, "\n  restrict_oom_score_adj = true\n"));
        assert_non_null(strstr(text, "\n  bin_dirs = [\"/home/u/k8s\", \"/opt/cni/bin\", "));
        assert_non_null(strstr(text, "\n  BinaryName = \"/usr/bin/crun\"\n"));
}

static void invalid_settings_are_refused([[maybe_unused]] void **state) {
        static const struct {
                size_t field;
                const char *value, *message;
        } wrong[] = {
                {offsetof(struct rootless_config, runtime), "docker", "nodens-cri or containerd"},
                {offsetof(struct rootless_config, node_name), "A", "--node-name"},
                {offsetof(struct rootless_config, node_name), "a..b", "--node-name"},
                {offsetof(struct rootless_config, node_name), "a\n--x", "--node-name"},
                {offsetof(struct rootless_config, node_ip), "host", "--node-ip"},
                {offsetof(struct rootless_config, labels), "a=b --config=/x", "--labels"},
                {offsetof(struct rootless_config, pod_cidr), "10.0.0.0", "--pod-cidr"},
                {offsetof(struct rootless_config, pod_cidr), "10.0.0.0/33", "--pod-cidr"},
                {offsetof(struct rootless_config, cluster_dns), "a,b", "--cluster-dns"},
                {offsetof(struct rootless_config, programs), "relative", "--programs"},
                {offsetof(struct rootless_config, programs), "/absent", "--programs"},
                {offsetof(struct rootless_config, cdi), "relative", "--cdi"},
                {offsetof(struct rootless_config, cdi), "/absent", "--cdi"},
        };
        scratch_directory top = machine();

        for (size_t i = 0; i < nd_count_of(wrong); i++) {
                struct rootless_config config = settings(top);
                nd_autofree char *join = config.join;
                nd_cleanup(rootless_cluster_done) struct rootless_cluster cluster = {};

                *(const char **) (void *) ((char *) &config + wrong[i].field) = wrong[i].value;
                expect_error(rootless_cluster_check(&config, top, &cluster), ND_INVALID, wrong[i].message);
        }
}

static void a_record_is_read_as_it_was_written([[maybe_unused]] void **state) {
        scratch_directory top = machine();
        struct rootless_config config = settings(top);
        nd_autofree char *join = config.join;
        nd_cleanup(rootless_cluster_done) struct rootless_cluster cluster = {};
        nd_cleanup(rootless_component_record_done) struct rootless_component_record record = {};
        nd_cleanup(rootless_component_state_done) struct rootless_component_state ended = {}, running = {};
        nd_cleanup(nd_strings_done) struct nd_strings names = {};
        struct rootless_node node = {.name = (char *) "n", .path = top, .fd = -EBADF, .lock_fd = -EBADF};
        struct rootless_component_state now = {.pid = getpid(), .state = "ready", .status = (char *) "fine"};

        expect_ok(nd_dir_open(AT_FDCWD, top, &node.fd));
        expect_ok(rootless_cluster_resolve(&config, top, &cluster));
        expect_ok(rootless_components_record(&cluster, &node));
        expect_ok(rootless_component_record_load(&node, "kubelet", &record));
        assert_string_equal(record.argv.items[0], "/home/u/k8s/kubelet");
        assert_string_equal(record.node_name, "laptop");
        assert_true(record.notifies && record.stops_first);
        assert_string_equal(record.publish, "10250:10250");
        assert_string_equal(record.after, "");
        assert_false(record.outside);
        expect_error(rootless_component_record_load(&node, "absent", &record), ND_NOT_FOUND, "no component 'absent'");
        expect_error(rootless_component_record_load(&node, "../x", &record), ND_INVALID, "invalid name");
        rootless_component_state_load(&node, "kubelet", &ended);
        assert_string_equal(ended.state, "ended");
        expect_ok(nd_process_start_time(getpid(), &now.started));
        expect_ok(rootless_component_state_save(&node, "kubelet", &now));
        rootless_component_state_load(&node, "kubelet", &running);
        assert_string_equal(running.state, "ready");
        assert_string_equal(running.status, "fine");
        assert_int_equal(running.pid, getpid());
        rootless_component_names(&node, &names);
        assert_int_equal(names.count, 3); /* the state is not a component */
        rootless_node_clear(&node);
        nd_strings_done(&names);
        rootless_component_names(&node, &names);
        assert_int_equal(names.count, 0);
        (void) close(node.fd);
}

static void add_plane(const char *top, struct rootless_cluster *cluster) {
        static const char *const programs[] = {"usr/bin/etcd", "home/u/k8s/kube-apiserver",
                                               "home/u/k8s/kube-controller-manager", "home/u/k8s/kube-scheduler"};

        for (size_t i = 0; i < nd_count_of(programs); i++)
                add_program(top, programs[i]);
        cluster->plane = (struct rootless_plane) {.directory = nd_strdup("/data/control-plane"),
                                                  .sockets = nd_strdup("/run/n"),
                                                  .address = nd_strdup("10.0.0.2"),
                                                  .publish = nd_strdup("127.0.0.1:6443:6443")};
}

/* etcd without a TCP port, and nothing in the node waits for or is reached by another host. */
static void a_control_plane_runs_outside_of_the_node([[maybe_unused]] void **state) {
        static const char *const names[] = {"etcd", "apiserver", "controller-manager", "scheduler"};
        scratch_directory top = machine();
        struct rootless_config config = settings(top);
        nd_autofree char *join = config.join;
        nd_cleanup(rootless_cluster_done) struct rootless_cluster cluster = {};
        nd_cleanup(rootless_component_record_done) struct rootless_component_record kubelet = {};
        struct rootless_node node = {.name = (char *) "n", .path = top, .fd = -EBADF, .lock_fd = -EBADF};

        expect_ok(nd_dir_open(AT_FDCWD, top, &node.fd));
        expect_ok(rootless_cluster_resolve(&config, top, &cluster));
        add_plane(top, &cluster);
        expect_ok(rootless_components_record(&cluster, &node));
        for (size_t i = 0; i < nd_count_of(names); i++) {
                nd_cleanup(rootless_component_record_done) struct rootless_component_record record = {};

                expect_ok(rootless_component_record_load(&node, names[i], &record));
                assert_true(record.outside);
                assert_string_equal(record.after, i == 0 ? "" : i == 1 ? "etcd" : "apiserver");
                assert_string_equal(record.publish, i == 1 ? "127.0.0.1:6443:6443" : "");
                nd_vector_each (word, &record.argv) {
                        assert_null(strstr(*word, "http://"));
                }
        }
        expect_ok(rootless_component_record_load(&node, "kubelet", &kubelet));
        assert_false(kubelet.outside);
        assert_string_equal(kubelet.publish, "");
        assert_string_equal(kubelet.after, "apiserver");
        (void) close(node.fd);
}

static void with_a_bootstrap_token_kube_proxy_uses_the_kubelets_certificate([[maybe_unused]] void **state) {
        scratch_directory top = machine();
        struct rootless_config config = settings(top);
        nd_autofree char *join = config.join;
        nd_cleanup(rootless_cluster_done) struct rootless_cluster cluster = {};
        nd_cleanup(rootless_bindplan_done) struct rootless_bindplan plan = {};
        nd_cleanup(nd_strings_done) struct nd_strings argv = {};

        scratch_text(top, "kubeconfig",
                     "current-context: bootstrap\n"
                     "clusters: [{name: c, cluster: {server: 'https://10.0.0.1:6443', certificate-authority-data: Q0E=}}]\n"
                     "users: [{name: u, user: {token: abcdef.0123456789abcdef}}]\n"
                     "contexts: [{name: bootstrap, context: {cluster: c, user: u}}]\n");
        expect_ok(rootless_cluster_resolve(&config, top, &cluster));
        assert_true(cluster.credentials.bootstrap);
        expect_ok(rootless_components_files(&cluster, &plan));
        assert_non_null(strstr(find(&plan, "/etc/kubernetes/bootstrap.kubeconfig")->source, "0123456789abcdef"));
        assert_null(strstr(find(&plan, "/etc/kubernetes/kube-proxy.kubeconfig")->source, "0123456789abcdef"));
        assert_non_null(strstr(find(&plan, "/etc/kubernetes/kube-proxy.kubeconfig")->source, KUBELET_CERTIFICATE));
        expect_ok(rootless_component_kubelet.argv(&cluster, &argv));
        assert_true(nd_strings_have(&argv, "--bootstrap-kubeconfig=/etc/kubernetes/bootstrap.kubeconfig"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_maximum_of_pods_follows_from_their_ids),
                cmocka_unit_test(without_getsubids_a_kubelet_gets_no_ids),
                cmocka_unit_test(the_node_has_its_own_user_kubelet_or_none),
                cmocka_unit_test(the_kubelet_runs_in_a_user_namespace),
                cmocka_unit_test(the_cluster_signs_the_kubelets_certificate_on_request),
                cmocka_unit_test(both_runtimes_find_the_users_cdi_files),
                cmocka_unit_test(without_cgroups_the_kubelet_makes_none),
                cmocka_unit_test(kube_proxy_leaves_the_hosts_sysctls_alone),
                cmocka_unit_test(a_network_of_the_users_own_takes_the_place_of_the_bridge),
                cmocka_unit_test(networks_that_are_no_list_are_refused),
                cmocka_unit_test(pods_have_the_mtu_of_a_helpers_tap),
                cmocka_unit_test(credentials_are_inlined_by_context),
                cmocka_unit_test(the_controllers_credentials_stay_outside),
                cmocka_unit_test(a_kubeconfig_that_cannot_be_used_is_refused),
                cmocka_unit_test(programs_are_found_in_the_users_directory_first),
                cmocka_unit_test(the_kubelet_finds_its_name_without_dns),
                cmocka_unit_test(a_missing_program_is_named),
                cmocka_unit_test(containerd_is_configured_for_a_user_namespace),
                cmocka_unit_test(invalid_settings_are_refused),
                cmocka_unit_test(a_record_is_read_as_it_was_written),
                cmocka_unit_test(a_control_plane_runs_outside_of_the_node),
                cmocka_unit_test(with_a_bootstrap_token_kube_proxy_uses_the_kubelets_certificate),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
