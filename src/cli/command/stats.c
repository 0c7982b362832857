/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command/stats.h"

#include <string.h>
#include <time.h>

#include "base/json.h"
#include "cli/core/client.h"
#include "cli/core/pod-usage.h"
#include "cli/core/target.h"
#include "cli/core/usage-table.h"
#include "cli/output/sanitize.h"

static constexpr unsigned sample_interval_ms = 1000; /* between the two samples of one output */

const struct nd_option cli_stats_options[] = {
        {.name = "pods",
         .letter = 'p',
         .offset = offsetof(struct cli_stats_settings, pods),
         .help = "one line per pod, with its network"},
        {.name = "json", .offset = offsetof(struct cli_stats_settings, json), .help = "print JSON"},
        CLIENT_SOCKET_OPTION(cli_stats_settings),
        {},
};

/* ---- JSON ---- */

static void json_known(struct nd_json_out *out, const char *key, bool known, uint64_t value) {
        if (known)
                nd_json_number(out, key, value);
        else
                nd_json_string(out, key, nullptr);
}

static void json_row(struct nd_json_out *out, const struct cli_usage_row *row) {
        const Nodens__V1__Usage *usage = row->usage;

        nd_json_open(out, nullptr, '{');
        nd_json_string(out, "namespace", row->pod->namespace_);
        nd_json_string(out, "pod", row->pod->name);
        nd_json_string(out, "sandbox", row->pod->id);
        if (row->container) {
                nd_json_string(out, "container", row->container->name);
                nd_json_string(out, "id", row->container->id);
        }
        nd_json_number(out, "at", usage->at);
        json_known(out, "cpuNanoCores", row->has_rate, row->nano_cores);
        json_known(out, "cpuNanoSeconds", usage->has_cpu, usage->cpu);
        json_known(out, "workingSetBytes", usage->has_memory, usage->working_set);
        json_known(out, "memoryLimitBytes", usage->memory_limit > 0, usage->memory_limit);
        json_known(out, "pids", usage->has_pids, usage->pids);
        if (row->container) {
                json_known(out, "diskBytes", row->has_disk, row->disk);
        } else {
                json_known(out, "receivedBytes", row->has_network, row->received);
                json_known(out, "sentBytes", row->has_network, row->sent);
        }
        nd_json_close(out, '}');
}

static void print_json(const struct cli_usage_rows *rows) {
        nd_autotext struct nd_text text = ND_TEXT(64 << 20);
        struct nd_json_out out = {.text = &text, .indent = 2};

        nd_json_open(&out, nullptr, '[');
        nd_vector_each (row, rows)
                json_row(&out, row);
        nd_json_close(&out, ']');
        puts(nd_text_get(&text));
}

static void print_table(const struct cli_usage_rows *rows, bool pods) {
        nd_cleanup(cli_table_done) struct cli_table table = {};

        cli_usage_table_fill(&table, rows, pods, SIZE_MAX);
        cli_table_print_or_note(&table, pods ? "no pods" : "no running containers");
}

/* ---- the command ---- */

static bool is_of(const struct cli_usage_row *row, const struct cli_target_pods *pods) {
        for (size_t i = 0; i < pods->count; i++)
                if (nd_streq(pods->items[i]->id, row->pod->id))
                        return true;
        return false;
}

/* Keeps only the rows of the selected pods. */
static struct nd_error *select_rows(const struct cli_usage_sample *sample, int names, char **operands,
                                    struct cli_usage_rows *rows) {
        struct cli_usage_rows kept = {};

        for (int i = 0; i < names; i++) {
                struct cli_target_pods pods = {};
                struct nd_error *error =
                        cli_target_pod((const Nodens__V1__PodsAnswer *) sample->pods, operands[i], TARGET_NAMES_PREFIX, &pods);

                if (error) {
                        nd_vector_done(&kept);
                        return error;
                }
                nd_vector_each (row, rows) {
                        if (is_of(row, &pods))
                                nd_vector_push(&kept, *row);
                }
                nd_vector_done(&pods);
        }
        nd_vector_done(rows);
        *rows = kept;
        return nullptr;
}

static void wait_ms(unsigned ms) {
        struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = (long) (ms % 1000) * 1000000};

        while (nanosleep(&time, &time) < 0 && errno == EINTR)
                ;
}

static struct nd_error *show(const struct cli_stats_settings *settings, int names, char **operands) {
        nd_cleanup(cli_usage_sample_done) struct cli_usage_sample before = {}, now = {};
        nd_cleanup(cli_usage_rows_done) struct cli_usage_rows rows = {};

        nd_try(cli_usage_sample_take(settings->socket, &before));
        wait_ms(sample_interval_ms);
        nd_try(cli_usage_sample_take(settings->socket, &now));
        (settings->pods ? cli_usage_of_pods : cli_usage_of_containers)(&before, &now, &rows);
        if (names > 0)
                nd_try(select_rows(&now, names, operands, &rows));
        if (settings->json)
                print_json(&rows);
        else
                print_table(&rows, settings->pods);
        return nullptr;
}

int cli_stats_run(void *settings_pointer, int operand_count, char **operands) {
        nd_autoerror struct nd_error *error = show(settings_pointer, operand_count, operands);

        return error ? cli_sanitize_print_error("stats", error) : 0;
}
