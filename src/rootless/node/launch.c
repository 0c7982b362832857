/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/node/launch.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/log.h"
#include "rootless/network/discover.h"
#include "rootless/node/delegation.h"
#include "rootless/node/init-start.h"
#include "rootless/node/inside.h"
#include "sys/cgroup.h"
#include "sys/child.h"
#include "sys/file.h"
#include "sys/process.h"
#include "userns/delegation.h"

/* ---- the data directory ---- */

static struct nd_error *make_path(const char *path) {
        nd_autofree char *copy = nd_strdup(path);

        for (char *at = strchr(copy + 1, '/'); at; at = strchr(at + 1, '/')) {
                *at = '\0';
                if (access(copy, F_OK) < 0)
                        nd_try(nd_dir_make(AT_FDCWD, copy, 0755));
                *at = '/';
        }
        return access(path, F_OK) == 0 ? nullptr : nd_dir_make(AT_FDCWD, path, 0700);
}

struct nd_error *rootless_launch_make_data(struct rootless_config *config) {
        static const char *const parts[] = {"lib", "log", "cache"};
        nd_autoclose int fd = -EBADF;
        char *canonical;

        nd_try(nd_error_wrap(make_path(config->data), "data directory '%s'", config->data));
        canonical = realpath(config->data, nullptr);
        if (!canonical)
                return nd_error_new(nd_error_code_of(errno), errno, "data directory '%s'", config->data);
        free(config->data);
        config->data = canonical;
        nd_try(rootless_bindplan_check_data(config->data));
        if (config->inside)
                nd_try(rootless_inside_check_data(config->data));
        nd_try(nd_dir_open(AT_FDCWD, config->data, &fd));
        for (size_t i = 0; i < nd_count_of(parts); i++)
                nd_try(nd_dir_make(fd, parts[i], 0755));
        return nullptr;
}

struct nd_error *rootless_launch_bindplan(struct rootless_config *config, const struct rootless_node *node, const char *resolv,
                                          bool dry, const struct rootless_bindplan *more, struct rootless_bindplan *ret) {
        nd_autofree char *api = nd_format("%s/api", node->path), *home = nullptr, *runtime = nullptr;
        const char *home_given = getenv("HOME"), *runtime_given = getenv("XDG_RUNTIME_DIR");

        if (config->data && !dry)
                nd_try(rootless_launch_make_data(config));
        home = realpath(home_given ? home_given : "/nonexistent", nullptr);
        runtime = runtime_given ? realpath(runtime_given, nullptr) : nullptr;
        return rootless_bindplan_make(&(struct rootless_bindplan_facts) {.machine = "",
                                                                         .name = config->name,
                                                                         .api = api,
                                                                         .data = config->data,
                                                                         .home = home ? home : "/nonexistent",
                                                                         .runtime = runtime,
                                                                         .binds = config->bind,
                                                                         .resolv = resolv,
                                                                         .programs = config->programs,
                                                                         .devices = config->devices,
                                                                         .cdi = config->cdi,
                                                                         .more = more,
                                                                         .own_network = config->net != NET_DRIVER_HOST},
                                      ret);
}

/* ---- cgroup ---- */

static bool alone_in(const char *cgroup) {
        nd_autofree char *path = nd_format("%s/cgroup.procs", cgroup), *text = nullptr,
                         *own = nd_format("%d\n", (int) getpid());
        nd_autoerror struct nd_error *error = nd_file_read_kernel(path, 4096, &text);

        return !error && nd_streq(text, own);
}

/* Returns the cgroup that we are in, if we may divide it: it is delegated (systemd marks it), or no
 * other process is in it. A cgroup that the user can write but shares, like that of a desktop's
 * terminal, is not used. */
static char *find_delegated(void) {
        nd_cleanup(nd_cgroup_done) struct nd_cgroup cgroup = {};
        nd_autoerror struct nd_error *error = nd_cgroup_discover(&cgroup);
        nd_autofree char *path = nullptr;
        char mark[8] = "";

        if (error || cgroup.layout != ND_CGROUP_UNIFIED || !cgroup.writable || nd_streq(cgroup.own, "/"))
                return nullptr;
        path = nd_format("/sys/fs/cgroup%s", cgroup.own);
        if (access(path, W_OK) < 0)
                return nullptr;
        if ((getxattr(path, "user.delegate", mark, sizeof mark - 1) > 0 && nd_streq(mark, "1")) || alone_in(path))
                return nd_take_ptr(cgroup.own);
        return nullptr;
}

/* nullptr: the node has none. */
static struct nd_error *find_cgroup(const struct rootless_config *config, char **ret_cgroup) {
        nd_autofree char *cgroup = config->inside ? rootless_inside_cgroup() : nullptr;

        if (!cgroup)
                cgroup = find_delegated();
        if (rootless_config_has_kubernetes(config) && !config->no_cgroups)
                nd_try(config->inside ? rootless_inside_require_cgroup(cgroup) : rootless_delegation_require(cgroup));
        *ret_cgroup = nd_take_ptr(cgroup);
        return nullptr;
}

static struct nd_error *record(const struct rootless_config *config, const struct rootless_node *node,
                               const struct rootless_init_plan *plan, pid_t pid, struct rootless_node_record *ret) {
        nd_cleanup(rootless_node_record_done) struct rootless_node_record r = {
                .pid = pid,
                .mtu = plan->network->mtu,
                .ids = nd_delegation_count(&plan->uids),
                .net = nd_strdup(rootless_net_driver_name(config->net))};

        nd_try(nd_process_start_time(pid, &r.started));
        nd_try(nd_file_read_kernel("/proc/sys/kernel/random/boot_id", 64, &r.boot));
        r.boot[strcspn(r.boot, "\n")] = '\0';
        r.data = config->data ? nd_strdup(config->data) : nullptr;
        r.cgroup = plan->cgroup ? nd_strdup(plan->cgroup) : nullptr;
        nd_try(rootless_node_record_save(node, &r));
        *ret = nd_take(r, (struct rootless_node_record) {});
        return nullptr;
}

static void warn_about_ids(const struct rootless_config *config, const struct rootless_ids *ids) {
        if (rootless_ids_single(&ids->uids, &ids->gids))
                nd_log(ND_LOG_WARNING, "the node has only the ID of its user, who has no subordinate IDs",
                       nd_field("node", config->name),
                       nd_field("remedy", ids->advice ? ids->advice : "give the user a name and subordinate IDs"));
}

struct nd_error *rootless_launch_node(struct rootless_config *config, const struct rootless_node *node, bool die_with_us,
                                      const struct rootless_ids *ids, const struct rootless_bindplan *more,
                                      struct rootless_node_record *ret_record, int *ret_pidfd) {
        nd_cleanup(rootless_bindplan_done) struct rootless_bindplan binds = {};
        nd_autofree char *resolv = nullptr, *socket = nd_format("%s/holder.sock", node->path), *cgroup = nullptr;
        struct rootless_netplan network;
        struct rootless_init_plan plan = {
                .name = config->name, .binds = &binds, .network = &network, .socket = socket, .die_with_us = die_with_us};
        nd_autoclose int pidfd = -EBADF;
        struct nd_error *error;
        pid_t pid = 0;

        rootless_node_clear(node);
        if (config->inside) {
                nd_try(rootless_inside_require());
                nd_try(rootless_inside_choose_network(config));
        }
        nd_try(rootless_network_discover(config->name, config->net, config->mtu, &network, &resolv));
        nd_try(rootless_launch_bindplan(config, node, resolv, false, more, &binds));
        nd_try(find_cgroup(config, &cgroup));
        warn_about_ids(config, ids);
        plan.uids = ids->uids; /* ids owns both */
        plan.gids = ids->gids;
        plan.maps_own = config->inside;
        plan.cgroup = cgroup;
        error = rootless_init_start(&plan, &pid, &pidfd);
        if (!error) {
                error = record(config, node, &plan, pid, ret_record);
                if (error)
                        (void) nd_sys->pidfd_send_signal(pidfd, SIGKILL, 0);
        }
        nd_try(error);
        *ret_pidfd = nd_take_fd(pidfd);
        return nullptr;
}
