/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command/pods.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/core/client.h"
#include "cli/core/pod-json.h"
#include "cli/output/format.h"
#include "cli/output/sanitize.h"
#include "cli/output/table.h"
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

/* The containers of a name are attempts; a restart makes a new one, and the old ones stay for a
 * while. */
static bool is_current(const Nodens__V1__PodEntry *pod, const Nodens__V1__ContainerEntry *container) {
        for (size_t i = 0; i < pod->n_containers; i++) {
                const Nodens__V1__ContainerEntry *other = pod->containers[i];

                if (nd_streq(other->name, container->name) &&
                    (other->attempt > container->attempt ||
                     (other->attempt == container->attempt && other->created_at > container->created_at)))
                        return false;
        }
        return true;
}

char *cli_pods_running(const Nodens__V1__PodEntry *pod) {
        size_t current = 0, running = 0, failed = 0;

        for (size_t i = 0; i < pod->n_containers; i++) {
                if (!is_current(pod, pod->containers[i]))
                        continue;
                current++;
                running += nd_streq(pod->containers[i]->state, "running");
                failed += pod->containers[i]->checks_failed > 0;
        }
        return failed > 0 ? nd_format("%zu/%zu, %zu failed a check", running, current, failed)
                          : nd_format("%zu/%zu", running, current);
}

static void print_table(const Nodens__V1__PodsAnswer *answer) {
        static const struct cli_column columns[] = {
                {"NAMESPACE", .kind = COLUMN_SHORTEN},
                {"POD", .kind = COLUMN_SHORTEN, .least = 12},
                {"STATE", .kind = COLUMN_WHOLE},
                {"IDS", .kind = COLUMN_WHOLE, .drop = 2},
                {"ADDRESS", .kind = COLUMN_WHOLE, .drop = 1},
                {"RUNNING", .kind = COLUMN_WHOLE},
                {"AGE", .kind = COLUMN_NUMBER},
                {"SANDBOX", .kind = COLUMN_WHOLE, .drop = 3},
                {},
        };
        nd_cleanup(cli_table_done) struct cli_table table = {};
        uint64_t now = nd_clock_wall_ns();

        if (answer->n_pods > 1)
                qsort(answer->pods, answer->n_pods, sizeof *answer->pods, by_name);
        cli_table_init_columns(&table, columns);
        for (size_t i = 0; i < answer->n_pods; i++) {
                const Nodens__V1__PodEntry *pod = answer->pods[i];
                nd_autofree char *ids = cli_format_ids(pod), *running = cli_pods_running(pod), *id = nd_strndup(pod->id, 12);
                const char *address = pod->host_network ? "node" : pod->n_addresses > 0 ? pod->addresses[0] : "-";
                char age[FORMAT_AGE];

                cli_table_row(&table,
                              (const char *[]) {pod->namespace_, pod->name, pod->state, ids, address, running,
                                                cli_format_age(pod->created_at, now, age), id},
                              nullptr);
        }
        cli_table_print_or_note(&table, "no pods");
}

/* ---- JSON ---- */

static void json_pod(struct nd_json_out *out, const Nodens__V1__PodEntry *pod) {
        nd_json_open(out, nullptr, '{');
        cli_pod_json(out, pod);
        nd_json_open(out, "containers", '[');
        for (size_t i = 0; i < pod->n_containers; i++) {
                nd_json_open(out, nullptr, '{');
                cli_pod_json_container(out, pod->containers[i]);
                nd_json_close(out, '}');
        }
        nd_json_close(out, ']');
        nd_json_close(out, '}');
}

static void print_json(const Nodens__V1__PodsAnswer *answer) {
        nd_autotext struct nd_text text = ND_TEXT(64 << 20);
        struct nd_json_out out = {.text = &text, .indent = 2};

        nd_json_open(&out, nullptr, '[');
        for (size_t i = 0; i < answer->n_pods; i++)
                json_pod(&out, answer->pods[i]);
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
        if (error)
                return cli_sanitize_print_error("pods", error);
        if (settings->json)
                print_json((const Nodens__V1__PodsAnswer *) answer);
        else
                print_table((const Nodens__V1__PodsAnswer *) answer);
        nd_protobuf_free(answer);
        return 0;
}
