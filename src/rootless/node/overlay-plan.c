/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/node/overlay-plan.h"

#include <string.h>

#include "base/json.h"
#include "rootless/network/discover.h"
#include "rootless/network/overlay.h"
#include "sys/file.h"

enum { RECORD_BYTES = 16 * 1024 };

void rootless_overlay_plan_done(struct rootless_overlay_plan *plan) {
        free(plan->file);
        free(plan->name);
        free(plan->pods_text);
        *plan = (struct rootless_overlay_plan) {};
}

static char *network_text(const struct nd_netlink_address *network) {
        char text[ND_ADDRESS_TEXT];

        return nd_format("%s/%u", nd_netlink_address_text(network, text), network->prefix);
}

struct nd_error *rootless_overlay_plan_choose(const struct rootless_peers *peers, const char *name, uint32_t link_mtu,
                                              uint32_t node_mtu, struct rootless_overlay_plan *ret) {
        nd_cleanup(rootless_overlay_plan_done) struct rootless_overlay_plan plan = {};
        const struct rootless_peer *own;
        uint32_t mtu;

        nd_try(rootless_peers_find(peers, name, &own));
        if (peers->mtu)
                mtu = peers->mtu;
        else
                nd_try(rootless_overlay_mtu(link_mtu, node_mtu, own->host.family, &mtu));
        plan = (struct rootless_overlay_plan) {.name = nd_strdup(name),
                                               .pods_text = network_text(&own->pods),
                                               .pods = own->pods,
                                               .host = own->host,
                                               .port = own->port,
                                               .peers = peers->count - 1,
                                               .mtu = mtu,
                                               .mtu_is_set = peers->mtu != 0};
        *ret = nd_take(plan, (struct rootless_overlay_plan) {});
        return nullptr;
}

/* The network that --pod-cidr gives must be that of the list. */
static struct nd_error *check_pods(const struct rootless_config *config, const struct rootless_overlay_plan *plan) {
        if (config->pod_cidr && !nd_streq(config->pod_cidr, plan->pods_text))
                return nd_error_new(ND_INVALID, 0, "--pod-cidr %s differs from the network of '%s' in %s, %s",
                                    config->pod_cidr, plan->name, config->peers, plan->pods_text);
        return nullptr;
}

struct nd_error *rootless_overlay_plan_make(const struct rootless_config *config, const char *name,
                                            struct rootless_overlay_plan *ret) {
        nd_cleanup(rootless_overlay_plan_done) struct rootless_overlay_plan plan = {};
        nd_cleanup(rootless_peers_done) struct rootless_peers peers = {};
        nd_autofree char *resolv = nullptr;
        struct rootless_netplan network;
        uint32_t link_mtu = 0;

        if (config->net == NET_DRIVER_NONE || config->net == NET_DRIVER_HOST)
                return nd_error_new(ND_INVALID, 0, "--peers needs a network of the node's own: not --net %s",
                                    rootless_net_driver_name(config->net));
        nd_try(rootless_peers_read(config->peers, &peers));
        nd_try(rootless_network_discover(config->name, config->net, config->mtu, &network, &resolv));
        nd_try(rootless_network_link_mtu(peers.items[0].host.family, &link_mtu));
        nd_try(nd_error_wrap(rootless_overlay_plan_choose(&peers, name, link_mtu, network.mtu, &plan), "%s", config->peers));
        plan.file = nd_strdup(config->peers);
        nd_try(check_pods(config, &plan));
        *ret = nd_take(plan, (struct rootless_overlay_plan) {});
        return nullptr;
}

/* ---- the record ---- */

struct nd_error *rootless_overlay_plan_save(const struct rootless_node *node, const struct rootless_overlay_plan *plan) {
        nd_autotext struct nd_text text = ND_TEXT(RECORD_BYTES);
        struct nd_json_out out = {.text = &text, .indent = 1};

        nd_json_open(&out, nullptr, '{');
        nd_json_string(&out, "file", plan->file);
        nd_json_string(&out, "name", plan->name);
        nd_json_string(&out, "pods", plan->pods_text);
        nd_json_number(&out, "mtu", plan->mtu);
        nd_json_close(&out, '}');
        nd_text_add(&text, "\n");
        return nd_file_replace_unsynced(node->fd, OVERLAY_RECORD, nd_text_get(&text), text.length, 0600);
}

struct nd_error *rootless_overlay_plan_load(const struct rootless_node *node, struct rootless_overlay_plan *ret) {
        nd_cleanup(rootless_overlay_plan_done) struct rootless_overlay_plan plan = {};
        nd_autofree char *text = nullptr;
        nd_autojson yyjson_doc *doc = nullptr;
        size_t length;
        uint64_t mtu;

        nd_try(nd_file_read(node->fd, OVERLAY_RECORD, RECORD_BYTES, &text, &length));
        nd_try(nd_json_parse(text, length, RECORD_BYTES, &doc));
        plan.file = nd_json_copy(yyjson_doc_get_root(doc), "file");
        plan.name = nd_json_copy(yyjson_doc_get_root(doc), "name");
        plan.pods_text = nd_json_copy(yyjson_doc_get_root(doc), "pods");
        mtu = yyjson_get_uint(yyjson_obj_get(yyjson_doc_get_root(doc), "mtu"));
        if (!*plan.file || mtu < PEERS_MTU_MIN || mtu > PEERS_MTU_MAX ||
            nd_netlink_address_parse(plan.pods_text, &plan.pods) < 0)
                return nd_error_new(ND_INVALID, 0, "invalid record '%s/" OVERLAY_RECORD "'", node->path);
        plan.mtu = (uint32_t) mtu;
        *ret = nd_take(plan, (struct rootless_overlay_plan) {});
        return nullptr;
}

struct nd_error *rootless_overlay_list_save(const struct rootless_node *node, const struct rootless_peers *peers) {
        nd_autofree char *text = rootless_peers_format(peers);

        return nd_file_replace_unsynced(node->fd, OVERLAY_LIST, text, strlen(text), 0600);
}

struct nd_error *rootless_overlay_list_load(const struct rootless_node *node, struct rootless_peers *ret) {
        nd_autofree char *text = nullptr;
        size_t length;

        nd_try(nd_file_read(node->fd, OVERLAY_LIST, PEERS_BYTES, &text, &length));
        return rootless_peers_parse(text, length, ret);
}
