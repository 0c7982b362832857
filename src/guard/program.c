/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/program.h"

#include "guard/authorize.h"
#include "guard/certificate.h"
#include "guard/export.h"
#include "guard/import.h"
#include "guard/manifest.h"
#include "guard/serve.h"

static const struct nd_option_command commands[] = {
        {.name = "serve",
         .summary = "answer the API server's admission reviews",
         .operands = "[FILE]",
         .options = guard_serve_options,
         .settings_size = sizeof(struct guard_serve_settings),
         .run = guard_serve_run},
        {.name = "authorize",
         .summary = "answer the API server's questions about access of nodes, which locks those below the version floor",
         .operands = "[FILE]",
         .options = guard_authorize_options,
         .settings_size = sizeof(struct guard_serve_settings),
         .run = guard_authorize_run},
        {.name = "manifest",
         .summary = "print the objects that the cluster needs, for `kubectl apply -f -`",
         .operands = GUARD_MANIFEST_PARTS " ...",
         .operand_values = ND_VALUES_WORDS,
         .operand_words = "crd constraints rbac webhooks deployment network admission kubeconfig guard-kubeconfig nodes "
                          "authorization authorization-kubeconfig authorizer",
         .options = guard_manifest_options,
         .settings_size = sizeof(struct guard_manifest_settings),
         .run = guard_manifest_run},
        {.name = "certificate",
         .summary = "make or renew the guard's certificate, signed by an authority of its own",
         .options = guard_certificate_options,
         .settings_size = sizeof(struct guard_certificate_settings),
         .run = guard_certificate_run},
        {.name = "export",
         .summary = "print the guard's rules as admission policies that API servers evaluate themselves",
         .operands = GUARD_EXPORT_WORDS " ...",
         .operand_values = ND_VALUES_WORDS,
         .operand_words = "constraints user-namespaces",
         .options = guard_export_options,
         .settings_size = sizeof(struct guard_export_command),
         .run = guard_export_run},
        {.name = "import",
         .summary = "print OpenShift's constraints as constraints of the guard",
         .operands = "FILE ...",
         .operand_values = ND_VALUES_FILE,
         .options = guard_import_options,
         .settings_size = sizeof(struct guard_import_command),
         .run = guard_import_run},
        {},
};

const struct nd_option_program guard_program = {
        .name = "nodens-guard",
        .summary = "admission by security context constraints and pod security, for any Kubernetes",
        .commands = commands};
