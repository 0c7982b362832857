/* SPDX-License-Identifier: Apache-2.0 */
/* supervisor.c - see supervisor.h
 *
 * Theory of operation
 *   The helper is a child, watched by its pidfd. When it exits it is restarted, at once the first
 *   time and then with increasing delays up to @restart_delay_max_us. Init owns tap, addresses and
 *   routes, which stay meanwhile. When the host's addresses, routes or resolv.conf change (a VPN, a
 *   resumed laptop), the plan is computed again; if it differs, it is sent to init and the helper
 *   is restarted.
 *   A helper joins the node's user namespace, which clears its parent-death signal. So its PID is
 *   recorded, and a supervisor that follows a killed one kills that process before it starts its
 *   own: a tap has one reader.
 *   A link on a bridge (lxc-user-nic.h) has no helper: it is made once, and only addresses, routes
 *   and resolv.conf follow the host.
 *   Every helper is ready when the tap has a carrier, which init sees. */
#include "rootless/network/supervisor.h"

#include <poll.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "net/pasta.h"
#include "rootless/core/control.h"
#include "rootless/network/discover.h"
#include "rootless/network/lxc-user-nic.h"
#include "rootless/network/network.h"
#include "sys/calls.h"
#include "sys/child.h"
#include "sys/file.h"
#include "sys/notify.h"
#include "sys/process.h"

enum { HELPER_OUTPUT_BYTES = 4096 };

static constexpr uint64_t restart_delay_min_us = 10 * ND_MS_US;
static constexpr uint64_t restart_delay_max_us = 5 * ND_SECOND_US;
static constexpr uint64_t stable_uptime_us = ND_SECOND_US; /* reset the backoff after this */
/* For a helper that was killed: the backoff is for a helper that fails to start. */
static constexpr uint64_t killed_restart_delay_us = 100 * ND_MS_US;
static constexpr uint64_t carrier_timeout_us = 10 * ND_SECOND_US;
static constexpr uint64_t call_timeout_us = 5 * ND_SECOND_US;
/* one change of the network produces many messages */
static constexpr uint64_t network_settle_us = 300 * ND_MS_US;
static constexpr uint64_t resolv_poll_us = 10 * ND_SECOND_US;

struct rootless_supervisor {
        sd_event *loop;
        const struct rootless_node *node;
        const struct rootless_node_record *record;
        int init_fd;
        struct rootless_netplan plan;
        char *resolv;
        bool plan_pending;       /* the plan could not be sent to init yet */
        struct nd_child *helper; /* nullptr = not running */
        int helper_pidfd;
        uint64_t helper_since;
        uint64_t delay_us;
        sd_event_source *restart;     /* starts the next helper */
        sd_event_source *watch;       /* changes of the host's network */
        sd_event_source *settle;      /* refreshes the plan when changes have settled */
        sd_event_source *resolv_poll; /* polls resolv.conf */
        int watch_fd;
        char *state; /* for the unit's status; nullptr = no helper was started */
};

/* ---- the record of the helper ---- */

static struct nd_error *find_recorded(const struct rootless_node *node, pid_t *ret_pid, int *ret_pidfd) {
        nd_autofree char *text = nullptr;
        nd_autojson yyjson_doc *doc = nullptr;
        yyjson_val *top;
        uint64_t pid, started;
        size_t length;

        nd_try(nd_file_read(node->fd, "helper", 4096, &text, &length));
        nd_try(nd_json_parse(text, length, 4096, &doc));
        top = yyjson_doc_get_root(doc);
        pid = yyjson_get_uint(yyjson_obj_get(top, "pid"));
        started = yyjson_get_uint(yyjson_obj_get(top, "started"));
        if (pid < 2 || pid > INT32_MAX)
                return nd_error_new(ND_INVALID, 0, "invalid record of a network helper");
        nd_try(rootless_process_open((pid_t) pid, started, ret_pidfd));
        *ret_pid = (pid_t) pid;
        return nullptr;
}

pid_t rootless_supervisor_helper_pid(const struct rootless_node *node) {
        nd_autoclose int pidfd = -EBADF;
        pid_t pid = 0;
        nd_autoerror struct nd_error *error = find_recorded(node, &pid, &pidfd);

        return error ? 0 : pid;
}

/* Helpers fork, and any process left holds the tap. The pidfd still refers to the group when its
 * leader has exited. */
static void end_group(int pidfd) {
        if (pidfd >= 0)
                (void) nd_sys->pidfd_send_signal(pidfd, SIGKILL, PIDFD_SIGNAL_PROCESS_GROUP);
}

static void end_recorded(const struct rootless_node *node) {
        nd_autoclose int pidfd = -EBADF;
        pid_t pid = 0;
        nd_autoerror struct nd_error *error = find_recorded(node, &pid, &pidfd);
        struct pollfd wait = {.fd = pidfd, .events = POLLIN};

        if (error)
                return;
        end_group(pidfd);
        (void) poll(&wait, 1, (int) (call_timeout_us / ND_MS_US));
}

static struct nd_error *record_helper(const struct rootless_node *node, pid_t pid) {
        nd_autofree char *text = nullptr;
        uint64_t started;

        nd_try(nd_process_start_time(pid, &started));
        text = nd_format("{\"pid\": %d, \"started\": %llu}\n", (int) pid, (unsigned long long) started);
        return nd_file_replace(node->fd, "helper", text, strlen(text), 0600);
}

/* ---- the state ---- */

static void set_state(struct rootless_supervisor *s, char *state) {
        free(s->state);
        s->state = state;
        nd_notify_status(state);
}

const char *rootless_supervisor_state(const struct rootless_supervisor *s) {
        return s->state ?: rootless_net_driver_name(s->plan.driver);
}

/* ---- known defects ---- */

const char *rootless_supervisor_warning(const char *driver) {
        nd_autoerror struct nd_error *error = nullptr;
        bool stalls = false;

        if (!nd_streq(driver, rootless_net_driver_name(NET_DRIVER_PASTA)))
                return nullptr;
        error = nd_pasta_stalls(&stalls);
        return !error && stalls ? "streams out of the node stall with this version of pasta; "
                                  "install passt of " ND_PASTA_FIXED_TEXT " or later"
                                : nullptr;
}

void rootless_supervisor_log_warning(const struct rootless_supervisor *s) {
        const char *warning = rootless_supervisor_warning(s->record->net);

        if (warning)
                nd_log(ND_LOG_WARNING, warning, nd_field("node", s->node->name));
}

/* ---- the helper ---- */

static struct nd_error *start_helper(struct rootless_supervisor *s);

static int on_restart(sd_event_source *source, [[maybe_unused]] uint64_t usec, void *userdata) {
        struct rootless_supervisor *s = userdata;
        nd_autoerror struct nd_error *error = start_helper(s);

        (void) source;
        if (!error)
                return 0;
        nd_log(ND_LOG_ERROR, "cannot start the network helper; retrying", nd_field("node", s->node->name),
               nd_field("error", nd_error_text(error)),
               nd_field("remedy", "'nodens check --rootless' shows whether the helper and /dev/net/tun can be used"));
        set_state(s, nd_format("cannot start the network helper, retrying: %s", nd_error_text(error)));
        return 0;
}

static void schedule_restart(struct rootless_supervisor *s) {
        sd_event_source_disable_unref(s->restart);
        s->restart = nullptr;
        (void) sd_event_add_time_relative(s->loop, &s->restart, CLOCK_MONOTONIC, s->delay_us, 1000, on_restart, s);
        s->delay_us = s->delay_us * 2 < restart_delay_max_us ? s->delay_us * 2 : restart_delay_max_us;
}

static void on_helper_ended(struct nd_child_result *result, void *userdata) {
        struct rootless_supervisor *s = userdata;
        nd_autoerror struct nd_error *error = nd_child_result_error(result, rootless_net_driver_name(s->plan.driver));

        s->helper = nullptr;
        end_group(s->helper_pidfd);
        nd_close_fd(&s->helper_pidfd);
        if (nd_clock_us() - s->helper_since > stable_uptime_us)
                s->delay_us = restart_delay_min_us;
        if (result->signal != 0 && s->delay_us > killed_restart_delay_us)
                s->delay_us = killed_restart_delay_us;
        nd_log(ND_LOG_WARNING, "network helper exited; restarting it", nd_field("node", s->node->name),
               nd_field("reason", error ? nd_error_text(error) : "exit status 0"));
        set_state(s, nd_format("network helper exited, restarting it: %s", error ? nd_error_text(error) : "exit status 0"));
        schedule_restart(s);
}

static struct nd_error *start_helper(struct rootless_supervisor *s) {
        nd_cleanup(nd_strings_done) struct nd_strings argv = {};
        nd_autoclose int init_pidfd = -EBADF;
        struct nd_child_plan plan = {.output_ceiling = HELPER_OUTPUT_BYTES, .descriptors = &init_pidfd, .descriptor_count = 1};
        struct nd_error *error;

        if (s->helper || !rootless_netplan_helper_argv(&s->plan, s->record->pid, &argv))
                return nullptr;
        nd_try(rootless_process_open(s->record->pid, s->record->started, &init_pidfd));
        plan.argv = (const char *const *) argv.items;
        error = nd_child_start(s->loop, &plan, on_helper_ended, s, &s->helper);
        if (error) {
                schedule_restart(s); /* the package may be in the middle of an upgrade */
                return error;
        }
        s->helper_since = nd_clock_us();
        set_state(s, nd_format("%s, helper is process %d", rootless_net_driver_name(s->plan.driver),
                               (int) nd_child_pid(s->helper)));
        nd_close_fd(&s->helper_pidfd);
        s->helper_pidfd = pidfd_open(nd_child_pid(s->helper), 0);
        return record_helper(s->node, nd_child_pid(s->helper));
}

static struct nd_error *ask_carrier(struct rootless_supervisor *s, bool *ret_up) {
        nd_cleanup(rootless_control_done) struct rootless_control answer = {};
        nd_autotext struct nd_text question = CONTROL_TEXT;
        const char *up;

        rootless_control_begin(&question, "carrier");
        nd_try(rootless_control_call(s->init_fd, &question, nullptr, 0, call_timeout_us, &answer));
        up = rootless_control_get(&answer, "up");
        *ret_up = up && nd_streq(up, "1");
        return nullptr;
}

/* Runs the loop while waiting for the carrier, to notice a helper that exits at once. */
static struct nd_error *await_carrier(struct rootless_supervisor *s) {
        uint64_t end = nd_clock_us() + carrier_timeout_us;

        while (nd_clock_us() < end) {
                bool up;

                nd_try(ask_carrier(s, &up));
                if (up)
                        return nullptr;
                (void) sd_event_run(s->loop, 2 * ND_MS_US);
        }
        return nd_error_new(ND_DEADLINE, ETIMEDOUT,
                            "%s did not attach to the node's tap within %u s; check that it is installed and may run",
                            rootless_net_driver_name(s->plan.driver), (unsigned) (carrier_timeout_us / ND_SECOND_US));
}

/* ---- following the host's network ---- */

static struct nd_error *send_plan(struct rootless_supervisor *s) {
        nd_autotext struct nd_text text = CONTROL_TEXT;

        rootless_network_format(&text, &s->plan, s->resolv);
        return rootless_control_call(s->init_fd, &text, nullptr, 0, call_timeout_us, nullptr);
}

/* Makes the link on a bridge if there is none; it has a carrier from then on. A link that a killed
 * supervisor made but did not configure gets its carrier by being configured. */
static struct nd_error *attach_link(struct rootless_supervisor *s) {
        bool up = false;

        if (s->plan.driver != NET_DRIVER_LXC)
                return nullptr;
        nd_try(send_plan(s));
        nd_try(ask_carrier(s, &up));
        return up ? nullptr : rootless_lxc_link_attach(s->node->name, &s->plan, s->record->pid);
}

/* Makes the plan again; *ret_changed is whether it differs. */
static struct nd_error *refresh_plan(struct rootless_supervisor *s, bool *ret_changed) {
        nd_autofree char *resolv = nullptr;
        struct rootless_netplan plan;

        nd_try(rootless_network_discover(s->node->name, s->plan.driver, s->record->mtu, &plan, &resolv));
        *ret_changed = !s->resolv || !rootless_netplan_equal(&plan, &s->plan) || !nd_streq(resolv, s->resolv);
        s->plan = plan;
        free(s->resolv);
        s->resolv = nd_take_ptr(resolv);
        return nullptr;
}

static void follow_network(struct rootless_supervisor *s) {
        bool changed = false;
        nd_autoerror struct nd_error *error = refresh_plan(s, &changed);

        if (!error && !changed && !s->plan_pending)
                return;
        s->plan_pending = true;
        if (!error)
                error = send_plan(s);
        s->plan_pending = error != nullptr;
        if (error) {
                nd_log(ND_LOG_ERROR, "cannot apply a change of the host's network to the node",
                       nd_field("node", s->node->name), nd_field("error", nd_error_text(error)));
                return;
        }
        nd_log(ND_LOG_NOTICE, "the host's network changed; updating the node's network", nd_field("node", s->node->name));
        if (s->plan.driver == NET_DRIVER_LXC)
                return;
        nd_child_cancel(nd_take_ptr(s->helper));
        s->delay_us = restart_delay_min_us;
        end_recorded(s->node);
        schedule_restart(s);
}

static int on_settled([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t usec, void *userdata) {
        follow_network(userdata);
        return 0;
}

static int on_network_changed([[maybe_unused]] sd_event_source *source, int fd, [[maybe_unused]] uint32_t events,
                              void *userdata) {
        struct rootless_supervisor *s = userdata;
        char piece[8192];

        while (recv(fd, piece, sizeof piece, MSG_DONTWAIT) > 0)
                ;
        sd_event_source_disable_unref(s->settle);
        s->settle = nullptr;
        (void) sd_event_add_time_relative(s->loop, &s->settle, CLOCK_MONOTONIC, network_settle_us, 0, on_settled, s);
        return 0;
}

static int on_resolv_poll(sd_event_source *source, [[maybe_unused]] uint64_t usec, void *userdata) {
        follow_network(userdata);
        (void) sd_event_source_set_time_relative(source, resolv_poll_us);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static struct nd_error *watch_machine(struct rootless_supervisor *s) {
        int r;

        nd_try(nd_netlink_watch(&s->watch_fd));
        r = sd_event_add_io(s->loop, &s->watch, s->watch_fd, EPOLLIN, on_network_changed, s);
        if (r >= 0)
                r = sd_event_add_time_relative(s->loop, &s->resolv_poll, CLOCK_MONOTONIC, resolv_poll_us, ND_SECOND_US,
                                               on_resolv_poll, s);
        return r < 0 ? nd_error_new(ND_INTERNAL, -r, "watch the host's network") : nullptr;
}

static void supervisor_done(struct rootless_supervisor **s) {
        rootless_supervisor_free(*s);
}

struct nd_error *rootless_supervisor_start(sd_event *loop, const struct rootless_node *node,
                                           const struct rootless_node_record *record, struct rootless_supervisor **ret) {
        nd_cleanup(supervisor_done) struct rootless_supervisor *s = nd_new(struct rootless_supervisor);
        bool changed;

        *s = (struct rootless_supervisor) {.loop = sd_event_ref(loop),
                                           .node = node,
                                           .record = record,
                                           .init_fd = -EBADF,
                                           .watch_fd = -EBADF,
                                           .helper_pidfd = -EBADF,
                                           .delay_us = restart_delay_min_us,
                                           .plan = {.mtu = record->mtu}};
        nd_try(rootless_net_driver_parse(record->net, &s->plan.driver));
        if (s->plan.driver == NET_DRIVER_NONE || s->plan.driver == NET_DRIVER_HOST) {
                *ret = nd_take_ptr(s);
                return nullptr;
        }
        end_recorded(node);
        nd_try(rootless_node_connect(node, &s->init_fd));
        nd_try(refresh_plan(s, &changed));
        nd_try(attach_link(s));
        nd_try(send_plan(s));
        nd_try(start_helper(s));
        nd_try(await_carrier(s));
        nd_try(watch_machine(s));
        *ret = nd_take_ptr(s);
        return nullptr;
}

void rootless_supervisor_free(struct rootless_supervisor *s) {
        if (!s)
                return;
        sd_event_source_disable_unref(s->restart);
        sd_event_source_disable_unref(s->watch);
        sd_event_source_disable_unref(s->settle);
        sd_event_source_disable_unref(s->resolv_poll);
        nd_child_cancel(s->helper);
        end_group(s->helper_pidfd);
        nd_close_fd(&s->helper_pidfd);
        nd_close_fd(&s->watch_fd);
        nd_close_fd(&s->init_fd);
        sd_event_unref(s->loop);
        free(s->resolv);
        free(s->state);
        free(s);
}
