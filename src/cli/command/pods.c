/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command/pods.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/core/client.h"
#include "cli/core/format.h"
#include "cli/core/table.h"
#include "net/protobuf.h"

const struct nd_option cli_pods_options[] = {
        {.name = "json", .offset = offsetof(struct cli_pods_settings, json), .help = "print JSON"},
        CLIENT_SOCKET_OPTION(cli_pods_settings),
        {},
};

/* ---- table ---- */

static int by_name(const void *a, const void *b) {
        const Nodens__V1__PodEntry *const *left = a, *const *right = b;
        int r = strcmp((*left)->namespace_, (*right)->namespace_);

        if (r == 0)
                r = strcmp((*left)->name, (*right)->name);
        return r != 0 ? r : (int) ((*left)->attempt > (*right)->attempt) - (int) ((*left)->attempt < (*right)->attempt);
}

static char *containers_text(const Nodens__V1__PodEntry *pod) {
        size_t running = 0, failed = 0;

        for (size_t i = 0; i < pod->n_containers; i++) {
                running += strcmp(pod->containers[i]->state, "running") == 0;
                failed += pod->containers[i]->checks_failed > 0;
        }
        return failed > 0 ? nd_format("%zu/%zu, %zu failed a check", running, pod->n_containers, failed)
                          : nd_format("%zu/%zu", running, pod->n_containers);
}

static void print_table(const Nodens__V1__PodsAnswer *answer) {
        static const char *const headings[] = {"NAMESPACE", "POD", "STATE",   "IDS",  "ADDRESS",
                                               "RUNNING",   "AGE", "SANDBOX", nullptr};
        nd_cleanup(cli_table_done) struct cli_table table = {};
        uint64_t now = nd_clock_wall_ns();

        qsort(answer->pods, answer->n_pods, sizeof *answer->pods, by_name);
        cli_table_init(&table, headings);
        for (size_t i = 0; i < answer->n_pods; i++) {
                const Nodens__V1__PodEntry *pod = answer->pods[i];
                nd_autofree char *ids = cli_format_ids(pod), *containers = containers_text(pod), *id = nd_strndup(pod->id, 12);
                const char *address = pod->host_network ? "node" : pod->n_addresses > 0 ? pod->addresses[0] : "-";
                char age[FORMAT_AGE];

                cli_table_row(&table,
                              (const char *[]) {pod->namespace_, pod->name, pod->state, ids, address, containers,
                                                cli_format_age(pod->created_at, now, age), id},
                              nullptr);
        }
        cli_table_print(&table);
}

/* ---- JSON ---- */

static void print_range(struct nd_json_out *out, const char *key, const Nodens__V1__IdRange *range) {
        if (!range)
                return;
        nd_json_open(out, key, '{');
        nd_json_number(out, "container", range->container);
        nd_json_number(out, "host", range->host);
        nd_json_number(out, "count", range->count);
        nd_json_close(out, '}');
}

static void print_container(struct nd_json_out *out, const Nodens__V1__ContainerEntry *container) {
        nd_json_open(out, nullptr, '{');
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
        nd_json_close(out, '}');
}

static void print_pod(struct nd_json_out *out, const Nodens__V1__PodEntry *pod) {
        nd_json_open(out, nullptr, '{');
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
        nd_json_open(out, "containers", '[');
        for (size_t i = 0; i < pod->n_containers; i++)
                print_container(out, pod->containers[i]);
        nd_json_close(out, ']');
        nd_json_close(out, '}');
}

static void print_json(const Nodens__V1__PodsAnswer *answer) {
        nd_autotext struct nd_text text = ND_TEXT(64 << 20);
        struct nd_json_out out = {.text = &text, .indent = 2};

        nd_json_open(&out, nullptr, '[');
        for (size_t i = 0; i < answer->n_pods; i++)
                print_pod(&out, answer->pods[i]);
        nd_json_close(&out, ']');
        puts(nd_text_get(&text));
}

int cli_pods_run(void *settings_pointer, [[maybe_unused]] int operand_count, [[maybe_unused]] char **operands) {
        const struct cli_pods_settings *settings = settings_pointer;
        Nodens__V1__PodsRequest request = NODENS__V1__PODS_REQUEST__INIT;
        nd_autoerror struct nd_error *error = nullptr;
        ProtobufCMessage *answer = nullptr;

        error = cli_client_call(settings->socket, "/nodens.v1.Node/Pods", &request.base, &nodens__v1__pods_answer__descriptor,
                                &answer);
        if (error) {
                fprintf(stderr, "nodens pods: %s\n", nd_error_text(error));
                return 1;
        }
        if (settings->json)
                print_json((const Nodens__V1__PodsAnswer *) answer);
        else
                print_table((const Nodens__V1__PodsAnswer *) answer);
        nd_protobuf_free(answer);
        return 0;
}
