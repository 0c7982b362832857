/* SPDX-License-Identifier: Apache-2.0 */
/* up.c - `nodens-rootless up`: starts a node that outlives the command
 *
 * Theory of operation
 *   `up` starts the node's units in the user's systemd; they run the commands hold, net, forward
 *   and api. Options reach them by a file in the node's directory, which the unit reads after
 *   NAME.conf. So options are valid until the next `up`, and NAME.conf stays the user's own.
 *   `up --foreground` does the work of hold and net in one process and runs the others as children
 *   (services.h), for hosts without a user manager. If it is killed, init keeps running and the
 *   next `up --foreground` adopts the node. With --ephemeral init dies with it instead, and all
 *   files of the node are removed at the end, also after an error. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/log.h"
#include "rootless/broker/broker.h"
#include "rootless/command/commands.h"
#include "rootless/command/daemon.h"
#include "rootless/components/control-plane.h"
#include "rootless/components/record.h"
#include "rootless/node/delegation.h"
#include "rootless/node/launch.h"
#include "rootless/node/stop.h"
#include "rootless/ports/api-client.h"
#include "sys/child.h"
#include "sys/file.h"

#define OPTIONS_FILE "up.conf"

enum { TOKEN_BYTES = 128 };

static constexpr uint64_t services_end_timeout_us = 15 * ND_SECOND_US;

/* The names must outlive the services. */
static struct nd_error *start_services(struct rootless_daemon *d, struct nd_strings *components) {
        struct rootless_service_plan list[SERVICES_CEILING];
        size_t count = 0;

        if (d->config.net != NET_DRIVER_HOST) {
                list[count++] = (struct rootless_service_plan) {.command = "forward"};
                list[count++] = (struct rootless_service_plan) {.command = "api"};
        }
        if (faccessat(d->node.fd, BROKER_PORTS_FILE, F_OK, 0) == 0)
                list[count++] = (struct rootless_service_plan) {.command = "broker"};
        rootless_component_names(&d->node, components);
        nd_vector_each (name, components) {
                if (count < SERVICES_CEILING)
                        list[count++] = (struct rootless_service_plan) {.command = "component", .operand = *name};
        }
        if (components->count > 0 && count < SERVICES_CEILING)
                list[count++] = (struct rootless_service_plan) {.command = "controller"};
        return rootless_services_start(d->loop, &d->node, list, count, &d->services);
}

/* ---- the control plane ---- */

/* The command line of the program that waits for a new cluster and prints its progress. */
static struct nd_error *wait_argv(const struct rootless_daemon *d, bool json, struct nd_strings *ret) {
        const struct rootless_plane *plane = &d->cluster.plane;

        nd_strings_add_owned(ret, rootless_program_beside(CONTROL_PLANE_PROGRAM));
        nd_strings_add(ret, "wait");
        nd_strings_addf(ret, "--name=%s", d->config.name);
        nd_strings_addf(ret, "--directory=%s", plane->directory);
        nd_strings_addf(ret, "--node-name=%s", d->cluster.node_name);
        nd_strings_addf(ret, "--since=%llu", (unsigned long long) d->since_us);
        if (json)
                nd_strings_add(ret, "--json");
        nd_strings_add_owned(ret, nullptr);
        return nullptr;
}

static void on_waited(struct nd_child_result *result, [[maybe_unused]] void *userdata) {
        nd_autoerror struct nd_error *error = nd_child_result_error(result, CONTROL_PLANE_PROGRAM);

        if (error)
                nd_log(ND_LOG_ERROR, "the cluster is not ready", nd_field("error", nd_error_text(error)));
}

/* In the foreground the node runs meanwhile. */
static struct nd_error *start_waiting(struct rootless_daemon *d, bool json) {
        const int streams[] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
        nd_cleanup(nd_strings_done) struct nd_strings argv = {};
        struct nd_child *child = nullptr;

        if (!d->config.control_plane)
                return nullptr;
        nd_try(wait_argv(d, json, &argv));
        return nd_child_start(
                d->loop,
                &(struct nd_child_plan) {.argv = (const char *const *) argv.items, .streams = streams, .dies_with_us = true},
                on_waited, nullptr, &child);
}

static struct nd_error *wait_for_cluster(struct rootless_daemon *d, bool json) {
        const int streams[] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
        nd_cleanup(nd_strings_done) struct nd_strings argv = {};
        nd_cleanup(nd_child_result_done) struct nd_child_result result = {};

        if (!d->config.control_plane)
                return nullptr;
        nd_try(wait_argv(d, json, &argv));
        nd_try(nd_child_run(&(struct nd_child_plan) {.argv = (const char *const *) argv.items, .streams = streams}, &result));
        return result.code == 0 ? nullptr : nd_error_new(ND_UNAVAILABLE, 0, "the cluster is not ready");
}

static struct nd_error *foreground(struct rootless_daemon *d, const struct rootless_settings *settings,
                                   struct nd_strings *components) {
        nd_autoerror struct nd_error *absent = nullptr;

        nd_try(rootless_daemon_prepare(d, settings));
        nd_try(rootless_node_lock(&d->node));
        absent = rootless_node_open_init(&d->node, &d->record, &d->pidfd);
        if (absent) {
                nd_try(rootless_daemon_check_ports(&d->config));
                d->launched = true;
                nd_try(rootless_daemon_launch(d));
        } else if (d->config.ephemeral) {
                return nd_error_new(ND_EXISTS, 0,
                                    "node '%s' is already running; give the ephemeral node another name with --name",
                                    d->config.name);
        } else {
                nd_log(ND_LOG_NOTICE, "adopted a running node", nd_field("node", d->config.name));
        }
        if (absent)
                nd_try(start_waiting(d, settings->json));
        nd_try(start_services(d, components));
        nd_try(rootless_supervisor_start(d->loop, &d->node, &d->record, &d->supervisor));
        rootless_supervisor_log_warning(d->supervisor);
        nd_try(rootless_overlay_follower_start(d->loop, &d->node, &d->follower));
        if (settings->publish)
                nd_try(rootless_api_publish_list(d->config.name, settings->publish));
        nd_log(ND_LOG_NOTICE, "node started", nd_field("node", d->config.name));
        nd_try(rootless_daemon_wait(d));
        if (d->signalled)
                nd_try(rootless_node_stop(&d->node, d->pidfd));
        /* a control plane ends after the node */
        rootless_services_wait(d->services, services_end_timeout_us);
        rootless_node_clear(&d->node);
        return nullptr;
}

/* Ends the node of this launcher and removes all of its files. A node that was running before us
 * stays, whether we hold its lock or another launcher does. */
static struct nd_error *leave_nothing(struct rootless_daemon *d, struct nd_error *error) {
        nd_autofree char *top = rootless_node_runtime_dir();
        nd_autoerror struct nd_error *failed = nullptr;
        siginfo_t end;

        if (d->node.lock_fd < 0 || (d->pidfd >= 0 && !d->launched))
                return error;
        rootless_services_end(nd_take_ptr(d->services));
        rootless_supervisor_free(nd_take_ptr(d->supervisor));
        if (d->pidfd >= 0) {
                (void) nd_sys->pidfd_send_signal(d->pidfd, SIGKILL, 0);
                (void) waitid(P_PIDFD, (id_t) d->pidfd, &end, WEXITED);
        }
        rootless_node_clear(&d->node);
        if (d->launched && d->config.data && access(d->config.data, F_OK) == 0)
                failed = rootless_purge_data(&d->config);
        if (!failed)
                failed = rootless_node_remove(&d->node);
        /* unless another node has a directory in it */
        (void) nd_sys->unlinkat(AT_FDCWD, top, AT_REMOVEDIR);
        return error ? error : nd_take_ptr(failed);
}

/* Checks the settings as `hold` will: its errors would be in the journal only. If the node is about
 * to start, prints what its IDs allow. */
static struct nd_error *check_settings(struct rootless_daemon *d, const struct rootless_settings *settings, bool starts) {
        nd_cleanup(rootless_bindplan_done) struct rootless_bindplan plan = {}, more = {};
        struct rootless_node node = {.path = (char *) "/run/user/UID/nodens/NAME"};

        nd_try(rootless_config_resolve(settings, true, rootless_command_getenv, nullptr, &d->config));
        if (rootless_config_has_kubernetes(&d->config) && !d->config.no_cgroups)
                nd_try(rootless_delegation_require_manager());
        nd_try(rootless_daemon_plan(&d->config, &node, true, &d->ids, &d->cluster, &more));
        nd_try(rootless_launch_bindplan(&d->config, &node, nullptr, true, &more, &plan));
        if (settings->publish)
                nd_try(rootless_api_check_list(settings->publish));
        if (starts)
                rootless_command_print_ids(&d->ids, &d->cluster);
        return nullptr;
}

static struct nd_error *save_options(const struct rootless_node *node, const struct rootless_settings *settings) {
        nd_autotext struct nd_text text = {};

        nd_try(rootless_settings_format(settings, rootless_command_getenv, nullptr, &text));
        if (text.length == 0)
                return nd_file_unlink(node->fd, OPTIONS_FILE);
        return nd_file_replace_unsynced(node->fd, OPTIONS_FILE, text.bytes, text.length, 0600);
}

/* Units of components that the node does not have are skipped: they have a condition. */
static struct nd_error *start_units(const char *name, const struct rootless_config *config) {
        static const char *const units[] = {"",          "-net",   "-forward",    "-api",  "-broker",    "-runtime",
                                            "-kubelet",  "-proxy", "-controller", "-etcd", "-apiserver", "-controller-manager",
                                            "-scheduler"};
        enum { WITHOUT_KUBERNETES = 4, WITHOUT_CONTROL_PLANE = 8 };
        const int streams[] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
        nd_cleanup(nd_strings_done) struct nd_strings argv = {};
        nd_cleanup(nd_child_result_done) struct nd_child_result result = {};
        size_t count = config->control_plane ? nd_count_of(units) : config->join ? WITHOUT_CONTROL_PLANE : WITHOUT_KUBERNETES;

        nd_strings_add(&argv, "systemctl");
        nd_strings_add(&argv, "--user");
        nd_strings_add(&argv, "start");
        for (size_t i = 0; i < count; i++)
                nd_strings_addf(&argv, "nodens-node%s@%s.service", units[i], name);
        nd_strings_add_owned(&argv, nullptr);
        nd_try(nd_error_wrap(
                nd_child_run(&(struct nd_child_plan) {.argv = (const char *const *) argv.items, .streams = streams}, &result),
                "without a systemd user manager use 'nodens-rootless up --foreground'"));
        if (result.code != 0)
                return nd_error_new(ND_UNAVAILABLE, 0,
                                    "node '%s' does not start: 'nodens-rootless logs --name %s' shows why; without a systemd "
                                    "user manager use 'nodens-rootless up --foreground'",
                                    name, name);
        return nullptr;
}

static struct nd_error *refuse_new_settings(const struct rootless_settings *settings) {
        if (rootless_settings_any(settings))
                return nd_error_new(
                        ND_EXISTS, 0,
                        "node '%s' is already running: stop it with 'nodens-rootless down --name %s' to change its "
                        "settings",
                        settings->name, settings->name);
        return nullptr;
}

/* The settings in force are those of the record: the unit reads a file that we do not. */
static void warn_about_network(const struct rootless_node *node) {
        nd_cleanup(rootless_node_record_done) struct rootless_node_record record = {};
        nd_autoclose int pidfd = -EBADF;
        nd_autoerror struct nd_error *error = rootless_node_open_init(node, &record, &pidfd);
        const char *warning = error ? nullptr : rootless_supervisor_warning(record.net);

        (void) fflush(stdout); /* what was printed before comes first, also in a file */
        if (warning)
                fprintf(stderr, "nodens-rootless: warning: %s\n", warning);
}

/* Whether a flag is given. An invalid variable is reported when the settings are resolved. */
static bool flag_given(bool option, const char *name) {
        return rootless_settings_flag(option, rootless_command_getenv(name, nullptr));
}

static struct nd_error *background(struct rootless_daemon *d, const struct rootless_settings *settings) {
        nd_cleanup(rootless_node_done) struct rootless_node node = NODE_NONE;
        nd_cleanup(rootless_node_record_done) struct rootless_node_record record = {};
        nd_autoerror struct nd_error *absent = nullptr;
        nd_autoclose int pidfd = -EBADF;

        if (flag_given(settings->ephemeral, "NODENS_EPHEMERAL"))
                return nd_error_new(ND_INVALID, 0, "--ephemeral needs --foreground: units outlive this command");
        nd_try(rootless_node_open(settings->name, true, &node));
        absent = rootless_node_open_init(&node, &record, &pidfd);
        nd_try(check_settings(d, settings, absent));
        if (!absent) {
                nd_try(refuse_new_settings(settings));
        } else {
                nd_try(rootless_daemon_check_ports(&d->config));
                nd_try(save_options(&node, settings));
                nd_try(start_units(settings->name, &d->config));
                nd_try(wait_for_cluster(d, settings->json));
        }
        if (settings->publish)
                nd_try(nd_error_wrap(rootless_api_publish_list(settings->name, settings->publish), "node '%s' is running, but",
                                     settings->name));
        warn_about_network(&node);
        if (!settings->json)
                printf("node '%s' is running\n", settings->name);
        return nullptr;
}

/* Without following links: the file may be replaced by another link. */
static char *absolute(const char *path) {
        nd_autofree char *directory = path[0] == '/' ? nullptr : getcwd(nullptr, 0);

        return directory ? nd_format("%s/%s", directory, path) : nd_strdup(path);
}

/* ---- bootstrap tokens ---- */

/* Takes the token out of the command line, which other users of the host can see. */
static char *take_token(const char *word) {
        char line[TOKEN_BYTES] = "", *token;

        if (nd_streq(word, "-")) {
                if (!fgets(line, sizeof line, stdin))
                        line[0] = '\0';
                line[strcspn(line, "\r\n")] = '\0';
                token = nd_strdup(line);
                explicit_bzero(line, sizeof line);
                return token;
        }
        token = nd_strdup(word);
        /* the word is in argv, which is ours to change */
        memset((char *) word, 'x', strlen(word)); /* NOLINT */
        return token;
}

static struct nd_error *join_with_token(struct rootless_settings *settings, char *token, char **ret_join) {
        nd_cleanup(rootless_config_done) struct rootless_config config = {};

        if (settings->join || settings->control_plane)
                return nd_error_new(ND_INVALID, 0, "--bootstrap, --join and --control-plane exclude each other");
        if (!settings->server || !settings->ca == !settings->ca_cert_hash)
                return nd_error_new(ND_INVALID, 0, "--bootstrap needs --server, and either --ca-cert-hash or --ca");
        nd_try(rootless_config_resolve(settings, true, rootless_command_getenv, nullptr, &config));
        if (settings->dry_run)
                return nd_error_new(ND_INVALID, 0,
                                    "--dry-run does not contact a cluster; use it with --join instead of --bootstrap");
        nd_try(rootless_launch_make_data(&config));
        return rootless_bootstrap_discover(&(struct rootless_bootstrap) {.token = token,
                                                                         .server = settings->server,
                                                                         .ca_cert_hash = settings->ca_cert_hash,
                                                                         .ca = settings->ca},
                                           config.data, ret_join);
}

static struct nd_error *bootstrap(struct rootless_settings *settings, char **ret_join) {
        char *token = settings->bootstrap ? take_token(settings->bootstrap) : nullptr;
        struct nd_error *error;

        if (!token)
                return settings->server || settings->ca || settings->ca_cert_hash
                               ? nd_error_new(ND_INVALID, 0, "--server, --ca and --ca-cert-hash are for --bootstrap")
                               : nullptr;
        error = join_with_token(settings, token, ret_join);
        explicit_bzero(token, strlen(token));
        free(token);
        settings->bootstrap = nullptr;
        if (!error)
                settings->join = *ret_join;
        return error;
}

static struct nd_error *start_node(struct rootless_settings *settings, struct rootless_daemon *d,
                                   struct nd_strings *components, char **ret_join) {
        nd_try(bootstrap(settings, ret_join));
        if (settings->dry_run)
                return rootless_command_explain(settings, true);
        /* containers have no user manager */
        if (settings->foreground || flag_given(settings->inside, "NODENS_INSIDE"))
                return foreground(d, settings, components);
        return background(d, settings);
}

int rootless_command_up(void *settings, [[maybe_unused]] int operand_count, [[maybe_unused]] char **operands) {
        struct rootless_settings given = *(struct rootless_settings *) settings;
        nd_cleanup(nd_strings_done) struct nd_strings components = {};
        struct rootless_daemon d = DAEMON_NONE;
        nd_autofree char *join = given.join ? realpath(given.join, nullptr) : nullptr, *discovered = nullptr,
                         *peers = given.peers ? absolute(given.peers) : nullptr;
        struct nd_error *error;

        d.since_us = nd_clock_us();
        if (!given.name)
                given.name = NODE_DEFAULT_NAME;
        if (given.join && !join)
                return rootless_command_fail(nd_error_new(ND_INVALID, errno, "kubeconfig '%s'", given.join));
        given.join = join; /* units have another working directory */
        given.peers = peers;
        error = start_node(&given, &d, &components, &discovered);
        if (d.config.ephemeral)
                error = leave_nothing(&d, error);
        rootless_daemon_done(&d);
        return error ? rootless_command_fail(error) : EXIT_SUCCESS;
}
