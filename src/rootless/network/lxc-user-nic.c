/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/network/lxc-user-nic.h"

#include <grp.h>
#include <net/if.h>
#include <pwd.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/text.h"
#include "sys/child.h"
#include "sys/file.h"

#define USERNET "/etc/lxc/lxc-usernet"

enum {
        USERNET_BYTES = 64 * 1024,
        GROUPS = 1024,
        OUTPUT_BYTES = 4096, /* limit of lxc-user-nic's output */
};

static constexpr uint64_t link_timeout_us = 10 * ND_SECOND_US;

/* ---- the administrator's list ---- */

/* Returns the next word of a line and moves at to its end. */
static size_t next_word(const char **at, const char **ret) {
        size_t length;

        *at += strspn(*at, " \t");
        *ret = *at;
        length = strcspn(*at, " \t\r\n");
        *at += length;
        return length;
}

static bool parse_line(const char *line, rootless_lxc_match mine, void *userdata, char ret_bridge[NET_LINK_BYTES]) {
        const char *who, *type, *bridge;
        size_t who_length = next_word(&line, &who), type_length = next_word(&line, &type),
               bridge_length = next_word(&line, &bridge);
        nd_autofree char *name = nullptr;

        if (who_length == 0 || who[0] == '#' || type_length != 4 || strncmp(type, "veth", 4) != 0)
                return false;
        if (bridge_length == 0 || bridge_length >= NET_LINK_BYTES || memchr(bridge, '/', bridge_length) || bridge[0] == '.')
                return false;
        name = nd_format("%.*s", (int) who_length, who);
        if (!mine(name, userdata))
                return false;
        memcpy(ret_bridge, bridge, bridge_length);
        ret_bridge[bridge_length] = '\0';
        return true;
}

bool rootless_lxc_usernet_parse(const char *text, rootless_lxc_match mine, void *userdata, char ret_bridge[NET_LINK_BYTES]) {
        for (const char *line = text; *line;) {
                if (parse_line(line, mine, userdata, ret_bridge))
                        return true;
                line += strcspn(line, "\n");
                line += *line == '\n';
        }
        return false;
}

static bool in_group(const char *name) {
        gid_t groups[GROUPS];
        int count = getgroups(GROUPS, groups);
        struct group entry, *found = nullptr;
        char buffer[16 * 1024];

        if (getgrnam_r(name, &entry, buffer, sizeof buffer, &found) != 0 || !found)
                return false;
        for (int i = 0; i < count; i++)
                if (groups[i] == found->gr_gid)
                        return true;
        return getegid() == found->gr_gid;
}

static bool is_us(const char *who, void *userdata) {
        return who[0] == '@' ? in_group(who + 1) : nd_streq(who, userdata);
}

/* Returns 0 when it is unknown. */
static uint32_t mtu_of(const char *bridge) {
        nd_autoclose int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        struct ifreq request = {};

        memcpy(request.ifr_name, bridge, strnlen(bridge, sizeof request.ifr_name - 1));
        return fd < 0 || ioctl(fd, SIOCGIFMTU, &request) < 0 ? 0 : (uint32_t) request.ifr_mtu;
}

struct nd_error *rootless_lxc_bridge_find(char ret_bridge[NET_LINK_BYTES], uint32_t *ret_mtu) {
        struct passwd entry, *found = nullptr;
        nd_autofree char *text = nullptr;
        char buffer[16 * 1024];
        size_t length;

        if (getpwuid_r(geteuid(), &entry, buffer, sizeof buffer, &found) != 0 || !found)
                return nd_error_new(ND_NOT_FOUND, 0, "user %u has no name in the user database, which '" USERNET "' needs",
                                    geteuid());
        nd_ignore(nd_file_read(AT_FDCWD, USERNET, USERNET_BYTES, &text, &length));
        if (!text || !rootless_lxc_usernet_parse(text, is_us, entry.pw_name, ret_bridge))
                return nd_error_new(ND_PRECONDITION, 0,
                                    "no bridge for user %s in '" USERNET "' (as root: echo '%s veth lxcbr0 10' >>" USERNET ")",
                                    entry.pw_name, entry.pw_name);
        if (if_nametoindex(ret_bridge) == 0)
                return nd_error_new(ND_PRECONDITION, 0,
                                    "bridge '%s' of '" USERNET
                                    "' for user %s does not exist (as root: systemctl start lxc-net creates lxcbr0)",
                                    ret_bridge, entry.pw_name);
        *ret_mtu = mtu_of(ret_bridge);
        return nullptr;
}

/* ---- the link ---- */

/* Distributions install it outside PATH. */
static const char *find_program(void) {
        static const char *const places[] = {"/usr/libexec/lxc/lxc-user-nic", "/usr/lib/x86_64-linux-gnu/lxc/lxc-user-nic",
                                             "/usr/lib/aarch64-linux-gnu/lxc/lxc-user-nic", "/usr/lib/lxc/lxc-user-nic"};

        for (size_t i = 0; i < nd_count_of(places); i++)
                if (access(places[i], X_OK) == 0)
                        return places[i];
        return nullptr;
}

struct nd_error *rootless_lxc_link_attach(const char *node, const struct rootless_netplan *plan, pid_t init_pid) {
        nd_autofree char *pid = nd_format("%d", (int) init_pid), *name = nd_format("nodens-%s", node);
        const char *program = find_program(), *const words[] = {program, "create",   "/var/lib/lxc", name,   pid,
                                                                "veth",  plan->link, NET_TAP,        nullptr};
        nd_cleanup(nd_child_result_done) struct nd_child_result result = {};
        struct nd_child_plan child = {.argv = words, .deadline_us = link_timeout_us, .output_ceiling = OUTPUT_BYTES};

        if (!program)
                return nd_error_new(ND_PRECONDITION, 0, "lxc-user-nic is not installed (as root: apt install lxc)");
        nd_try(nd_child_run(&child, &result));
        return nd_error_wrap(nd_child_result_error(&result, "lxc-user-nic"), "attach the node to bridge '%s'", plan->link);
}
