/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command/top.h"

#include <stdio.h>

#include "base/clock.h"
#include "cli/core/client.h"
#include "cli/core/pod-usage.h"
#include "cli/core/usage-table.h"
#include "cli/output/format.h"
#include "cli/output/sanitize.h"
#include "cli/output/screen.h"
#include "cli/output/terminal.h"

static constexpr uint32_t default_interval_s = 2;
static constexpr uint64_t first_interval_us = ND_SECOND_US; /* a rate needs two samples */

const struct nd_option cli_top_options[] = {
        {.name = "pods",
         .letter = 'p',
         .offset = offsetof(struct cli_top_settings, pods),
         .help = "one line per pod, with its network"},
        {.name = "interval",
         .kind = ND_OPTION_U32,
         .offset = offsetof(struct cli_top_settings, interval),
         .argument = "SECONDS",
         .least = 1,
         .help = "seconds between updates (default 2)"},
        {.name = "count",
         .letter = 'n',
         .kind = ND_OPTION_U32,
         .offset = offsetof(struct cli_top_settings, count),
         .argument = "N",
         .least = 1,
         .help = "number of updates (default: until 'q' on a terminal, else 1)"},
        CLIENT_SOCKET_OPTION(cli_top_settings),
        {},
};

/* Two samples, and the rows that were computed from them. */
struct view {
        const struct cli_top_settings *settings;
        bool screen;
        struct cli_usage_sample before, now;
        struct cli_usage_rows rows;
};

static void view_done(struct view *view) {
        cli_usage_rows_done(&view->rows);
        cli_usage_sample_done(&view->before);
        cli_usage_sample_done(&view->now);
}

static char *summary(const struct view *view) {
        uint64_t cores = 0, memory = 0;
        char count[FORMAT_COUNT], size[FORMAT_SIZE];

        nd_vector_each (row, &view->rows) {
                cores += row->has_rate ? row->nano_cores : 0;
                memory += row->usage->has_memory ? row->usage->working_set : 0;
        }
        return nd_format("%s, %llum of CPU, %s of memory%s\n",
                         cli_format_count(view->rows.count, view->settings->pods ? "pod" : "container", count),
                         (unsigned long long) cores / 1000000, cli_format_size(memory, size),
                         view->screen ? "; q leaves" : "");
}

/* On a screen of three rows or more: the summary, the headings, and as many rows as fit. A smaller
 * one has room for the headings and the first row, or for that row alone. */
static void draw(const struct view *view) {
        nd_cleanup(cli_table_done) struct cli_table table = {};
        nd_autofree char *first = summary(view), *text = nullptr, *all = nullptr;
        struct cli_terminal terminal = {.rows = SIZE_MAX};
        const char *rows;

        if (view->screen)
                (void) cli_terminal_size(&terminal);
        cli_usage_table_fill(&table, &view->rows, view->settings->pods, terminal.rows);
        text = cli_table_text(&table);
        rows = text;
        if (terminal.rows == 1 && *rows)
                rows += strcspn(rows, "\n") + 1;
        all = nd_format("%s%s", terminal.rows >= 3 || !*rows ? first : "", rows);
        if (view->screen)
                cli_screen_draw(all);
        else
                fputs(all, stdout);
}

static struct nd_error *sample_again(struct view *view) {
        cli_usage_rows_done(&view->rows);
        cli_usage_sample_done(&view->before);
        view->before = nd_take(view->now, (struct cli_usage_sample) {});
        nd_try(cli_usage_sample_take(view->settings->socket, &view->now));
        (view->settings->pods ? cli_usage_of_pods : cli_usage_of_containers)(&view->before, &view->now, &view->rows);
        cli_usage_sort_by_cpu(&view->rows);
        return nullptr;
}

/* Returns false when the user quits. */
static bool wait_until(const struct view *view, uint64_t until_us) {
        enum cli_screen_event event;

        while ((event = cli_screen_wait(until_us)) == SCREEN_RESIZED)
                if (view->before.pods) /* otherwise there is nothing to draw yet */
                        draw(view);
        return event != SCREEN_QUIT;
}

static struct nd_error *repeat(struct view *view) {
        uint64_t interval_us = (view->settings->interval > 0 ? view->settings->interval : default_interval_s) * ND_SECOND_US;
        uint32_t count = view->settings->count > 0 ? view->settings->count : view->screen ? UINT32_MAX : 1;

        nd_try(cli_usage_sample_take(view->settings->socket, &view->now));
        for (uint32_t i = 0; i < count; i++) {
                if (!wait_until(view, nd_clock_us() + (i == 0 ? first_interval_us : interval_us)))
                        return nullptr;
                nd_try(sample_again(view));
                draw(view);
                if (fflush(stdout) != 0 || ferror(stdout)) /* nd_option_run() reports it */
                        return nullptr;
        }
        return nullptr;
}

int cli_top_run(void *settings_pointer, [[maybe_unused]] int operand_count, [[maybe_unused]] char **operands) {
        nd_autoerror struct nd_error *error = nullptr;
        nd_cleanup(view_done) struct view view = {.settings = settings_pointer, .screen = cli_terminal_has_cursor()};

        if (view.screen)
                cli_screen_open();
        error = repeat(&view);
        if (view.screen)
                cli_screen_close();
        return error ? cli_sanitize_print_error("top", error) : 0;
}
