/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/components/cni.h"

#include <string.h>

#include "base/json.h"

#define CONFLIST "/etc/cni/net.d/10-nodens.conflist"

enum { CONFLIST_BYTES = 16 * 1024 };

static void add_bridge(struct nd_json_out *out, const struct rootless_cluster *cluster) {
        nd_json_open(out, nullptr, '{');
        nd_json_string(out, "type", "bridge");
        nd_json_string(out, "bridge", CLUSTER_BRIDGE);
        nd_json_bool(out, "isGateway", true);
        /* Masquerading would hide pods from other nodes: the overlay has a rule for it. */
        nd_json_bool(out, "ipMasq", !cluster->overlay.file);
        nd_json_bool(out, "hairpinMode", true);
        if (cluster->mtu)
                nd_json_number(out, "mtu", cluster->mtu);
        nd_json_open(out, "ipam", '{');
        nd_json_string(out, "type", "host-local");
        nd_json_open(out, "ranges", '[');
        nd_json_open(out, nullptr, '[');
        nd_json_open(out, nullptr, '{');
        nd_json_string(out, "subnet", cluster->pod_cidr);
        nd_json_close(out, '}');
        nd_json_close(out, ']');
        nd_json_close(out, ']');
        nd_json_open(out, "routes", '[');
        nd_json_open(out, nullptr, '{');
        nd_json_string(out, "dst", strchr(cluster->pod_cidr, ':') ? "::/0" : "0.0.0.0/0");
        nd_json_close(out, '}');
        nd_json_close(out, ']');
        nd_json_close(out, '}');
        nd_json_close(out, '}');
}

struct nd_error *rootless_cni_files(const struct rootless_cluster *cluster, struct rootless_bindplan *plan) {
        nd_autotext struct nd_text text = ND_TEXT(CONFLIST_BYTES);
        struct nd_json_out out = {.text = &text, .indent = 1};

        if (cluster->cni_list.text) {
                rootless_bindplan_add_text(plan, CONFLIST, cluster->cni_list.text, 0644);
                return nullptr;
        }
        nd_json_open(&out, nullptr, '{');
        nd_json_string(&out, "cniVersion", "1.0.0");
        nd_json_string(&out, "name", "nodens");
        nd_json_open(&out, "plugins", '[');
        add_bridge(&out, cluster);
        nd_json_open(&out, nullptr, '{');
        nd_json_string(&out, "type", "portmap");
        nd_json_open(&out, "capabilities", '{');
        nd_json_bool(&out, "portMappings", true);
        nd_json_close(&out, '}');
        nd_json_close(&out, '}');
        nd_json_close(&out, ']');
        nd_json_close(&out, '}');
        nd_text_add(&text, "\n");
        rootless_bindplan_add_text(plan, CONFLIST, nd_text_get(&text), 0644);
        return nullptr;
}
