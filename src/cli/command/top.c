/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command/top.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "base/clock.h"
#include "cli/core/client.h"
#include "cli/core/format.h"
#include "cli/core/pod-usage.h"
#include "cli/core/sanitize.h"
#include "cli/core/usage-table.h"

enum {
        LINES_DEFAULT = 24,
};

static constexpr uint32_t default_interval_s = 2;

const struct nd_option cli_top_options[] = {
        {.name = "pods",
         .letter = 'p',
         .offset = offsetof(struct cli_top_settings, pods),
         .help = "one line per pod, with its network"},
        {.name = "interval",
         .kind = ND_OPTION_U32,
         .offset = offsetof(struct cli_top_settings, interval),
         .argument = "SECONDS",
         .help = "seconds between updates (default 2)"},
        {.name = "count",
         .letter = 'n',
         .kind = ND_OPTION_U32,
         .offset = offsetof(struct cli_top_settings, count),
         .argument = "N",
         .help = "number of updates (default: until 'q' on a terminal, else 1)"},
        CLIENT_SOCKET_OPTION(cli_top_settings),
        {},
};

static volatile sig_atomic_t interrupted;

static void on_signal([[maybe_unused]] int signal) {
        interrupted = 1;
}

/* The alternate screen while it runs, with unbuffered keys; restores the terminal at the end. */
struct screen {
        bool terminal, keys;
        struct termios before;
};

static void screen_open(struct screen *screen) {
        const struct sigaction action = {.sa_handler = on_signal};
        struct termios quiet;

        screen->terminal = isatty(STDOUT_FILENO);
        if (!screen->terminal)
                return;
        (void) sigaction(SIGINT, &action, nullptr);
        (void) sigaction(SIGTERM, &action, nullptr);
        screen->keys = tcgetattr(STDIN_FILENO, &screen->before) == 0;
        if (screen->keys) {
                quiet = screen->before;
                quiet.c_lflag &= ~(tcflag_t) (ICANON | ECHO);
                (void) tcsetattr(STDIN_FILENO, TCSADRAIN, &quiet);
        }
        fputs("\033[?1049h\033[?25l", stdout);
}

static void screen_done(const struct screen *screen) {
        if (!screen->terminal)
                return;
        fputs("\033[?25h\033[?1049l", stdout);
        (void) fflush(stdout);
        if (screen->keys)
                (void) tcsetattr(STDIN_FILENO, TCSADRAIN, &screen->before);
}

/* Returns false when the user quits. */
static bool screen_wait(const struct screen *screen, uint32_t seconds) {
        uint64_t until = nd_clock_us() + seconds * ND_SECOND_US, now;

        while (!interrupted && (now = nd_clock_us()) < until) {
                struct pollfd keys = {.fd = screen->keys ? STDIN_FILENO : -1, .events = POLLIN};
                char key = 0;

                if (poll(&keys, 1, (int) ((until - now) / 1000 + 1)) > 0 && (read(STDIN_FILENO, &key, 1) <= 0 || key == 'q'))
                        return false;
        }
        return !interrupted;
}

static size_t screen_lines(void) {
        struct winsize window = {};

        return ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_row > 4 ? window.ws_row : LINES_DEFAULT;
}

static void draw(const struct screen *screen, const struct cli_usage_rows *rows, bool pods) {
        uint64_t cores = 0, memory = 0;
        char size[FORMAT_SIZE];

        nd_vector_each (row, rows) {
                cores += row->has_rate ? row->nano_cores : 0;
                memory += row->usage->has_memory ? row->usage->working_set : 0;
        }
        if (screen->terminal)
                fputs("\033[H\033[J", stdout);
        printf("%zu %s, %llum of CPU, %s of memory%s\n", rows->count, pods ? "pods" : "containers",
               (unsigned long long) cores / 1000000, cli_format_size(memory, size), screen->terminal ? "; q leaves" : "");
        cli_usage_table_print(rows, pods, screen->terminal ? screen_lines() - 3 : SIZE_MAX);
        (void) fflush(stdout);
}

static struct nd_error *sample_again(const struct cli_top_settings *settings, const struct screen *screen,
                                     struct cli_usage_sample *before) {
        nd_cleanup(cli_usage_sample_done) struct cli_usage_sample now = {};
        nd_cleanup(cli_usage_rows_done) struct cli_usage_rows rows = {};

        nd_try(cli_usage_sample_take(settings->socket, &now));
        (settings->pods ? cli_usage_of_pods : cli_usage_of_containers)(before, &now, &rows);
        cli_usage_sort_by_cpu(&rows);
        draw(screen, &rows, settings->pods);
        cli_usage_sample_done(before);
        *before = nd_take(now, (struct cli_usage_sample) {});
        return nullptr;
}

static struct nd_error *repeat(const struct cli_top_settings *settings, const struct screen *screen) {
        uint32_t interval = settings->interval > 0 ? settings->interval : default_interval_s;
        uint32_t count = settings->count > 0 ? settings->count : screen->terminal ? UINT32_MAX : 1;
        nd_cleanup(cli_usage_sample_done) struct cli_usage_sample before = {};

        nd_try(cli_usage_sample_take(settings->socket, &before));
        if (!screen_wait(screen, 1))
                return nullptr;
        for (uint32_t i = 0; i < count; i++) {
                if (i > 0 && !screen_wait(screen, interval))
                        return nullptr;
                nd_try(sample_again(settings, screen, &before));
        }
        return nullptr;
}

int cli_top_run(void *settings_pointer, [[maybe_unused]] int operand_count, [[maybe_unused]] char **operands) {
        nd_autoerror struct nd_error *error = nullptr;
        struct screen screen = {};

        screen_open(&screen);
        error = repeat(settings_pointer, &screen);
        screen_done(&screen);
        return error ? cli_sanitize_print_error("top", error) : 0;
}
