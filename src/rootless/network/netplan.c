/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/network/netplan.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <string.h>

#include "base/text.h"

enum {
        V4 = 0,
        V6 = 1,
        RESOLV_BYTES = 16 * 1024,
};

/* pasta answers DNS on any address; this one is on no network, and only the helper sees it. */
#define PASTA_DNS "169.254.1.1"
/* pasta's own address on a host without any network. */
#define OFFLINE_ADDRESS "169.254.2.1/16"
#define OFFLINE_GATEWAY "169.254.2.2"

static const struct {
        const char *name;
        enum rootless_net_driver driver;
} drivers[] = {{"pasta", NET_DRIVER_PASTA},
               {"slirp4netns", NET_DRIVER_SLIRP},
               {"lxc-user-nic", NET_DRIVER_LXC},
               {"none", NET_DRIVER_NONE},
               {"host", NET_DRIVER_HOST}};

struct nd_error *rootless_net_driver_parse(const char *text, enum rootless_net_driver *ret) {
        for (size_t i = 0; i < nd_count_of(drivers); i++)
                if (nd_streq(text, drivers[i].name)) {
                        *ret = drivers[i].driver;
                        return nullptr;
                }
        return nd_error_new(ND_INVALID, 0, "unknown network driver '%s'; use pasta, slirp4netns, lxc-user-nic, none or host",
                            text);
}

const char *rootless_net_driver_name(enum rootless_net_driver driver) {
        for (size_t i = 0; i < nd_count_of(drivers); i++)
                if (driver == drivers[i].driver)
                        return drivers[i].name;
        return "?";
}

static struct nd_netlink_address fixed(const char *text) {
        struct nd_netlink_address address = {};

        (void) !nd_netlink_address_parse(text, &address);
        return address;
}

static bool covers(const struct nd_netlink_address *network, const struct nd_netlink_address *address) {
        unsigned whole = network->prefix / 8, rest = network->prefix % 8;

        if (network->family != address->family)
                return false;
        if (memcmp(network->bytes, address->bytes, whole) != 0)
                return false;
        return rest == 0 || ((network->bytes[whole] ^ address->bytes[whole]) & (0xff00 >> rest) & 0xff) == 0;
}

/* Returns the default route that the kernel would use, or nullptr. */
static const struct nd_netlink_route *default_route(const struct rootless_netplan_facts *facts, int family) {
        const struct nd_netlink_route *best = nullptr;

        nd_vector_each (route, facts->routes) {
                if (route->to.family == family && route->to.prefix == 0 && route->link != facts->loopback &&
                    (!best || route->metric < best->metric))
                        best = route;
        }
        return best;
}

static const struct nd_netlink_link_address *usable_address(const struct rootless_netplan_facts *facts, int family,
                                                            unsigned link) {
        nd_vector_each (a, facts->addresses) {
                if (a->address.family == family && a->global && !a->temporary && a->link != facts->loopback &&
                    (link == 0 || a->link == link))
                        return a;
        }
        return nullptr;
}

/* Returns the host's address of the link that its default route uses; without one, of any link. */
static const struct nd_netlink_link_address *own_address(const struct rootless_netplan_facts *facts, int family) {
        const struct nd_netlink_route *route = default_route(facts, family);

        return usable_address(facts, family, route ? route->link : 0);
}

unsigned rootless_netplan_link(const struct rootless_netplan_facts *facts, int family) {
        const struct nd_netlink_route *route = default_route(facts, family);
        const struct nd_netlink_link_address *address = route ? nullptr : usable_address(facts, family, 0);

        return route ? route->link : address ? address->link : 0;
}

/* Makes one family of pasta's plan: the host's address and gateway. */
static void copy_family(struct rootless_netplan *plan, const struct rootless_netplan_facts *facts, int family, int slot) {
        const struct nd_netlink_route *route = default_route(facts, family);
        const struct nd_netlink_link_address *found = own_address(facts, family);
        char name[IF_NAMESIZE] = "";

        if (!found)
                return;
        plan->addresses[slot] = found->address;
        if (route)
                plan->gateways[slot] = route->gateway;
        if (!plan->link[0] && facts->link_name(found->link, name))
                memcpy(plan->link, name, strnlen(name, sizeof plan->link - 1) + 1);
}

static void make_pasta(struct rootless_netplan *plan, const struct rootless_netplan_facts *facts) {
        copy_family(plan, facts, AF_INET, V4);
        copy_family(plan, facts, AF_INET6, V6);
        if (plan->addresses[V4].family == 0 && plan->addresses[V6].family == 0) {
                plan->addresses[V4] = fixed(OFFLINE_ADDRESS);
                plan->gateways[V4] = fixed(OFFLINE_GATEWAY);
        }
        plan->dns = fixed(PASTA_DNS);
}

static bool network_is_free(const struct nd_netlink_address *network, const struct rootless_netplan_facts *facts) {
        nd_vector_each (a, facts->addresses) {
                if (covers(network, &a->address))
                        return false;
        }
        nd_vector_each (route, facts->routes) {
                if (route->to.prefix > 0 && (covers(&route->to, network) || covers(network, &route->to)))
                        return false;
        }
        return true;
}

static struct nd_netlink_address host_of(const struct nd_netlink_address *network, uint8_t number) {
        struct nd_netlink_address address = *network;

        address.bytes[address.family == AF_INET ? 3 : 15] = number;
        return address;
}

static void choose_slirp_network(struct rootless_netplan *plan, const struct rootless_netplan_facts *facts) {
        static const char *const candidates[] = {"10.0.2.0/24", "10.213.2.0/24", "172.29.213.0/24", "192.168.213.0/24"};

        plan->network = fixed(candidates[0]);
        for (size_t i = 0; i < nd_count_of(candidates); i++) {
                struct nd_netlink_address candidate = fixed(candidates[i]);

                if (network_is_free(&candidate, facts)) {
                        plan->network = candidate;
                        break;
                }
        }
}

/* The host's addresses without their networks: slirp4netns accepts packets from any address, but
 * resolves only its own ones, so that even neighbours of the host are behind the gateway. */
static void make_slirp(struct rootless_netplan *plan, const struct rootless_netplan_facts *facts) {
        const struct nd_netlink_link_address *v4 = own_address(facts, AF_INET), *v6 = own_address(facts, AF_INET6);
        struct nd_netlink_address network6 = fixed("fd00::/64");

        choose_slirp_network(plan, facts);
        plan->addresses[V4] = v4 ? v4->address : host_of(&plan->network, 100);
        plan->gateways[V4] = host_of(&plan->network, 2);
        plan->dns = host_of(&plan->network, 3);
        plan->addresses[V4].prefix = plan->gateways[V4].prefix = plan->dns.prefix = 32;
        if (v6) {
                plan->addresses[V6] = v6->address;
                plan->gateways[V6] = host_of(&network6, 2);
                plan->addresses[V6].prefix = plan->gateways[V6].prefix = 128;
        }
}

/* The same name gets the same address, every time and on every bridge. Collisions are not handled:
 * the user can choose another name. */
static uint32_t number_of(const char *owner) {
        uint32_t number = 2166136261; /* FNV-1a */

        for (; *owner; owner++)
                number = (number ^ (uint8_t) *owner) * 16777619;
        return number;
}

/* Returns an address of the bridge's network other than the bridge's, the first and the last. */
static struct nd_netlink_address neighbour_of(const struct nd_netlink_address *bridge, uint32_t number) {
        struct nd_netlink_address address = *bridge;
        unsigned bits = (bridge->family == AF_INET ? 32 : 128) - bridge->prefix, at = bridge->family == AF_INET ? 0 : 12;
        uint32_t mask = bits >= 32 ? UINT32_MAX : (1U << bits) - 1, last, own;

        if (bits < 2)
                return (struct nd_netlink_address) {};
        memcpy(&last, bridge->bytes + at, sizeof last);
        own = ntohl(last) & mask;
        number = 1 + number % (mask - 1);
        if (number == own)
                number = own > 1 ? own - 1 : own + 1;
        last = htonl((ntohl(last) & ~mask) | number);
        memcpy(address.bytes + at, &last, sizeof last);
        return address;
}

static void make_lxc(struct rootless_netplan *plan, const struct rootless_netplan_facts *facts) {
        uint32_t number = number_of(facts->owner);

        if (!facts->bridge)
                return;
        memcpy(plan->link, facts->bridge, strnlen(facts->bridge, sizeof plan->link - 1) + 1);
        if (facts->bridge_mtu >= NET_MTU_MIN && facts->bridge_mtu < plan->mtu)
                plan->mtu = facts->bridge_mtu;
        nd_vector_each (a, facts->addresses) {
                int slot = a->address.family == AF_INET6;
                char name[IF_NAMESIZE] = "";

                if (!a->global || plan->addresses[slot].family || !facts->link_name(a->link, name) ||
                    !nd_streq(name, facts->bridge))
                        continue;
                plan->addresses[slot] = neighbour_of(&a->address, number);
                plan->gateways[slot] = a->address;
        }
}

void rootless_netplan_make(enum rootless_net_driver driver, uint32_t mtu, const struct rootless_netplan_facts *facts,
                           struct rootless_netplan *ret) {
        *ret = (struct rootless_netplan) {.driver = driver, .mtu = mtu};
        if (driver == NET_DRIVER_PASTA)
                make_pasta(ret, facts);
        if (driver == NET_DRIVER_SLIRP)
                make_slirp(ret, facts);
        if (driver == NET_DRIVER_LXC)
                make_lxc(ret, facts);
}

bool rootless_netplan_equal(const struct rootless_netplan *a, const struct rootless_netplan *b) {
        for (int i = V4; i <= V6; i++)
                if (!nd_netlink_address_equal(&a->addresses[i], &b->addresses[i]) ||
                    !nd_netlink_address_equal(&a->gateways[i], &b->gateways[i]))
                        return false;
        return a->driver == b->driver && a->mtu == b->mtu && nd_streq(a->link, b->link) &&
               nd_netlink_address_equal(&a->dns, &b->dns) && nd_netlink_address_equal(&a->network, &b->network);
}

/* ---- the helper's command line ---- */

static void add_all(struct nd_strings *argv, const char *const *list, size_t count) {
        for (size_t i = 0; i < count; i++)
                nd_strings_add(argv, list[i]);
}

static void add_address(struct nd_strings *argv, const char *option, const struct nd_netlink_address *address) {
        char text[ND_ADDRESS_TEXT];

        if (address->family == 0)
                return;
        nd_strings_add(argv, option);
        nd_strings_add(argv, nd_netlink_address_text(address, text));
}

static void pasta_argv(const struct rootless_netplan *plan, int pid, struct nd_strings *argv) {
        /* Init owns the tap and its routes: pasta configures nothing (a second pasta would find
         * everything configured and fail), publishes nothing, and does not make the host's loopback
         * reachable through the gateway's address. */
        static const char *const always[] = {"pasta",     "--foreground", "--quiet", "--no-map-gw", "-t",   "none",
                                             "-u",        "none",         "-T",      "none",        "-U",   "none",
                                             "--no-dhcp", "--no-dhcpv6",  "--no-ra", "-I",          NET_TAP};

        add_all(argv, always, nd_count_of(always));
        if (plan->link[0]) {
                nd_strings_add(argv, "-i");
                nd_strings_add(argv, plan->link);
        }
        if (plan->addresses[V6].family == 0)
                nd_strings_add(argv, "-4");
        if (plan->addresses[V4].family == 0)
                nd_strings_add(argv, "-6");
        nd_strings_add(argv, "--mtu");
        nd_strings_addf(argv, "%u", plan->mtu);
        add_address(argv, "-a", &plan->addresses[V4]);
        if (plan->addresses[V4].family) {
                nd_strings_add(argv, "-n");
                nd_strings_addf(argv, "%u", plan->addresses[V4].prefix);
        }
        add_address(argv, "-g", &plan->gateways[V4]);
        add_address(argv, "-a", &plan->addresses[V6]);
        add_address(argv, "-g", &plan->gateways[V6]);
        add_address(argv, "--dns-forward", &plan->dns);
        nd_strings_add(argv, "--userns");
        nd_strings_addf(argv, "/proc/%d/ns/user", pid);
        nd_strings_add(argv, "--netns");
        nd_strings_addf(argv, "/proc/%d/ns/net", pid);
}

static void slirp_argv(const struct rootless_netplan *plan, int pid, struct nd_strings *argv) {
        static const char *const always[] = {"slirp4netns", "--disable-host-loopback", "--enable-sandbox", "--enable-seccomp",
                                             "--exit-fd=3"};
        char text[ND_ADDRESS_TEXT];

        add_all(argv, always, nd_count_of(always));
        nd_strings_addf(argv, "--mtu=%u", plan->mtu);
        nd_strings_addf(argv, "--cidr=%s/%u", nd_netlink_address_text(&plan->network, text), plan->network.prefix);
        if (plan->addresses[V6].family)
                nd_strings_add(argv, "--enable-ipv6");
        /* with paths, its sandbox does not find the user namespace */
        nd_strings_addf(argv, "%d", pid);
        nd_strings_add(argv, NET_TAP);
}

bool rootless_netplan_helper_argv(const struct rootless_netplan *plan, int pid, struct nd_strings *ret) {
        if (plan->driver == NET_DRIVER_PASTA)
                pasta_argv(plan, pid, ret);
        else if (plan->driver == NET_DRIVER_SLIRP)
                slirp_argv(plan, pid, ret);
        else
                return false;
        nd_strings_add_owned(ret, nullptr);
        return true;
}

/* ---- resolv.conf ---- */

static bool keeps(const char *line) {
        static const char *const words[] = {"search", "domain", "options"};

        for (size_t i = 0; i < nd_count_of(words); i++) {
                size_t length = strlen(words[i]);

                if (strncmp(line, words[i], length) == 0 && (line[length] == ' ' || line[length] == '\t'))
                        return true;
        }
        return false;
}

/* Returns whether other hosts can use this server, too. */
static bool serves_neighbours(const char *line, size_t length) {
        nd_autofree char *value = nullptr;
        struct nd_netlink_address address;
        size_t word = strlen("nameserver");

        if (strncmp(line, "nameserver", word) != 0 || (line[word] != ' ' && line[word] != '\t'))
                return false;
        word += strspn(line + word, " \t");
        if (word >= length)
                return false;
        value = nd_format("%.*s", (int) strcspn(line + word, " \t\r\n"), line + word);
        if (nd_netlink_address_parse(value, &address) < 0)
                return false;
        return address.family == AF_INET ? address.bytes[0] != 127 : !IN6_IS_ADDR_LOOPBACK(&address.v6);
}

/* On a bridge the node uses the host's servers directly. If the host's server is on its loopback,
 * the node uses the bridge's address (where lxc-net runs dnsmasq). */
static void add_neighbours_servers(struct nd_text *text, const struct rootless_netplan *plan, const char *machine) {
        char gateway[ND_ADDRESS_TEXT];
        size_t before = text->length;

        for (const char *line = machine; *line;) {
                size_t length = strcspn(line, "\n");

                if (serves_neighbours(line, length) && text->length + length + 1 < RESOLV_BYTES / 2) {
                        nd_text_append(text, line, length);
                        nd_text_add(text, "\n");
                }
                line += length + (line[length] == '\n');
        }
        if (text->length == before && plan->gateways[V4].family)
                nd_text_addf(text, "nameserver %s\n", nd_netlink_address_text(&plan->gateways[V4], gateway));
}

char *rootless_netplan_resolv_conf(const struct rootless_netplan *plan, const char *machine) {
        nd_autotext struct nd_text text = ND_TEXT(RESOLV_BYTES);
        char dns[ND_ADDRESS_TEXT];

        if (plan->driver == NET_DRIVER_HOST)
                return nd_strdup(machine);
        if (plan->driver == NET_DRIVER_LXC)
                add_neighbours_servers(&text, plan, machine);
        if (plan->dns.family)
                nd_text_addf(&text, "nameserver %s\n", nd_netlink_address_text(&plan->dns, dns));
        for (const char *line = machine; *line;) {
                size_t length = strcspn(line, "\n");

                if (keeps(line) && text.length + length + 1 < RESOLV_BYTES) {
                        nd_text_append(&text, line, length);
                        nd_text_add(&text, "\n");
                }
                line += length + (line[length] == '\n');
        }
        return text.length > 0 ? nd_text_steal(&text) : nd_strdup("");
}
