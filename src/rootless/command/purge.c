/* SPDX-License-Identifier: Apache-2.0 */
/* purge.c - `nodens-rootless purge`: removes what a node has kept
 *
 * Files in the data directory belong to subordinate IDs, which the user cannot remove from outside. So a short node of its own does it: there
 * root has all those IDs. Its /var/lib, /var/log and /var/cache are
 * the data directory's parts. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/text.h"
#include "rootless/command/commands.h"
#include "rootless/core/node.h"
#include "sys/child.h"
#include "sys/file.h"

enum { DEADLINE_US = 600 * 1000000 };

/* Empties lib, log and cache from inside, by this very program. */
static struct nd_error *empty(const struct nd_choice *choice) {
        const char *const argv[] = {"/proc/self/exe", "run",       "--net", "none",     "--data",
                                    choice->data,     "--",        "find",  "/var/lib", "/var/log",
                                    "/var/cache",     "-mindepth", "1",     "-delete",  nullptr};
        nd_cleanup(nd_child_result_done) struct nd_child_result result = {};
        struct nd_child_plan plan = {.argv = argv, .deadline_us = DEADLINE_US, .output_ceiling = 16 * 1024};

        nd_try(nd_child_run(&plan, &result));
        return nd_error_wrap(nd_child_result_error(&result, "find"), "empty '%s'", choice->data);
}

static struct nd_error *remove_data(const struct nd_choice *choice) {
        static const char *const parts[] = {"lib", "log", "cache"};
        nd_autoclose int fd = -EBADF;

        nd_try(empty(choice));
        nd_try(nd_dir_open(AT_FDCWD, choice->data, &fd));
        (void) nd_sys->unlinkat(fd, "ports.json", 0);
        for (size_t i = 0; i < nd_count_of(parts); i++)
                if (nd_sys->unlinkat(fd, parts[i], AT_REMOVEDIR) < 0 && errno != ENOENT)
                        return nd_error_new(nd_code_of_errno(errno), errno, "remove '%s/%s'", choice->data, parts[i]);
        if (nd_sys->unlinkat(AT_FDCWD, choice->data, AT_REMOVEDIR) < 0)
                return nd_error_new(nd_code_of_errno(errno), errno,
                                    "remove '%s' (the node's own parts of it are gone, the rest is not ours)", choice->data);
        return nullptr;
}

static struct nd_error *purge(const struct nd_settings *settings) {
        nd_cleanup(nd_choice_done) struct nd_choice choice = {};
        nd_cleanup(nd_node_done) struct nd_node node = ND_NODE_NONE;
        nd_cleanup(nd_node_record_done) struct nd_node_record record = {};
        nd_autoclose int pidfd = -EBADF;
        nd_autoerror struct nd_error *absent = nullptr;

        nd_try(nd_settings_choose(settings, true, rootless_variable, nullptr, &choice));
        nd_try(nd_node_open(choice.name, true, &node));
        nd_try(nd_node_lock(&node));
        absent = nd_node_holder(&node, &record, &pidfd);
        if (!absent)
                return nd_error_new(ND_PRECONDITION, EBUSY, "node '%s' runs; end it first: nodens-rootless down --name %s",
                                    choice.name, choice.name);
        if (access(choice.data, F_OK) == 0)
                nd_try(remove_data(&choice));
        nd_node_clear(&node);
        return nd_node_remove(&node);
}

int rootless_purge(void *settings, [[maybe_unused]] int operand_count, [[maybe_unused]] char **operands) {
        struct nd_settings given = *(struct nd_settings *) settings;
        struct nd_error *error;

        if (!given.name)
                given.name = NODE_DEFAULT_NAME;
        error = purge(&given);
        return error ? rootless_fail(error) : EXIT_SUCCESS;
}
