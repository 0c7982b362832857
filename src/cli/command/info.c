/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command/info.h"

#include <nodens.pb-c.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/core/client.h"
#include "cli/output/format.h"
#include "cli/output/sanitize.h"
#include "cli/output/table.h"
#include "net/protobuf.h"

enum {
        EXIT_CONDITION = 2,
};

const struct nd_option cli_info_options[] = {
        {.name = "json", .offset = offsetof(struct cli_info_settings, json), .help = "print JSON"},
        CLIENT_SOCKET_OPTION(cli_info_settings),
        {},
};

/* ---- text ---- */

static void print_summary(const Nodens__V1__InfoAnswer *info) {
        nd_autofree char *version = cli_sanitize_text(info->runtime_version),
                         *api = cli_sanitize_text(info->runtime_api_version);
        char pods[FORMAT_COUNT], containers[FORMAT_COUNT], images[FORMAT_COUNT], age[FORMAT_AGE];

        printf("nodens-cri %s, CRI %s\n", version, api);
        printf("%s, %s, %s\n", cli_format_count(info->pods, "pod", pods),
               cli_format_count(info->containers, "container", containers), cli_format_count(info->images, "image", images));
        if (info->status_asked_at > 0)
                printf("last call of a kubelet: %s ago\n", cli_format_age(info->status_asked_at, nd_clock_wall_ns(), age));
        else
                puts("last call of a kubelet: none since the start");
}

static void print_conditions(const Nodens__V1__InfoAnswer *info) {
        static const char *const headings[] = {"CONDITION", "STATUS", "REASON", nullptr};
        nd_cleanup(cli_table_done) struct cli_table table = {};

        cli_table_init(&table, headings);
        for (size_t i = 0; i < info->n_conditions; i++) {
                const Nodens__V1__ConditionEntry *condition = info->conditions[i];
                nd_autofree char *name = cli_sanitize_text(condition->name), *reason = cli_sanitize_text(condition->reason),
                                 *message = cli_sanitize_text(condition->message),
                                 *text = nd_format("%s%s%s", reason, *message ? ": " : "", message);

                cli_table_row(&table, (const char *[]) {name, condition->met ? "yes" : "no", text},
                              condition->met ? nullptr : "red");
        }
        cli_table_print(&table);
}

static void print_features(const Nodens__V1__InfoAnswer *info) {
        static const struct cli_column columns[] = {
                {"HANDLER", .kind = COLUMN_SHORTEN, .least = 9},
                {"FEATURE", .kind = COLUMN_WRAP, .least = 12},
                {"SELF-TEST", .kind = COLUMN_WRAP, .least = 24},
                {},
        };
        nd_cleanup(cli_table_done) struct cli_table table = {};

        cli_table_init_columns(&table, columns);
        for (size_t i = 0; i < info->n_handlers; i++) {
                nd_autofree char *handler = cli_sanitize_text(info->handlers[i]->name),
                                 *flaw = cli_sanitize_text(info->handlers[i]->flaw);

                for (size_t f = 0; f < info->handlers[i]->n_features; f++) {
                        const Nodens__V1__FeatureEntry *feature = info->handlers[i]->features[f];
                        nd_autofree char *name = cli_sanitize_text(feature->name),
                                         *problem = cli_sanitize_text(feature->problem);

                        cli_table_row(&table,
                                      (const char *[]) {*handler ? handler : "(default)", name, *problem ? problem : "works"},
                                      *problem ? "red" : nullptr);
                }
                if (*flaw)
                        cli_table_row(&table, (const char *[]) {*handler ? handler : "(default)", "known flaw", flaw}, "red");
        }
        cli_table_print(&table);
}

static void print_settings(const Nodens__V1__InfoAnswer *info) {
        static const char *const headings[] = {"SETTING", "VALUE", nullptr};
        nd_cleanup(cli_table_done) struct cli_table table = {};

        cli_table_init(&table, headings);
        for (size_t i = 0; i < info->n_settings; i++) {
                nd_autofree char *name = cli_sanitize_text(info->settings[i]->name),
                                 *value = cli_sanitize_text(info->settings[i]->value);

                cli_table_row(&table, (const char *[]) {name, *value ? value : "-"}, nullptr);
        }
        cli_table_print(&table);
}

static void print_text(const Nodens__V1__InfoAnswer *info) {
        print_summary(info);
        putchar('\n');
        print_conditions(info);
        putchar('\n');
        print_features(info);
        putchar('\n');
        print_settings(info);
}

/* ---- JSON ---- */

static void json_conditions(struct nd_json_out *out, const Nodens__V1__InfoAnswer *info) {
        nd_json_open(out, "conditions", '{');
        for (size_t i = 0; i < info->n_conditions; i++) {
                nd_json_open(out, info->conditions[i]->name, '{');
                nd_json_bool(out, "status", info->conditions[i]->met);
                nd_json_string(out, "reason", info->conditions[i]->reason);
                nd_json_string(out, "message", info->conditions[i]->message);
                nd_json_close(out, '}');
        }
        nd_json_close(out, '}');
}

static void json_handlers(struct nd_json_out *out, const Nodens__V1__InfoAnswer *info) {
        nd_json_open(out, "handlers", '[');
        for (size_t i = 0; i < info->n_handlers; i++) {
                nd_json_open(out, nullptr, '{');
                nd_json_string(out, "name", info->handlers[i]->name);
                nd_json_open(out, "selfTest", '{');
                for (size_t f = 0; f < info->handlers[i]->n_features; f++) {
                        const Nodens__V1__FeatureEntry *feature = info->handlers[i]->features[f];

                        nd_json_string(out, feature->name, *feature->problem ? feature->problem : "works");
                }
                nd_json_close(out, '}');
                nd_json_string(out, "flaw", *info->handlers[i]->flaw ? info->handlers[i]->flaw : nullptr);
                nd_json_close(out, '}');
        }
        nd_json_close(out, ']');
}

static void print_json(const Nodens__V1__InfoAnswer *info) {
        nd_autotext struct nd_text text = ND_TEXT(16 << 20);
        struct nd_json_out out = {.text = &text, .indent = 2};

        nd_json_open(&out, nullptr, '{');
        nd_json_string(&out, "runtimeName", info->runtime_name);
        nd_json_string(&out, "runtimeVersion", info->runtime_version);
        nd_json_string(&out, "runtimeApiVersion", info->runtime_api_version);
        nd_json_number(&out, "pods", info->pods);
        nd_json_number(&out, "containers", info->containers);
        nd_json_number(&out, "images", info->images);
        nd_json_number(&out, "statusAskedAt", info->status_asked_at);
        json_conditions(&out, info);
        json_handlers(&out, info);
        nd_json_open(&out, "configuration", '{');
        for (size_t i = 0; i < info->n_settings; i++)
                nd_json_string(&out, info->settings[i]->name, info->settings[i]->value);
        nd_json_close(&out, '}');
        nd_json_close(&out, '}');
        puts(nd_text_get(&text));
}

int cli_info_run(void *settings_pointer, [[maybe_unused]] int operand_count, [[maybe_unused]] char **operands) {
        const struct cli_info_settings *settings = settings_pointer;
        Nodens__V1__InfoRequest request = NODENS__V1__INFO_REQUEST__INIT;
        nd_autoerror struct nd_error *error = nullptr;
        const Nodens__V1__InfoAnswer *info;
        ProtobufCMessage *answer = nullptr;
        bool met = true;

        error = cli_client_call(settings->socket, "/nodens.v1.Node/Info", &request.base, &nodens__v1__info_answer__descriptor,
                                &answer);
        if (error)
                return cli_sanitize_print_error("info", error);
        info = (const Nodens__V1__InfoAnswer *) answer;
        (settings->json ? print_json : print_text)(info);
        for (size_t i = 0; i < info->n_conditions; i++)
                met = met && info->conditions[i]->met;
        nd_protobuf_free(answer);
        return met ? 0 : EXIT_CONDITION;
}
