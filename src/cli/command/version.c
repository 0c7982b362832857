/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command/version.h"

#include <nodens.pb-c.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/core/client.h"
#include "cli/output/sanitize.h"
#include "net/protobuf.h"

#ifndef ND_VERSION
#define ND_VERSION "0"
#endif

static constexpr uint64_t answer_timeout_us = 10 * ND_SECOND_US;

const struct nd_option cli_version_options[] = {
        {.name = "json", .offset = offsetof(struct cli_version_settings, json), .help = "print JSON"},
        CLIENT_SOCKET_OPTION(cli_version_settings),
        {},
};

/* daemon nullptr: it did not respond. */
static void print_json(const Nodens__V1__InfoAnswer *daemon) {
        nd_autotext struct nd_text text = ND_TEXT(64 << 10);
        struct nd_json_out out = {.text = &text, .indent = 2};

        nd_json_open(&out, nullptr, '{');
        nd_json_string(&out, "version", ND_VERSION);
        if (daemon) {
                nd_json_open(&out, "daemon", '{');
                nd_json_string(&out, "runtimeName", daemon->runtime_name);
                nd_json_string(&out, "runtimeVersion", daemon->runtime_version);
                nd_json_string(&out, "runtimeApiVersion", daemon->runtime_api_version);
                nd_json_close(&out, '}');
        } else {
                nd_json_string(&out, "daemon", nullptr);
        }
        nd_json_close(&out, '}');
        puts(nd_text_get(&text));
}

static void print_text(const Nodens__V1__InfoAnswer *daemon) {
        nd_autofree char *name = cli_sanitize_text(daemon->runtime_name),
                         *version = cli_sanitize_text(daemon->runtime_version),
                         *api = cli_sanitize_text(daemon->runtime_api_version);

        printf("nodens-cri %s (runtime %s, CRI %s)\n", version, name, api);
        if (!nd_streq(version, ND_VERSION))
                fputs("nodens version: warning: the versions differ; restart nodens-cri after an upgrade\n", stderr);
}

int cli_version_run(void *settings_pointer, [[maybe_unused]] int operand_count, [[maybe_unused]] char **operands) {
        const struct cli_version_settings *settings = settings_pointer;
        Nodens__V1__InfoRequest request = NODENS__V1__INFO_REQUEST__INIT;
        nd_autoerror struct nd_error *error = nullptr;
        ProtobufCMessage *answer = nullptr;

        error = cli_client_call_within(settings->socket, "/nodens.v1.Node/Info", &request.base,
                                       &nodens__v1__info_answer__descriptor, answer_timeout_us, &answer);
        if (settings->json)
                print_json((const Nodens__V1__InfoAnswer *) answer);
        else
                printf("nodens     %s\n", ND_VERSION);
        if (answer && !settings->json)
                print_text((const Nodens__V1__InfoAnswer *) answer);
        nd_protobuf_free(answer);
        (void) fflush(stdout);
        return error ? cli_sanitize_print_error("version", error) : 0;
}
