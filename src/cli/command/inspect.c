/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command/inspect.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/core/client.h"
#include "cli/core/pod-json.h"
#include "cli/core/target.h"
#include "cli/output/field.h"
#include "cli/output/format.h"
#include "cli/output/sanitize.h"
#include "cli/output/table.h"
#include "cli/output/terminal.h"
#include "cli/output/width.h"
#include "net/protobuf.h"

enum {
        EXIT_FAILED_CHECK = 2,
        LABEL = 14,           /* columns of the fields' names */
        JSON_MOST = 64 << 20, /* bytes */
};

const struct nd_option cli_inspect_options[] = {
        {.name = "json", .offset = offsetof(struct cli_inspect_settings, json), .help = "print JSON"},
        CLIENT_SOCKET_OPTION(cli_inspect_settings),
        {},
};

/* ---- what the checks found ---- */

struct tally {
        size_t containers;
        size_t passed, failed, unknown;
        struct nd_text failures; /* names of failed checks */
};

static void count_check(struct tally *tally, const Nodens__V1__CheckEntry *check, const char *owner) {
        nd_autofree char *name = cli_width_clean(check->name, false), *of = cli_width_clean(owner, false);

        if (nd_streq(check->result, "passed")) {
                tally->passed++;
        } else if (nd_streq(check->result, "failed")) {
                nd_text_addf(&tally->failures, "%s%s: %s", tally->failed > 0 ? "; " : "", of, name);
                tally->failed++;
        } else {
                tally->unknown++;
        }
}

static void count_checks(const Nodens__V1__InspectAnswer *answer, struct tally *ret) {
        ret->failures = ND_TEXT(64 << 10);
        for (size_t i = 0; i < answer->n_pods; i++) {
                const Nodens__V1__PodDetail *detail = answer->pods[i];

                if (detail->network)
                        count_check(ret, detail->network, "pod");
                ret->containers += detail->n_containers;
                for (size_t c = 0; c < detail->n_containers; c++)
                        for (size_t k = 0; k < detail->containers[c]->n_checks; k++)
                                count_check(ret, detail->containers[c]->checks[k], detail->containers[c]->container->name);
        }
}

static void print_tally(const struct tally *tally) {
        size_t all = tally->passed + tally->failed + tally->unknown;
        bool red = tally->failed > 0 && cli_terminal_has_colour();
        char count[FORMAT_COUNT];

        if (tally->failed > 0)
                printf("\n%s%zu of %zu checks failed: %s%s\n", red ? "\033[31m" : "", tally->failed, all,
                       nd_text_get(&tally->failures), red ? "\033[0m" : "");
        else if (all == 0)
                puts(tally->containers > 0
                             ? "\nno checks: no container has run long enough"
                             : "\nno containers: 'journalctl -u nodens-cri POD=NAME' shows requests that failed");
        else if (tally->unknown > 0)
                printf("\n%zu of %zu checks passed, the others are unknown\n", tally->passed, all);
        else
                printf("\n%s passed\n", cli_format_count(all, "check", count));
}

static void print_field(const char *name, const char *value) {
        cli_field_print(name, LABEL, value);
}

/* ---- the pod ---- */

static void print_ids(const char *name, const Nodens__V1__IdRange *range) {
        nd_autofree char *text = nullptr;

        if (!range)
                return;
        text = nd_format("%u-%u are %u-%u on the node", range->container, range->container + range->count - 1, range->host,
                         range->host + range->count - 1);
        print_field(name, text);
}

static void print_pod(const Nodens__V1__PodDetail *detail) {
        const Nodens__V1__PodEntry *pod = detail->pod;
        nd_autofree char *namespace = cli_width_clean(pod->namespace_, false), *name = cli_width_clean(pod->name, false);
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

/* The result of CNI CHECK at the last start of nodens-cri. */
static void print_network(const Nodens__V1__CheckEntry *check) {
        bool failed = check && nd_streq(check->result, "failed");
        nd_autofree char *words = failed ? nd_format("CNI CHECK failed: %s", check->found) : nullptr;

        if (check)
                print_field("network", words ?: "CNI CHECK passed");
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
        uint64_t now = nd_clock_wall_ns();
        nd_autofree char *text = nullptr;
        char age[FORMAT_AGE];

        if (nd_streq(container->state, "running"))
                text = nd_format("running since %s, process %lld", cli_format_age(container->started_at, now, age),
                                 (long long) container->pid);
        else if (nd_streq(container->state, "exited"))
                text = nd_format("exited %s ago with status %d, %s%s%s", cli_format_age(container->finished_at, now, age),
                                 container->exit_code, container->reason, *container->message ? ": " : "", container->message);
        print_field("  state", text ?: container->state);
}

/* How the owners of a mount's files become IDs of the pod, after what can be done with it. */
static char *describe_mapping(const Nodens__V1__MountEntry *mount, const Nodens__V1__PodEntry *pod) {
        if (nd_streq(mount->mapping, "bridged"))
                return nd_format(", bridged from %s", mount->filesystem);
        if (nd_streq(mount->mapping, "chowned"))
                return nd_strdup(", files have the pod's IDs");
        if (nd_streq(mount->mapping, "none") && pod->user_namespace)
                return nd_strdup(", as it is");
        return nd_strdup(mount->idmapped ? ", idmapped" : "");
}

static void print_mounts(const Nodens__V1__ContainerDetail *detail, const Nodens__V1__PodEntry *pod) {
        static const struct cli_column columns[] = {
                {"  MOUNT", .kind = COLUMN_SHORTEN, .least = 16},
                {"FROM", .kind = COLUMN_SHORTEN, .least = 12},
                {"", .kind = COLUMN_WRAP, .least = 22},
                {},
        };
        nd_cleanup(cli_table_done) struct cli_table table = {};

        if (detail->n_mounts == 0)
                return;
        cli_table_init_columns(&table, columns);
        for (size_t i = 0; i < detail->n_mounts; i++) {
                const Nodens__V1__MountEntry *mount = detail->mounts[i];
                nd_autofree char *path = nd_format("  %s", mount->container_path), *mapping = describe_mapping(mount, pod);
                nd_autofree char *how = nd_format(
                        "%s%s%s", mount->read_only ? mount->recursive ? "recursively read-only" : "read-only" : "writable",
                        mapping, nd_streq(mount->propagation, "private") ? "" : ", propagated");

                cli_table_row(&table, (const char *[]) {path, mount->image[0] ? mount->image : mount->host_path, how},
                              nullptr);
        }
        cli_table_print(&table);
}

static void print_checks(const Nodens__V1__ContainerDetail *detail) {
        static const struct cli_column columns[] = {
                {"  CHECK", .kind = COLUMN_SHORTEN, .least = 20},
                {"RESULT", .kind = COLUMN_WHOLE},
                {"FOUND", .kind = COLUMN_WRAP, .least = 24},
                {},
        };
        nd_cleanup(cli_table_done) struct cli_table table = {};

        if (detail->n_checks == 0) {
                print_field("  checks", "none: the container has not run long enough");
                return;
        }
        cli_table_init_columns(&table, columns);
        for (size_t i = 0; i < detail->n_checks; i++) {
                const Nodens__V1__CheckEntry *check = detail->checks[i];
                nd_autofree char *name = nd_format("  %s", check->name), *found = cli_sanitize_text(check->found);

                cli_table_row(&table, (const char *[]) {name, check->result, found},
                              nd_streq(check->result, "failed") ? "red" : nullptr);
        }
        cli_table_print(&table);
}

static void print_container(const Nodens__V1__ContainerDetail *detail, const Nodens__V1__PodEntry *pod) {
        nd_autofree char *name = cli_width_clean(detail->container->name, false);

        printf("\ncontainer %s\n", name);
        print_field("  id", detail->container->id);
        print_state(detail->container);
        print_field("  image", detail->container->image);
        print_field("  image id", detail->image_id);
        print_user(detail, pod);
        print_field("  cgroup", detail->cgroup);
        print_field("  bundle", detail->bundle);
        print_field("  log", detail->log);
        print_mounts(detail, pod);
        print_checks(detail);
}

static void print_answer(const Nodens__V1__InspectAnswer *answer) {
        for (size_t i = 0; i < answer->n_pods; i++) {
                const Nodens__V1__PodDetail *detail = answer->pods[i];

                if (i > 0)
                        putchar('\n');
                print_pod(detail);
                print_network(detail->network);
                print_namespaces(detail);
                for (size_t c = 0; c < detail->n_containers; c++)
                        print_container(detail->containers[c], detail->pod);
        }
}

/* ---- JSON ---- */

static void json_check(struct nd_json_out *out, const char *key, const Nodens__V1__CheckEntry *check) {
        nd_json_open(out, key, '{');
        if (!key)
                nd_json_string(out, "name", check->name);
        nd_json_string(out, "result", check->result);
        nd_json_string(out, "found", check->found);
        nd_json_close(out, '}');
}

static void json_mount(struct nd_json_out *out, const Nodens__V1__MountEntry *mount) {
        nd_json_open(out, nullptr, '{');
        nd_json_string(out, "containerPath", mount->container_path);
        nd_json_string(out, "hostPath", mount->host_path);
        nd_json_string(out, "image", mount->image);
        nd_json_bool(out, "readOnly", mount->read_only);
        nd_json_bool(out, "recursiveReadOnly", mount->recursive);
        nd_json_bool(out, "idmapped", mount->idmapped);
        nd_json_string(out, "mapping", *mount->mapping ? mount->mapping : nullptr);
        nd_json_string(out, "filesystem", *mount->filesystem ? mount->filesystem : nullptr);
        nd_json_string(out, "propagation", mount->propagation);
        nd_json_close(out, '}');
}

static void json_container(struct nd_json_out *out, const Nodens__V1__ContainerDetail *detail) {
        nd_json_open(out, nullptr, '{');
        cli_pod_json_container(out, detail->container);
        nd_json_string(out, "imageId", detail->image_id);
        nd_json_number(out, "uid", detail->uid);
        nd_json_number(out, "gid", detail->gid);
        nd_json_open(out, "groups", '[');
        for (size_t i = 0; i < detail->n_groups; i++)
                nd_json_number(out, nullptr, detail->groups[i]);
        nd_json_close(out, ']');
        nd_json_bool(out, "privileged", detail->privileged);
        nd_json_string(out, "cgroup", detail->cgroup);
        nd_json_string(out, "bundle", detail->bundle);
        nd_json_string(out, "log", detail->log);
        nd_json_open(out, "mounts", '[');
        for (size_t i = 0; i < detail->n_mounts; i++)
                json_mount(out, detail->mounts[i]);
        nd_json_close(out, ']');
        nd_json_open(out, "checks", '[');
        for (size_t i = 0; i < detail->n_checks; i++)
                json_check(out, nullptr, detail->checks[i]);
        nd_json_close(out, ']');
        nd_json_close(out, '}');
}

static void json_pod(struct nd_json_out *out, const Nodens__V1__PodDetail *detail) {
        nd_json_open(out, nullptr, '{');
        cli_pod_json(out, detail->pod);
        nd_json_bool(out, "thisBoot", detail->this_boot);
        nd_json_string(out, "cgroupParent", detail->cgroup_parent);
        nd_json_string(out, "directory", detail->directory);
        if (detail->network)
                json_check(out, "network", detail->network);
        else
                nd_json_string(out, "network", nullptr);
        nd_json_open(out, "namespaces", '[');
        for (size_t i = 0; i < detail->n_namespaces; i++) {
                nd_json_open(out, nullptr, '{');
                nd_json_string(out, "kind", detail->namespaces[i]->kind);
                nd_json_string(out, "path", detail->namespaces[i]->path);
                nd_json_close(out, '}');
        }
        nd_json_close(out, ']');
        nd_json_open(out, "containers", '[');
        for (size_t i = 0; i < detail->n_containers; i++)
                json_container(out, detail->containers[i]);
        nd_json_close(out, ']');
        nd_json_close(out, '}');
}

static void print_json(const Nodens__V1__InspectAnswer *answer, const struct tally *tally) {
        nd_autotext struct nd_text text = ND_TEXT(JSON_MOST);
        struct nd_json_out out = {.text = &text, .indent = 2};

        nd_json_open(&out, nullptr, '{');
        nd_json_open(&out, "checks", '{');
        nd_json_number(&out, "passed", tally->passed);
        nd_json_number(&out, "failed", tally->failed);
        nd_json_number(&out, "unknown", tally->unknown);
        nd_json_close(&out, '}');
        nd_json_open(&out, "pods", '[');
        for (size_t i = 0; i < answer->n_pods; i++)
                json_pod(&out, answer->pods[i]);
        nd_json_close(&out, ']');
        nd_json_close(&out, '}');
        puts(nd_text_get(&text));
}

/* ---- the command ---- */

static int report(const Nodens__V1__InspectAnswer *answer, bool json) {
        struct tally tally = {};
        int code;

        count_checks(answer, &tally);
        if (json) {
                print_json(answer, &tally);
        } else {
                print_answer(answer);
                print_tally(&tally);
        }
        code = tally.failed > 0 ? EXIT_FAILED_CHECK : 0;
        nd_text_done(&tally.failures);
        return code;
}

/* The pod's name for the daemon: it reports all sandboxes of a pod by its name, and one by its
 * ID. */
static struct nd_error *find_pod(const char *socket, const char *name, char **ret) {
        struct cli_target_pods pods = {};
        ProtobufCMessage *answer = nullptr;
        struct nd_error *error;

        nd_try(cli_client_pods(socket, &answer));
        error = cli_target_pod((const Nodens__V1__PodsAnswer *) answer, name, TARGET_NAMES_PREFIX, &pods);
        if (!error)
                *ret = pods.count == 1 ? nd_strdup(pods.items[0]->id)
                                       : nd_format("%s/%s", pods.items[0]->namespace_, pods.items[0]->name);
        nd_vector_done(&pods);
        nd_protobuf_free(answer);
        return error;
}

static struct nd_error *ask(const char *socket, const char *name, ProtobufCMessage **ret) {
        Nodens__V1__InspectRequest request = NODENS__V1__INSPECT_REQUEST__INIT;
        nd_autofree char *pod = nullptr;

        nd_try(find_pod(socket, name, &pod));
        request.pod = pod;
        return cli_client_call(socket, "/nodens.v1.Node/Inspect", &request.base, &nodens__v1__inspect_answer__descriptor, ret);
}

int cli_inspect_run(void *settings_pointer, int operand_count, char **operands) {
        const struct cli_inspect_settings *settings = settings_pointer;
        nd_autoerror struct nd_error *error = nullptr;
        ProtobufCMessage *answer = nullptr;
        int code;

        if (operand_count != 1) {
                fputs("nodens inspect: specify one pod: NAMESPACE/NAME, name, UID or sandbox ID\n", stderr);
                return ND_EXIT_USAGE;
        }
        error = ask(settings->socket, operands[0], &answer);
        if (error)
                return cli_sanitize_print_error("inspect", error);
        code = report((const Nodens__V1__InspectAnswer *) answer, settings->json);
        nd_protobuf_free(answer);
        return code;
}
