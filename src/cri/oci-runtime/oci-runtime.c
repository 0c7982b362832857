/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/oci-runtime/oci-runtime.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cri/core/paths.h"
#include "sys/child.h"
#include "sys/program.h"

static constexpr uint64_t deadline_us = 60 * ND_SECOND_US;

enum {
        OUTPUT_CEILING = 16 << 10,
};

struct cri_oci_runtime_call {
        struct nd_child *child;
        const char *engine;
        const char *verb;
        bool absent_is_done;
        cri_oci_runtime_callback callback;
        void *userdata;
};

const char *const *cri_oci_runtime_environment(void) {
        static const char *const kept[] = {"PATH", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"};
        static char *variables[nd_count_of(kept) + 1];
        size_t count = 0;

        if (variables[0])
                return (const char *const *) variables;
        for (size_t i = 0; i < nd_count_of(kept); i++) {
                const char *value = getenv(kept[i]);

                if (value)
                        variables[count++] = nd_format("%s=%s", kept[i], value);
        }
        return (const char *const *) variables;
}

static void add(struct nd_strings *list, const char *text) {
        nd_strings_add(list, text);
}

static void add_pair(struct nd_strings *list, const char *option, const char *value) {
        if (!value)
                return;
        add(list, option);
        add(list, value);
}

static void end(struct nd_strings *list) {
        nd_vector_push(list, nullptr);
}

/* Adds the program and the global options; without a verb the caller adds more options first. The
 * program is looked up here because a monitor does not search PATH. */
static struct nd_error *begin(const struct cri_config *config, const char *handler, const char *verb, struct nd_strings *ret) {
        nd_autofree char *root = cri_path_of_oci_runtime(config, handler), *found = nullptr;
        const char *path = getenv("PATH");
        struct cri_runtime_handler oci_runtime;

        if (!cri_config_handler(config, handler, &oci_runtime))
                return nd_error_new(
                        ND_PRECONDITION, 0,
                        "runtime handler '%s' was removed from the configuration: restore it until its pods are gone",
                        handler);
        if (!strchr(oci_runtime.program, '/'))
                found = nd_program_find(path ? path : "", oci_runtime.program);
        add(ret, found ? found : oci_runtime.program);
        add_pair(ret, "--root", root);
        if (oci_runtime.kind == OCI_RUNTIME_CRUN && config->without_cgroups)
                add(ret, "--cgroup-manager=disabled");
        else if (oci_runtime.kind == OCI_RUNTIME_CRUN)
                add(ret, config->systemd_cgroups ? "--cgroup-manager=systemd" : "--cgroup-manager=cgroupfs");
        else if (config->systemd_cgroups)
                add(ret, "--systemd-cgroup");
        if (verb)
                add(ret, verb);
        return nullptr;
}

struct nd_error *cri_oci_runtime_create_argv(const struct cri_config *config, const char *handler, const char *id,
                                             const char *bundle, const char *pid_file, const char *console,
                                             struct nd_strings *ret) {
        nd_try(begin(config, handler, "create", ret));
        add_pair(ret, "--bundle", bundle);
        add_pair(ret, "--pid-file", pid_file);
        add_pair(ret, "--console-socket", console);
        add(ret, id);
        end(ret);
        return nullptr;
}

struct nd_error *cri_oci_runtime_exec_argv(const struct cri_config *config, const char *handler, const char *id,
                                           const char *process, const char *cgroup, const char *pid_file, const char *console,
                                           bool detach, const char *log, struct nd_strings *ret) {
        nd_try(begin(config, handler, nullptr, ret));
        add_pair(ret, "--log", log);
        add(ret, "exec");
        add_pair(ret, "--process", process);
        add_pair(ret, "--cgroup", cgroup);
        add_pair(ret, "--pid-file", pid_file);
        add_pair(ret, "--console-socket", console);
        if (detach)
                add(ret, "--detach");
        add(ret, id);
        end(ret);
        return nullptr;
}

/* The engine reports the cause on its last line. */
static struct nd_error *failure(const struct cri_oci_runtime_call *call, const struct nd_child_result *result) {
        if (!result->timed_out && result->code == 0)
                return nullptr;
        if (call->absent_is_done && strstr(result->errors, "does not exist"))
                return nullptr;
        return nd_error_wrap(nd_child_result_error(result, call->engine), "%s the container", call->verb);
}

static void on_end(struct nd_child_result *result, void *userdata) {
        struct cri_oci_runtime_call *call = userdata;
        struct nd_error *error = failure(call, result);

        call->callback(error, call->userdata);
        free(call);
}

static const char *engine_of(const struct cri_config *config, const char *handler) {
        struct cri_runtime_handler oci_runtime;

        /* begin() rejects an unknown handler. */
        return cri_config_handler(config, handler, &oci_runtime) ? cri_config_engine_name(oci_runtime.kind) : handler;
}

static struct nd_error *run(sd_event *loop, struct nd_strings *argv, const char *input,
                            const struct cri_oci_runtime_call *like, struct cri_oci_runtime_call **ret) {
        struct nd_child_plan plan = {.argv = (const char *const *) argv->items,
                                     .dies_with_us = true,
                                     .environment = cri_oci_runtime_environment(),
                                     .input = input,
                                     .input_length = input ? strlen(input) : 0,
                                     .deadline_us = deadline_us,
                                     .output_ceiling = OUTPUT_CEILING};
        nd_autofree struct cri_oci_runtime_call *call = nd_new(struct cri_oci_runtime_call);

        *call = *like;
        nd_try(nd_child_start(loop, &plan, on_end, call, &call->child));
        *ret = nd_take_ptr(call);
        return nullptr;
}

struct nd_error *cri_oci_runtime_start(sd_event *loop, const struct cri_config *config, const char *handler, const char *id,
                                       cri_oci_runtime_callback callback, void *userdata, struct cri_oci_runtime_call **ret) {
        nd_cleanup(nd_strings_done) struct nd_strings argv = {};
        struct cri_oci_runtime_call like = {
                .engine = engine_of(config, handler), .verb = "start", .callback = callback, .userdata = userdata};

        nd_try(begin(config, handler, "start", &argv));
        add(&argv, id);
        end(&argv);
        return run(loop, &argv, nullptr, &like, ret);
}

struct nd_error *cri_oci_runtime_delete(sd_event *loop, const struct cri_config *config, const char *handler, const char *id,
                                        cri_oci_runtime_callback callback, void *userdata, struct cri_oci_runtime_call **ret) {
        nd_cleanup(nd_strings_done) struct nd_strings argv = {};
        struct cri_oci_runtime_call like = {.engine = engine_of(config, handler),
                                            .verb = "delete",
                                            .absent_is_done = true,
                                            .callback = callback,
                                            .userdata = userdata};

        nd_try(begin(config, handler, "delete", &argv));
        add(&argv, "--force");
        add(&argv, id);
        end(&argv);
        return run(loop, &argv, nullptr, &like, ret);
}

struct nd_error *cri_oci_runtime_update(sd_event *loop, const struct cri_config *config, const char *handler, const char *id,
                                        const char *resources, cri_oci_runtime_callback callback, void *userdata,
                                        struct cri_oci_runtime_call **ret) {
        nd_cleanup(nd_strings_done) struct nd_strings argv = {};
        struct cri_oci_runtime_call like = {
                .engine = engine_of(config, handler), .verb = "update", .callback = callback, .userdata = userdata};

        nd_try(begin(config, handler, "update", &argv));
        add_pair(&argv, "--resources", "/dev/stdin");
        add(&argv, id);
        end(&argv);
        return run(loop, &argv, resources, &like, ret);
}

bool cri_oci_runtime_has_started(const struct cri_config *config, const char *handler, const char *id) {
        struct cri_runtime_handler oci_runtime = {};
        bool known = cri_config_handler(config, handler, &oci_runtime);
        nd_autofree char *root = cri_path_of_oci_runtime(config, handler);
        nd_autofree char *status = nd_format("%s/%s/%s", root, id,
                                             oci_runtime.kind == OCI_RUNTIME_RUNC ? "state.json" : "status"),
                         *fifo = nd_format("%s/%s/exec.fifo", root, id);

        /* The container's init process blocks on the fifo; `start` opens it and removes it. */
        return known && access(status, F_OK) == 0 && access(fifo, F_OK) < 0 && errno == ENOENT;
}

void cri_oci_runtime_cancel(struct cri_oci_runtime_call *call) {
        if (!call)
                return;
        nd_child_cancel(call->child);
        free(call);
}
