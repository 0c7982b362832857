/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command/inspect.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli/core/client.h"
#include "cli/core/format.h"
#include "cli/core/sanitize.h"
#include "cli/core/table.h"
#include "net/protobuf.h"

enum {
        EXIT_ERROR = 1,
        EXIT_FAILED_CHECK = 2,
};

const struct nd_option cli_inspect_options[] = {
        CLIENT_SOCKET_OPTION(cli_inspect_settings),
        {},
};

static void print_field(const char *name, const char *value) {
        nd_autofree char *text = cli_sanitize_text(value);

        if (*text)
                printf("%-14s %s\n", name, text);
}

/* ---- the pod ---- */

static void print_ids(const char *name, const Nodens__V1__IdRange *range) {
        if (range)
                printf("%-14s %u-%u are %u-%u on the node\n", name, range->container, range->container + range->count - 1,
                       range->host, range->host + range->count - 1);
}

static void print_pod(const Nodens__V1__PodDetail *detail) {
        const Nodens__V1__PodEntry *pod = detail->pod;
        nd_autofree char *namespace = cli_sanitize_text(pod->namespace_), *name = cli_sanitize_text(pod->name);
        char age[FORMAT_AGE];

        printf("pod %s/%s\n", namespace, name);
        print_field("uid", pod->uid);
        print_field("sandbox", pod->id);
        printf("%-14s %s since %s%s\n", "state", pod->state, cli_format_age(pod->created_at, nd_clock_wall_ns(), age),
               detail->this_boot ? "" : ", from an earlier boot");
        if (pod->user_namespace) {
                print_ids("user IDs", pod->uids);
                print_ids("group IDs", pod->gids);
        } else {
                print_field("users", "of the node: root in this pod is root on the node");
        }
        for (size_t i = 0; i < pod->n_addresses; i++)
                print_field(i == 0 ? "address" : "", pod->addresses[i]);
        print_field("cgroup", detail->cgroup_parent);
        print_field("directory", detail->directory);
}

/* The result of CNI CHECK at the last start of nodens-cri. Returns false when it failed. */
static bool print_network(const Nodens__V1__CheckEntry *check) {
        bool failed = check && strcmp(check->result, "failed") == 0;
        nd_autofree char *words = failed ? nd_format("CNI CHECK failed: %s", check->found) : nullptr;

        if (check)
                print_field("network", words ?: "CNI CHECK passed");
        return !failed;
}

static void print_namespaces(const Nodens__V1__PodDetail *detail) {
        for (size_t i = 0; i < detail->n_namespaces; i++) {
                nd_autofree char *heading = nd_format("%s namespace", detail->namespaces[i]->kind);

                print_field(heading, detail->namespaces[i]->path[0] ? detail->namespaces[i]->path : "of the node");
        }
}

/* ---- its containers ---- */

static void print_user(const Nodens__V1__ContainerDetail *detail, const Nodens__V1__PodEntry *pod) {
        nd_autotext struct nd_text text = ND_TEXT(64 << 10);

        nd_text_addf(&text, "%u:%u", detail->uid, detail->gid);
        for (size_t i = 0; i < detail->n_groups; i++)
                nd_text_addf(&text, "%s%u", i == 0 ? ", groups " : " ", detail->groups[i]);
        if (pod->uids && detail->uid < pod->uids->count)
                nd_text_addf(&text, " (%u on the node)", pod->uids->host + detail->uid);
        if (detail->privileged)
                nd_text_add(&text, ", privileged");
        print_field("  user", nd_text_get(&text));
}

static void print_state(const Nodens__V1__ContainerEntry *container) {
        nd_autofree char *reason = cli_sanitize_text(container->reason), *message = cli_sanitize_text(container->message);
        char age[FORMAT_AGE];
        uint64_t now = nd_clock_wall_ns();

        if (strcmp(container->state, "running") == 0)
                printf("%-14s running since %s, process %lld\n", "  state", cli_format_age(container->started_at, now, age),
                       (long long) container->pid);
        else if (strcmp(container->state, "exited") == 0)
                printf("%-14s exited %s ago with status %d, %s%s%s\n", "  state",
                       cli_format_age(container->finished_at, now, age), container->exit_code, reason, *message ? ": " : "",
                       message);
        else
                print_field("  state", container->state);
}

static void print_mounts(const Nodens__V1__ContainerDetail *detail) {
        static const char *const headings[] = {"  MOUNT", "FROM", "", nullptr};
        nd_cleanup(cli_table_done) struct cli_table table = {};

        if (detail->n_mounts == 0)
                return;
        cli_table_init(&table, headings);
        for (size_t i = 0; i < detail->n_mounts; i++) {
                const Nodens__V1__MountEntry *mount = detail->mounts[i];
                nd_autofree char *path = cli_sanitize_text(mount->container_path), *cell = nd_format("  %s", path);
                nd_autofree char *from = cli_sanitize_text(mount->image[0] ? mount->image : mount->host_path);
                nd_autofree char *how = nd_format(
                        "%s%s%s", mount->read_only ? mount->recursive ? "recursively read-only" : "read-only" : "writable",
                        mount->idmapped ? ", idmapped" : "", strcmp(mount->propagation, "private") == 0 ? "" : ", propagated");

                cli_table_row(&table, (const char *[]) {cell, from, how}, nullptr);
        }
        cli_table_print(&table);
}

static bool print_checks(const Nodens__V1__ContainerDetail *detail) {
        static const char *const headings[] = {"  CHECK", "RESULT", "FOUND", nullptr};
        nd_cleanup(cli_table_done) struct cli_table table = {};
        bool well = true;

        if (detail->n_checks == 0) {
                print_field("  checks", "none: the container has not run long enough");
                return true;
        }
        cli_table_init(&table, headings);
        for (size_t i = 0; i < detail->n_checks; i++) {
                const Nodens__V1__CheckEntry *check = detail->checks[i];
                nd_autofree char *name = cli_sanitize_text(check->name), *cell = nd_format("  %s", name),
                                 *found = cli_sanitize_text(check->found);
                bool failed = strcmp(check->result, "failed") == 0;

                cli_table_row(&table, (const char *[]) {cell, check->result, found}, failed ? "red" : nullptr);
                well = well && !failed;
        }
        cli_table_print(&table);
        return well;
}

static bool print_container(const Nodens__V1__ContainerDetail *detail, const Nodens__V1__PodEntry *pod) {
        nd_autofree char *name = cli_sanitize_text(detail->container->name);

        printf("\ncontainer %s\n", name);
        print_field("  id", detail->container->id);
        print_state(detail->container);
        print_field("  image", detail->container->image);
        print_field("  image id", detail->image_id);
        print_user(detail, pod);
        print_field("  cgroup", detail->cgroup);
        print_field("  bundle", detail->bundle);
        print_field("  log", detail->log);
        print_mounts(detail);
        return print_checks(detail);
}

static bool print_answer(const Nodens__V1__InspectAnswer *answer) {
        bool well = true;

        for (size_t i = 0; i < answer->n_pods; i++) {
                const Nodens__V1__PodDetail *detail = answer->pods[i];

                if (i > 0)
                        putchar('\n');
                print_pod(detail);
                well = print_network(detail->network) && well;
                print_namespaces(detail);
                for (size_t c = 0; c < detail->n_containers; c++)
                        well = print_container(detail->containers[c], detail->pod) && well;
        }
        return well;
}

int cli_inspect_run(void *settings_pointer, int operand_count, char **operands) {
        const struct cli_inspect_settings *settings = settings_pointer;
        Nodens__V1__InspectRequest request = NODENS__V1__INSPECT_REQUEST__INIT;
        nd_autoerror struct nd_error *error = nullptr;
        ProtobufCMessage *answer = nullptr;
        bool well;

        if (operand_count != 1) {
                fputs("nodens inspect: specify one pod: NAMESPACE/NAME, name, UID or sandbox ID\n", stderr);
                return ND_EXIT_USAGE;
        }
        request.pod = operands[0];
        error = cli_client_call(settings->socket, "/nodens.v1.Node/Inspect", &request.base,
                                &nodens__v1__inspect_answer__descriptor, &answer);
        if (error) {
                fprintf(stderr, "nodens inspect: %s\n", nd_error_text(error));
                return EXIT_ERROR;
        }
        well = print_answer((const Nodens__V1__InspectAnswer *) answer);
        nd_protobuf_free(answer);
        return well ? 0 : EXIT_FAILED_CHECK;
}
