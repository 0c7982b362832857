/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "rootless/command/commands.h"
#include "rootless/components/record.h"
#include "rootless/core/node.h"
#include "rootless/network/supervisor.h"
#include "rootless/node/ids.h"
#include "rootless/node/overlay-plan.h"
#include "sys/file.h"

enum {
        STATUS_BYTES = 1024 * 1024,
        NODES_CEILING = 1024,
        PEERS_SHOWN = 16, /* in text; JSON has all */
};

static char *controllers_of(const struct rootless_node_record *record) {
        nd_autofree char *path = nd_format("/sys/fs/cgroup%s/cgroup.subtree_control", record->cgroup ? record->cgroup : "");
        char *text = nullptr;

        if (!record->cgroup)
                return nullptr;
        nd_ignore(nd_file_read_kernel(path, 4096, &text));
        if (text)
                text[strcspn(text, "\n")] = '\0';
        return text;
}

static void print_ids(const struct rootless_node_record *record) {
        nd_cleanup(rootless_ids_done) struct rootless_ids ids = {};
        nd_cleanup(nd_strings_done) struct nd_strings limits = {};
        nd_autoerror struct nd_error *error = rootless_ids_of_process(record->pid, &ids);
        nd_autofree char *summary =
                error ? nd_format("%llu IDs", (unsigned long long) record->ids) : rootless_ids_summary(&ids);

        if (!error)
                rootless_ids_limits(&ids, &limits);
        printf("  ids        %s\n", summary);
        nd_vector_each (limit, &limits) {
                printf("             %s\n", *limit);
        }
}

/* The number of pods with user namespaces of their own for which the node has IDs. */
static uint64_t count_pods(const struct rootless_node_record *record) {
        nd_cleanup(rootless_ids_done) struct rootless_ids ids = {};
        nd_autoerror struct nd_error *error = rootless_ids_of_process(record->pid, &ids);

        return error ? 0 : ids.pods.count / ND_IDS_UNIT;
}

static void print_text(const struct rootless_node *node, const struct rootless_node_record *record, pid_t helper,
                       const char *controllers) {
        const char *warning = rootless_supervisor_warning(record->net);

        printf("%s\n", node->name);
        printf("  init       process %d\n", (int) record->pid);
        print_ids(record);
        printf("  network    %s, MTU %u", record->net, record->mtu);
        if (helper > 0)
                printf(", helper is process %d", (int) helper);
        else if (nd_streq(record->net, "pasta") || nd_streq(record->net, "slirp4netns"))
                printf(", NO HELPER (start it: nodens-rootless net --name %s, or the unit nodens-node-net@%s)", node->name,
                       node->name);
        if (warning)
                printf("\n             WARNING: %s", warning);
        printf("\n  data       %s\n", record->data ? record->data : "in memory");
        if (record->cgroup)
                printf("  cgroup     %s, controllers: %s\n", record->cgroup,
                       controllers && *controllers ? controllers : "none, so pods have no limits");
        else
                printf("  cgroup     not delegated, so pods have no limits (nodens check --rootless)\n");
}

/* ---- other nodes ---- */

/* A node with --peers. */
struct overlay {
        struct rootless_overlay_plan plan;
        struct rootless_peers peers; /* in force */
        char *refused;               /* why the file is not; nullptr if it is */
};

static void overlay_done(struct overlay *overlay) {
        rootless_overlay_plan_done(&overlay->plan);
        rootless_peers_done(&overlay->peers);
        free(overlay->refused);
}

static char *compare_with_file(const struct overlay *overlay) {
        nd_cleanup(rootless_peers_done) struct rootless_peers peers = {};
        nd_autoerror struct nd_error *error = rootless_peers_read(overlay->plan.file, &peers);
        nd_autofree char *written = nullptr, *used = nullptr;

        if (error)
                return nd_strdup(nd_error_text(error));
        written = rootless_peers_format(&peers);
        used = rootless_peers_format(&overlay->peers);
        if (nd_streq(written, used))
                return nullptr;
        return nd_strdup("it has changed; unless it is applied within 2 s, the log of the node's network has the reason");
}

static bool read_overlay(const struct rootless_node *node, struct overlay *ret) {
        nd_autoerror struct nd_error *error = rootless_overlay_plan_load(node, &ret->plan);

        if (!error)
                error = rootless_overlay_list_load(node, &ret->peers);
        if (error)
                return false;
        ret->refused = compare_with_file(ret);
        return true;
}

static void print_peer(const struct rootless_peer *peer) {
        nd_autofree char *host = rootless_peer_host_text(peer);
        char pods[ND_ADDRESS_TEXT];

        printf("             %s: pods %s/%u, by %s\n", peer->name, nd_netlink_address_text(&peer->pods, pods),
               peer->pods.prefix, host);
}

static void print_peers(const struct rootless_node *node) {
        nd_cleanup(overlay_done) struct overlay overlay = {};
        size_t others = 0;

        if (!read_overlay(node, &overlay))
                return;
        printf("  peers      %zu, of %s; pods of this node %s, MTU %u\n", overlay.peers.count - 1, overlay.plan.file,
               overlay.plan.pods_text, overlay.plan.mtu);
        nd_vector_each (peer, &overlay.peers) {
                if (!nd_streq(peer->name, overlay.plan.name) && others++ < PEERS_SHOWN)
                        print_peer(peer);
        }
        if (others > PEERS_SHOWN)
                printf("             and %zu more: nodens-rootless status --json\n", others - PEERS_SHOWN);
        if (overlay.refused)
                printf("             ERROR: the file is not in force: %s\n", overlay.refused);
}

static void add_peer(struct nd_json_out *out, const struct rootless_peer *peer) {
        nd_autofree char *host = rootless_peer_host_text(peer), *pods = nullptr;
        char address[ND_ADDRESS_TEXT];

        pods = nd_format("%s/%u", nd_netlink_address_text(&peer->pods, address), peer->pods.prefix);
        nd_json_open(out, nullptr, '{');
        nd_json_string(out, "name", peer->name);
        nd_json_string(out, "pods", pods);
        nd_json_string(out, "host", host);
        nd_json_close(out, '}');
}

static void add_peers(struct nd_json_out *out, const struct rootless_node *node) {
        nd_cleanup(overlay_done) struct overlay overlay = {};

        if (!read_overlay(node, &overlay))
                return;
        nd_json_open(out, "overlay", '{');
        nd_json_string(out, "file", overlay.plan.file);
        nd_json_string(out, "error", overlay.refused);
        nd_json_string(out, "pods", overlay.plan.pods_text);
        nd_json_number(out, "mtu", overlay.plan.mtu);
        nd_json_open(out, "peers", '[');
        nd_vector_each (peer, &overlay.peers) {
                if (!nd_streq(peer->name, overlay.plan.name))
                        add_peer(out, peer);
        }
        nd_json_close(out, ']');
        nd_json_close(out, '}');
}

/* ---- components ---- */

static void add_state(struct nd_json_out *out, const struct rootless_component_state *state) {
        nd_json_string(out, "state", state->state);
        nd_json_number(out, "pid", (uint64_t) state->pid);
        nd_json_bool(out, "ready", nd_streq(state->state, "ready"));
        nd_json_string(out, "status", state->status);
}

/* A component's own status is hostile, but the record has only printable characters of it. */
static void print_component(const struct rootless_node *node, const char *name, struct nd_json_out *out) {
        nd_cleanup(rootless_component_state_done) struct rootless_component_state state = {};

        rootless_component_state_load(node, name, &state);
        if (!out) {
                printf("  %-10s %s", name, state.state);
                if (state.pid > 0)
                        printf(", run by process %d", (int) state.pid);
                printf("%s%s\n", *state.status ? ": " : "", state.status);
                return;
        }
        nd_json_open(out, nullptr, '{');
        nd_json_string(out, "name", name);
        add_state(out, &state);
        nd_json_close(out, '}');
}

/* Runs outside of the node. A node without Kubernetes may have one, and does not need one. */
static void print_controller(const struct rootless_node *node, bool needed, struct nd_json_out *out) {
        nd_cleanup(rootless_component_state_done) struct rootless_component_state state = {};

        rootless_component_state_load(node, "controller", &state);
        if (!needed && state.pid == 0)
                return;
        if (!out) {
                printf("  controller %s", state.state);
                if (state.pid > 0)
                        printf(", process %d", (int) state.pid);
                printf("%s%s\n", *state.status ? ": " : "", state.status);
                return;
        }
        nd_json_open(out, "controller", '{');
        add_state(out, &state);
        nd_json_close(out, '}');
}

static void print_components(const struct rootless_node *node, struct nd_json_out *out) {
        nd_cleanup(nd_strings_done) struct nd_strings names = {};

        rootless_component_names(node, &names);
        if (out)
                nd_json_open(out, "components", '[');
        nd_vector_each (name, &names) {
                print_component(node, *name, out);
        }
        if (out)
                nd_json_close(out, ']');
        print_controller(node, names.count > 0, out);
}

static void print_json(struct nd_json_out *out, const struct rootless_node *node, const struct rootless_node_record *record,
                       pid_t helper, const char *controllers) {
        nd_json_open(out, nullptr, '{');
        nd_json_string(out, "name", node->name);
        nd_json_number(out, "pid", (uint64_t) record->pid);
        nd_json_number(out, "ids", record->ids);
        nd_json_number(out, "podsWithUserNamespaces", count_pods(record));
        nd_json_string(out, "net", record->net);
        nd_json_number(out, "mtu", record->mtu);
        nd_json_number(out, "helper", (uint64_t) helper);
        nd_json_string(out, "networkWarning", rootless_supervisor_warning(record->net));
        nd_json_string(out, "data", record->data);
        nd_json_string(out, "cgroup", record->cgroup);
        nd_json_string(out, "controllers", controllers);
        add_peers(out, node);
        print_components(node, out);
        nd_json_close(out, '}');
}

/* Shows one node. Nodes that are not running are skipped. */
static bool show_node(const char *name, struct nd_json_out *out) {
        nd_cleanup(rootless_node_done) struct rootless_node node = NODE_NONE;
        nd_cleanup(rootless_node_record_done) struct rootless_node_record record = {};
        nd_autofree char *controllers = nullptr;
        nd_autoclose int pidfd = -EBADF;
        nd_autoerror struct nd_error *error = rootless_node_open(name, false, &node);

        if (!error)
                error = rootless_node_open_init(&node, &record, &pidfd);
        if (error)
                return false;
        controllers = controllers_of(&record);
        if (out)
                print_json(out, &node, &record, rootless_supervisor_helper_pid(&node), controllers);
        else
                print_text(&node, &record, rootless_supervisor_helper_pid(&node), controllers);
        if (!out) {
                print_peers(&node);
                print_components(&node, nullptr);
        }
        return true;
}

static size_t show_nodes(const char *only, struct nd_json_out *out) {
        nd_autofree char *top = rootless_node_runtime_dir();
        nd_cleanup(nd_strings_done) struct nd_strings names = {};
        size_t found = 0;

        if (only)
                return show_node(only, out);
        nd_ignore(nd_dir_list(AT_FDCWD, top, NODES_CEILING, &names));
        nd_vector_each (name, &names) {
                found += show_node(*name, out);
        }
        return found;
}

int rootless_command_status(void *settings, [[maybe_unused]] int operand_count, [[maybe_unused]] char **operands) {
        const struct rootless_settings *given = settings;
        nd_autotext struct nd_text text = ND_TEXT(STATUS_BYTES);
        struct nd_json_out out = {.text = &text, .indent = 1};
        size_t found;

        if (given->json)
                nd_json_open(&out, nullptr, '[');
        found = show_nodes(given->name, given->json ? &out : nullptr);
        if (given->json) {
                nd_json_close(&out, ']');
                printf("%s\n", nd_text_get(&text));
        } else if (found == 0) {
                printf("no running nodes\n");
        }
        return found > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
