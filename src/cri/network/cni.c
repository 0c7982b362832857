/* SPDX-License-Identifier: Apache-2.0 */
/* cni.c - see cni.h
 *
 * Theory of operation
 *   chain_advance() starts the plugin at the chain's position, on_plugin() handles its result and
 *   moves on. The first step also runs from the loop, so the callback never runs before the call
 *   has returned. A plugin that hangs is killed with its process group when the chain's deadline
 *   passes. In an ADD the plugins after it then fail immediately; in a DEL each still gets a short
 *   grace period: releasing an address late is better than leaking it.
 * Owns       the configuration, the plugin's process, copies of the plan. Freed before the
 *            callback runs. */
#include "cri/network/cni.h"

#include <string.h>

#include "base/clock.h"
#include "cri/network/cni-result.h"
#include "sys/child.h"
#include "sys/program.h"

static constexpr uint64_t grace_us = 5 * ND_SECOND_US; /* minimum time of each plugin in a DEL */

enum {
        ENVIRONMENT_MOST = 512,
};

enum command {
        COMMAND_ADD,
        COMMAND_DEL,
        COMMAND_CHECK,
};

struct cri_cni_chain {
        sd_event *loop;
        sd_event_source *starter;
        struct nd_child *child;
        struct cri_cni_config config;
        char *directories, *id, *netns;
        const struct cri_sandbox_request *pod;
        char *previous; /* result of the plugins so far, or of ADD; nullptr = none */
        uint64_t end_us;
        enum command command;
        size_t done;              /* plugins that have run */
        struct nd_error *failure; /* the first one */
        cri_cni_callback callback;
        void *userdata;
};

static void chain_free(struct cri_cni_chain *chain) {
        sd_event_source_disable_unref(chain->starter);
        cri_cni_config_done(&chain->config);
        free(chain->directories);
        free(chain->id);
        free(chain->netns);
        free(chain->previous);
        nd_error_free(chain->failure);
        free(chain);
}

static size_t position(const struct cri_cni_chain *chain) {
        return chain->command == COMMAND_DEL ? chain->config.plugins.count - 1 - chain->done : chain->done;
}

static const char *command_name(const struct cri_cni_chain *chain) {
        static const char *const names[] = {[COMMAND_ADD] = "ADD", [COMMAND_DEL] = "DEL", [COMMAND_CHECK] = "CHECK"};

        return names[chain->command];
}

/* ---- calling a plugin ---- */

/* CNI_ARGS joins arguments with ';' and '=': a value that contains one would be parsed as
 * another argument. */
static struct nd_error *make_arguments(const struct cri_cni_chain *chain, char **ret) {
        const struct cri_sandbox_request *pod = chain->pod;
        const char *const values[] = {pod->namespace, pod->name, pod->uid};

        for (size_t i = 0; i < nd_count_of(values); i++)
                if (strpbrk(values[i], ";="))
                        return nd_error_new(ND_INVALID, 0, "'%s' cannot be passed to a CNI plugin: it contains ';' or '='",
                                            values[i]);
        *ret = nd_format("IgnoreUnknown=1;K8S_POD_NAMESPACE=%s;K8S_POD_NAME=%s;K8S_POD_INFRA_CONTAINER_ID=%s;K8S_POD_UID=%s",
                         pod->namespace, pod->name, chain->id, pod->uid);
        return nullptr;
}

/* Our own environment, for PATH and proxies, plus CNI's variables. */
static struct nd_error *make_environment(const struct cri_cni_chain *chain, struct nd_strings *ret) {
        nd_autofree char *arguments = nullptr;

        nd_try(make_arguments(chain, &arguments));
        for (char **variable = environ; *variable && ret->count < ENVIRONMENT_MOST; variable++)
                if (!nd_has_prefix(*variable, "CNI_") && !nd_has_prefix(*variable, "NOTIFY_SOCKET="))
                        nd_strings_add(ret, *variable);
        nd_vector_push(ret, nd_format("CNI_COMMAND=%s", command_name(chain)));
        nd_vector_push(ret, nd_format("CNI_CONTAINERID=%s", chain->id));
        nd_vector_push(ret, nd_format("CNI_NETNS=%s", chain->netns));
        nd_vector_push(ret, nd_strdup("CNI_IFNAME=" CNI_INTERFACE));
        nd_vector_push(ret, nd_format("CNI_ARGS=%s", arguments));
        nd_vector_push(ret, nd_format("CNI_PATH=%s", chain->directories));
        nd_vector_push(ret, nullptr);
        return nullptr;
}

static uint64_t time_left(const struct cri_cni_chain *chain) {
        uint64_t now = nd_clock_us(), left = chain->end_us > now ? chain->end_us - now : 0;

        if (chain->command == COMMAND_DEL && left < grace_us)
                return grace_us;
        return left > 0 ? left : 1;
}

static void on_plugin(struct nd_child_result *result, void *userdata);

static struct nd_error *start_plugin(struct cri_cni_chain *chain) {
        const struct cri_cni_plugin *plugin = &chain->config.plugins.items[position(chain)];
        nd_autofree char *program = nd_program_find(chain->directories, plugin->type), *input = nullptr;
        nd_cleanup(nd_strings_done) struct nd_strings environment = {};

        if (!program)
                return nd_error_new(ND_UNAVAILABLE, ENOENT, "plugin not found in %s", chain->directories);
        nd_try(make_environment(chain, &environment));
        nd_try(cri_cni_config_input(&chain->config, position(chain), chain->pod, chain->previous, &input));
        return nd_child_start(chain->loop,
                              &(struct nd_child_plan) {.argv = (const char *const[]) {program, nullptr},
                                                       .environment = (const char *const *) environment.items,
                                                       .input = input,
                                                       .input_length = strlen(input),
                                                       .deadline_us = time_left(chain),
                                                       .dies_with_us = true,
                                                       .output_ceiling = CNI_RESULT_CEILING},
                              on_plugin, chain, &chain->child);
}

/* ---- the chain ---- */

static struct nd_error *blame(const struct cri_cni_chain *chain, struct nd_error *error) {
        return nd_error_wrap(error, "network '%s': CNI plugin '%s' (%s)", chain->config.name,
                             chain->config.plugins.items[position(chain)].type, command_name(chain));
}

static void chain_end(struct cri_cni_chain *chain) {
        cri_cni_callback callback = chain->callback;
        void *userdata = chain->userdata;
        struct nd_error *error = nd_take_ptr(chain->failure);
        nd_autofree char *result = chain->command != COMMAND_ADD || error ? nullptr : nd_take_ptr(chain->previous);

        chain_free(chain);
        callback(error, result, userdata);
}

static void fail(struct cri_cni_chain *chain, struct nd_error *error) {
        error = blame(chain, error);
        if (chain->failure)
                nd_error_free(error);
        else
                chain->failure = error;
}

/* Starts the next plugin that can be started, or ends the chain. */
static void chain_advance(struct cri_cni_chain *chain) {
        for (; chain->done < chain->config.plugins.count && (chain->command == COMMAND_DEL || !chain->failure);
             chain->done++) {
                struct nd_error *error = start_plugin(chain);

                if (!error)
                        return;
                fail(chain, error);
        }
        chain_end(chain);
}

/* Evaluates exit status and output of a plugin. */
static struct nd_error *plugin_error(struct cri_cni_chain *chain, struct nd_child_result *result) {
        const char *output = result->output ?: "";

        if (!result->timed_out && result->code > 0 && output[0])
                return cri_cni_result_error(output, strlen(output));
        nd_try(nd_child_result_error(result, "it"));
        if (chain->command != COMMAND_ADD)
                return nullptr;
        if (result->truncated)
                return nd_error_new(ND_INTERNAL, 0, "the result is larger than %d bytes", CNI_RESULT_CEILING);
        free(chain->previous);
        chain->previous = output[strspn(output, " \n")] ? nd_strdup(output) : nullptr;
        return nullptr;
}

static void on_plugin(struct nd_child_result *result, void *userdata) {
        struct cri_cni_chain *chain = userdata;
        struct nd_error *error = plugin_error(chain, result);

        chain->child = nullptr;
        if (error)
                fail(chain, error);
        chain->done++;
        chain_advance(chain);
}

static int on_start([[maybe_unused]] sd_event_source *source, void *userdata) {
        chain_advance(userdata);
        return 0;
}

static void start(sd_event *loop, struct cri_cni_plan *plan, enum command command, cri_cni_callback callback, void *userdata,
                  struct cri_cni_chain **ret) {
        struct cri_cni_chain *chain = nd_new(struct cri_cni_chain);

        *chain = (struct cri_cni_chain) {.loop = loop,
                                         .config = nd_take(plan->config, (struct cri_cni_config) {}),
                                         .directories = nd_strdup(plan->directories),
                                         .id = nd_strdup(plan->id),
                                         .netns = nd_strdup(plan->netns),
                                         .pod = plan->pod,
                                         .previous = plan->previous ? nd_strdup(plan->previous) : nullptr,
                                         .end_us = nd_clock_us() + plan->deadline_us,
                                         .command = command,
                                         .callback = callback,
                                         .userdata = userdata};
        if (sd_event_add_defer(loop, &chain->starter, on_start, chain) < 0)
                abort(); /* fails only without memory */
        *ret = chain;
}

void cri_cni_add(sd_event *loop, struct cri_cni_plan *plan, cri_cni_callback callback, void *userdata,
                 struct cri_cni_chain **ret) {
        start(loop, plan, COMMAND_ADD, callback, userdata, ret);
}

void cri_cni_del(sd_event *loop, struct cri_cni_plan *plan, cri_cni_callback callback, void *userdata,
                 struct cri_cni_chain **ret) {
        start(loop, plan, COMMAND_DEL, callback, userdata, ret);
}

void cri_cni_check(sd_event *loop, struct cri_cni_plan *plan, cri_cni_callback callback, void *userdata,
                   struct cri_cni_chain **ret) {
        start(loop, plan, COMMAND_CHECK, callback, userdata, ret);
}

void cri_cni_abort(struct cri_cni_chain *chain) {
        if (!chain->failure)
                chain->failure = nd_error_new(ND_CANCELLED, 0, "network '%s': cancelled by the caller", chain->config.name);
        if (chain->child)
                nd_child_kill(chain->child);
}
