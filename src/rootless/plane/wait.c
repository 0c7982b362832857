/* SPDX-License-Identifier: Apache-2.0 */
/* wait.c - see wait.h
 *
 * Standard output has a line when a step begins and one when it ends. With --json a line is an
 * object: {"step": "etcd", "state": "waiting"}, later {"step": "etcd", "state": "ready", "seconds":
 * 1.2}. */
#include "rootless/plane/wait.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "rootless/components/control-plane.h"
#include "rootless/components/record.h"
#include "rootless/plane/directory.h"
#include "rootless/plane/objects.h"

static constexpr uint64_t wait_timeout_us = 600 * ND_SECOND_US;
static constexpr uint64_t wait_interval_us = 200 * ND_MS_US;

enum { NODE_BYTES = 4 << 20 };

struct wait {
        const struct rootless_wait_settings *settings;
        struct rootless_node node;
        struct rootless_plane_client client;
        char *ca, *server; /* of cluster-info */
        uint64_t since_us;
        struct nd_error *last; /* why the step has not ended */
};

static void wait_done(struct wait *wait) {
        rootless_plane_client_done(&wait->client);
        rootless_node_done(&wait->node);
        free(wait->ca);
        free(wait->server);
        nd_error_free(wait->last);
}

static double seconds(const struct wait *wait) {
        return (double) (nd_clock_us() - wait->since_us) / (double) ND_SECOND_US;
}

/* ---- the steps ---- */

static bool component_ready(struct wait *wait, const char *name) {
        nd_cleanup(rootless_component_state_done) struct rootless_component_state state = {};

        rootless_component_state_load(&wait->node, name, &state);
        return nd_streq(state.state, "ready");
}

static bool etcd_ready(struct wait *wait) {
        return component_ready(wait, "etcd");
}

static bool get(struct wait *wait, const char *path, char **ret_body) {
        nd_error_free(wait->last);
        wait->last = rootless_plane_send(&wait->client, &(struct rootless_plane_call) {.path = path, .ceiling = NODE_BYTES},
                                         ret_body);
        return !wait->last;
}

static bool server_ready(struct wait *wait) {
        return get(wait, "/readyz", nullptr);
}

static bool objects_ready(struct wait *wait) {
        nd_error_free(wait->last);
        wait->last = rootless_plane_apply_objects(&wait->client, wait->server, wait->ca);
        return !wait->last;
}

static bool is_ready(yyjson_val *node) {
        yyjson_val *conditions = yyjson_obj_get(yyjson_obj_get(node, "status"), "conditions"), *condition;
        yyjson_arr_iter each = yyjson_arr_iter_with(conditions);

        while ((condition = yyjson_arr_iter_next(&each)))
                if (yyjson_equals_str(yyjson_obj_get(condition, "type"), "Ready"))
                        return yyjson_equals_str(yyjson_obj_get(condition, "status"), "True");
        return false;
}

/* A new node has a taint until the controller manager has seen that it is ready. */
static bool is_open(yyjson_val *node) {
        yyjson_val *taints = yyjson_obj_get(yyjson_obj_get(node, "spec"), "taints"), *taint;
        yyjson_arr_iter each = yyjson_arr_iter_with(taints);

        while ((taint = yyjson_arr_iter_next(&each)))
                if (yyjson_equals_str(yyjson_obj_get(taint, "key"), "node.kubernetes.io/not-ready"))
                        return false;
        return true;
}

static bool node_ready(struct wait *wait) {
        nd_autotext struct nd_text path = ND_TEXT(1024);
        nd_autojson yyjson_doc *doc = nullptr;
        nd_autofree char *body = nullptr;
        nd_autoerror struct nd_error *error = nullptr;

        nd_text_add(&path, "/api/v1/nodes/");
        nd_api_escape(&path, wait->settings->node_name);
        if (!get(wait, nd_text_get(&path), &body))
                return false;
        error = nd_json_parse(body, strlen(body), NODE_BYTES, &doc);
        return !error && is_ready(yyjson_doc_get_root(doc)) && is_open(yyjson_doc_get_root(doc));
}

/* Without it `kubectl run` is refused. */
static bool account_ready(struct wait *wait) {
        return get(wait, "/api/v1/namespaces/default/serviceaccounts/default", nullptr);
}

static const struct step {
        const char *name, *text;
        bool (*ready)(struct wait *wait);
} steps[] = {
        {"etcd", "etcd", etcd_ready},
        {"apiserver", "the API server", server_ready},
        {"objects", "the objects of the cluster", objects_ready},
        {"node", "the node", node_ready},
        {"serviceaccount", "the default service account", account_ready},
};

/* ---- progress ---- */

static void report(const struct wait *wait, const char *name, const char *text, bool ready) {
        if (!wait->settings->json)
                (void) (ready ? printf("%s: ready after %.1f s\n", text, seconds(wait)) : printf("waiting for %s\n", text));
        else if (ready)
                (void) printf("{\"step\": \"%s\", \"state\": \"ready\", \"seconds\": %.1f}\n", name, seconds(wait));
        else
                (void) printf("{\"step\": \"%s\", \"state\": \"waiting\"}\n", name);
        (void) fflush(stdout);
}

static void report_end(const struct wait *wait) {
        nd_autofree char *path = nd_format("%s/" CONTROL_PLANE_ADMIN, wait->settings->directory);
        nd_autotext struct nd_text text = ND_TEXT(PLANE_FILE_BYTES);
        struct nd_json_out out = {.text = &text};
        nd_autofree char *elapsed = nd_format("%.1f", seconds(wait));

        if (!wait->settings->json) {
                printf("the cluster is ready after %s s\nkubeconfig: %s\n", elapsed, path);
        } else {
                nd_json_open(&out, nullptr, '{');
                nd_json_string(&out, "step", "cluster");
                nd_json_string(&out, "state", "ready");
                nd_json_raw(&out, "seconds", elapsed);
                nd_json_string(&out, "kubeconfig", path);
                nd_json_close(&out, '}');
                printf("%s\n", nd_text_get(&text));
        }
        (void) fflush(stdout);
}

/* The node may end meanwhile: then there is nothing to wait for. */
static struct nd_error *check_node(const struct wait *wait) {
        nd_cleanup(rootless_node_record_done) struct rootless_node_record record = {};
        nd_autoclose int pidfd = -EBADF;

        return rootless_node_open_init(&wait->node, &record, &pidfd);
}

static struct nd_error *wait_step(struct wait *wait, const struct step *step, uint64_t end) {
        report(wait, step->name, step->text, false);
        while (!step->ready(wait)) {
                nd_try(check_node(wait));
                if (nd_clock_us() > end)
                        return nd_error_new(ND_DEADLINE, 0, "%s: not ready after %.0f s%s%s; 'nodens-rootless logs --name %s'",
                                            step->text, seconds(wait), wait->last ? ": " : "",
                                            wait->last ? nd_error_text(wait->last) : "", wait->settings->name);
                (void) usleep((useconds_t) wait_interval_us);
        }
        report(wait, step->name, step->text, true);
        return nullptr;
}

static struct nd_error *prepare(struct wait *wait) {
        nd_cleanup(nd_kubeconfig_done) struct nd_kubeconfig config = {};
        nd_autofree char *path = nd_format("%s/" CONTROL_PLANE_ADMIN, wait->settings->directory);
        nd_autoclose int fd = -EBADF;

        nd_try(rootless_plane_open(wait->settings->directory, false, &fd));
        nd_try(rootless_plane_read(fd, PLANE_SERVER, &wait->server));
        if (!wait->server)
                return nd_error_new(ND_NOT_FOUND, ENOENT, "'%s/" PLANE_SERVER "'", wait->settings->directory);
        nd_try(rootless_node_open(wait->settings->name, false, &wait->node));
        nd_try(nd_kubeconfig_load(path, nullptr, &config));
        wait->ca = nd_strdup(config.ca ? config.ca : "");
        return rootless_plane_client_open(&config, &wait->client);
}

struct nd_error *rootless_plane_wait(const struct rootless_wait_settings *settings) {
        nd_cleanup(wait_done) struct wait wait = {.settings = settings, .node = NODE_NONE, .since_us = nd_clock_us()};
        uint64_t end = nd_clock_us() + wait_timeout_us;

        if (settings->since)
                (void) !nd_text_parse_u64(settings->since, wait.since_us, &wait.since_us);
        nd_try(prepare(&wait));
        for (size_t i = 0; i < nd_count_of(steps); i++)
                nd_try(wait_step(&wait, &steps[i], end));
        report_end(&wait);
        return nullptr;
}
