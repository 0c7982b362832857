/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/command/daemon.h"

#include <signal.h>
#include <string.h>

#include "base/log.h"
#include "base/strings.h"
#include "rootless/broker/broker.h"
#include "rootless/command/commands.h"
#include "rootless/components/control-plane.h"
#include "rootless/components/pod-ids.h"
#include "rootless/node/delegation.h"
#include "rootless/node/launch.h"
#include "rootless/ports/ports.h"
#include "sys/calls.h"
#include "sys/file.h"
#include "sys/notify.h"

void rootless_daemon_done(struct rootless_daemon *d) {
        rootless_services_free(d->services);
        rootless_overlay_follower_free(d->follower);
        rootless_supervisor_free(d->supervisor);
        nd_close_fd(&d->pidfd);
        sd_event_unref(d->loop);
        rootless_node_record_done(&d->record);
        rootless_node_done(&d->node);
        rootless_cluster_done(&d->cluster);
        rootless_ids_done(&d->ids);
        rootless_config_done(&d->config);
}

static int on_signal([[maybe_unused]] sd_event_source *source, [[maybe_unused]] const struct signalfd_siginfo *si,
                     void *userdata) {
        struct rootless_daemon *d = userdata;

        d->signalled = true;
        return sd_event_exit(d->loop, 0);
}

static int on_init_ended([[maybe_unused]] sd_event_source *source, [[maybe_unused]] int fd, [[maybe_unused]] uint32_t events,
                         void *userdata) {
        struct rootless_daemon *d = userdata;

        return sd_event_exit(d->loop, 0);
}

/* ---- the cgroup ---- */

char *rootless_daemon_summary(const struct rootless_daemon *d) {
        const struct rootless_node_record *record = &d->record;
        nd_autofree char *missing = record->cgroup ? rootless_delegation_missing(record->cgroup) : nullptr,
                         *reason = missing ? nd_format("controllers not delegated to its cgroup: %s", missing)
                                           : nd_strdup("no cgroup is delegated to it");
        bool limited = missing && !*missing;

        if (!limited)
                nd_log_last(ND_LOG_WARNING, "pods in the node have no resource limits", nd_field("node", d->node.name),
                            nd_field("reason", reason), nd_field("remedy", DELEGATION_REMEDY));
        return nd_format("ready: node %s, process %d, %llu IDs, network %s; resource limits %s", d->node.name,
                         (int) record->pid, (unsigned long long) record->ids, record->net, limited ? "yes" : reason);
}

/* ---- the loop ---- */

struct nd_error *rootless_daemon_wait(struct rootless_daemon *d) {
        nd_autofree char *status = nullptr;
        sigset_t mask;
        int r;

        (void) sigemptyset(&mask);
        (void) sigaddset(&mask, SIGTERM);
        (void) sigaddset(&mask, SIGINT);
        (void) sigprocmask(SIG_BLOCK, &mask, nullptr);
        r = sd_event_add_io(d->loop, nullptr, d->pidfd, EPOLLIN, on_init_ended, d);
        if (r >= 0)
                r = sd_event_add_signal(d->loop, nullptr, SIGTERM, on_signal, d);
        if (r >= 0)
                r = sd_event_add_signal(d->loop, nullptr, SIGINT, on_signal, d);
        if (r >= 0)
                r = sd_event_set_watchdog(d->loop, true);
        if (r >= 0)
                status = nd_format("ready: network %s", rootless_supervisor_state(d->supervisor));
        if (status)
                nd_notify_ready(status);
        if (r >= 0)
                r = sd_event_loop(d->loop);
        return r < 0 ? nd_error_new(ND_INTERNAL, -r, "wait for the node") : nullptr;
}

struct nd_error *rootless_daemon_prepare(struct rootless_daemon *d, const struct rootless_settings *settings) {
        int r = sd_event_new(&d->loop);

        if (r < 0)
                return nd_error_new(ND_INTERNAL, -r, "create an event loop");
        nd_try(rootless_config_resolve(settings, true, rootless_command_getenv, nullptr, &d->config));
        return rootless_node_open(d->config.name, true, &d->node);
}

static struct nd_error *resolve_control_plane(struct rootless_config *config, const struct rootless_node *node, bool dry,
                                              struct rootless_cluster *ret) {
        if (!dry)
                nd_try(rootless_launch_make_data(config)); /* its path becomes canonical */
        nd_try(rootless_cluster_check(config, "", ret));
        nd_try(rootless_control_plane_plan(config, node, ret));
        return dry ? nullptr : rootless_control_plane_prepare(ret);
}

static struct nd_error *plan_overlay(const struct rootless_config *config, struct rootless_overlay_plan *ret) {
        nd_autofree char *name = nullptr;

        if (!config->peers)
                return nullptr;
        nd_try(rootless_cluster_node_name(config, &name));
        return rootless_overlay_plan_make(config, name, ret);
}

struct nd_error *rootless_daemon_plan(struct rootless_config *config, const struct rootless_node *node, bool dry,
                                      struct rootless_ids *ret_ids, struct rootless_cluster *ret_cluster,
                                      struct rootless_bindplan *ret_files) {
        bool kubernetes = rootless_config_has_kubernetes(config);

        if (kubernetes)
                rootless_programs_add_own(config);
        if (config->control_plane)
                nd_try(resolve_control_plane(config, node, dry, ret_cluster));
        else if (config->join)
                nd_try(rootless_cluster_resolve(config, "", ret_cluster));
        else
                nd_try(plan_overlay(config, &ret_cluster->overlay));
        nd_try(rootless_ids_find(config->inside, ret_ids));
        if (!kubernetes)
                return nullptr;
        rootless_pod_ids_choose(ret_cluster, ret_ids);
        return rootless_components_files(ret_cluster, ret_files);
}

static struct nd_error *check_free(const struct rootless_port_spec *spec, const char *what, const char *remedy) {
        static const int families[] = {AF_INET, AF_INET6};

        for (size_t i = 0; i < nd_count_of(families); i++) {
                nd_autoclose int fd = -EBADF;
                nd_autoerror struct nd_error *error = rootless_port_listen(spec, families[i], &fd);

                if (error && nd_error_errno(error) == EADDRINUSE)
                        return nd_error_new(ND_EXISTS, EADDRINUSE,
                                            "%s port %u of this host, for %s, is in use: another node or program has it, and "
                                            "nodes of one host share its address; %s",
                                            spec->stream ? "TCP" : "UDP", spec->parent_port, what, remedy);
        }
        return nullptr; /* other errors are reported when the port is published */
}

struct nd_error *rootless_daemon_check_ports(const struct rootless_config *config) {
        nd_cleanup(rootless_overlay_plan_done) struct rootless_overlay_plan overlay = {};
        struct rootless_port_spec kubelet = {.stream = true,
                                             .parent_port = (uint16_t) (KUBELET_PORT + config->offset),
                                             .child_port = (uint16_t) (KUBELET_PORT + config->offset)},
                                  vxlan = {};

        if (config->join && config->net != NET_DRIVER_NONE)
                nd_try(check_free(&kubelet, "the kubelet", "choose other ports with --offset"));
        nd_try(plan_overlay(config, &overlay));
        if (!overlay.file)
                return nullptr;
        vxlan = (struct rootless_port_spec) {
                .only = overlay.host.family, .parent_port = overlay.port, .child_port = PEERS_PORT};
        return check_free(&vxlan, "VXLAN", "give this node another port in the list of nodes, like ADDRESS:8473");
}

static struct nd_error *record_components(struct rootless_daemon *d) {
        nd_autofree char *own = nullptr;

        if (!rootless_config_has_kubernetes(&d->config))
                return nullptr;
        if (d->config.control_plane)
                own = nd_format("%s/" CONTROL_PLANE_NODE, d->cluster.plane.directory);
        nd_try(rootless_credentials_link_controller(own ? own : d->config.join, &d->node));
        if (d->cluster.registry_ports)
                nd_try(nd_file_replace_unsynced(d->node.fd, BROKER_PORTS_FILE, d->cluster.registry_ports,
                                                strlen(d->cluster.registry_ports), 0600));
        return rootless_components_record(&d->cluster, &d->node);
}

struct nd_error *rootless_daemon_launch(struct rootless_daemon *d) {
        nd_cleanup(rootless_bindplan_done) struct rootless_bindplan files = {};
        struct nd_error *error;

        nd_try(rootless_daemon_plan(&d->config, &d->node, false, &d->ids, &d->cluster, &files));
        nd_try(rootless_launch_node(&d->config, &d->node, d->config.ephemeral, &d->ids, &files, &d->record, &d->pidfd));
        error = record_components(d);
        if (!error && d->cluster.overlay.file)
                error = rootless_overlay_plan_save(&d->node, &d->cluster.overlay);
        if (error)
                (void) nd_sys->pidfd_send_signal(d->pidfd, SIGKILL, 0);
        return error;
}
