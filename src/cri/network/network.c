/* SPDX-License-Identifier: Apache-2.0 */
/* network.c - see network.h
 *
 * Theory of operation
 *   The active configuration is the first one, by file name, that can be parsed; an invalid file is
 *   logged once and skipped. Every use first checks the directory: names, inodes, times and sizes
 *   make a stamp, and the files are read again only when the stamp changes. The kubelet asks for
 *   the status every few seconds, so no watch is needed, and a pod never gets a configuration that
 *   was replaced before its request.
 *   A sandbox's note (network_result) is {"file", "config", "result"}: the configuration at ADD and
 *   the result of ADD. It is recorded before the ADD, without a result; the DEL uses only this
 *   note.
 * Owns       the parsed configuration. A call owns its chain and ends before its sandbox does. */
#include "cri/network/network.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/json-member.h"
#include "base/json.h"
#include "base/log.h"
#include "cri/core/config.h"
#include "cri/core/paths.h"
#include "cri/network/bandwidth.h"
#include "cri/network/cni-result.h"
#include "cri/network/cni.h"
#include "sys/file.h"
#include "sys/namespace.h"
#include "sys/program.h"

/* the kubelet's timeout for RunPodSandbox is four minutes */
static constexpr uint64_t add_deadline_us = 180 * ND_SECOND_US;
static constexpr uint64_t del_deadline_us = 90 * ND_SECOND_US; /* and for StopPodSandbox two */
static constexpr uint64_t check_deadline_us = 30 * ND_SECOND_US;

enum {
        FILES_MOST = 256,
        NOTE_CEILING = CNI_CONFIG_CEILING + CNI_RESULT_CEILING + 4096,
};

struct cri_network {
        sd_event *loop;
        const struct cri_config *config;
        char *stamp; /* of the directory when last read; nullptr = never */
        char *file;  /* active configuration; nullptr = none */
        struct cri_cni_config cni;
        char *message; /* why the network is not ready */
        char *logged;  /* the message that the log has last; nullptr = none, or ready since */
};

struct cri_network_call {
        struct cri_network *network;
        struct cri_sandbox *sandbox;
        struct cri_cni_chain *chain;
        sd_event_source *failing; /* reports a failure from the loop */
        struct nd_error *failure;
        cri_network_callback callback;
        void *userdata;
};

struct cri_network *cri_network_new(sd_event *loop, const struct cri_config *config) {
        struct cri_network *network = nd_new(struct cri_network);

        *network = (struct cri_network) {.loop = loop, .config = config};
        return network;
}

static void forget(struct cri_network *network) {
        cri_cni_config_done(&network->cni);
        free(nd_take_ptr(network->file));
}

void cri_network_free(struct cri_network *network) {
        if (!network)
                return;
        forget(network);
        free(network->stamp);
        free(network->message);
        free(network->logged);
        free(network);
}

/* ---- active configuration ---- */

static bool is_configuration(const char *name) {
        const char *dot = strrchr(name, '.');

        return dot && (nd_streq(dot, ".conflist") || nd_streq(dot, ".conf") || nd_streq(dot, ".json"));
}

static int compare(const void *a, const void *b) {
        return strcmp(*(char *const *) a, *(char *const *) b);
}

static void close_dir(DIR **dir) {
        if (*dir)
                (void) closedir(*dir);
}

/* Sorted names. Symlinks are followed when a file is read: a DaemonSet may install one. */
static void list_files(const char *directory, struct nd_strings *ret) {
        nd_cleanup(close_dir) DIR *dir = opendir(directory);
        const struct dirent *entry;

        while (dir && (entry = readdir(dir)) && ret->count < FILES_MOST)
                if (is_configuration(entry->d_name))
                        nd_strings_add(ret, entry->d_name);
        if (ret->count > 1)
                qsort(ret->items, ret->count, sizeof *ret->items, compare);
}

static char *stamp_of(const char *directory, const struct nd_strings *files) {
        struct nd_text text = ND_TEXT(FILES_MOST * 512);

        nd_vector_each (name, files) {
                nd_autofree char *path = nd_format("%s/%s", directory, *name);
                struct stat st = {};

                (void) stat(path, &st);
                nd_text_addf(&text, "%s %llu %lld %lld.%09ld %lld.%09ld\n", *name, (unsigned long long) st.st_ino,
                             (long long) st.st_size, (long long) st.st_mtim.tv_sec, st.st_mtim.tv_nsec,
                             (long long) st.st_ctim.tv_sec, st.st_ctim.tv_nsec);
        }
        return nd_text_steal(&text);
}

static struct nd_error *read_file(const char *path, struct cri_cni_config *ret) {
        nd_autofree char *text = nullptr;
        struct stat st;

        if (stat(path, &st) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "stat");
        if (!S_ISREG(st.st_mode))
                return nd_error_new(ND_INVALID, 0, "not a regular file");
        nd_try(nd_file_read_kernel(path, CNI_CONFIG_CEILING, &text));
        return cri_cni_config_parse(text, strlen(text), ret);
}

static void read_all(struct cri_network *network, const struct nd_strings *files) {
        forget(network);
        nd_vector_each (name, files) {
                nd_autofree char *path = nd_format("%s/%s", network->config->cni_config, *name);
                nd_autoerror struct nd_error *error = read_file(path, &network->cni);

                if (!error) {
                        network->file = nd_take_ptr(path);
                        nd_log(ND_LOG_INFO, "CNI configuration loaded", nd_field("file", network->file),
                               nd_field("network", network->cni.name));
                        return;
                }
                nd_log(ND_LOG_WARNING, "invalid CNI configuration skipped", nd_field("file", path),
                       nd_field("error", nd_error_text(error)));
        }
}

static void refresh(struct cri_network *network) {
        nd_cleanup(nd_strings_done) struct nd_strings files = {};
        nd_autofree char *stamp = nullptr;

        list_files(network->config->cni_config, &files);
        stamp = stamp_of(network->config->cni_config, &files);
        if (network->stamp && stamp && nd_streq(network->stamp, stamp))
                return;
        free(network->stamp);
        network->stamp = stamp ? nd_take_ptr(stamp) : nd_strdup("");
        read_all(network, &files);
}

/* The first plugin whose program is missing. */
static const char *missing_plugin(const struct cri_network *network) {
        nd_vector_each (plugin, &network->cni.plugins) {
                nd_autofree char *program = nd_program_find(network->config->cni_plugins, plugin->type);

                if (!program)
                        return plugin->type;
        }
        return nullptr;
}

/* Once for each reason, and once when it is gone. */
static void log_change(struct cri_network *network) {
        if (network->message && (!network->logged || !nd_streq(network->logged, network->message))) {
                nd_log(ND_LOG_WARNING, "pods cannot start, except on the host's network",
                       nd_field("reason", network->message));
                nd_strset(&network->logged, network->message);
        } else if (!network->message && network->logged) {
                nd_log(ND_LOG_NOTICE, "the network for pods is ready", nd_field("file", network->file));
                free(nd_take_ptr(network->logged));
        }
}

bool cri_network_ready(struct cri_network *network, const char **ret_reason, const char **ret_message) {
        const char *missing;

        refresh(network);
        missing = missing_plugin(network);
        free(nd_take_ptr(network->message));
        *ret_reason = "NetworkPluginNotReady";
        if (!network->file)
                network->message = nd_format("no valid CNI configuration in '%s': install a CNI network plugin, or set "
                                             "cniConfig in " CRI_CONFIG_PATH,
                                             network->config->cni_config);
        else if (missing)
                network->message = nd_format("'%s' needs the CNI plugin '%s', which is not in %s: install it (Debian: "
                                             "containernetworking-plugins), or set cniPlugins in " CRI_CONFIG_PATH,
                                             network->file, missing, network->config->cni_plugins);
        log_change(network);
        if (network->message)
                return *ret_message = network->message, false;
        *ret_reason = *ret_message = "";
        return true;
}

const char *cri_network_configuration(const struct cri_network *network) {
        return network->message || !network->file ? nullptr : strrchr(network->file, '/') + 1;
}

/* ---- the note ---- */

static char *make_note(const char *file, const char *config, const char *result) {
        struct nd_text note = ND_TEXT(NOTE_CEILING);
        struct nd_json_out out = {.text = &note};

        nd_json_open(&out, nullptr, '{');
        nd_json_string(&out, "file", file);
        nd_json_string(&out, "config", config);
        if (result)
                nd_json_string(&out, "result", result);
        nd_json_close(&out, '}');
        return nd_text_steal(&note);
}

static struct nd_error *read_note(const struct cri_sandbox *sandbox, struct cri_cni_config *ret_config, char **ret_file,
                                  char **ret_result) {
        const char *note = sandbox->network_result ?: "", *config = nullptr, *file = nullptr, *result = nullptr;
        nd_autojson yyjson_doc *doc = nullptr;
        yyjson_val *root;

        nd_try(nd_json_parse(note, strlen(note), NOTE_CEILING, &doc));
        root = yyjson_doc_get_root(doc);
        nd_try(nd_json_member_text(root, "config", CNI_CONFIG_CEILING, &config));
        nd_try(nd_json_member_text(root, "file", 4096, &file));
        nd_try(nd_json_member_text(root, "result", CNI_RESULT_CEILING, &result));
        if (!config)
                return nd_error_new(ND_INTERNAL, 0, "the sandbox's network record has no CNI configuration");
        nd_try(cri_cni_config_parse(config, strlen(config), ret_config));
        *ret_file = nd_strdup(file ?: "");
        *ret_result = result ? nd_strdup(result) : nullptr;
        return nullptr;
}

static struct nd_error *choose(struct cri_network *network, struct cri_sandbox *sandbox) {
        const char *reason, *message;

        if (!cri_network_ready(network, &reason, &message))
                return nd_error_new(ND_UNAVAILABLE, 0, "%s", message);
        free(sandbox->network_result);
        sandbox->network_result = make_note(network->file, network->cni.source, nullptr);
        return nullptr;
}

struct nd_error *cri_network_choose(struct cri_network *network, struct cri_sandbox *sandbox) {
        struct cri_bandwidth limit;

        nd_try(cri_bandwidth_of(&sandbox->request.annotations, &limit));
        return choose(network, sandbox);
}

/* ---- calls ---- */

static void call_free(struct cri_network_call *call) {
        sd_event_source_disable_unref(call->failing);
        nd_error_free(call->failure);
        free(call);
}

static void call_end(struct cri_network_call *call, struct nd_error *error) {
        cri_network_callback callback = call->callback;
        void *userdata = call->userdata;

        call->chain = nullptr;
        call_free(call);
        callback(error, userdata);
}

static int on_failing([[maybe_unused]] sd_event_source *source, void *userdata) {
        struct cri_network_call *call = userdata;

        call_end(call, nd_take_ptr(call->failure));
        return 0;
}

/* Ends a call from the loop, with or without an error, so that the callback never runs before
 * the call returns. */
static void end_soon(struct cri_network_call *call, struct nd_error *error) {
        call->failure = error;
        if (sd_event_add_defer(call->network->loop, &call->failing, on_failing, call) < 0)
                abort(); /* fails only without memory */
}

static struct nd_error *take_result(struct cri_sandbox *sandbox, const char *result) {
        nd_cleanup(cri_cni_config_done) struct cri_cni_config config = {};
        nd_cleanup(nd_strings_done) struct nd_strings addresses = {};
        nd_autofree char *file = nullptr, *old = nullptr;

        nd_try(read_note(sandbox, &config, &file, &old));
        if (!result)
                return nd_error_new(ND_INTERNAL, 0, "network '%s': the CNI plugins returned no result", config.name);
        nd_try(nd_error_wrap(cri_cni_result_addresses(result, strlen(result), CNI_INTERFACE, &addresses),
                             "result of network '%s'", config.name));
        if (addresses.count == 0)
                return nd_error_new(ND_INTERNAL, 0, "network '%s': the CNI plugins returned no address for the pod",
                                    config.name);
        free(sandbox->network_result);
        sandbox->network_result = make_note(file, config.source, result);
        nd_strings_done(&sandbox->addresses);
        sandbox->addresses = nd_take(addresses, (struct nd_strings) {});
        return nullptr;
}

static void on_added(struct nd_error *error, const char *result, void *userdata) {
        struct cri_network_call *call = userdata;

        call_end(call, error ?: take_result(call->sandbox, result));
}

static void on_removed(struct nd_error *error, [[maybe_unused]] const char *result, void *userdata) {
        struct cri_network_call *call = userdata;

        if (!error)
                free(nd_take_ptr(call->sandbox->network_result));
        call_end(call, error);
}

static struct cri_network_call *new_call(struct cri_network *network, struct cri_sandbox *sandbox,
                                         cri_network_callback callback, void *userdata) {
        struct cri_network_call *call = nd_new(struct cri_network_call);

        *call = (struct cri_network_call) {.network = network, .sandbox = sandbox, .callback = callback, .userdata = userdata};
        return call;
}

void cri_network_add(struct cri_network *network, struct cri_sandbox *sandbox, cri_network_callback callback, void *userdata,
                     struct cri_network_call **ret) {
        struct cri_network_call *call = *ret = new_call(network, sandbox, callback, userdata);
        nd_autofree char *netns = cri_path_of_netns(network->config, sandbox->id), *file = nullptr, *result = nullptr;
        struct cri_cni_plan plan = {.directories = network->config->cni_plugins,
                                    .id = sandbox->id,
                                    .netns = netns,
                                    .pod = &sandbox->request,
                                    .deadline_us = add_deadline_us};
        struct nd_error *error = read_note(sandbox, &plan.config, &file, &result);

        if (error)
                end_soon(call, error);
        else
                cri_cni_add(network->loop, &plan, on_added, call, &call->chain);
}

void cri_network_remove(struct cri_network *network, struct cri_sandbox *sandbox, cri_network_callback callback,
                        void *userdata, struct cri_network_call **ret) {
        struct cri_network_call *call = *ret = new_call(network, sandbox, callback, userdata);
        nd_autofree char *netns = cri_path_of_netns(network->config, sandbox->id), *file = nullptr, *result = nullptr;
        struct cri_cni_plan plan = {.directories = network->config->cni_plugins,
                                    .id = sandbox->id,
                                    /* without one only state outside it is released */
                                    .netns = nd_namespace_is_pinned(netns) ? netns : "",
                                    .pod = &sandbox->request,
                                    .deadline_us = del_deadline_us};
        struct nd_error *error = nullptr;

        /* The record was damaged: the current configuration is probably still the one of ADD. */
        if (!sandbox->network_result)
                nd_ignore(choose(network, sandbox));
        if (sandbox->network_result)
                error = read_note(sandbox, &plan.config, &file, &result);
        if (error || !sandbox->network_result) {
                end_soon(call, error);
                return;
        }
        plan.previous = cri_cni_config_del_takes_result(&plan.config) ? result : nullptr;
        cri_cni_del(network->loop, &plan, on_removed, call, &call->chain);
}

static void on_checked(struct nd_error *error, [[maybe_unused]] const char *result, void *userdata) {
        call_end(userdata, error);
}

void cri_network_check(struct cri_network *network, struct cri_sandbox *sandbox, cri_network_callback callback, void *userdata,
                       struct cri_network_call **ret) {
        nd_autofree char *netns = cri_path_of_netns(network->config, sandbox->id), *file = nullptr, *result = nullptr;
        struct cri_cni_plan plan = {.directories = network->config->cni_plugins,
                                    .id = sandbox->id,
                                    .netns = netns,
                                    .pod = &sandbox->request,
                                    .deadline_us = check_deadline_us};
        struct nd_error *error = read_note(sandbox, &plan.config, &file, &result);

        *ret = nullptr;
        if (!error && !cri_cni_config_takes_check(&plan.config)) {
                cri_cni_config_done(&plan.config);
                return;
        }
        *ret = new_call(network, sandbox, callback, userdata);
        if (!error && !result)
                error = nd_error_new(ND_INTERNAL, 0, "the result of CNI ADD is unknown");
        if (error) {
                cri_cni_config_done(&plan.config);
                end_soon(*ret, error);
                return;
        }
        plan.previous = result;
        cri_cni_check(network->loop, &plan, on_checked, *ret, &(*ret)->chain);
}

void cri_network_abort(struct cri_network_call *call) {
        if (call->chain)
                cri_cni_abort(call->chain);
}
