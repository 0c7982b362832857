/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command/ps.h"

#include <nodens.pb-c.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/vector.h"
#include "cli/core/client.h"
#include "cli/core/target.h"
#include "cli/output/format.h"
#include "cli/output/sanitize.h"
#include "cli/output/table.h"
#include "net/protobuf.h"

enum { SHORT_ID = 12 };

const struct nd_option cli_ps_options[] = {
        {.name = "all",
         .letter = 'a',
         .offset = offsetof(struct cli_ps_settings, all),
         .help = "list containers that do not run, too"},
        {.name = "json", .offset = offsetof(struct cli_ps_settings, json), .help = "print JSON"},
        CLIENT_SOCKET_OPTION(cli_ps_settings),
        {},
};

struct rows { /* see base/vector.h */
        struct cli_target *items;
        size_t count, capacity;
};

static int by_name(const void *a, const void *b) {
        const struct cli_target *left = a, *right = b;
        int r = strcmp(left->pod->namespace_, right->pod->namespace_);

        r = r ? r : strcmp(left->pod->name, right->pod->name);
        r = r ? r : strcmp(left->container->name, right->container->name);
        return r ? r
                 : (int) (left->container->created_at < right->container->created_at) -
                               (int) (left->container->created_at > right->container->created_at);
}

static void collect(const struct cli_ps_settings *settings, const Nodens__V1__PodsAnswer *answer, struct rows *ret) {
        for (size_t i = 0; i < answer->n_pods; i++)
                for (size_t c = 0; c < answer->pods[i]->n_containers; c++)
                        if (settings->all || nd_streq(answer->pods[i]->containers[c]->state, "running"))
                                nd_vector_push(ret, ((struct cli_target) {answer->pods[i], answer->pods[i]->containers[c]}));
        if (ret->count > 1)
                qsort(ret->items, ret->count, sizeof *ret->items, by_name);
}

/* "running 5m", "exited 2h, Error 3" */
static char *state_text(const Nodens__V1__ContainerEntry *container, uint64_t now) {
        nd_autofree char *reason = cli_sanitize_text(container->reason);
        char age[FORMAT_AGE];

        if (nd_streq(container->state, "running"))
                return nd_format("running %s", cli_format_age(container->started_at, now, age));
        if (!nd_streq(container->state, "exited"))
                return nd_strdup(container->state);
        return nd_format("exited %s, %s%s%d", cli_format_age(container->finished_at, now, age), reason, *reason ? " " : "",
                         container->exit_code);
}

static void print_table(const struct rows *rows) {
        static const struct cli_column columns[] = {
                {"NAMESPACE", .kind = COLUMN_SHORTEN},          {"POD", .kind = COLUMN_SHORTEN, .least = 12},
                {"CONTAINER", .kind = COLUMN_SHORTEN},          {"STATE", .kind = COLUMN_WRAP, .least = 12},
                {"RESTARTS", .kind = COLUMN_NUMBER, .drop = 2}, {"IMAGE", .kind = COLUMN_SHORTEN, .least = 12, .drop = 1},
                {"ID", .kind = COLUMN_WHOLE, .drop = 3},        {},
        };
        nd_cleanup(cli_table_done) struct cli_table table = {};
        uint64_t now = nd_clock_wall_ns();

        cli_table_init_columns(&table, columns);
        nd_vector_each (row, rows) {
                const Nodens__V1__ContainerEntry *container = row->container;
                nd_autofree char *namespace = cli_sanitize_text(row->pod->namespace_),
                                 *pod = cli_sanitize_text(row->pod->name), *name = cli_sanitize_text(container->name),
                                 *image = cli_sanitize_text(container->image), *state = state_text(container, now),
                                 *restarts = nd_format("%u", container->attempt), *id = nd_strndup(container->id, SHORT_ID);

                cli_table_row(&table, (const char *[]) {namespace, pod, name, state, restarts, image, id},
                              container->checks_failed > 0 ? "red" : nullptr);
        }
        cli_table_print(&table);
}

static void print_json(const struct rows *rows) {
        nd_autotext struct nd_text text = ND_TEXT(64 << 20);
        struct nd_json_out out = {.text = &text, .indent = 2};

        nd_json_open(&out, nullptr, '[');
        nd_vector_each (row, rows) {
                const Nodens__V1__ContainerEntry *container = row->container;

                nd_json_open(&out, nullptr, '{');
                nd_json_string(&out, "namespace", row->pod->namespace_);
                nd_json_string(&out, "pod", row->pod->name);
                nd_json_string(&out, "sandbox", row->pod->id);
                nd_json_string(&out, "id", container->id);
                nd_json_string(&out, "name", container->name);
                nd_json_string(&out, "state", container->state);
                nd_json_number(&out, "restarts", container->attempt);
                nd_json_string(&out, "image", container->image);
                nd_json_signed(&out, "pid", container->pid);
                nd_json_signed(&out, "exitCode", container->exit_code);
                nd_json_string(&out, "reason", container->reason);
                nd_json_number(&out, "createdAt", container->created_at);
                nd_json_number(&out, "startedAt", container->started_at);
                nd_json_number(&out, "finishedAt", container->finished_at);
                nd_json_close(&out, '}');
        }
        nd_json_close(&out, ']');
        puts(nd_text_get(&text));
}

int cli_ps_run(void *settings_pointer, [[maybe_unused]] int operand_count, [[maybe_unused]] char **operands) {
        const struct cli_ps_settings *settings = settings_pointer;
        nd_autoerror struct nd_error *error = nullptr;
        ProtobufCMessage *answer = nullptr;
        struct rows rows = {};

        error = cli_client_pods(settings->socket, &answer);
        if (error)
                return cli_sanitize_print_error("ps", error);
        collect(settings, (const Nodens__V1__PodsAnswer *) answer, &rows);
        if (settings->json)
                print_json(&rows);
        else if (rows.count == 0)
                fputs(settings->all ? "no containers\n" : "no running containers; -a lists all\n", stderr);
        else
                print_table(&rows);
        nd_vector_done(&rows);
        nd_protobuf_free(answer);
        return 0;
}
