/* SPDX-License-Identifier: Apache-2.0 */
/* plane.c - nodens-rootless-plane: certificates, objects and tokens of a control plane that belongs
 * to an ordinary user. `nodens-rootless` executes it: it has the TLS library, and the keys of the
 * cluster in its memory, which no other program of a node needs. */
#include <stdio.h>

#include "base/log.h"
#include "base/option.h"
#include "base/text.h"
#include "rootless/plane/certificates.h"
#include "rootless/plane/discovery.h"
#include "rootless/plane/token.h"
#include "rootless/plane/wait.h"

#define TEXT_OPTION(type, field, option, value, words)                                                                        \
        {.name = (option),                                                                                                    \
         .kind = ND_OPTION_TEXT,                                                                                              \
         .offset = offsetof(struct type, field),                                                                              \
         .argument = (value),                                                                                                 \
         .help = (words)}

static int finish(struct nd_error *error) {
        nd_autoerror struct nd_error *owned = error;

        if (!owned)
                return EXIT_SUCCESS;
        (void) fprintf(stderr, "nodens-rootless: %s\n", nd_error_text(owned));
        return nd_error_code(owned) == ND_INVALID ? ND_EXIT_USAGE : EXIT_FAILURE;
}

static const struct nd_option certificates_options[] = {
        TEXT_OPTION(rootless_certificates_settings, directory, "directory", "DIRECTORY", "Directory of the control plane"),
        TEXT_OPTION(rootless_certificates_settings, address, "address", "ADDRESS", "Address of the node"),
        TEXT_OPTION(rootless_certificates_settings, listen, "listen", "ADDRESS", "Address of the host"),
        TEXT_OPTION(rootless_certificates_settings, server, "server", "URL", "URL of the API server on the host"),
        TEXT_OPTION(rootless_certificates_settings, node_name, "node-name", "NAME", "Name of the Node object"),
        {}};

static int run_certificates(void *settings, [[maybe_unused]] int operand_count, [[maybe_unused]] char **operands) {
        const struct rootless_certificates_settings *given = settings;

        if (!given->directory || !given->address || !given->listen || !given->server || !given->node_name)
                return finish(nd_error_new(ND_INVALID, 0, "all options are needed"));
        return finish(rootless_certificates_ensure(given));
}

static const struct nd_option wait_options[] = {
        TEXT_OPTION(rootless_wait_settings, name, "name", "NAME", "Name of the node"),
        TEXT_OPTION(rootless_wait_settings, directory, "directory", "DIRECTORY", "Directory of the control plane"),
        TEXT_OPTION(rootless_wait_settings, node_name, "node-name", "NAME", "Name of the Node object"),
        TEXT_OPTION(rootless_wait_settings, since, "since", "MICROSECONDS", "When the command began"),
        {.name = "json",
         .kind = ND_OPTION_FLAG,
         .offset = offsetof(struct rootless_wait_settings, json),
         .help = "Print JSON"},
        {}};

static int run_wait(void *settings, [[maybe_unused]] int operand_count, [[maybe_unused]] char **operands) {
        const struct rootless_wait_settings *given = settings;

        if (!given->name || !given->directory || !given->node_name)
                return finish(nd_error_new(ND_INVALID, 0, "all options but --since and --json are needed"));
        return finish(rootless_plane_wait(given));
}

static const struct nd_option discover_options[] = {
        TEXT_OPTION(rootless_discovery_settings, server, "server", "URL", "URL of the API server"),
        TEXT_OPTION(rootless_discovery_settings, ca_cert_hash, "ca-cert-hash", "HASH", "Hash of the authority's public key"),
        TEXT_OPTION(rootless_discovery_settings, ca, "ca", "FILE", "Certificate of the authority"),
        TEXT_OPTION(rootless_discovery_settings, output, "output", "FILE", "Kubeconfig to write"),
        {}};

static int run_discover(void *settings, [[maybe_unused]] int operand_count, [[maybe_unused]] char **operands) {
        const struct rootless_discovery_settings *given = settings;

        if (!given->server || !given->output)
                return finish(nd_error_new(ND_INVALID, 0, "--server and --output are needed"));
        return finish(rootless_discover(given));
}

static const struct nd_option token_options[] = {
        TEXT_OPTION(rootless_token_settings, name, "name", "NAME", "Name of the node"),
        TEXT_OPTION(rootless_token_settings, directory, "directory", "DIRECTORY", "Directory of the control plane"),
        {.name = "ttl",
         .kind = ND_OPTION_U32,
         .offset = offsetof(struct rootless_token_settings, ttl),
         .argument = "SECONDS",
         .help = "How long the token is valid"},
        {}};

static int run_token(void *settings, int operand_count, char **operands) {
        const struct rootless_token_settings *given = settings;
        const char *verb = operand_count > 0 ? operands[0] : "";

        if (!given->name || !given->directory)
                return finish(nd_error_new(ND_INVALID, 0, "--name and --directory are needed"));
        if (operand_count == 1 && nd_streq(verb, "create"))
                return finish(rootless_token_create(given));
        if (operand_count == 1 && nd_streq(verb, "list"))
                return finish(rootless_token_list(given));
        if (operand_count == 2 && nd_streq(verb, "delete"))
                return finish(rootless_token_delete(given, operands[1]));
        return finish(nd_error_new(ND_INVALID, 0, "token: must be 'create', 'list' or 'delete ID'"));
}

static const struct nd_option_command commands[] = {
        {.name = "certificates",
         .summary = "make and renew the certificates of a control plane",
         .options = certificates_options,
         .settings_size = sizeof(struct rootless_certificates_settings),
         .run = run_certificates},
        {.name = "wait",
         .summary = "wait until a control plane and its node are ready",
         .options = wait_options,
         .settings_size = sizeof(struct rootless_wait_settings),
         .run = run_wait},
        {.name = "discover",
         .summary = "find a cluster with a bootstrap token, which is read from standard input",
         .options = discover_options,
         .settings_size = sizeof(struct rootless_discovery_settings),
         .run = run_discover},
        {.name = "token",
         .summary = "create, list and delete bootstrap tokens",
         .operands = "create | list | delete ID",
         .options = token_options,
         .settings_size = sizeof(struct rootless_token_settings),
         .run = run_token},
        {},
};

static const struct nd_option_program program = {
        .name = "nodens-rootless-plane",
        .summary = "certificates, objects and tokens of a control plane of an ordinary user",
        .commands = commands,
};

int main(int argc, char **argv) {
        nd_log_open();
        return nd_option_run(&program, argc, argv);
}
