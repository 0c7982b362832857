/* SPDX-License-Identifier: Apache-2.0 */
/* daemon.c - see daemon.h
 *
 * Theory of operation
 *   Runs outside the node, as the user, with a credential of its own: one thread, one loop. Watches
 *   fill @store; @publisher makes the node's published ports equal to what it decides; @labels and
 *   @ingress patch objects. A port that an object does not get is logged once, becomes an Event of
 *   the object, and the first one is in the status of the unit.
 *   Without an API server, and while the controller is away, published ports stay: the port
 *   controller has them. */
#include "rootless/controller/daemon.h"

#include <signal.h>
#include <string.h>
#include <systemd/sd-event.h>

#include "base/clock.h"
#include "base/log.h"
#include "net/api-credentials.h"
#include "rootless/components/record.h"
#include "rootless/controller/events.h"
#include "rootless/controller/ingress.h"
#include "rootless/controller/labels.h"
#include "rootless/controller/publisher.h"
#include "rootless/core/node.h"
#include "sys/child.h"
#include "sys/notify.h"
#include "sys/process.h"

static constexpr uint64_t log_interval_us = 10 * ND_SECOND_US;

struct controller {
        struct rootless_controller_config config;
        sd_event *loop;
        struct rootless_node node;
        struct rootless_node_record record;
        int pidfd, lock;
        struct nd_api *api;
        struct nd_api_credentials credentials;
        struct rootless_store store;
        struct rootless_labels labels;
        struct rootless_events events;
        struct rootless_rate log_rate;
        struct rootless_ingress ingress;
        struct rootless_publisher *publisher;
        struct nd_map problems; /* "OBJECT: TEXT" of ports that are not published, as reported */
        char *first_problem;
        size_t published;
        bool has_published;             /* once, at least */
        char *contact[ND_API_PROBLEMS]; /* nullptr: no problem */
        uint64_t contact_logged_us[ND_API_PROBLEMS];
        char *status;
        bool serves;
};

/* ---- status ---- */

static char *describe(const struct controller *c) {
        const char *trouble = c->contact[ND_API_PROBLEM_CREDENTIALS] ? c->contact[ND_API_PROBLEM_CREDENTIALS]
                              : c->contact[ND_API_PROBLEM_CONTACT]   ? c->contact[ND_API_PROBLEM_CONTACT]
                                                                     : rootless_store_trouble(&c->store);

        if (trouble)
                return nd_format("published ports stay as they are: %s", trouble);
        if (!c->has_published)
                return nd_strdup("reading Services, EndpointSlices and pods from the API server");
        if (c->first_problem)
                return nd_format("ready: %zu published %s; not published: %s", c->published,
                                 c->published == 1 ? "port" : "ports", c->first_problem);
        return nd_format("ready: %zu published %s", c->published, c->published == 1 ? "port" : "ports");
}

/* For `nodens-rootless status`. Texts of the API server and names of objects are in it. */
static void save_state(const struct controller *c) {
        nd_autotext struct nd_text printed = ND_TEXT(COMPONENT_STATUS_BYTES);
        nd_cleanup(rootless_component_state_done) struct rootless_component_state state = {
                .pid = getpid(), .state = c->serves ? "ready" : "starting"};
        nd_autoerror struct nd_error *error = nd_process_start_time(state.pid, &state.started);

        nd_text_add_printable(&printed, c->status, strlen(c->status));
        state.status = nd_strdup(nd_text_get(&printed));
        if (!error)
                error = rootless_component_state_save(&c->node, "controller", &state);
        if (error)
                nd_log(ND_LOG_WARNING, "cannot record the state of the controller", nd_field("error", nd_error_text(error)));
}

static void report(struct controller *c) {
        nd_autofree char *status = describe(c);

        if (c->status && nd_streq(c->status, status))
                return;
        nd_strset(&c->status, status);
        nd_notify_status(status);
        save_state(c);
}

/* ---- the API server ---- */

/* A single timeout is not logged, as the next attempt may succeed: without at_once a problem is in
 * the status only. */
static void on_contact(enum nd_api_problem problem, const char *text, bool at_once, void *userdata) {
        struct controller *c = userdata;
        uint64_t now_us = nd_clock_us();
        bool is_new = text && !c->contact[problem];

        if (!text && !c->contact[problem])
                return;
        if (is_new && at_once &&
            (c->contact_logged_us[problem] == 0 || now_us - c->contact_logged_us[problem] > log_interval_us)) {
                c->contact_logged_us[problem] = now_us;
                nd_log(ND_LOG_WARNING, "published ports stay as they are", nd_field("node", c->config.name),
                       nd_field("error", text));
        }
        if (text)
                nd_strset(&c->contact[problem], text);
        else
                free(nd_take_ptr(c->contact[problem]));
        report(c);
}

static void on_credentials(const struct nd_error *error, [[maybe_unused]] void *userdata) {
        if (error)
                nd_log(ND_LOG_WARNING, "cannot use the changed credentials for the API server; keeping the current ones",
                       nd_field("error", nd_error_text(error)));
        else
                nd_log(ND_LOG_INFO, "loaded new credentials for the API server");
}

static void on_objects(void *userdata) {
        struct controller *c = userdata;

        if (c->publisher)
                rootless_publisher_wake(c->publisher);
        rootless_ingress_update(&c->ingress);
        report(c);
}

static void on_node(const struct rootless_node_info *node, void *userdata) {
        struct controller *c = userdata;

        rootless_labels_update(&c->labels, node);
}

/* ---- published ports ---- */

static void announce(struct controller *c, const struct rootless_port_problem *problem, const char *name) {
        if (!rootless_rate_allows(&c->log_rate, nd_clock_us()))
                return;
        if (c->log_rate.suppressed > 0) {
                nd_autofree char *number = nd_format("%llu", (unsigned long long) nd_take(c->log_rate.suppressed, 0));

                nd_log(ND_LOG_WARNING, "more ports were not published and not logged", nd_field("ports", number));
        }
        nd_log(problem->is_expected ? ND_LOG_INFO : ND_LOG_WARNING, "port not published", nd_field("object", name),
               nd_field("reason", problem->text));
        if (!problem->is_expected)
                rootless_events_warn(&c->events, &problem->object, "PortNotPublished", problem->text);
}

/* Problems that are new since the last result are announced. */
static void on_published(const struct rootless_wanted *result, size_t count, struct nd_map *balancers, void *userdata) {
        struct controller *c = userdata;
        nd_cleanup(nd_map_done) struct nd_map now = {};

        free(nd_take_ptr(c->first_problem));
        nd_vector_each (problem, &result->problems) {
                nd_autofree char *name = rootless_object_text(&problem->object),
                                 *key = nd_format("%s: %s", name, problem->text);

                if (!nd_map_has(&c->problems, key) && !nd_map_has(&now, key))
                        announce(c, problem, name);
                (void) nd_map_put(&now, key, nullptr);
                if (!problem->is_expected && !c->first_problem)
                        c->first_problem = nd_strdup(key);
        }
        nd_map_done(&c->problems);
        c->problems = nd_take(now, (struct nd_map) {});
        if (!c->has_published || count != c->published) {
                nd_autofree char *number = nd_format("%zu", count);

                nd_log(ND_LOG_INFO, "published the ports of Services and pods", nd_field("node", c->config.name),
                       nd_field("ports", number));
        }
        c->has_published = true;
        c->published = count;
        rootless_ingress_set(&c->ingress, balancers);
        report(c);
}

static void on_publisher(const struct nd_error *error, void *userdata) {
        struct controller *c = userdata;

        if (error)
                nd_log(ND_LOG_WARNING, "cannot reach the port controller; retrying", nd_field("node", c->config.name),
                       nd_field("error", nd_error_text(error)));
        else
                nd_log(ND_LOG_INFO, "the port controller is there again", nd_field("node", c->config.name));
}

/* ---- the process ---- */

static const char *variable_of(const char *name) {
        return getenv(name); /* NOLINT(concurrency-mt-unsafe): one thread */
}

static int on_end([[maybe_unused]] sd_event_source *source, [[maybe_unused]] int fd, [[maybe_unused]] uint32_t events,
                  void *userdata) {
        struct controller *c = userdata;

        return sd_event_exit(c->loop, 0);
}

static struct nd_error *open_node(struct controller *c) {
        nd_try(rootless_node_open(c->config.name, false, &c->node));
        nd_try(rootless_node_lock_service(&c->node, "controller.lock", &c->lock));
        nd_try(rootless_node_open_init(&c->node, &c->record, &c->pidfd));
        c->config.policy.lowest = rootless_port_lowest();
        c->config.policy.has_host_addresses = nd_streq(c->record.net, "pasta") || nd_streq(c->record.net, "host");
        return nullptr;
}

static struct nd_error *start_client(struct controller *c) {
        nd_try(nd_error_wrap(
                nd_api_credentials_start(&c->credentials, c->loop,
                                         &(struct nd_api_credentials_settings) {
                                                 .path = c->config.kubeconfig,
                                                 .context = CLUSTER_CONTEXT,
                                                 .owner = "the controller's",
                                                 .advice = "`nodens-rootless manifest` prints a service account for it",
                                                 .report = on_contact,
                                                 .changed = on_credentials,
                                                 .userdata = c},
                                         &c->api),
                "credentials for the API server"));
        c->events = (struct rootless_events) {
                .api = c->api, .node_name = c->config.node_name, .rate = {.interval_us = 3 * ND_SECOND_US, .burst = 20}};
        c->log_rate = (struct rootless_rate) {.interval_us = ND_SECOND_US, .burst = 100};
        nd_try(rootless_labels_start(&c->labels, c->api, c->config.node_name, c->config.label));
        return rootless_ingress_start(&c->ingress, c->api, c->config.ingress_address, &c->store);
}

static struct nd_error *start(struct controller *c) {
        nd_try(open_node(c));
        nd_try(start_client(c));
        rootless_store_start(&c->store, &(struct rootless_store_settings) {.api = c->api,
                                                                           .node_name = c->config.node_name,
                                                                           .has_nodes = c->config.label != LABEL_NONE,
                                                                           .changed = on_objects,
                                                                           .node_changed = on_node,
                                                                           .userdata = c});
        return rootless_publisher_new(&(struct rootless_publisher_settings) {.loop = c->loop,
                                                                             .node = &c->node,
                                                                             .store = &c->store,
                                                                             .policy = c->config.policy,
                                                                             .published = on_published,
                                                                             .trouble = on_publisher,
                                                                             .userdata = c},
                                      &c->publisher);
}

static struct nd_error *serve(struct controller *c) {
        int r = sd_event_default(&c->loop);

        if (r < 0)
                return nd_error_new(ND_INTERNAL, -r, "create an event loop");
        /* a closed connection is an error of that connection only */
        (void) signal(SIGPIPE, SIG_IGN);
        nd_try(start(c));
        r = sd_event_add_io(c->loop, nullptr, c->pidfd, EPOLLIN, on_end, c);
        if (r >= 0)
                r = sd_event_set_signal_exit(c->loop, true);
        if (r >= 0)
                r = sd_event_set_watchdog(c->loop, true);
        if (r >= 0) {
                /* An API server that is away must not keep the unit from starting. */
                c->serves = true;
                nd_strset(&c->status, "");
                report(c);
                nd_notify_ready(c->status);
                r = sd_event_loop(c->loop);
        }
        return r < 0 ? nd_error_new(ND_INTERNAL, -r, "serve node '%s'", c->config.name) : nullptr;
}

static void controller_done(struct controller *c) {
        rootless_publisher_free(c->publisher);
        rootless_store_done(&c->store);
        rootless_labels_done(&c->labels);
        rootless_ingress_done(&c->ingress);
        nd_api_free(c->api);
        nd_api_credentials_done(&c->credentials);
        nd_map_done(&c->problems);
        free(c->first_problem);
        for (size_t i = 0; i < ND_API_PROBLEMS; i++)
                free(c->contact[i]);
        free(c->status);
        nd_close_fd(&c->lock);
        nd_close_fd(&c->pidfd);
        rootless_node_record_done(&c->record);
        rootless_node_done(&c->node);
        sd_event_unref(c->loop);
        rootless_controller_config_done(&c->config);
}

struct nd_error *rootless_controller_run(const struct rootless_controller_settings *settings) {
        struct controller c = {.node = NODE_NONE, .pidfd = -EBADF, .lock = -EBADF};
        struct nd_error *error = rootless_controller_config_resolve(settings, variable_of, &c.config);

        if (!error)
                error = serve(&c);
        controller_done(&c);
        return error;
}
