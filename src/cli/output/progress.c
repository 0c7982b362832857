/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output/progress.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli/output/format.h"
#include "cli/output/terminal.h"
#include "cli/output/width.h"

enum {
        BAR_MOST = 30,
        BAR_LEAST = 5,
        SHORT_DIGEST = 12,
};

static constexpr uint64_t redraw_interval_us = 100 * ND_MS_US;

void cli_progress_init(struct cli_progress *progress) {
        *progress = (struct cli_progress) {.terminal = cli_terminal_has_cursor()};
}

void cli_progress_done(struct cli_progress *progress) {
        nd_vector_each (item, &progress->items) {
                free(item->name);
                free(item->state);
        }
        nd_vector_done(&progress->items);
}

static const char *short_name(const char *name) {
        const char *colon = strchr(name, ':');

        return colon ? colon + 1 : name;
}

static struct cli_progress_item *find_item(struct cli_progress *progress, const char *name) {
        nd_vector_each (item, &progress->items) {
                if (nd_streq(item->name, name))
                        return item;
        }
        nd_vector_push(&progress->items, ((struct cli_progress_item) {.name = nd_strdup(name), .state = nd_strdup("")}));
        return &progress->items.items[progress->items.count - 1];
}

void cli_progress_update(struct cli_progress *progress, const char *name, const char *state, uint64_t size, uint64_t done) {
        struct cli_progress_item *item = find_item(progress, name);
        char text[FORMAT_SIZE];

        if (!progress->terminal && !nd_streq(item->state, state))
                printf("%.*s  %-9s  %s\n", SHORT_DIGEST, short_name(name), state, cli_format_size(size, text));
        item->size = size;
        item->done = done;
        free(item->state);
        item->state = nd_strdup(state);
}

static bool is_over(const struct cli_progress_item *item) {
        return nd_streq(item->state, "done") || nd_streq(item->state, "exists");
}

char *cli_progress_line(const struct cli_progress_item *item, size_t columns) {
        char done[FORMAT_SIZE], size[FORMAT_SIZE], bar[BAR_MOST + 1] = "";
        nd_autofree char *name = nd_format("%.*s  %-9s", SHORT_DIGEST, short_name(item->name), item->state);
        nd_autofree char *sizes = nd_format("%8s / %8s", cli_format_size(is_over(item) ? item->size : item->done, done),
                                            cli_format_size(item->size, size));
        nd_autofree char *line = nullptr;
        size_t used = strlen(name) + strlen(sizes) + strlen("  []  "), room = columns > used ? columns - used : 0, filled;

        room = room < BAR_MOST ? room : BAR_MOST;
        if (room < BAR_LEAST) {
                line = nd_format("%s  %s", name, sizes);
                return cli_width_clip(line, strlen(line), columns);
        }
        /* More than the size may be done: both numbers come from the registry. */
        filled = is_over(item)              ? room
                 : item->size == 0          ? 0
                 : item->done >= item->size ? room
                                            : (size_t) ((double) item->done / (double) item->size * (double) room);
        memset(bar, '-', room);
        memset(bar, '#', filled);
        return nd_format("%s  [%s]  %s", name, bar, sizes);
}

static void draw_line(const char *text, size_t columns) {
        nd_autofree char *line = cli_width_clip(text, strlen(text), columns);

        printf("\r\033[K%s\n", line);
}

static void draw_item(const struct cli_progress_item *item, size_t columns) {
        nd_autofree char *line = cli_progress_line(item, columns);

        draw_line(line, columns);
}

/* Only as many lines as the screen has can be redrawn; of a longer list unfinished items come
 * first. */
void cli_progress_show(struct cli_progress *progress, bool last) {
        size_t room, lines = 0, finished = 0;
        struct cli_terminal terminal = {};
        uint64_t now = nd_clock_us();

        if (!progress->terminal) {
                (void) fflush(stdout);
                return;
        }
        if ((!last && now - progress->drawn_us < redraw_interval_us) || !cli_terminal_size(&terminal))
                return;
        room = terminal.rows > 2 ? terminal.rows - 1 : 1;
        progress->drawn_us = now;
        if (progress->drawn > 0)
                printf("\033[%zuA", progress->drawn);
        nd_vector_each (item, &progress->items) {
                if (is_over(item) && progress->items.count > room)
                        finished++;
                else if (lines + 1 < room || progress->items.count <= room) {
                        draw_item(item, terminal.columns);
                        lines++;
                }
        }
        if (finished > 0) {
                nd_autofree char *text = nd_format("%zu of %zu layers complete", finished, progress->items.count);

                draw_line(text, terminal.columns);
                lines++;
        }
        for (; lines < progress->drawn; lines++)
                puts("\r\033[K");
        progress->drawn = lines;
        (void) fflush(stdout);
}
