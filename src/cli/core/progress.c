/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/progress.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli/core/format.h"

enum {
        BAR = 30,
        SHORT_DIGEST = 12,
        LINES_DEFAULT = 24,
};

static constexpr uint64_t redraw_interval_us = 100 * ND_MS_US;

void cli_progress_init(struct cli_progress *progress) {
        *progress = (struct cli_progress) {.terminal = isatty(STDOUT_FILENO)};
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

static void draw_item(const struct cli_progress_item *item) {
        bool over = nd_streq(item->state, "done") || nd_streq(item->state, "exists");
        uint64_t filled = over || item->size == 0 ? BAR : item->done * BAR / item->size;
        char done[FORMAT_SIZE], size[FORMAT_SIZE], bar[BAR + 1];

        if (!over && item->size == 0)
                filled = 0;
        filled = filled < BAR ? filled : BAR;
        memset(bar, '-', BAR);
        memset(bar, '#', filled);
        bar[BAR] = '\0';
        printf("\r\033[K%.*s  %-9s  [%s]  %s / %s\n", SHORT_DIGEST, short_name(item->name), item->state, bar,
               cli_format_size(over ? item->size : item->done, done), cli_format_size(item->size, size));
}

static size_t screen_lines(void) {
        struct winsize window = {};

        return ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_row > 2 ? window.ws_row : LINES_DEFAULT;
}

/* Only as many lines as the screen has can be redrawn; of a longer list unfinished items come
 * first. */
void cli_progress_show(struct cli_progress *progress, bool last) {
        size_t room = screen_lines() - 1, lines = 0, finished = 0;
        uint64_t now = nd_clock_us();

        if (!progress->terminal || (!last && now - progress->drawn_us < redraw_interval_us))
                return;
        progress->drawn_us = now;
        if (progress->drawn > 0)
                printf("\033[%zuA", progress->drawn);
        nd_vector_each (item, &progress->items) {
                bool over = nd_streq(item->state, "done") || nd_streq(item->state, "exists");

                if (over && progress->items.count > room)
                        finished++;
                else if (lines + 1 < room || progress->items.count <= room) {
                        draw_item(item);
                        lines++;
                }
        }
        if (finished > 0) {
                printf("\r\033[K%zu of %zu layers complete\n", finished, progress->items.count);
                lines++;
        }
        for (; lines < progress->drawn; lines++)
                puts("\r\033[K");
        progress->drawn = lines;
        (void) fflush(stdout);
}
