/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/pod-json.h"

static void print_range(struct nd_json_out *out, const char *key, const Nodens__V1__IdRange *range) {
        if (!range)
                return;
        nd_json_open(out, key, '{');
        nd_json_number(out, "container", range->container);
        nd_json_number(out, "host", range->host);
        nd_json_number(out, "count", range->count);
        nd_json_close(out, '}');
}

void cli_pod_json_container(struct nd_json_out *out, const Nodens__V1__ContainerEntry *container) {
        nd_json_string(out, "id", container->id);
        nd_json_string(out, "name", container->name);
        nd_json_number(out, "attempt", container->attempt);
        nd_json_string(out, "state", container->state);
        nd_json_string(out, "image", container->image);
        nd_json_signed(out, "pid", container->pid);
        nd_json_signed(out, "exitCode", container->exit_code);
        nd_json_string(out, "reason", container->reason);
        nd_json_string(out, "message", container->message);
        nd_json_number(out, "createdAt", container->created_at);
        nd_json_number(out, "startedAt", container->started_at);
        nd_json_number(out, "finishedAt", container->finished_at);
        nd_json_number(out, "checksPassed", container->checks_passed);
        nd_json_number(out, "checksFailed", container->checks_failed);
}

void cli_pod_json(struct nd_json_out *out, const Nodens__V1__PodEntry *pod) {
        nd_json_string(out, "id", pod->id);
        nd_json_string(out, "namespace", pod->namespace_);
        nd_json_string(out, "name", pod->name);
        nd_json_string(out, "uid", pod->uid);
        nd_json_number(out, "attempt", pod->attempt);
        nd_json_string(out, "state", pod->state);
        nd_json_number(out, "createdAt", pod->created_at);
        nd_json_bool(out, "userNamespace", pod->user_namespace);
        print_range(out, "uids", pod->uids);
        print_range(out, "gids", pod->gids);
        nd_json_bool(out, "hostNetwork", pod->host_network);
        nd_json_open(out, "addresses", '[');
        for (size_t i = 0; i < pod->n_addresses; i++)
                nd_json_string(out, nullptr, pod->addresses[i]);
        nd_json_close(out, ']');
}
