/* SPDX-License-Identifier: Apache-2.0 */
/* purge.c - `nodens-rootless purge`: removes the data of a node
 *
 * Files in the data directory belong to subordinate IDs, so the user cannot remove them from
 * outside. A temporary node does it: its root has all of these IDs, and its /var/lib, /var/log and
 * /var/cache are the parts of the data directory. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/text.h"
#include "rootless/command/commands.h"
#include "rootless/components/control-plane.h"
#include "rootless/core/node.h"
#include "sys/child.h"
#include "sys/file.h"
#include "sys/tree.h"

static constexpr uint64_t empty_timeout_us = 600 * ND_SECOND_US;

/* Empties lib, log and cache from inside a node, with this same program. */
static struct nd_error *empty(const struct rootless_config *config) {
        static const char *const command[] = {"--", "find", "/var/lib", "/var/log", "/var/cache", "-mindepth", "1", "-delete"};
        nd_cleanup(nd_strings_done) struct nd_strings argv = {};
        nd_cleanup(nd_child_result_done) struct nd_child_result result = {};
        struct nd_child_plan plan = {.deadline_us = empty_timeout_us, .output_ceiling = 16 * 1024};

        nd_strings_add(&argv, "/proc/self/exe");
        nd_strings_add(&argv, "run");
        nd_strings_add(&argv, "--net=none");
        nd_strings_addf(&argv, "--data=%s", config->data);
        if (config->inside)
                nd_strings_add(&argv, "--inside");
        for (size_t i = 0; i < nd_count_of(command); i++)
                nd_strings_add(&argv, command[i]);
        nd_strings_add_owned(&argv, nullptr);
        plan.argv = (const char *const *) argv.items;
        nd_try(nd_child_run(&plan, &result));
        return nd_error_wrap(nd_child_result_error(&result, "find"), "empty '%s'", config->data);
}

struct nd_error *rootless_purge_data(const struct rootless_config *config) {
        static const char *const parts[] = {"lib", "log", "cache"}, *const trees[] = {CONTROL_PLANE_DIRECTORY,
                                                                                      BOOTSTRAP_DIRECTORY};
        nd_autoclose int fd = -EBADF;

        nd_try(empty(config));
        nd_try(nd_dir_open(AT_FDCWD, config->data, &fd));
        (void) nd_sys->unlinkat(fd, "ports.json", 0);
        for (size_t i = 0; i < nd_count_of(trees); i++)
                nd_try(nd_error_wrap(nd_tree_remove(fd, trees[i]), "remove '%s/%s'", config->data, trees[i]));
        for (size_t i = 0; i < nd_count_of(parts); i++)
                if (nd_sys->unlinkat(fd, parts[i], AT_REMOVEDIR) < 0 && errno != ENOENT)
                        return nd_error_new(nd_error_code_of(errno), errno, "remove '%s/%s'", config->data, parts[i]);
        if (nd_sys->unlinkat(AT_FDCWD, config->data, AT_REMOVEDIR) < 0)
                return nd_error_new(nd_error_code_of(errno), errno,
                                    "remove '%s' (lib, log and cache are removed; other files in it are not the node's)",
                                    config->data);
        return nullptr;
}

static struct nd_error *purge(const struct rootless_settings *settings) {
        nd_cleanup(rootless_config_done) struct rootless_config config = {};
        nd_cleanup(rootless_node_done) struct rootless_node node = NODE_NONE;
        nd_cleanup(rootless_node_record_done) struct rootless_node_record record = {};
        nd_autoclose int pidfd = -EBADF;
        nd_autoerror struct nd_error *absent = nullptr;

        nd_try(rootless_config_resolve(settings, true, rootless_command_getenv, nullptr, &config));
        nd_try(rootless_node_open(config.name, true, &node));
        nd_try(rootless_node_lock(&node));
        absent = rootless_node_open_init(&node, &record, &pidfd);
        if (!absent)
                return nd_error_new(ND_PRECONDITION, EBUSY,
                                    "node '%s' is running; stop it first: nodens-rootless down --name %s", config.name,
                                    config.name);
        if (access(config.data, F_OK) == 0)
                nd_try(rootless_purge_data(&config));
        rootless_node_clear(&node);
        return rootless_node_remove(&node);
}

int rootless_command_purge(void *settings, [[maybe_unused]] int operand_count, [[maybe_unused]] char **operands) {
        struct rootless_settings given = *(struct rootless_settings *) settings;
        struct nd_error *error;

        if (!given.name)
                given.name = NODE_DEFAULT_NAME;
        error = purge(&given);
        return error ? rootless_command_fail(error) : EXIT_SUCCESS;
}
