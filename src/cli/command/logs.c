/* SPDX-License-Identifier: Apache-2.0 */
/* logs.c - see logs.h
 *
 * nodens-cri returns the path of the container's log; this program reads the file, so that a log
 * can be followed while the daemon is down. A line that is not in the CRI log format is printed
 * unchanged. */
#include "cli/command/logs.h"

#include <nodens.pb-c.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/output.h"
#include "cli/core/client.h"
#include "cli/core/log-file.h"
#include "cli/core/target.h"
#include "cli/output/sanitize.h"
#include "kube/log-line.h"
#include "net/protobuf.h"

static constexpr long poll_interval_ns = 100 * 1000000L;
/* interval of asking the daemon whether the container still runs */
static constexpr uint64_t ask_interval_us = ND_SECOND_US;

const struct nd_option cli_logs_options[] = {
        {.name = "follow",
         .letter = 'f',
         .offset = offsetof(struct cli_logs_settings, follow),
         .help = "follow the log until the container exits"},
        {.name = "tail",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct cli_logs_settings, tail),
         .argument = "NUMBER",
         .help = "show only the last NUMBER lines"},
        {.name = "since",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct cli_logs_settings, since),
         .argument = "TIME",
         .help = "show only newer lines: 90s, 10m, 2h, 1d, or a time like 2026-11-15T13:08:00Z"},
        {.name = "timestamps",
         .letter = 't',
         .offset = offsetof(struct cli_logs_settings, timestamps),
         .help = "show a timestamp before each line"},
        {.name = "previous",
         .letter = 'p',
         .offset = offsetof(struct cli_logs_settings, previous),
         .help = "show the log of the previous container"},
        {.name = "container",
         .letter = 'c',
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct cli_logs_settings, container),
         .argument = "NAME",
         .help = "container of the pod"},
        {.name = "raw",
         .offset = offsetof(struct cli_logs_settings, raw),
         .help = "print all bytes unchanged, colours and control sequences included, also on a terminal"},
        CLIENT_SOCKET_OPTION(cli_logs_settings),
        {},
};

bool cli_logs_since(const char *text, uint64_t now, uint64_t *ret) {
        static const struct {
                char unit;
                uint64_t seconds;
        } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
        size_t digits = strspn(text, "0123456789");
        nd_autofree char *number = nd_strndup(text, digits);
        uint64_t count;

        if (digits == 0 || strlen(text) != digits + 1)
                return nd_log_line_time_parse(text, strlen(text), ret);
        if (nd_text_parse_u64(number, UINT32_MAX, &count) < 0)
                return false;
        for (size_t i = 0; i < nd_count_of(units); i++)
                if (units[i].unit == text[digits]) {
                        uint64_t age = count * units[i].seconds * 1000000000;

                        *ret = age / 1000000000 / units[i].seconds != count || age > now ? 0 : now - age;
                        return true;
                }
        return false;
}

/* ---- selecting the log ---- */

struct subject {
        char *id; /* ID of the container */
        char *pod, *sandbox;
        char *path;
        bool running;
};

static void subject_done(struct subject *subject) {
        free(subject->id);
        free(subject->pod);
        free(subject->sandbox);
        free(subject->path);
}

static struct nd_error *find_container(const struct cli_logs_settings *settings, const char *name, struct subject *ret) {
        ProtobufCMessage *answer = nullptr;
        struct cli_target target = {};
        struct nd_error *error;

        nd_try(cli_client_pods(settings->socket, &answer));
        error = cli_target_container((const Nodens__V1__PodsAnswer *) answer, name, settings->container, settings->previous,
                                     &target);
        if (!error) {
                ret->id = nd_strdup(target.container->id);
                ret->pod = cli_target_pod_name(target.pod);
                ret->sandbox = nd_strdup(target.pod->id);
                ret->running = nd_streq(target.container->state, "running");
        }
        nd_protobuf_free(answer);
        return error;
}

static struct nd_error *find_path(const char *socket, struct subject *subject) {
        Nodens__V1__InspectRequest request = NODENS__V1__INSPECT_REQUEST__INIT;
        const Nodens__V1__InspectAnswer *pods;
        ProtobufCMessage *answer = nullptr;

        request.pod = subject->sandbox;
        nd_try(cli_client_call(socket, "/nodens.v1.Node/Inspect", &request.base, &nodens__v1__inspect_answer__descriptor,
                               &answer));
        pods = (const Nodens__V1__InspectAnswer *) answer;
        for (size_t i = 0; i < pods->n_pods; i++)
                for (size_t c = 0; c < pods->pods[i]->n_containers; c++)
                        if (nd_streq(pods->pods[i]->containers[c]->container->id, subject->id))
                                nd_strset(&subject->path, pods->pods[i]->containers[c]->log);
        nd_protobuf_free(answer);
        if (!subject->path || !*subject->path)
                return nd_error_new(ND_NOT_FOUND, 0, "the container of %s has no log: none was requested for the pod",
                                    subject->pod);
        return nullptr;
}

/* Assumes that it runs when the daemon does not reply. */
static bool still_runs(const char *socket, const char *id) {
        nd_autoerror struct nd_error *error = nullptr;
        const Nodens__V1__PodsAnswer *pods;
        ProtobufCMessage *answer = nullptr;
        bool running = false;

        error = cli_client_pods(socket, &answer);
        if (error)
                return true;
        pods = (const Nodens__V1__PodsAnswer *) answer;
        for (size_t i = 0; i < pods->n_pods; i++)
                for (size_t c = 0; c < pods->pods[i]->n_containers; c++)
                        running = running || (nd_streq(pods->pods[i]->containers[c]->id, id) &&
                                              nd_streq(pods->pods[i]->containers[c]->state, "running"));
        nd_protobuf_free(answer);
        return running;
}

/* ---- printing ---- */

struct printing {
        uint64_t since;
        bool timestamps;
        bool plain[ND_LOG_STREAMS];  /* the output is a terminal */
        bool within[ND_LOG_STREAMS]; /* inside a partial line */
        struct nd_text clean;
};

static void print_bytes(struct printing *p, enum nd_log_line_stream stream, const char *bytes, size_t length) {
        FILE *to = stream == ND_LOG_STDERR ? stderr : stdout;

        if (p->plain[stream]) {
                if (length > 0 && bytes[length - 1] == '\r')
                        length--; /* carriage return from a terminal */
                p->clean.length = 0;
                cli_sanitize_append(&p->clean, bytes, length);
                bytes = p->clean.bytes;
                length = p->clean.length;
        }
        if (length > 0)
                (void) fwrite(bytes, 1, length, to);
}

/* Returns false when the output cannot be written. */
static bool print_line(const char *bytes, size_t length, void *userdata) {
        struct printing *p = userdata;
        struct nd_log_line line;
        FILE *to;

        if (!nd_log_line_parse(bytes, length, &line)) {
                print_bytes(p, ND_LOG_STDOUT, bytes, length);
                (void) putc('\n', stdout);
                return !ferror(stdout);
        }
        if (line.time < p->since)
                return true;
        to = line.stream == ND_LOG_STDERR ? stderr : stdout;
        if (p->timestamps && !p->within[line.stream])
                fprintf(to, "%.*s ", (int) line.stamp_length, line.stamp);
        print_bytes(p, line.stream, line.text, line.length);
        if (line.whole)
                (void) putc('\n', to);
        p->within[line.stream] = !line.whole;
        return !ferror(to);
}

/* ---- the last lines ---- */

struct tail {
        uint64_t wanted, count;
        off_t *starts; /* of the last lines, as a ring buffer */
        off_t at;      /* of the next line in the file */
        bool within[ND_LOG_STREAMS];
};

static bool count_line(const char *bytes, size_t length, void *userdata) {
        struct tail *tail = userdata;
        struct nd_log_line line = {.whole = true};

        if (!nd_log_line_parse(bytes, length, &line) || !tail->within[line.stream])
                tail->starts[tail->count++ % tail->wanted] = tail->at;
        tail->within[line.stream] = !line.whole;
        tail->at += (off_t) length + 1;
        return true;
}

/* Seeks to the first of the last lines. Partial lines of a long line count as one. */
static struct nd_error *seek_tail(struct cli_log_file *file, uint64_t wanted) {
        nd_autofree off_t *starts = nd_calloc(wanted > 0 ? wanted : 1, sizeof *starts);
        struct tail tail = {.wanted = wanted > 0 ? wanted : 1, .starts = starts};

        nd_try(cli_log_file_read(file, count_line, &tail));
        if (wanted == 0)
                return nullptr;
        cli_log_file_seek(file, tail.count > wanted ? starts[tail.count % wanted] : 0);
        return nullptr;
}

/* ---- the command ---- */

/* Ends by SIGINT or SIGPIPE, like cat, and when the output cannot be written, which nd_option_run()
 * reports. */
static struct nd_error *follow(const struct cli_logs_settings *settings, const struct subject *subject,
                               struct cli_log_file *file, struct printing *p) {
        static const struct timespec pause = {.tv_nsec = poll_interval_ns};
        bool running = subject->running && !settings->previous;
        uint64_t asked = nd_clock_us();

        for (;;) {
                bool last = !running;

                nd_try(cli_log_file_follow(file, print_line, p));
                if (fflush(stdout) != 0 || ferror(stdout) || ferror(stderr) || last)
                        return nullptr;
                (void) nanosleep(&pause, nullptr);
                if (nd_clock_us() - asked >= ask_interval_us) {
                        running = still_runs(settings->socket, subject->id);
                        asked = nd_clock_us();
                }
        }
}

static struct nd_error *show(const struct cli_logs_settings *settings, const char *name, uint64_t tail, struct printing *p) {
        nd_cleanup(subject_done) struct subject subject = {};
        nd_cleanup(cli_log_file_done) struct cli_log_file file = LOG_FILE_NONE;

        nd_try(find_container(settings, name, &subject));
        nd_try(find_path(settings->socket, &subject));
        nd_try(cli_log_file_open(subject.path, &file));
        if (settings->tail)
                nd_try(seek_tail(&file, tail));
        nd_try(settings->follow ? follow(settings, &subject, &file, p) : cli_log_file_read(&file, print_line, p));
        cli_log_file_finish(&file, print_line, p);
        return nullptr;
}

int cli_logs_run(void *settings_pointer, int operand_count, char **operands) {
        enum { TAIL_MOST = 1 << 24 };
        const struct cli_logs_settings *settings = settings_pointer;
        struct printing p = {.timestamps = settings->timestamps, .clean = ND_TEXT(LOG_FILE_LINE + (64 << 10))};
        nd_autoerror struct nd_error *error = nullptr;
        uint64_t tail = 0;

        if (operand_count != 1) {
                fputs("nodens logs: specify one container: [NAMESPACE/]POD[/CONTAINER] or its ID\n", stderr);
                return ND_EXIT_USAGE;
        }
        if (settings->tail && nd_text_parse_u64(settings->tail, TAIL_MOST, &tail) < 0) {
                fprintf(stderr, "nodens logs: invalid --tail: must be a number from 0 to %d\n", TAIL_MOST);
                return ND_EXIT_USAGE;
        }
        if (settings->since && !cli_logs_since(settings->since, nd_clock_wall_ns(), &p.since)) {
                fputs("nodens logs: invalid --since: use an age like 90s, 10m, 2h, 1d, or a time like 2026-11-15T13:08:00Z\n",
                      stderr);
                return ND_EXIT_USAGE;
        }
        p.plain[ND_LOG_STDOUT] = !settings->raw && isatty(STDOUT_FILENO);
        p.plain[ND_LOG_STDERR] = !settings->raw && isatty(STDERR_FILENO);
        error = show(settings, operands[0], tail, &p);
        nd_text_done(&p.clean);
        if (error)
                return cli_sanitize_print_error("logs", error);
        return ferror(stderr) ? ND_EXIT_OUTPUT : 0;
}
