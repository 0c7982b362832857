/* SPDX-License-Identifier: Apache-2.0 */
/* runtime.c - container runtimes in a node: nodens-cri and containerd */
#include <string.h>

#include "base/json.h"
#include "rootless/components/component.h"

#define NODENS_CONFIG "/etc/nodens/cri.yaml"
#define NODENS_CERTIFICATES "/etc/nodens/certs.d"
#define CONTAINERD_CONFIG "/etc/containerd/config.toml"
#define CONTAINERD_CERTIFICATES "/etc/containerd/certs.d"

enum { CONFIG_BYTES = 64 * 1024 };

/* ---- nodens-cri ---- */

static struct nd_error *nodens_argv(const struct rootless_cluster *cluster, struct nd_strings *ret) {
        char *program = nullptr;
        nd_autofree char *crun = nullptr;

        nd_try(rootless_cluster_find(cluster, "crun", "crun", &crun));
        nd_try(rootless_cluster_find(cluster, "nodens-cri", "nodens-cri", &program));
        nd_strings_add_owned(ret, program);
        return nullptr;
}

/* A setting that differs from its default only if the program is in --programs. */
static void add_program(struct nd_json_out *out, const struct rootless_cluster *cluster, const char *key, const char *name) {
        nd_autofree char *path = rootless_cluster_find_given(cluster, name);

        if (path)
                nd_json_string(out, key, path);
}

static void add_cdi(struct nd_json_out *out, const char *directory) {
        nd_json_open(out, "cdi", '[');
        nd_json_string(out, nullptr, "/etc/cdi");
        nd_json_string(out, nullptr, "/var/run/cdi");
        nd_json_string(out, nullptr, directory);
        nd_json_close(out, ']');
}

static struct nd_error *nodens_files(const struct rootless_cluster *cluster, struct rootless_bindplan *plan) {
        nd_autotext struct nd_text text = ND_TEXT(CONFIG_BYTES);
        struct nd_json_out out = {.text = &text, .indent = 1};

        nd_json_open(&out, nullptr, '{');
        nd_json_string(&out, "cgroupDriver", "cgroupfs");
        if (cluster->no_cgroups)
                nd_json_bool(&out, "withoutCgroups", true);
        nd_json_open(&out, "cniPlugins", '[');
        nd_vector_each (directory, &cluster->cni) {
                nd_json_string(&out, nullptr, *directory);
        }
        nd_json_close(&out, ']');
        if (cluster->cdi)
                add_cdi(&out, cluster->cdi);
        if (cluster->broker)
                nd_json_string(&out, "pullBroker", cluster->broker);
        add_program(&out, cluster, "crun", "crun");
        add_program(&out, cluster, "init", "catatonit");
        add_program(&out, cluster, "monitor", "nodens-mon");
        add_program(&out, cluster, "fetchHelper", "nodens-fetch");
        add_program(&out, cluster, "unpackHelper", "nodens-unpack");
        nd_json_close(&out, '}');
        nd_text_add(&text, "\n");
        if (text.overflow)
                return nd_error_new(ND_INVALID, E2BIG, "the configuration of nodens-cri is too long");
        rootless_bindplan_add_text(plan, NODENS_CONFIG, nd_text_get(&text), 0644);
        /* registries are those of the host's administrator, not of a node on the host */
        rootless_bindplan_add_read_only(plan, NODENS_CERTIFICATES);
        return nullptr;
}

const struct rootless_component rootless_component_nodens_cri = {
        .name = "runtime", .notifies = true, .argv = nodens_argv, .files = nodens_files};

/* ---- containerd ---- */

static struct nd_error *containerd_argv(const struct rootless_cluster *cluster, struct nd_strings *ret) {
        char *program = nullptr;
        nd_autofree char *shim = nullptr;

        nd_try(rootless_cluster_find(cluster, "containerd-shim-runc-v2", "containerd", &shim));
        nd_try(rootless_cluster_find(cluster, "containerd", "containerd", &program));
        nd_strings_add_owned(ret, program);
        nd_strings_add(ret, "--config=" CONTAINERD_CONFIG);
        return nullptr;
}

/* A TOML string: the escapes are those of JSON. */
static void add_string(struct nd_text *text, const char *value) {
        struct nd_json_out out = {.text = text, .first = true};

        nd_json_string(&out, nullptr, value);
}

static void add_plugin_directories(struct nd_text *text, const struct rootless_cluster *cluster) {
        nd_text_add(text, "  bin_dirs = [");
        for (size_t i = 0; i < cluster->cni.count; i++) {
                nd_text_add(text, i > 0 ? ", " : "");
                add_string(text, cluster->cni.items[i]);
        }
        nd_text_add(text, "]\n");
}

/* AppArmor profiles and negative OOM scores need privileges on the host; the hugetlb controller is
 * not delegated. The overlayfs snapshotter finds out itself that it runs in a user namespace. */
static void add_containerd_config(struct nd_text *text, const struct rootless_cluster *cluster, const char *crun) {
        nd_text_add(text, "version = 3\n"
                          "[plugins.'io.containerd.cri.v1.images']\n"
                          "  snapshotter = 'overlayfs'\n"
                          "[plugins.'io.containerd.cri.v1.images'.registry]\n"
                          "  config_path = '" CONTAINERD_CERTIFICATES "'\n"
                          "[plugins.'io.containerd.cri.v1.runtime']\n"
                          "  disable_apparmor = true\n"
                          "  restrict_oom_score_adj = true\n"
                          "  disable_hugetlb_controller = true\n"
                          "  tolerate_missing_hugetlb_controller = true\n");
        if (cluster->cdi) {
                nd_text_add(text, "  cdi_spec_dirs = ['/etc/cdi', '/var/run/cdi', ");
                add_string(text, cluster->cdi);
                nd_text_add(text, "]\n");
        }
        if (cluster->no_cgroups)
                nd_text_add(text, "  disable_cgroup = true\n");
        nd_text_add(text, "[plugins.'io.containerd.cri.v1.runtime'.cni]\n"
                          "  conf_dir = '/etc/cni/net.d'\n");
        add_plugin_directories(text, cluster);
        nd_text_add(text, "[plugins.'io.containerd.cri.v1.runtime'.containerd]\n"
                          "  default_runtime_name = 'crun'\n"
                          "[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.crun]\n"
                          "  runtime_type = 'io.containerd.runc.v2'\n"
                          "[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.crun.options]\n"
                          "  SystemdCgroup = false\n"
                          "  BinaryName = ");
        add_string(text, crun);
        nd_text_add(text, "\n");
}

static struct nd_error *containerd_files(const struct rootless_cluster *cluster, struct rootless_bindplan *plan) {
        nd_autotext struct nd_text text = ND_TEXT(CONFIG_BYTES);
        nd_autofree char *crun = nullptr;

        nd_try(rootless_cluster_find(cluster, "crun", "crun", &crun));
        add_containerd_config(&text, cluster, crun);
        if (text.overflow)
                return nd_error_new(ND_INVALID, E2BIG, "containerd's configuration is too long");
        rootless_bindplan_add_text(plan, CONTAINERD_CONFIG, nd_text_get(&text), 0644);
        rootless_bindplan_add_read_only(plan, CONTAINERD_CERTIFICATES);
        return nullptr;
}

const struct rootless_component rootless_component_containerd = {
        .name = "runtime", .notifies = true, .argv = containerd_argv, .files = containerd_files};
