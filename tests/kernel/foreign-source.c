/* SPDX-License-Identifier: Apache-2.0 */
/* A server in a network namespace answers a client whose address is elsewhere, and the answer comes
 * back to a socket in the same namespace that is bound to that foreign address: for TCP and UDP,
 * IPv4 and IPv6.
 *
 * What the kernel does: IP_TRANSPARENT lets a socket have any address. The answer to it would leave
 * by the default route; but a chain of the type "route" at the output hook that gives it a mark has
 * it routed anew, and a rule for that mark delivers it here. A UDP server's answer has no connected
 * socket that could inherit the mark (tcp_fwmark_accept is of no use), so the mark comes from the
 * connection, which conntrack knows for UDP, too. Without the rules every such connection times
 * out.
 *
 * Why nodens needs it: ports of a rootless node are forwarded by a process without privileges, and
 * servers shall see their clients' addresses, those in pods and those in the node's own network. */
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>

#include "evidence.h"
#include "rootless/network/sockets.h"
#include "sys/netlink.h"

enum { PORT = 5000, CLIENT_PORT = 4321, SILENCE_MS = 700, PATIENCE_MS = 60000 };

union any {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
};

static union any socket_address(int family, const char *text, uint16_t port) {
        union any a = {.any = {.sa_family = (sa_family_t) family}};

        if (family == AF_INET) {
                a.v4.sin_port = htons(port);
                step(inet_pton(AF_INET, text, &a.v4.sin_addr) == 1);
        } else {
                a.v6.sin6_port = htons(port);
                step(inet_pton(AF_INET6, text, &a.v6.sin6_addr) == 1);
        }
        return a;
}

static bool readable(int fd, bool expected) {
        return poll(&(struct pollfd) {.fd = fd, .events = POLLIN}, 1, expected ? PATIENCE_MS : SILENCE_MS) > 0;
}

static int serve(int family, int type) {
        union any a = socket_address(family, family == AF_INET ? "0.0.0.0" : "::", PORT);
        int fd = socket(family, type | SOCK_CLOEXEC, 0), one = 1;

        step(fd >= 0 && (family == AF_INET || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one) == 0));
        step(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0);
        step(bind(fd, &a.any, family == AF_INET ? sizeof a.v4 : sizeof a.v6) == 0);
        step(type == SOCK_DGRAM || listen(fd, 8) == 0);
        return fd;
}

/* Whether a client of a foreign address gets an answer, and whose address the server saw. */
static bool answered(int family, int type, bool kept) {
        enum rootless_socket_kind kind = type == SOCK_STREAM ? (family == AF_INET ? SOCKET_TCP4 : SOCKET_TCP6)
                                                             : (family == AF_INET ? SOCKET_UDP4 : SOCKET_UDP6);
        union any from = socket_address(family, family == AF_INET ? "203.0.113.7" : "2001:db8::7", CLIENT_PORT),
                  to = socket_address(family, family == AF_INET ? "10.9.0.2" : "fd09::2", PORT), seen = {};
        socklen_t length = family == AF_INET ? sizeof from.v4 : sizeof from.v6, seen_length = sizeof seen;
        int server = serve(family, type), client = -1, accepted, one = 1;
        char byte = 'x';
        bool answer = false;

        done(rootless_socket_open(kind, kept, &client));
        if (!kept) /* as it would be without rules */
                step(family == AF_INET ? setsockopt(client, IPPROTO_IP, IP_TRANSPARENT, &one, sizeof one) == 0
                                       : setsockopt(client, IPPROTO_IPV6, IPV6_TRANSPARENT, &one, sizeof one) == 0);
        step(bind(client, &from.any, length) == 0);
        step(connect(client, &to.any, length) == 0 || errno == EINPROGRESS);
        if (type == SOCK_DGRAM) {
                step(write(client, &byte, 1) == 1 && readable(server, true));
                step(recvfrom(server, &byte, 1, 0, &seen.any, &seen_length) == 1);
                step(sendto(server, &byte, 1, 0, &seen.any, seen_length) == 1);
                answer = readable(client, kept);
        } else if (readable(server, kept)) {
                accepted = accept4(server, &seen.any, &seen_length, SOCK_CLOEXEC);
                step(accepted >= 0 && write(accepted, &byte, 1) == 1);
                answer = readable(client, kept);
                step(close(accepted) == 0);
        }
        step(!answer || memcmp(&seen, &from, length) == 0);
        step(close(client) == 0 && close(server) == 0);
        return answer;
}

static int tried(void *argument) {
        static const int families[] = {AF_INET, AF_INET6}, types[] = {SOCK_STREAM, SOCK_DGRAM};
        nd_cleanup(nd_netlink_done) struct nd_netlink netlink = ND_NETLINK_NONE;
        struct nd_netlink_address address, gateway;
        struct nd_error *error;
        unsigned link;

        (void) argument;
        step(unshare(CLONE_NEWNET) == 0);
        done(nd_netlink_tap_make("tap0"));
        done(nd_netlink_open(&netlink));
        done(nd_netlink_link_up(&netlink, if_nametoindex("lo"), 0));
        link = if_nametoindex("tap0");
        done(nd_netlink_link_up(&netlink, link, 0));
        for (size_t i = 0; i < 2; i++) {
                step(nd_netlink_address_parse(i == 0 ? "10.9.0.2/24" : "fd09::2/64", &address) == 0 &&
                     nd_netlink_address_parse(i == 0 ? "10.9.0.1" : "fd09::1", &gateway) == 0);
                done(nd_netlink_link_add_address(&netlink, link, &address));
                done(nd_netlink_route_replace(
                        &netlink,
                        &(struct nd_netlink_route) {.link = link, .to = {.family = families[i]}, .gateway = gateway}));
        }
        for (size_t i = 0; i < 4; i++)
                expect(!answered(families[i / 2], types[i % 2], false), "without rules no answer: %s, %s",
                       i / 2 ? "IPv6" : "IPv4", i % 2 ? "UDP" : "TCP");
        error = rootless_sockets_prepare();
        if (nd_error_code(error) == ND_UNIMPLEMENTED)
                skip("no nf_tables");
        done(error);
        done(rootless_sockets_prepare()); /* again: the same */
        for (size_t i = 0; i < 4; i++)
                expect(answered(families[i / 2], types[i % 2], true),
                       "with them the answer comes, and the server saw the client's address: %s, %s", i / 2 ? "IPv6" : "IPv4",
                       i % 2 ? "UDP" : "TCP");
        return EXIT_SUCCESS;
}

int main(void) {
        need_root();
        if (access("/dev/net/tun", R_OK | W_OK) < 0)
                skip("no /dev/net/tun");
        return in_child(tried, nullptr);
}
