/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-peers.c - an accepted list of nodes has no two networks that overlap, each of its nodes has
 * an overlay that init accepts and a filter that the forwarder accepts, and the list as it is
 * written for `status` parses to the same */
#include <string.h>

#include <unit/fuzz.h>

#include "rootless/network/overlay.h"
#include "rootless/network/vxlan-filter.h"

static void use(const struct rootless_peers *peers, const struct rootless_peer *own) {
        nd_cleanup(rootless_overlay_done) struct rootless_overlay overlay = rootless_overlay_make(peers, own, PEERS_MTU_MIN),
                                                                  again = {};
        nd_cleanup(rootless_control_done) struct rootless_control message = {};
        nd_autotext struct nd_text text = CONTROL_TEXT;
        nd_autofree char *filter_text = rootless_vxlan_filter_format(peers, own, OVERLAY_VNI);
        struct rootless_vxlan_filter *filter = nullptr;
        nd_autoerror struct nd_error *error = nullptr, *refused = nullptr, *invalid = nullptr;

        rootless_overlay_format(&text, &overlay);
        error = rootless_control_parse(text.bytes, text.length, &message);
        fuzz_require(!error);
        refused = rootless_overlay_parse(&message, &again);
        fuzz_require(!refused && again.count == peers->count - 1 && again.family == own->host.family);
        invalid = rootless_vxlan_filter_parse(filter_text, &filter);
        fuzz_require(!invalid && filter->count == peers->count - 1);
        rootless_vxlan_filter_free(filter);
}

static void parse_again(const struct rootless_peers *peers) {
        nd_autofree char *text = rootless_peers_format(peers), *second = nullptr;
        nd_cleanup(rootless_peers_done) struct rootless_peers again = {};
        nd_autoerror struct nd_error *error = rootless_peers_parse(text, strlen(text), &again);

        fuzz_require(!error && again.count == peers->count && again.mtu == peers->mtu);
        second = rootless_peers_format(&again);
        fuzz_require(nd_streq(text, second));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_cleanup(rootless_peers_done) struct rootless_peers peers = {};
        nd_autoerror struct nd_error *error = rootless_peers_parse((const char *) data, size, &peers);

        if (error)
                return 0;
        fuzz_require(peers.count > 0 && peers.count <= PEERS_MAX);
        nd_vector_each (one, &peers) {
                nd_vector_each (other, &peers) {
                        fuzz_require(one == other || !rootless_peers_covers(&one->pods, &other->pods));
                        fuzz_require(one == other || !nd_streq(one->name, other->name));
                }
        }
        use(&peers, &peers.items[peers.count - 1]);
        parse_again(&peers);
        return 0;
}
