/* SPDX-License-Identifier: Apache-2.0 */
/* exec.c - see exec.h
 *
 * Theory of operation
 *   Each command runs in its own cgroup below the container's, which crun joins. At the deadline
 *   one write to cgroup.kill kills everything that the command started, including daemonized
 *   processes.
 *   A command that ends in time may leave a process behind on purpose (a hook that starts a
 *   server). Such processes are moved to the container's cgroup, or to the leaf in which the
 *   container started, and the empty cgroup is removed.
 *   The cgroup of a killed command may need a moment to become empty; the reaper retries until it
 *   is.
 *   crun writes its own errors ("executable not found") to its log, a memory file, so that they
 *   cannot be confused with the command's output.
 *   crun keeps its inherited descriptors open while it changes to the command's working directory,
 *   which the container may have replaced by a link to /proc/self/fd/<N> (CVE-2024-21626). Hence
 *   none of them is a directory.
 *   crun does not set oom_score_adj for a command; the command inherits it. The child therefore
 *   sets the container's value before it executes crun.
 * Owns       the child, the timers, the cgroup. Keeps only the container's ID, because the
 *            container may be removed meanwhile. */
#include "cri/oci-runtime/exec.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <systemd/sd-event.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "cri/bundle/resources.h"
#include "cri/core/paths.h"
#include "cri/oci-runtime/oci-runtime.h"
#include "sys/cgroup.h"
#include "sys/child.h"
#include "sys/file.h"

enum {
        /* stdout and stderr together: the kubelet accepts responses of up to 16 MiB */
        OUTPUT = 16 * 1024 * 1024 - 64 * 1024,
        CONFIG = 16 * 1024 * 1024, /* we wrote config.json ourselves */
        LOG_TEXT = 4096,           /* of crun's log */
        PROCESS_FD = 3,
        LOG_FD = 4,
        CONSOLE_FD = 5,
        REAPS = 250,
        CGROUPS = 4096,    /* per container */
        CGROUP_NAME = 128, /* bytes */
};

static constexpr uint64_t grace_us = 2 * ND_SECOND_US; /* from cgroup.kill until crun exits */
static constexpr uint64_t sweep_us = 20 * ND_MS_US;

struct cri_exec {
        sd_event *loop; /* borrowed */
        char *id;       /* the container's */
        char *cgroup;   /* the container's; "" = none */
        /* the command's cgroup below it; "" = none */
        char name[CGROUP_NAME];
        int log;
        struct nd_child *child;
        sd_event_source *timer;
        bool timed_out;
        uint64_t timeout_us;
        cri_exec_callback callback;
        void *userdata;
};

/* ---- the process ---- */

/* A container without a terminal has no TERM, but programs that run on one expect it. */
static void add_term(yyjson_mut_doc *out, yyjson_mut_val *process) {
        yyjson_mut_val *variables = yyjson_mut_obj_get(process, "env"), *variable;
        yyjson_mut_arr_iter each = yyjson_mut_arr_iter_with(variables);

        while ((variable = yyjson_mut_arr_iter_next(&each)))
                if (nd_has_prefix(yyjson_mut_get_str(variable) ?: "", "TERM="))
                        return;
        (void) yyjson_mut_arr_add_str(out, variables, "TERM=xterm");
}

static void fill_process(yyjson_mut_doc *out, yyjson_mut_val *process, const struct nd_strings *command, bool terminal) {
        yyjson_mut_val *arguments = yyjson_mut_arr(out);

        nd_vector_each (word, command)
                (void) yyjson_mut_arr_add_str(out, arguments, *word);
        (void) yyjson_mut_obj_remove_key(process, "args");
        (void) yyjson_mut_obj_remove_key(process, "terminal");
        (void) yyjson_mut_obj_remove_key(process, "consoleSize");
        (void) yyjson_mut_obj_add_val(out, process, "args", arguments);
        if (terminal) {
                (void) yyjson_mut_obj_add_bool(out, process, "terminal", true);
                add_term(out, process);
        }
        yyjson_mut_doc_set_root(out, process);
}

struct nd_error *cri_exec_process(const char *config, size_t length, const struct nd_strings *command, bool terminal,
                                  char **ret, size_t *ret_length, int *ret_oom_score_adj) {
        nd_autojson yyjson_doc *doc = nullptr;
        yyjson_val *process;
        yyjson_mut_doc *out;
        char *text;

        nd_try(nd_json_parse(config, length, CONFIG, &doc));
        process = yyjson_obj_get(yyjson_doc_get_root(doc), "process");
        if (!yyjson_is_obj(process))
                return nd_error_new(ND_DATA_LOSS, 0, "config.json of the container has no process");
        out = yyjson_mut_doc_new(nullptr);
        fill_process(out, yyjson_val_mut_copy(out, process), command, terminal);
        text = yyjson_mut_write(out, YYJSON_WRITE_ALLOW_INVALID_UNICODE, ret_length);
        yyjson_mut_doc_free(out);
        if (!text)
                return nd_error_new(ND_INTERNAL, 0, "encode the OCI process of the command");
        *ret_oom_score_adj = yyjson_get_int(yyjson_obj_get(process, "oomScoreAdj"));
        *ret = text;
        return nullptr;
}

static struct nd_error *memory_file(const char *name, const char *bytes, size_t length, int *ret_fd) {
        nd_autoclose int fd = memfd_create(name, MFD_CLOEXEC);

        if (fd < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "create memory file '%s'", name);
        if (pwrite(fd, bytes, length, 0) != (ssize_t) length)
                return nd_error_new(ND_EXHAUSTED, errno, "write memory file '%s'", name);
        *ret_fd = nd_take_fd(fd);
        return nullptr;
}

/* ---- the cgroup ---- */

/* The cgroup in which crun creates those of commands. Before 0.1.0 crun had one inside the scope of
 * each container. A scope that does not belong to us belongs to a container that may create
 * cgroups, with that name too. */
static char *cgroup_of(const struct cri_config *config, const struct cri_container *container) {
        nd_autofree char *inner = nullptr, *path = nullptr, *scope = nullptr;
        struct stat owner;

        if (!config->systemd_cgroups || *container->cgroup == '\0')
                return nd_strdup(container->cgroup);
        inner = nd_format("%s/container", container->cgroup);
        path = nd_format(ND_CGROUP_MOUNT "%s", inner);
        scope = nd_format(ND_CGROUP_MOUNT "%s", container->cgroup);
        if (access(path, F_OK) < 0 || stat(scope, &owner) < 0 || owner.st_uid != geteuid())
                return nd_strdup(container->cgroup);
        return nd_take_ptr(inner);
}

#define PREFIX "exec-"

static struct nd_error *make_cgroup(struct cri_exec *exec) {
        nd_autoclose int parent = -EBADF;
        uint64_t number;

        if (*exec->cgroup == '\0')
                return nullptr;
        nd_try(nd_cgroup_open(exec->cgroup, &parent));
        if (getrandom(&number, sizeof number, 0) != sizeof number)
                return nd_error_new(ND_INTERNAL, errno, "get random bytes");
        /* Monitoring agents that look only at the end of the path find the container's ID there. */
        (void) snprintf(exec->name, sizeof exec->name, PREFIX "%016llx:cri-containerd:%s", (unsigned long long) number,
                        exec->id);
        nd_try(nd_cgroup_make(parent, exec->name));
        return nullptr;
}

static void kill_cgroup(const char *cgroup, const char *name) {
        nd_autofree char *path = nd_format("%s/%s", cgroup, name);
        nd_autoclose int fd = -EBADF;

        if (*name == '\0')
                return;
        nd_ignore(nd_cgroup_open(path, &fd));
        if (fd >= 0)
                nd_ignore(nd_cgroup_kill(fd));
}

/* A cgroup to remove as soon as it is empty. */
struct reaper {
        char *cgroup;
        char name[CGROUP_NAME];
        unsigned tries;
        /* Where the container's first process started, if the container may create cgroups. Unless
         * nullptr, processes are moved there or to the container's cgroup, not waited for. */
        char *leaf;
};

/* A cgroup with controllers enabled below it cannot have processes of its own. */
static void lift(int parent, const struct reaper *reaper) {
        nd_autoclose int leaf = openat(parent, reaper->leaf, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

        nd_cgroup_lift(parent, reaper->name, leaf >= 0 ? leaf : parent);
}

static bool reap(const struct reaper *reaper) {
        nd_autoclose int parent = -EBADF;

        nd_ignore(nd_cgroup_open(reaper->cgroup, &parent));
        if (parent < 0)
                return true; /* removed together with its parent */
        if (nd_cgroup_remove(parent, reaper->name))
                return true;
        if (reaper->leaf)
                lift(parent, reaper);
        return nd_cgroup_remove(parent, reaper->name);
}

static void reaper_free(void *userdata) {
        struct reaper *reaper = userdata;

        free(reaper->cgroup);
        free(reaper->leaf);
        free(reaper);
}

static int on_reap(sd_event_source *source, uint64_t usec, void *userdata) {
        struct reaper *reaper = userdata;

        /* at worst it is removed with the container */
        if (reap(reaper) || reaper->tries++ == REAPS)
                return sd_event_source_set_floating(source, false);
        (void) sd_event_source_set_time(source, usec + sweep_us);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

/* The event loop owns the timer and the timer owns the reaper; no other reference exists. */
static void sweep_cgroup(sd_event *loop, const char *cgroup, const char *name, const char *leaf) {
        sd_event_source *timer = nullptr;
        struct reaper *reaper;

        if (*name == '\0')
                return;
        reaper = nd_new(struct reaper);
        reaper->cgroup = nd_strdup(cgroup);
        reaper->leaf = leaf ? nd_strdup(leaf) : nullptr;
        (void) snprintf(reaper->name, sizeof reaper->name, "%s", name);
        if (reap(reaper) ||
            sd_event_add_time_relative(loop, &timer, CLOCK_MONOTONIC, sweep_us, ND_MS_US, on_reap, reaper) < 0) {
                reaper_free(reaper);
                return;
        }
        (void) sd_event_source_set_destroy_callback(timer, reaper_free);
        (void) sd_event_source_set_floating(timer, true);
        sd_event_source_unref(timer);
}

void cri_exec_forget(sd_event *loop, const struct cri_config *config, const struct cri_container *container) {
        nd_autofree char *cgroup = cgroup_of(config, container);
        nd_cleanup(nd_strings_done) struct nd_strings names = {};
        nd_autoclose int fd = -EBADF;

        if (*cgroup == '\0')
                return;
        nd_ignore(nd_cgroup_open(cgroup, &fd));
        if (fd >= 0)
                nd_ignore(nd_dir_list(fd, ".", CGROUPS, &names));
        nd_vector_each (name, &names) {
                if (!nd_has_prefix(*name, PREFIX) || strlen(*name) >= CGROUP_NAME)
                        continue;
                kill_cgroup(cgroup, *name);
                sweep_cgroup(loop, cgroup, *name, nullptr);
        }
}

/* ---- completion ---- */

static void exec_free(struct cri_exec *exec) {
        if (!exec)
                return;
        sd_event_source_disable_unref(exec->timer);
        nd_close_fd(&exec->log);
        free(exec->id);
        free(exec->cgroup);
        free(exec);
}

static void exec_done(struct cri_exec **exec) {
        exec_free(*exec);
}

int cri_exec_start_code(const char *message) {
        static const struct {
                const char *first, *second; /* both are in the message */
                int code;
        } known[] = {
                {"executable file `", "` not found", 127},
                {"executable file not found", "", 127}, /* runc, in PATH */
                {"unable to start container process", "no such file or directory", 127},
                {"the path `", "` exists but it is not executable", 126},
                {"the path `", "` is not a regular file", 126},
                {"unable to start container process", "permission denied", 126},
                {"unable to start container process", "exec format error", 126},
                {"exec container process `", "No such file or directory", 127},
                {"exec container process `", "", 126},
        };

        for (size_t i = 0; i < nd_count_of(known); i++) {
                const char *first = strstr(message, known[i].first);

                if (first && strstr(first, known[i].second))
                        return known[i].code;
        }
        return 0;
}

/* The last line of crun's log as an error; nullptr if the log is empty. */
static struct nd_error *oci_runtime_trouble(const struct cri_exec *exec) {
        char words[LOG_TEXT];
        ssize_t n = pread(exec->log, words, sizeof words - 1, 0);
        const char *line;
        size_t end;

        for (end = n > 0 ? (size_t) n : 0; end > 0 && (words[end - 1] == '\n' || words[end - 1] == ' '); end--)
                ;
        if (end == 0)
                return nullptr;
        words[end] = '\0';
        line = strrchr(words, '\n');
        return nd_error_new(strstr(words, "is not running") ? ND_PRECONDITION : ND_INTERNAL, 0,
                            "execute in container '%s': %s", exec->id, line ? line + 1 : words);
}

static struct nd_error *late(const struct cri_exec *exec) {
        return nd_error_new(ND_DEADLINE, ETIMEDOUT, "the command in container '%s' did not end within %llu ms and was killed",
                            exec->id, (unsigned long long) (exec->timeout_us / ND_MS_US));
}

/* Limits stderr to the space that stdout leaves in one response. */
static void fit(struct nd_child_result *from, struct cri_exec_result *ret) {
        size_t room = OUTPUT - (from->output_length < OUTPUT ? from->output_length : OUTPUT);

        *ret = (struct cri_exec_result) {.code = from->code >= 0 ? from->code : 128 + from->signal,
                                         .output = from->output,
                                         .output_length = from->output_length,
                                         .errors = from->errors,
                                         .errors_length = from->errors_length < room ? from->errors_length : room};
}

static void on_end(struct nd_child_result *result, void *userdata) {
        nd_cleanup(exec_done) struct cri_exec *exec = userdata;
        nd_autofree char *leaf = exec->timed_out ? nullptr : cri_resources_leaf(exec->id);
        struct nd_error *error = nullptr;
        struct cri_exec_result answer;

        exec->child = nullptr;
        if (exec->timed_out)
                /* crun may have joined the cgroup after the first kill */
                kill_cgroup(exec->cgroup, exec->name);
        if (exec->timed_out)
                error = late(exec);
        else if (result->code != 0)
                error = oci_runtime_trouble(exec);
        if (!error)
                fit(result, &answer);
        exec->callback(error, error ? nullptr : &answer, exec->userdata);
        /* after the callback, so that it does not delay the response */
        sweep_cgroup(exec->loop, exec->cgroup, exec->name, leaf);
}

/* crun still runs although all processes in the cgroup are dead: one of its processes has not
 * joined the cgroup yet. */
static int on_grace([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t usec, void *userdata) {
        nd_cleanup(exec_done) struct cri_exec *exec = userdata;

        nd_child_cancel(nd_take_ptr(exec->child));
        kill_cgroup(exec->cgroup, exec->name);
        sweep_cgroup(exec->loop, exec->cgroup, exec->name, nullptr);
        exec->callback(late(exec), nullptr, exec->userdata);
        return 0;
}

static int on_deadline([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t usec, void *userdata) {
        struct cri_exec *exec = userdata;

        exec->timed_out = true;
        kill_cgroup(exec->cgroup, exec->name);
        exec->timer = sd_event_source_disable_unref(exec->timer);
        return sd_event_add_time_relative(exec->loop, &exec->timer, CLOCK_MONOTONIC, grace_us, ND_MS_US, on_grace, exec);
}

void cri_exec_cancel(struct cri_exec *exec) {
        if (!exec)
                return;
        kill_cgroup(exec->cgroup, exec->name);
        nd_child_cancel(nd_take_ptr(exec->child));
        kill_cgroup(exec->cgroup, exec->name);
        sweep_cgroup(exec->loop, exec->cgroup, exec->name, nullptr);
        exec_free(exec);
}

/* ---- start ---- */

static bool has_terminal(const struct cri_exec_plan *plan) {
        return plan->streams && plan->streams->terminal;
}

static struct nd_error *prepare(const struct cri_config *config, const struct cri_exec_plan *plan, int *ret_process,
                                int *ret_oom_score_adj) {
        nd_autofree char *directory = cri_path_of_container(config, plan->container),
                         *path = nd_format("%s/config.json", directory);
        nd_autofree char *spec = nullptr, *process = nullptr;
        size_t length;

        nd_try(nd_file_read(AT_FDCWD, path, CONFIG, &spec, &length));
        nd_try(cri_exec_process(spec, length, plan->command, has_terminal(plan), &process, &length, ret_oom_score_adj));
        return memory_file("process.json", process, length, ret_process);
}

static struct nd_error *launch(struct cri_exec *exec, const struct cri_config *config, const struct cri_exec_plan *plan,
                               int process, int oom_score_adj) {
        nd_autofree char *process_path = nd_format("/proc/self/fd/%d", PROCESS_FD),
                         *log_path = nd_format("/proc/self/fd/%d", LOG_FD), *console_path = nullptr;
        const int descriptors[] = {process, exec->log, has_terminal(plan) ? plan->streams->console : -EBADF};
        nd_cleanup(nd_strings_done) struct nd_strings argv = {};

        if (has_terminal(plan))
                console_path = nd_format("/proc/self/fd/%d", CONSOLE_FD);
        nd_try(cri_oci_runtime_exec_argv(config, plan->container->sandbox->request.runtime_handler, exec->id, process_path,
                                         exec->name[0] ? exec->name : nullptr, nullptr, console_path, false, log_path, &argv));
        return nd_child_start(exec->loop,
                              &(struct nd_child_plan) {.argv = (const char *const *) argv.items,
                                                       .environment = cri_oci_runtime_environment(),
                                                       .output_ceiling = OUTPUT,
                                                       .streams = plan->streams ? plan->streams->fds : nullptr,
                                                       .descriptors = descriptors,
                                                       .descriptor_count = nd_count_of(descriptors),
                                                       .has_oom_score_adj = true,
                                                       .oom_score_adj = oom_score_adj},
                              on_end, exec, &exec->child);
}

/* Starts the command; exec->loop is set. Leaves no cgroup behind on error. */
static struct nd_error *start(struct cri_exec *exec, const struct cri_config *config, const struct cri_exec_plan *plan) {
        nd_autoclose int process = -EBADF;
        int oom_score_adj = 0;
        struct nd_error *error;

        if (plan->container->state != CONTAINER_RUNNING)
                return nd_error_new(ND_PRECONDITION, 0, "container '%s' is not running", plan->container->id);
        if (plan->command->count == 0)
                return nd_error_new(ND_INVALID, 0, "no command given for container '%s'", plan->container->id);
        exec->id = nd_strdup(plan->container->id);
        exec->cgroup = cgroup_of(config, plan->container);
        nd_try(prepare(config, plan, &process, &oom_score_adj));
        nd_try(memory_file("crun.log", "", 0, &exec->log));
        nd_try(make_cgroup(exec));
        error = launch(exec, config, plan, process, oom_score_adj);
        if (error)
                sweep_cgroup(exec->loop, exec->cgroup, exec->name, nullptr);
        return error;
}

struct nd_error *cri_exec_start(sd_event *loop, const struct cri_config *config, const struct cri_exec_plan *plan,
                                cri_exec_callback callback, void *userdata, struct cri_exec **ret) {
        nd_cleanup(exec_done) struct cri_exec *exec = nd_new(struct cri_exec);

        *exec = (struct cri_exec) {
                .loop = loop, .log = -EBADF, .timeout_us = plan->timeout_us, .callback = callback, .userdata = userdata};
        nd_try(start(exec, config, plan));
        if (exec->timeout_us > 0 && sd_event_add_time_relative(loop, &exec->timer, CLOCK_MONOTONIC, exec->timeout_us, ND_MS_US,
                                                               on_deadline, exec) < 0) {
                cri_exec_cancel(nd_take_ptr(exec));
                return nd_error_new(ND_INTERNAL, 0, "create the timer of an exec");
        }
        *ret = nd_take_ptr(exec);
        return nullptr;
}
