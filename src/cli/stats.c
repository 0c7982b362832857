/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/stats.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/daemon.h"
#include "cli/load.h"
#include "cli/plain.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "cli/target.h"

enum {
        LOOK_MS = 1000, /* between the two looks of a single answer */
        INTERVAL_S = 2,
        LINES_DEFAULT = 24,
        CELL = PROGRESS_SIZE_TEXT,
};

#define PODS_OPTION                                                                                                           \
        {.name = "pods",                                                                                                      \
         .letter = 'p',                                                                                                       \
         .offset = offsetof(struct stats_settings, pods),                                                                     \
         .help = "one line per pod, with its network"}

const struct nd_option stats_options[] = {
        PODS_OPTION,
        {.name = "json", .offset = offsetof(struct stats_settings, json), .help = "print JSON"},
        DAEMON_SOCKET_OPTION(stats_settings),
        {},
};

const struct nd_option top_options[] = {
        PODS_OPTION,
        {.name = "interval",
         .kind = ND_OPTION_U32,
         .offset = offsetof(struct stats_settings, interval),
         .argument = "SECONDS",
         .help = "how often to look (default 2)"},
        {.name = "count",
         .letter = 'n',
         .kind = ND_OPTION_U32,
         .offset = offsetof(struct stats_settings, count),
         .argument = "N",
         .help = "how many times to look (default: until 'q' on a terminal, else once)"},
        DAEMON_SOCKET_OPTION(stats_settings),
        {},
};

static int complain(const char *command, const struct nd_error *error) {
        nd_autofree char *text = plain_text(nd_error_text(error));

        fprintf(stderr, "nodens %s: %s\n", command, text);
        return 1;
}

static void rows_done(load_rows *rows) {
        nd_vector_done(rows);
}

/* ---- people ---- */

static const char *size_cell(bool known, uint64_t bytes, char text[static CELL]) {
        return known ? progress_size(bytes, text) : "-";
}

/* Thousandths of a CPU, as Kubernetes writes them. */
static const char *cpu_cell(const struct load_row *row, char text[static CELL]) {
        if (!row->has_rate)
                return "-";
        (void) snprintf(text, CELL, "%llum", (unsigned long long) (row->nano_cores + 500000) / 1000000);
        return text;
}

static const char *pids_cell(const struct load_row *row, char text[static CELL]) {
        if (!row->usage->has_pids)
                return "-";
        (void) snprintf(text, CELL, "%llu", (unsigned long long) row->usage->pids);
        return text;
}

static void add_container(struct table *table, const struct load_row *row) {
        const Nodens__V1__Usage *usage = row->usage;
        char cpu[CELL], memory[CELL], limit[CELL], disk[CELL], pids[CELL];

        table_row(table,
                  (const char *[]) {row->pod->namespace_, row->pod->name, row->container->name, cpu_cell(row, cpu),
                                    size_cell(usage->has_memory, usage->working_set, memory),
                                    size_cell(usage->memory_limit > 0, usage->memory_limit, limit),
                                    size_cell(row->has_disk, row->disk, disk), pids_cell(row, pids)},
                  nullptr);
}

static void add_pod(struct table *table, const struct load_row *row) {
        const Nodens__V1__Usage *usage = row->usage;
        char cpu[CELL], memory[CELL], limit[CELL], received[CELL], sent[CELL], pids[CELL];

        table_row(table,
                  (const char *[]) {row->pod->namespace_, row->pod->name, cpu_cell(row, cpu),
                                    size_cell(usage->has_memory, usage->working_set, memory),
                                    size_cell(usage->memory_limit > 0, usage->memory_limit, limit),
                                    size_cell(row->has_network, row->received, received),
                                    size_cell(row->has_network, row->sent, sent), pids_cell(row, pids)},
                  nullptr);
}

static void print_table(const load_rows *rows, bool pods, size_t most) {
        static const char *const of_containers[] = {"NAMESPACE", "POD",  "CONTAINER", "CPU",  "MEMORY",
                                                    "LIMIT",     "DISK", "PIDS",      nullptr},
                                 *const of_pods[] = {"NAMESPACE", "POD",  "CPU",  "MEMORY", "LIMIT",
                                                     "RECEIVED",  "SENT", "PIDS", nullptr};
        nd_cleanup(table_done) struct table table = {};

        table_init(&table, pods ? of_pods : of_containers);
        for (size_t i = 0; i < rows->count && i < most; i++)
                (pods ? add_pod : add_container)(&table, &rows->items[i]);
        table_print(&table);
}

/* ---- programs ---- */

static void json_known(struct nd_json_out *out, const char *key, bool known, uint64_t value) {
        if (known)
                nd_json_number(out, key, value);
        else
                nd_json_string(out, key, nullptr);
}

static void json_row(struct nd_json_out *out, const struct load_row *row) {
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

static void print_json(const load_rows *rows) {
        nd_autotext text = ND_TEXT(64 << 20);
        struct nd_json_out out = {.text = &text, .indent = 2};

        nd_json_open(&out, nullptr, '[');
        nd_vector_each (row, rows)
                json_row(&out, row);
        nd_json_close(&out, ']');
        puts(nd_text_get(&text));
}

/* ---- stats ---- */

static bool is_of(const struct load_row *row, const target_pods *pods) {
        for (size_t i = 0; i < pods->count; i++)
                if (nd_streq(pods->items[i]->id, row->pod->id))
                        return true;
        return false;
}

/* Leaves those of the pods that were named. */
static struct nd_error *select_rows(const struct look *look, int names, char **operands, load_rows *rows) {
        load_rows kept = {};

        for (int i = 0; i < names; i++) {
                target_pods pods = {};
                struct nd_error *error = target_pod((const Nodens__V1__PodsAnswer *) look->pods, operands[i], &pods);

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

static struct nd_error *show(const struct stats_settings *settings, int names, char **operands) {
        nd_cleanup(look_done) struct look before = {}, now = {};
        nd_cleanup(rows_done) load_rows rows = {};

        nd_try(look_take(settings->socket, &before));
        wait_ms(LOOK_MS);
        nd_try(look_take(settings->socket, &now));
        (settings->pods ? load_of_pods : load_of_containers)(&before, &now, &rows);
        if (names > 0)
                nd_try(select_rows(&now, names, operands, &rows));
        if (settings->json)
                print_json(&rows);
        else
                print_table(&rows, settings->pods, SIZE_MAX);
        return nullptr;
}

int stats_run(void *settings_pointer, int operand_count, char **operands) {
        nd_autoerror struct nd_error *error = show(settings_pointer, operand_count, operands);

        return error ? complain("stats", error) : 0;
}

/* ---- top ---- */

static volatile sig_atomic_t interrupted;

static void on_signal([[maybe_unused]] int signal) {
        interrupted = 1;
}

/* A screen of its own while it runs, and keys without Enter; what was on the terminal comes back. */
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

/* False when somebody wants to leave. */
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

static void draw(const struct screen *screen, const load_rows *rows, bool pods) {
        uint64_t cores = 0, memory = 0;
        char size[PROGRESS_SIZE_TEXT];

        nd_vector_each (row, rows) {
                cores += row->has_rate ? row->nano_cores : 0;
                memory += row->usage->has_memory ? row->usage->working_set : 0;
        }
        if (screen->terminal)
                fputs("\033[H\033[J", stdout);
        printf("%zu %s, %llum of CPU, %s of memory%s\n", rows->count, pods ? "pods" : "containers",
               (unsigned long long) cores / 1000000, progress_size(memory, size), screen->terminal ? "; q leaves" : "");
        print_table(rows, pods, screen->terminal ? screen_lines() - 3 : SIZE_MAX);
        (void) fflush(stdout);
}

static struct nd_error *look_again(const struct stats_settings *settings, const struct screen *screen, struct look *before) {
        nd_cleanup(look_done) struct look now = {};
        nd_cleanup(rows_done) load_rows rows = {};

        nd_try(look_take(settings->socket, &now));
        (settings->pods ? load_of_pods : load_of_containers)(before, &now, &rows);
        load_sort_by_cpu(&rows);
        draw(screen, &rows, settings->pods);
        look_done(before);
        *before = nd_take(now, (struct look) {});
        return nullptr;
}

static struct nd_error *repeat(const struct stats_settings *settings, const struct screen *screen) {
        uint32_t interval = settings->interval > 0 ? settings->interval : INTERVAL_S;
        uint32_t count = settings->count > 0 ? settings->count : screen->terminal ? UINT32_MAX : 1;
        nd_cleanup(look_done) struct look before = {};

        nd_try(look_take(settings->socket, &before));
        if (!screen_wait(screen, 1))
                return nullptr;
        for (uint32_t i = 0; i < count; i++) {
                if (i > 0 && !screen_wait(screen, interval))
                        return nullptr;
                nd_try(look_again(settings, screen, &before));
        }
        return nullptr;
}

int top_run(void *settings_pointer, [[maybe_unused]] int operand_count, [[maybe_unused]] char **operands) {
        nd_autoerror struct nd_error *error = nullptr;
        struct screen screen = {};

        screen_open(&screen);
        error = repeat(settings_pointer, &screen);
        screen_done(&screen);
        return error ? complain("top", error) : 0;
}
