/* SPDX-License-Identifier: Apache-2.0 */
/* screen.c - see screen.h
 *
 * Theory of operation
 *   SIGWINCH is blocked except in ppoll(), so that a resize between a look at the size and the wait
 *   is not missed. SIGINT, SIGTERM and SIGHUP are handled at any time, also while the program waits
 *   for a daemon that does not answer: their handler restores the terminal, by functions that are
 *   safe there, and ends the program. Ctrl-C is a normal way to leave such a view.
 * Owns  the terminal's settings before it. */
#include "cli/output/screen.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cli/output/terminal.h"
#include "cli/output/width.h"

static const char enter[] = "\033[?1049h\033[?25l", leave[] = "\033[?25h\033[?1049l";
static constexpr uint64_t longest_wait_us = 3600 * ND_SECOND_US;

static struct {
        bool keys; /* standard input is a terminal, too */
        struct termios before;
        sigset_t waiting; /* the signal mask of ppoll() */
} screen;

static volatile sig_atomic_t resized;

static void on_resize([[maybe_unused]] int signal) {
        resized = 1;
}

static void on_end(int signal_number) {
        (void) !write(STDOUT_FILENO, leave, sizeof leave - 1);
        if (screen.keys)
                (void) tcsetattr(STDIN_FILENO, TCSANOW, &screen.before);
        if (signal_number == SIGINT)
                _exit(0);
        (void) signal(signal_number, SIG_DFL);
        (void) raise(signal_number);
}

static void handle_signals(void) {
        const struct sigaction end = {.sa_handler = on_end}, resize = {.sa_handler = on_resize};
        sigset_t blocked;

        (void) sigemptyset(&blocked);
        (void) sigaddset(&blocked, SIGWINCH);
        (void) sigprocmask(SIG_BLOCK, &blocked, &screen.waiting);
        (void) sigdelset(&screen.waiting, SIGWINCH);
        (void) sigaction(SIGWINCH, &resize, nullptr);
        (void) sigaction(SIGINT, &end, nullptr);
        (void) sigaction(SIGTERM, &end, nullptr);
        (void) sigaction(SIGHUP, &end, nullptr);
}

void cli_screen_open(void) {
        struct termios quiet;

        screen.keys = tcgetattr(STDIN_FILENO, &screen.before) == 0;
        handle_signals();
        if (screen.keys) {
                quiet = screen.before;
                quiet.c_lflag &= ~(tcflag_t) (ICANON | ECHO);
                /* A stopped program would leave its screen behind. */
                quiet.c_cc[VSUSP] = _POSIX_VDISABLE;
                (void) tcsetattr(STDIN_FILENO, TCSADRAIN, &quiet);
        }
        fputs(enter, stdout);
        (void) fflush(stdout);
}

void cli_screen_close(void) {
        fputs(leave, stdout);
        (void) fflush(stdout);
        if (screen.keys)
                (void) tcsetattr(STDIN_FILENO, TCSADRAIN, &screen.before);
}

/* Clears each line before its text and then the rest of the screen, so that nothing flashes. Behind
 * the text it must not: a cursor behind a full line stands on its last character. */
void cli_screen_draw(const char *text) {
        struct cli_terminal terminal = {};
        size_t row = 0;

        if (!cli_terminal_size(&terminal))
                return;
        fputs("\033[H", stdout);
        for (; row < terminal.rows && *text; row++) {
                size_t length = strcspn(text, "\n");
                nd_autofree char *line = cli_width_clip(text, length, terminal.columns);

                printf("%s\033[K%s", row > 0 ? "\r\n" : "", line);
                text += length + (text[length] == '\n');
        }
        if (row < terminal.rows)
                fputs(row > 0 ? "\r\n\033[J" : "\033[J", stdout);
        (void) fflush(stdout);
}

enum cli_screen_event cli_screen_wait(uint64_t until_us) {
        uint64_t now;

        while ((now = nd_clock_us()) < until_us) {
                uint64_t rest = until_us - now < longest_wait_us ? until_us - now : longest_wait_us;
                struct pollfd keys = {.fd = screen.keys ? STDIN_FILENO : -1, .events = POLLIN};
                const struct timespec timeout = {.tv_sec = (time_t) (rest / ND_SECOND_US),
                                                 .tv_nsec = (long) (rest % ND_SECOND_US) * 1000};
                int ready = ppoll(&keys, 1, &timeout, &screen.waiting);
                char key = 0;

                if (resized) {
                        resized = 0;
                        return SCREEN_RESIZED;
                }
                if (ready > 0 && (read(STDIN_FILENO, &key, 1) <= 0 || key == 'q'))
                        return SCREEN_QUIT;
        }
        return SCREEN_TIMEOUT;
}
