/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command/ids.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "cli/core/client.h"
#include "cli/core/kubelet-config.h"
#include "cli/core/pod-names.h"
#include "cli/output/field.h"
#include "cli/output/format.h"
#include "cli/output/sanitize.h"
#include "cli/output/table.h"
#include "userns/manager.h"

const struct nd_option cli_ids_options[] = {
        {.name = "json", .offset = offsetof(struct cli_ids_settings, json), .help = "print JSON"},
        {.name = "root-dir",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct cli_ids_settings, root),
         .argument = "DIR",
         .values = ND_VALUES_DIRECTORY,
         .help = "the kubelet's root directory (default /var/lib/kubelet)"},
        {.name = "kubelet-config",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct cli_ids_settings, kubelet_config),
         .argument = "FILE",
         .values = ND_VALUES_FILE,
         .help = "the kubelet's configuration (default /var/lib/kubelet/config.yaml, if it exists)"},
        CLIENT_SOCKET_OPTION(cli_ids_settings),
        {},
};

enum {
        LABEL = 7, /* columns of the names before the table */
};

/* One line of output: a pod, or a further extent of a pod in quarantine. */
struct holder {
        char *uid;
        struct nd_userns_extent extent;
        char *problem;
};

struct view {
        struct cli_kubelet_config config;
        struct nd_userns_range range;
        enum nd_range_source source;
        struct nd_userns_count count;
        nd_vector(struct holder) holders;
        struct cli_pod_names names;
        bool no_directory; /* the kubelet's default directory does not exist */
};

static void view_done(struct view *view) {
        nd_vector_each (h, &view->holders) {
                free(h->uid);
                free(h->problem);
        }
        nd_vector_done(&view->holders);
        cli_pod_names_done(&view->names);
}

static void add_holder(const struct nd_userns_pod *pod, void *userdata) {
        struct view *view = userdata;

        for (size_t i = 0; i < pod->extent_count || i == 0; i++)
                nd_vector_push(
                        &view->holders,
                        ((struct holder) {.uid = nd_strdup(pod->uid),
                                          .extent = pod->extent_count > 0 ? pod->extents[i] : (struct nd_userns_extent) {},
                                          .problem = pod->problem ? nd_strdup(pod->problem) : nullptr}));
}

static int compare_holders(const void *a, const void *b) {
        const struct holder *x = a, *y = b;

        if (x->extent.first != y->extent.first)
                return x->extent.first < y->extent.first ? -1 : 1;
        return strcmp(x->uid, y->uid);
}

/* No kubelet may have run here yet; a directory that the user names must exist. */
static struct nd_error *check_directory(const struct cli_ids_settings *settings, struct view *view) {
        const char *root = settings->root ?: KUBELET_ROOT;
        struct stat st;

        if (stat(root, &st) < 0 && (settings->root || errno != ENOENT))
                return nd_error_new(nd_error_code_of(errno), errno, "the kubelet's directory '%s'", root);
        if (stat(root, &st) == 0 && !S_ISDIR(st.st_mode))
                return nd_error_new(ND_INVALID, ENOTDIR, "the kubelet's directory '%s'", root);
        view->no_directory = access(root, F_OK) < 0;
        return nullptr;
}

static struct nd_error *read_blocks(const struct cli_ids_settings *settings, struct view *view) {
        nd_cleanup(nd_userns_manager_done) struct nd_userns_manager *manager = nullptr;
        nd_cleanup(nd_userns_extents_done) struct nd_userns_extents delegated = {};

        nd_try(check_directory(settings, view));
        nd_try(cli_kubelet_config_read(settings->kubelet_config, &view->config));
        nd_try(nd_range_of_node(view->config.ids_per_pod, &view->range, &view->source));
        nd_try(nd_userns_extents_own(&delegated));
        nd_try(nd_userns_manager_open(&(struct nd_userns_settings) {.kubelet_root = settings->root ?: KUBELET_ROOT,
                                                                    .ids_per_pod = view->config.ids_per_pod,
                                                                    /* any range will do for
                                                                     * reading */
                                                                    .max_pods = 0,
                                                                    .range = view->range,
                                                                    .delegated = &delegated,
                                                                    .read_only = true},
                                      &manager));
        view->count = nd_userns_manager_count(manager);
        nd_userns_manager_each(manager, add_holder, view);
        if (view->holders.count > 0)
                qsort(view->holders.items, view->holders.count, sizeof *view->holders.items, compare_holders);
        return nullptr;
}

static const char *source_text(enum nd_range_source source) {
        switch (source) {
        case ND_RANGE_SUBIDS:
                return "the subordinate IDs of user 'kubelet'";
        case ND_RANGE_NO_GETSUBIDS:
                return "the default, since user 'kubelet' has no subordinate IDs and getsubids is not installed";
        default:
                return "the default, since there is no user 'kubelet'";
        }
}

/* Formats "namespace/name", or the UID of a pod whose name is unknown. The caller frees it. */
static char *name_text(const struct view *view, const char *uid) {
        const struct cli_pod_name *name = cli_pod_names_get(&view->names, uid);

        return name ? nd_format("%s/%s", name->namespace, name->name) : nd_strdup(uid);
}

static void print_range(const struct view *view) {
        nd_autofree char *range =
                nd_format("%u to %llu (%s)", view->range.first, (unsigned long long) view->range.first + view->range.count - 1,
                          source_text(view->source));
        char quarantined[FORMAT_COUNT];
        nd_autofree char *blocks = nd_format("%u, of %u IDs each; %u free, %u held, %s in quarantine", view->count.usable,
                                             view->config.ids_per_pod, view->count.free, view->count.pods,
                                             cli_format_count(view->count.quarantined, "pod", quarantined));

        cli_field_print("Range", LABEL, range);
        cli_field_print("Blocks", LABEL, blocks);
        putchar('\n');
}

static void print_table(const struct view *view) {
        static const struct cli_column columns[] = {
                {"POD", .kind = COLUMN_SHORTEN, .least = 12}, {"UID", .kind = COLUMN_WHOLE, .drop = 1},
                {"FIRST ID", .kind = COLUMN_NUMBER},          {"LAST ID", .kind = COLUMN_NUMBER},
                {"STATE", .kind = COLUMN_WRAP, .least = 10},  {},
        };
        nd_cleanup(cli_table_done) struct cli_table table = {};

        print_range(view);
        if (view->holders.count == 0) {
                puts("No blocks in use.");
                if (view->no_directory)
                        puts("No kubelet has run here: " KUBELET_ROOT " does not exist.");
                return;
        }
        cli_table_init_columns(&table, columns);
        nd_vector_each (h, &view->holders) {
                nd_autofree char *first =
                        h->extent.count > 0 ? nd_format("%llu", (unsigned long long) h->extent.first) : nd_strdup("unknown");
                nd_autofree char *last =
                        h->extent.count > 0 ? nd_format("%llu", (unsigned long long) (h->extent.first + h->extent.count - 1))
                                            : nd_strdup("unknown");
                nd_autofree char *name = name_text(view, h->uid),
                                 *state = h->problem ? nd_format("quarantine: %s", h->problem) : nd_strdup("held");

                cli_table_row(&table, (const char *[]) {name, h->uid, first, last, state}, nullptr);
        }
        cli_table_print(&table);
}

static void print_json(const struct view *view) {
        nd_autotext struct nd_text text = ND_TEXT(64 << 20);
        struct nd_json_out out = {.text = &text, .indent = 2};

        nd_json_open(&out, nullptr, '{');
        nd_json_open(&out, "range", '{');
        nd_json_number(&out, "first", view->range.first);
        nd_json_number(&out, "count", view->range.count);
        nd_json_string(&out, "source", view->source == ND_RANGE_SUBIDS ? "subids" : "default");
        nd_json_close(&out, '}');
        nd_json_number(&out, "idsPerPod", view->config.ids_per_pod);
        nd_json_number(&out, "maxPods", view->config.max_pods);
        nd_json_open(&out, "blocks", '{');
        nd_json_number(&out, "usable", view->count.usable);
        nd_json_number(&out, "free", view->count.free);
        nd_json_number(&out, "held", view->count.pods);
        nd_json_number(&out, "quarantined", view->count.quarantined);
        nd_json_close(&out, '}');
        nd_json_open(&out, "pods", '[');
        nd_vector_each (h, &view->holders) {
                const struct cli_pod_name *name = cli_pod_names_get(&view->names, h->uid);

                nd_json_open(&out, nullptr, '{');
                nd_json_string(&out, "uid", h->uid);
                nd_json_string(&out, "namespace", name ? name->namespace : nullptr);
                nd_json_string(&out, "name", name ? name->name : nullptr);
                if (h->extent.count > 0) {
                        nd_json_number(&out, "first", h->extent.first);
                        nd_json_number(&out, "count", h->extent.count);
                }
                if (h->problem)
                        nd_json_string(&out, "problem", h->problem);
                nd_json_close(&out, '}');
        }
        nd_json_close(&out, ']');
        nd_json_close(&out, '}');
        puts(nd_text_get(&text));
}

int cli_ids_run(void *settings_pointer, [[maybe_unused]] int operand_count, [[maybe_unused]] char **operands) {
        const struct cli_ids_settings *settings = settings_pointer;
        nd_cleanup(view_done) struct view view = {};
        nd_autoerror struct nd_error *error = read_blocks(settings, &view);

        if (nd_error_errno(error) == EACCES)
                error = nd_error_wrap(nd_take_ptr(error), "only root may read the kubelet's files");
        if (error) {
                (void) cli_sanitize_print_error("ids", error);
                return 2;
        }
        if (view.holders.count > 0)
                cli_pod_names_read(&view.names, settings->socket);
        if (settings->json)
                print_json(&view);
        else
                print_table(&view);
        return view.count.quarantined > 0 ? 1 : 0;
}
