/* SPDX-License-Identifier: Apache-2.0 */
/* A persistent tap keeps its addresses, routes and the devices on top of it when its reader dies; a
 * tap that is not persistent loses them.
 *
 * What the kernel does: a tap made by TUNSETIFF goes when its last descriptor is closed, unless
 * TUNSETPERSIST was set; then it only loses its carrier, and gets it back from the next process
 * that attaches. IFF_RUNNING lags behind: a new tap has it for a while though nobody is attached,
 * the carrier in sysfs does not.
 *
 * Why nodens needs it: pasta or slirp4netns may be killed or upgraded, and the node's routes and
 * its VXLAN device must not go with them. */
#include <linux/if.h>
#include <linux/if_tun.h>
#include <net/route.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>

#include "evidence.h"
#include "sys/netlink.h"

unsigned if_nametoindex(const char *name); /* <net/if.h> does not go with <linux/if.h> */

static int attach(const char *name) {
        struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
        int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);

        step(fd >= 0);
        (void) strcpy(request.ifr_name, name);
        step(ioctl(fd, TUNSETIFF, &request) == 0);
        return fd;
}

static bool carrier(const char *name) {
        char path[128], text[16];

        (void) snprintf(path, sizeof path, "/sys/class/net/%s/carrier", name);
        return read_text(path, text, sizeof text)[0] == '1';
}

static size_t routes(unsigned link) {
        nd_cleanup(nd_netlink_done) struct nd_netlink netlink = ND_NETLINK_NONE;
        struct nd_netlink_route_list list = {};
        size_t count = 0;

        done(nd_netlink_open(&netlink));
        done(nd_netlink_routes(&netlink, &list));
        nd_vector_each (route, &list) {
                count += route->link == link && route->to.family == AF_INET;
        }
        nd_vector_done(&list);
        return count;
}

static int lives_on(void *argument) {
        nd_cleanup(nd_netlink_done) struct nd_netlink netlink = ND_NETLINK_NONE;
        struct nd_netlink_address address, gateway;
        struct ifreq request = {};
        unsigned link;
        int fd, probe;

        (void) argument;
        step(unshare(CLONE_NEWNET | CLONE_NEWNS) == 0);
        step(mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
             mount("sysfs", "/sys", "sysfs", 0, nullptr) == 0);
        done(nd_netlink_tap_make("tap0"));
        link = if_nametoindex("tap0");
        step(nd_netlink_address_parse("10.9.0.2/24", &address) == 0 && nd_netlink_address_parse("10.9.0.1", &gateway) == 0);
        done(nd_netlink_open(&netlink));
        done(nd_netlink_link_up(&netlink, link, 65520));
        probe = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        (void) strcpy(request.ifr_name, "tap0");
        step(ioctl(probe, SIOCGIFFLAGS, &request) == 0);
        saw("a new tap, up, without a reader: IFF_RUNNING %s, carrier %d", request.ifr_flags & IFF_RUNNING ? "yes" : "no",
            carrier("tap0"));
        expect(!carrier("tap0"), "the carrier shows that no process is attached");
        done(nd_netlink_link_add_address(&netlink, link, &address));
        done(nd_netlink_route_replace(
                &netlink, &(struct nd_netlink_route) {.link = link, .to = {.family = AF_INET}, .gateway = gateway}));
        expect(routes(link) == 2, "a route to the network and a default route");

        for (int i = 0; i < 3; i++) {
                fd = attach("tap0");
                expect(carrier("tap0"), "with a reader there is a carrier");
                step(close(fd) == 0);
                expect(if_nametoindex("tap0") == link && !carrier("tap0"), "the reader is gone, the tap stays");
                expect(routes(link) == 2, "and so do its routes");
        }

        fd = attach("tap1");
        step(close(fd) == 0);
        expect(if_nametoindex("tap1") == 0, "a tap that is not persistent goes with its reader");
        return EXIT_SUCCESS;
}

int main(void) {
        need_root();
        if (access("/dev/net/tun", R_OK | W_OK) < 0)
                skip("no /dev/net/tun");
        return in_child(lives_on, nullptr);
}
