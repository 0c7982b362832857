/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "rootless/command/commands.h"
#include "rootless/core/node.h"
#include "rootless/network/supervisor.h"
#include "sys/file.h"

enum {
        STATUS_BYTES = 1024 * 1024,
        NODES_CEILING = 1024,
};

static char *controllers_of(const struct rootless_node_record *record) {
        nd_autofree char *path = nd_format("/sys/fs/cgroup%s/cgroup.subtree_control", record->cgroup ? record->cgroup : "");
        char *text = nullptr;

        if (!record->cgroup)
                return nullptr;
        nd_error_free(nd_file_read_kernel(path, 4096, &text));
        if (text)
                text[strcspn(text, "\n")] = '\0';
        return text;
}

static void tell_people(const struct rootless_node *node, const struct rootless_node_record *record, pid_t helper,
                        const char *controllers) {
        printf("%s\n", node->name);
        printf("  holder   process %d, %llu IDs\n", (int) record->pid, (unsigned long long) record->ids);
        printf("  network  %s, MTU %u", record->net, record->mtu);
        if (helper > 0)
                printf(", helper is process %d", (int) helper);
        else if (nd_streq(record->net, "pasta") || nd_streq(record->net, "slirp4netns"))
                printf(", NO HELPER (nodens-rootless net --name %s, or the unit nodens-node-net@%s)", node->name, node->name);
        printf("\n  data     %s\n", record->data ? record->data : "in memory");
        if (record->cgroup)
                printf("  cgroup   %s, controllers: %s\n", record->cgroup,
                       controllers && *controllers ? controllers : "none, so pods have no limits");
        else
                printf("  cgroup   not delegated, so pods have no limits (nodens check --rootless)\n");
}

static void tell_machines(struct nd_json_out *out, const struct rootless_node *node, const struct rootless_node_record *record,
                          pid_t helper, const char *controllers) {
        nd_json_open(out, nullptr, '{');
        nd_json_string(out, "name", node->name);
        nd_json_number(out, "pid", (uint64_t) record->pid);
        nd_json_number(out, "ids", record->ids);
        nd_json_string(out, "net", record->net);
        nd_json_number(out, "mtu", record->mtu);
        nd_json_number(out, "helper", (uint64_t) helper);
        nd_json_string(out, "data", record->data);
        nd_json_string(out, "cgroup", record->cgroup);
        nd_json_string(out, "controllers", controllers);
        nd_json_close(out, '}');
}

/* One node; those that do not run are passed over. */
static bool tell(const char *name, struct nd_json_out *out) {
        nd_cleanup(rootless_node_done) struct rootless_node node = NODE_NONE;
        nd_cleanup(rootless_node_record_done) struct rootless_node_record record = {};
        nd_autofree char *controllers = nullptr;
        nd_autoclose int pidfd = -EBADF;
        nd_autoerror struct nd_error *error = rootless_node_open(name, false, &node);

        if (!error)
                error = rootless_node_open_init(&node, &record, &pidfd);
        if (error)
                return false;
        controllers = controllers_of(&record);
        if (out)
                tell_machines(out, &node, &record, rootless_supervisor_helper_pid(&node), controllers);
        else
                tell_people(&node, &record, rootless_supervisor_helper_pid(&node), controllers);
        return true;
}

static size_t tell_all(const char *only, struct nd_json_out *out) {
        nd_autofree char *top = rootless_node_runtime_dir();
        nd_cleanup(nd_strings_done) struct nd_strings names = {};
        size_t found = 0;

        if (only)
                return tell(only, out);
        nd_error_free(nd_dir_list(AT_FDCWD, top, NODES_CEILING, &names));
        nd_vector_each (name, &names) {
                found += tell(*name, out);
        }
        return found;
}

int rootless_command_status(void *settings, [[maybe_unused]] int operand_count, [[maybe_unused]] char **operands) {
        const struct rootless_settings *given = settings;
        nd_autotext text = ND_TEXT(STATUS_BYTES);
        struct nd_json_out out = {.text = &text, .indent = 1};
        size_t found;

        if (given->json)
                nd_json_open(&out, nullptr, '[');
        found = tell_all(given->name, given->json ? &out : nullptr);
        if (given->json) {
                nd_json_close(&out, ']');
                printf("%s\n", nd_text_get(&text));
        } else if (found == 0) {
                printf("no node runs\n");
        }
        return found > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
